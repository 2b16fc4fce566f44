/* SPDX-License-Identifier: Apache-2.0 */
/* What other nodes end is let go of here, all of it and nothing else. */
#include "test.h"

#include "base/clock.h"
#include "base/log.h"
#include "crypto/hash.h"
#include "session/remote_changes.h"
#include "store/store_impl.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* A store of which only the changes matter; asked on the lookup lane alone while the loop runs. */
struct changing {
    struct store base;
    struct change_row rows[450];
    size_t n;
    int fails;     /* so many times */
    int rows_fail; /* so many reads of rows */
    int asked;
    atomic_int read;        /* rows of sessions */
    struct change_row late; /* comes in while the first question is answered; id 0: none */
    struct str toolsets;    /* of every session */
};

struct rig {
    struct changing store;
    struct store *memory;
    struct loop *loop;
    struct lanes *lanes;
    struct sessions *sessions;
    struct change_poller *poller;
    struct remote_changes *remote_changes;
    size_t told, wanted;
    void (*on_ended)(void *arg, struct str tenant, struct str id); /* NULL: counted */
    void (*on_transport)(void *arg, struct transport *t);
    void (*on_toolsets)(void *arg, struct session *s);
};

static bool on_changes(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                       struct change_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct changing *c = container_of(s, struct changing, base);
    size_t n = 0;
    c->asked++;
    if (c->fails > 0) {
        c->fails--;
        return error_set(err, ERR_UNAVAILABLE, "gone");
    }
    *ret_rows = arena_zalloc(mem, limit * sizeof(**ret_rows));
    if (after < 0 && c->n)
        (*ret_rows)[n++] = c->rows[c->n - 1];
    for (size_t i = 0; after >= 0 && i < c->n && n < limit; i++)
        if (c->rows[i].id > after)
            (*ret_rows)[n++] = c->rows[i];
    *ret_n = n;
    if (c->late.id && c->asked == 1)
        c->rows[c->n++] = c->late;
    return true;
}

/* The same credentials and toolsets for whoever is asked for. */
static bool on_by_id(struct store *s, const struct principal *who, struct str id, struct arena *mem,
                     struct session_row **ret_row, struct error *err)
{
    struct changing *c = container_of(s, struct changing, base);

    assert_true(who->tenant_wide);
    if (c->rows_fail > 0) {
        c->rows_fail--;
        return error_set(err, ERR_UNAVAILABLE, "gone");
    }
    *ret_row = arena_new_of(mem, struct session_row);
    (*ret_row)->id = id;
    (*ret_row)->sealed_auth = STR("newer");
    (*ret_row)->toolsets = c->toolsets;
    c->read++;
    return true;
}

static void on_close(struct store *s)
{
    (void)s;
}

static bool on_call(struct store *s, struct store_call *c, struct error *err)
{
    switch (c->verb) {
    case VERB_CHANGES:
        return on_changes(s, c->after_id, c->limit, c->mem, (struct change_row **)&c->rows, &c->n,
                          err);
    case VERB_SESSION_BY_ID:
        return on_by_id(s, c->who, c->id, c->mem, (struct session_row **)&c->rows, err);
    case VERB_SESSIONS_FIND:
        return store_find_each(s, c, err);
    default:
        return error_set(err, ERR_INTERNAL, "not asked for %s", store_verbs[c->verb].name);
    }
}

static const struct store_ops changing_ops = {
    .name = "changing", .close = on_close, .call = on_call};

static void on_ended(void *arg, struct str tenant, struct str id)
{
    struct rig *r = arg;
    assert_true(tenant.n > 0 && id.n > 0);
    if (++r->told == r->wanted)
        loop_stop(r->loop);
}

static void rig_start(struct rig *r, int64_t after)
{
    struct error err;
    log_setup(LOG_ERROR + 1, 0);
    r->store.base.ops = &changing_ops;
    assert_true(store_open_memory(&r->memory, &err));
    r->loop = loop_new();
    struct lanes_config lanes = {
        .write = r->memory, .lookup = &r->store.base, .query = &r->store.base};
    r->lanes = lanes_new(r->loop, &lanes);
    struct sessions_config sessions = {
        .lanes = r->lanes, .node = STR("node"), .writer = 1, .max_resident = 4};
    r->sessions = sessions_new(&sessions);
    struct change_poller_config poller = {.loop = r->loop, .lanes = r->lanes, .after = after};
    r->poller = change_poller_new(&poller);
    struct remote_changes_config config = {.lanes = r->lanes,
                                           .sessions = r->sessions,
                                           .poller = r->poller,
                                           .ended = r->on_ended ? r->on_ended : on_ended,
                                           .transport_ended = r->on_transport,
                                           .toolsets_changed = r->on_toolsets,
                                           .arg = r};
    r->remote_changes = remote_changes_new(&config);
}

static void rig_stop(struct rig *r)
{
    change_poller_stop(r->poller);
    remote_changes_stop(r->remote_changes);
    lanes_free(r->lanes);
    remote_changes_free(r->remote_changes);
    change_poller_free(r->poller);
    sessions_free(r->sessions);
    loop_free(r->loop);
}

static struct session *resident(struct rig *r, const char *tenant, const char *owner)
{
    struct principal who = {.tenant = str_of(tenant), .owner = str_of(owner)};
    struct session_new_args args = {
        .who = &who, .origin = ORIGIN_TRANSPORT, .carrier = STR("transport")};
    struct session *s = session_new(r->sessions, &args);
    s->stored = true;
    return s;
}

static void ends(struct rig *r, int64_t id, enum change_kind kind, struct str tenant,
                 struct str name)
{
    r->store.rows[r->store.n++] =
        (struct change_row){.id = id, .kind = kind, .tenant = tenant, .name = name};
}

TEST(test_remote_changes__forgets_what_ended_elsewhere_and_nothing_else)
{
    struct rig r = {.wanted = 2};
    rig_start(&r, 10);
    struct session *old = resident(&r, "default", "local");
    struct session *gone = resident(&r, "default", "user:1");
    struct session *other_tenant = resident(&r, "b", "local");
    struct session *key = resident(&r, "default", "local");
    ends(&r, 10, CHANGE_SESSION_ENDED, STR("default"), old->id); /* before we began */
    ends(&r, 11, CHANGE_SESSION_ENDED, STR("default"), other_tenant->id);
    ends(&r, 12, CHANGE_KEY_REVOKED, STR("default"), key->id);
    ends(&r, 14, CHANGE_SESSION_ENDED, STR("default"), gone->id);
    loop_run(r.loop);
    assert_true(gone->ended);
    assert_false(old->ended || other_tenant->ended || key->ended);
    session_unref(old);
    session_unref(gone);
    session_unref(other_tenant);
    session_unref(key);
    assert_int_equal(sessions_resident(r.sessions), 3);
    rig_stop(&r);
}

TEST(test_remote_changes__full_pages_are_followed_at_once_and_failures_skip_nothing)
{
    struct rig r = {.wanted = 401, .store.fails = 1};
    for (int i = 0; i < 401; i++)
        ends(&r, 1 + i, CHANGE_SESSION_ENDED, STR("default"), STR("not resident"));
    rig_start(&r, 0);
    loop_run(r.loop);
    assert_int_equal(r.told, 401);
    assert_int_equal(r.store.asked, 4); /* a failure, two full pages, the rest */
    rig_stop(&r);
}

TEST(test_change_poller_position__is_the_newest_there_is)
{
    struct rig r = {0};
    struct error err;
    int64_t at = -1;
    r.store.base.ops = &changing_ops;
    assert_true(change_poller_position(&r.store.base, &at, &err));
    assert_int_equal(at, 0);
    ends(&r, 7, CHANGE_SESSION_ENDED, STR("default"), STR("x"));
    assert_true(change_poller_position(&r.store.base, &at, &err));
    assert_int_equal(at, 7);
    r.store.fails = 1;
    assert_false(change_poller_position(&r.store.base, &at, &err));
    assert_int_equal(at, 7);
}

TEST(test_remote_changes__a_nudge_asks_at_once_and_again_when_a_question_is_under_way)
{
    struct rig r = {.wanted = 2};
    int64_t began = clock_mono_ms();
    rig_start(&r, 0);
    struct session *first = resident(&r, "default", "user:1");
    struct session *second = resident(&r, "default", "user:2");
    ends(&r, 1, CHANGE_SESSION_ENDED, STR("default"), first->id);
    r.store.late = (struct change_row){
        .id = 2, .kind = CHANGE_SESSION_ENDED, .tenant = STR("default"), .name = second->id};
    change_poller_nudge(r.poller);
    change_poller_nudge(r.poller);
    loop_run(r.loop);
    assert_true(first->ended && second->ended);
    assert_true(clock_mono_ms() - began <
                CHANGE_POLL_MS); /* by itself it would not have asked yet */
    session_unref(first);
    session_unref(second);
    rig_stop(&r);
}

static void on_sealed(void *arg, struct str link_key)
{
    struct rig *r = arg;
    assert_true(str_starts(link_key, STR("s:")));
    if (++r->told == r->wanted)
        loop_stop(r->loop);
}

TEST(test_remote_changes__other_credentials_are_taken_over_and_those_known_are_no_news)
{
    struct rig r = {.wanted = 2};
    rig_start(&r, 0);
    sessions_on_sealed(r.sessions, on_sealed, &r);
    struct session *changed = resident(&r, "default", "user:1");
    struct session *own = resident(&r, "default", "user:2");
    sessions_sealed(r.sessions, STR("default"), own->id, STR("newer")); /* done here */
    assert_int_equal(r.told, 1);
    ends(&r, 1, CHANGE_SESSION_SEALED, STR("default"), own->id);
    ends(&r, 2, CHANGE_SESSION_SEALED, STR("default"), changed->id);
    change_poller_nudge(r.poller);
    loop_run(r.loop);
    assert_true(str_eq(changed->sealed_auth, STR("newer")));
    assert_true(str_eq(own->sealed_auth, STR("newer")));
    assert_int_equal(r.told, 2);
    assert_false(changed->ended);
    session_unref(changed);
    session_unref(own);
    rig_stop(&r);
}

static void on_transport(void *arg, struct transport *t)
{
    struct rig *r = arg;
    assert_int_equal(t->id_hash[0], 0x11);
    transport_forget(t);
    r->told++;
    loop_stop(r->loop);
}

TEST(test_remote_changes__a_transport_that_ended_elsewhere_is_told_when_it_is_here)
{
    struct rig r = {0};
    struct transport_row row = {.tenant = STR("default"), .owner = STR("user:1 x")};
    memset(row.id_hash, 0x11, sizeof(row.id_hash));
    r.on_transport = on_transport;
    rig_start(&r, 0);
    struct transport *t = transport_new(r.sessions, &row);
    char name[128], hex[65];
    hex_encode(row.id_hash, sizeof(row.id_hash), hex);
    snprintf(name, sizeof(name), "%s user:1 x", hex);
    ends(&r, 1, CHANGE_TRANSPORT_ENDED, STR("default"), STR("nonsense"));
    ends(&r, 2, CHANGE_TRANSPORT_ENDED, STR("other"), str_of(name));
    ends(&r, 3, CHANGE_TRANSPORT_ENDED, STR("default"), str_of(name));
    ends(&r, 4, CHANGE_TRANSPORT_ENDED, STR("default"), str_of(name)); /* is gone by then */
    change_poller_nudge(r.poller);
    loop_run(r.loop);
    assert_int_equal(r.told, 1);
    transport_unref(t);
    rig_stop(&r);
}

static void on_toolsets(void *arg, struct session *s)
{
    struct rig *r = arg;
    assert_true(str_eq(s->toolsets, r->store.toolsets));
    if (++r->told == r->wanted)
        loop_stop(r->loop);
}

TEST(test_remote_changes__toolsets_of_another_node_are_taken_over_and_those_known_are_no_news)
{
    struct rig r = {.wanted = 1, .on_toolsets = on_toolsets, .store.toolsets = STR("read,write")};
    rig_start(&r, 0);
    struct session *own = resident(&r, "default", "user:1");
    struct session *changed = resident(&r, "default", "user:2");
    struct session *other = resident(&r, "default", "user:3");
    session_change_toolsets(own, STR("read,write"));
    session_toolsets_write_done(own);
    session_take_toolsets(changed, STR("read"));
    ends(&r, 1, CHANGE_SESSION_TOOLSETS, STR("default"), own->id);
    ends(&r, 2, CHANGE_SESSION_TOOLSETS, STR("b"), other->id); /* another's of the same id */
    ends(&r, 3, CHANGE_SESSION_TOOLSETS, STR("default"), STR("not resident"));
    ends(&r, 4, CHANGE_SESSION_TOOLSETS, STR("default"), changed->id);
    change_poller_nudge(r.poller);
    loop_run(r.loop);
    assert_true(str_eq(changed->toolsets, STR("read,write")));
    assert_true(str_eq(own->toolsets, STR("read,write")));
    assert_null(other->toolsets.p);
    assert_int_equal(r.told, 1);
    session_unref(own);
    session_unref(changed);
    session_unref(other);
    rig_stop(&r);
}

static void on_first_end(void *arg, struct str tenant, struct str id)
{
    struct rig *r = arg;
    (void)tenant, (void)id;
    r->told++;
}

/* Returns when the lane has read these rows, and the loop does not know them yet. */
static void read_rows(struct rig *r, int rows)
{
    change_poller_nudge(r->poller);
    while (!r->told) /* on_first_end(): the rows are asked for in this turn */
        loop_turn(r->loop);
    while (r->store.read < rows)
        usleep(1000);
    r->told = 0;
}

TEST(test_remote_changes__toolsets_that_are_changed_here_meanwhile_are_read_again)
{
    struct rig r = {.wanted = 2,
                    .on_ended = on_first_end,
                    .on_toolsets = on_toolsets,
                    .store.toolsets = STR("theirs")};
    rig_start(&r, 0);
    struct session *moved = resident(&r, "default", "user:1");
    struct session *moving = resident(&r, "default", "user:2");
    session_change_toolsets(moving, STR("mine"));
    ends(&r, 1, CHANGE_SESSION_ENDED, STR("default"), STR("not resident"));
    ends(&r, 2, CHANGE_SESSION_TOOLSETS, STR("default"), moved->id);
    ends(&r, 3, CHANGE_SESSION_TOOLSETS, STR("default"), moving->id);
    ends(&r, 4, CHANGE_SESSION_TOOLSETS, STR("default"), moving->id);
    read_rows(&r, 2);
    session_change_toolsets(moved, STR("mine"));
    session_toolsets_write_done(moved);
    loop_turn(r.loop);
    assert_true(str_eq(moved->toolsets, STR("mine")));
    assert_true(str_eq(moving->toolsets, STR("mine")));
    session_toolsets_write_done(moving);
    r.store.toolsets = STR("mine,theirs");
    loop_run(r.loop);
    assert_true(str_eq(moved->toolsets, STR("mine,theirs")));
    assert_true(str_eq(moving->toolsets, STR("mine,theirs")));
    assert_int_equal(r.told, 2);
    session_unref(moved);
    session_unref(moving);
    rig_stop(&r);
}

TEST(test_remote_changes__credentials_that_are_changed_here_meanwhile_are_not_undone)
{
    struct rig r = {.wanted = 1, .on_ended = on_first_end};
    rig_start(&r, 0);
    struct session *s = resident(&r, "default", "user:1");
    ends(&r, 1, CHANGE_SESSION_ENDED, STR("default"), STR("not resident"));
    ends(&r, 2, CHANGE_SESSION_SEALED, STR("default"), s->id);
    read_rows(&r, 1); /* they are "newer" */
    sessions_sealed(r.sessions, STR("default"), s->id, STR("newest"));
    loop_turn(r.loop);
    assert_true(str_eq(s->sealed_auth, STR("newest")));
    session_unref(s);
    rig_stop(&r);
}

TEST(test_remote_changes__a_row_that_cannot_be_read_holds_up_no_other_change)
{
    struct rig r = {.wanted = 2, .store.rows_fail = 1};
    rig_start(&r, 0);
    sessions_on_sealed(r.sessions, on_sealed, &r);
    struct session *sealed = resident(&r, "default", "user:1");
    ends(&r, 1, CHANGE_SESSION_SEALED, STR("default"), sealed->id);
    ends(&r, 2, CHANGE_SESSION_ENDED, STR("default"), STR("not resident"));
    change_poller_nudge(r.poller);
    loop_run(r.loop);
    assert_true(str_eq(sealed->sealed_auth, STR("newer"))); /* after the next poll */
    assert_int_equal(r.store.asked, 2);
    session_unref(sealed);
    rig_stop(&r);
}

/* A second listener, as identity is. */
struct second {
    unsigned taken, polled;
    int64_t last;
};

static void second_takes(void *arg, const struct change_row *row)
{
    struct second *second = arg;
    second->taken++;
    assert_true(row->id > second->last);
    second->last = row->id;
}

static void second_polled(void *arg)
{
    ((struct second *)arg)->polled++;
}

TEST(test_change_poller__every_listener_gets_every_change_once_from_one_query)
{
    struct rig r = {.wanted = 2};
    struct second second = {0};
    rig_start(&r, 0);
    change_poller_add(r.poller, &(struct change_listener){second_takes, second_polled, &second});
    ends(&r, 1, CHANGE_SESSION_ENDED, STR("default"), STR("x"));
    ends(&r, 2, CHANGE_KEY_REVOKED, STR("default"), STR("y"));
    ends(&r, 3, CHANGE_SESSION_ENDED, STR("default"), STR("z"));
    change_poller_nudge(r.poller);
    loop_run(r.loop);
    assert_int_equal(second.taken, 3);
    assert_int_equal(second.polled, 1);
    assert_int_equal(r.store.asked, 1);
    rig_stop(&r);
}

TEST(test_remote_changes__a_carrier_that_was_bound_elsewhere_is_looked_up_and_others_are_not)
{
    struct rig r = {.wanted = 1};
    rig_start(&r, 0);
    const struct principal who = {.tenant = STR("default"), .owner = STR("user:1")};
    struct session *gone = resident(&r, "default", "user:1");
    assert_false(sessions_may_be_bound(r.sessions, &who, STR("derived"), STR("cursor")));
    ends(&r, 1, CHANGE_CARRIER_BOUND, STR("default"), STR("637572736f72 64657269766564 user:1"));
    ends(&r, 2, CHANGE_SESSION_ENDED, STR("default"), gone->id);
    loop_run(r.loop);
    assert_true(sessions_may_be_bound(r.sessions, &who, STR("derived"), STR("cursor")));
    session_unref(gone);
    rig_stop(&r);
}
