/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups of sessions and transports: what other nodes linked is found, and what changed while its
 * row was read is read again. */
#include "test.h"

#include "base/clock.h"
#include "crypto/hash.h"
#include "session/session.h"
#include "store/store_impl.h"

#include <stdatomic.h>
#include <unistd.h>

#define ID "00000000-0000-7000-8000-00000000000a"

static const struct principal alice = {STR("acme"), STR("user:alice"), ROLE_MEMBER};

/* One transport, and its session once it is linked. */
struct one_store {
    struct store base;
    bool is_linked, fails;
    int asked;
    enum session_status status;
    struct str sealed_auth;
    atomic_int reads; /* of a session with its links */
};

static bool on_transport(struct store *s, const struct principal *who, const uint8_t id_hash[32],
                         struct arena *mem, struct transport_row **ret, struct error *err)
{
    struct one_store *one = container_of(s, struct one_store, base);
    one->asked++;
    if (one->fails)
        return error_set(err, ERR_UNAVAILABLE, "gone");
    *ret = arena_new_of(mem, struct transport_row);
    **ret = (struct transport_row){.tenant = who->tenant,
                                   .owner = who->owner,
                                   .endpoint = STR("/mcp"),
                                   .protocol_version = STR("2025-11-25"),
                                   .session_id = one->is_linked ? STR(ID) : STR_NONE,
                                   .created_ms = clock_life_ms(),
                                   .last_used_ms = clock_life_ms()};
    memcpy((*ret)->id_hash, id_hash, sizeof((*ret)->id_hash));
    return true;
}

static bool on_session(struct store *s, const struct principal *who, struct str id,
                       struct arena *mem, struct session_row **ret, struct error *err)
{
    const struct one_store *one = container_of(s, struct one_store, base);

    (void)err;
    *ret = arena_new_of(mem, struct session_row);
    **ret = (struct session_row){.id = id,
                                 .handle = STR("ses_x"),
                                 .tenant = who->tenant,
                                 .owner = who->owner,
                                 .carrier = STR("transport"),
                                 .toolsets = STR("read"),
                                 .status = one->status,
                                 .sealed_auth = one->sealed_auth,
                                 .created_ms = clock_life_ms(),
                                 .last_activity_ms = clock_life_ms()};
    return true;
}

static bool on_links(struct store *s, const struct principal *who, struct str id, struct arena *mem,
                     struct link_row **ret_rows, size_t *ret_n, struct error *err)
{
    (void)who, (void)id, (void)err;
    *ret_rows = arena_new_of(mem, struct link_row);
    *ret_n = 0;
    container_of(s, struct one_store, base)->reads++;
    return true;
}

static void on_close(struct store *s)
{
    (void)s;
}

static bool on_call(struct store *s, struct store_call *c, struct error *err)
{
    switch (c->verb) {
    case VERB_TRANSPORT_GET:
        return on_transport(s, c->who, c->hash, c->mem, (struct transport_row **)&c->rows, err);
    case VERB_SESSION_BY_ID:
        return on_session(s, c->who, c->id, c->mem, (struct session_row **)&c->rows, err);
    case VERB_SESSION_BY_HANDLE:
        return on_session(s, c->who, STR(ID), c->mem, (struct session_row **)&c->rows, err);
    case VERB_SESSIONS_FIND:
        return store_find_each(s, c, err);
    case VERB_LINKS_OF:
        return on_links(s, c->who, c->session_id, c->mem, (struct link_row **)&c->rows, &c->n, err);
    default:
        return error_set(err, ERR_INTERNAL, "not asked for %s", store_verbs[c->verb].name);
    }
}

static const struct store_ops one_ops = {.name = "one", .close = on_close, .call = on_call};

struct rig {
    struct one_store store;
    struct store *memory;
    struct loop *loop;
    struct lanes *lanes;
    struct sessions *sessions;
    struct session_query query;
};

static void rig_start(struct rig *r, bool is_shared)
{
    struct error err;
    r->store.base.ops = &one_ops;
    assert_true(store_open_memory(&r->memory, &err));
    r->loop = loop_new();
    struct lanes_config lanes = {
        .write = r->memory, .lookup = &r->store.base, .query = &r->store.base};
    r->lanes = lanes_new(r->loop, &lanes);
    struct sessions_config sessions = {.lanes = r->lanes,
                                       .node = STR("node"),
                                       .writer = 1,
                                       .max_resident = 4,
                                       .is_shared = is_shared};
    r->sessions = sessions_new(&sessions);
}

static void rig_stop(struct rig *r)
{
    lanes_free(r->lanes);
    sessions_free(r->sessions);
    loop_free(r->loop);
}

static void on_found(struct session_query *q)
{
    loop_stop(container_of(q, struct rig, query)->loop);
}

/* How often the store was asked; the caller's references are given back. */
static int find(struct rig *r)
{
    int before = r->store.asked;
    r->query = (struct session_query){
        .by = BY_TRANSPORT, .who = &alice, .name = STR("some-id"), .done = on_found};
    if (!session_find(r->sessions, &r->query))
        loop_run(r->loop);
    assert_true(r->query.ok);
    assert_non_null(r->query.transport);
    session_unref(r->query.session);
    transport_unref(r->query.transport);
    return r->store.asked - before;
}

TEST(test_session_find__sees_the_session_that_another_node_gave_a_resident_transport)
{
    struct rig r = {0};
    rig_start(&r, true);
    assert_int_equal(find(&r), 1);
    assert_null(r.query.session);
    r.store.is_linked = true;
    assert_int_equal(find(&r), 1);
    assert_true(r.query.is_linked && r.query.session == r.query.transport->session);
    assert_true(str_eq(r.query.session->toolsets, STR("read")));
    assert_int_equal(find(&r), 0); /* known from now on */
    assert_true(r.query.session && !r.query.is_linked);
    session_forget(r.query.session); /* ended, and its row is another's by now */
    assert_int_equal(find(&r), 1);
    assert_true(r.query.is_linked && r.query.session);
    rig_stop(&r);
}

TEST(test_session_find__of_a_resident_transport_goes_on_while_the_store_does_not_answer)
{
    struct rig r = {0};
    rig_start(&r, true);
    assert_int_equal(find(&r), 1);
    r.store.fails = true;
    assert_int_equal(find(&r), 1);
    assert_null(r.query.session);
    rig_stop(&r);
}

TEST(test_session_find__asks_nobody_again_where_the_store_is_its_own)
{
    struct rig r = {0};
    rig_start(&r, false);
    assert_int_equal(find(&r), 1);
    assert_int_equal(find(&r), 0);
    rig_stop(&r);
}

static void on_found_by_name(struct session_query *q)
{
    session_unref(q->session);
    loop_stop(container_of(q, struct rig, query)->loop);
}

/* Begins a lookup by handle, and returns when the lane has read the row and the loop does not know
 * it yet. */
static void begin_find(struct rig *r)
{
    int before = r->store.reads;

    r->query = (struct session_query){
        .by = BY_HANDLE, .who = &alice, .name = STR("ses_x"), .done = on_found_by_name};
    assert_false(session_find(r->sessions, &r->query));
    while (r->store.reads == before)
        usleep(1000);
}

TEST(test_session_find__does_not_bring_back_a_session_that_ended_while_its_row_was_read)
{
    struct rig r = {0};
    rig_start(&r, false);
    begin_find(&r);
    r.store.status = SESSION_TERMINATED;
    sessions_ended(r.sessions, STR("acme"), STR(ID));
    loop_run(r.loop);
    assert_true(r.query.ok && r.query.is_over);
    assert_null(r.query.session);
    assert_int_equal(sessions_resident(r.sessions), 0);
    rig_stop(&r);
}

TEST(test_session_find__reads_credentials_again_that_changed_while_their_row_was_read)
{
    struct rig r = {.store.sealed_auth = STR("old")};
    rig_start(&r, false);
    begin_find(&r);
    r.store.sealed_auth = STR("new");
    sessions_sealed(r.sessions, STR("acme"), STR(ID), STR("new"));
    loop_run(r.loop);
    assert_true(str_eq(sessions_by_id(r.sessions, STR("acme"), STR(ID))->sealed_auth, STR("new")));
    assert_int_equal(r.store.reads, 2);
    rig_stop(&r);
}

struct told {
    int n;
    bool had_secrets;
};

static void on_handed_over(void *arg, struct str link_key, bool had_secrets)
{
    struct told *told = arg;

    assert_str(link_key, "s:" ID);
    told->n++;
    told->had_secrets = had_secrets;
}

/* The row has another owner before this process has learned of the hand-over. */
static struct told find_as_new_owner(struct str sealed_auth)
{
    const struct principal bob = {STR("acme"), STR("user:bob"), ROLE_MEMBER};
    struct rig r = {.store.sealed_auth = sealed_auth};
    struct told told = {0};

    rig_start(&r, true);
    sessions_on_handed_over(r.sessions, on_handed_over, &told);
    begin_find(&r);
    loop_run(r.loop);
    assert_int_equal(told.n, 0);
    r.store.sealed_auth = STR_NONE;
    r.query = (struct session_query){
        .by = BY_HANDLE, .who = &bob, .name = STR("ses_x"), .done = on_found_by_name};
    assert_false(session_find(r.sessions, &r.query));
    loop_run(r.loop);
    assert_str(sessions_by_id(r.sessions, STR("acme"), STR(ID))->owner, "user:bob");
    rig_stop(&r);
    return told;
}

TEST(test_session_find__of_a_new_owner_ends_what_the_former_one_left)
{
    struct told told = find_as_new_owner(STR("sealed"));

    assert_true(told.n == 1 && told.had_secrets);
    told = find_as_new_owner(STR_NONE);
    assert_true(told.n == 1 && !told.had_secrets);
}

/* Ends a session that does not share a slot with ID. */
static void end_another(struct rig *r)
{
    char id[] = "00000000-0000-7000-8000-00000000000b";
    uint64_t before;

    do {
        id[0]++;
        before = sessions_changes(r->sessions);
        sessions_changed(r->sessions, str_of(id));
    } while (sessions_changed_since(r->sessions, STR(ID), before));
    begin_find(r);
    sessions_ended(r->sessions, STR("acme"), str_of(id));
}

TEST(test_session_find__a_change_of_another_session_costs_no_second_lookup)
{
    struct rig r = {0};
    rig_start(&r, false);
    end_another(&r);
    loop_run(r.loop);
    assert_int_equal(r.store.reads, 1);
    assert_int_equal(sessions_resident(r.sessions), 1);
    rig_stop(&r);
}

static void change_again(struct session_query *q)
{
    assert_false(q->ok);
    assert_int_equal(q->job.err.code, ERR_UNAVAILABLE);
    loop_stop(container_of(q, struct rig, query)->loop);
}

TEST(test_session_find__gives_up_a_session_that_changes_with_every_lookup)
{
    struct rig r = {0};
    rig_start(&r, false);
    begin_find(&r);
    r.query.done = change_again;
    for (int reads = 1; reads <= 8; reads++) {
        while (r.store.reads < reads)
            usleep(1000);
        sessions_ended(r.sessions, STR("acme"), STR(ID));
        if (reads < 8)
            loop_turn(r.loop);
    }
    loop_run(r.loop);
    assert_int_equal(r.store.reads, 8);
    assert_int_equal(sessions_resident(r.sessions), 0);
    rig_stop(&r);
}
