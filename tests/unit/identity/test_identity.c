/* SPDX-License-Identifier: Apache-2.0 */
/* The service over a store in memory that fails on demand, with the clock in hand. */
#include "test.h"

#include "base/clock.h"
#include "identity/identity_impl.h"
#include "identity/key.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOW INT64_C(1800000000000)

static const struct principal admin = {STR("acme"), STR("local"), ROLE_ADMIN};

struct rig {
    struct loop *loop;
    struct store *store;
    struct lanes *lanes;
    struct config *config;
    struct identity *id;
    struct arena *mem;
    struct key_text key;
    unsigned lookups; /* of keys */
    unsigned done, told;
};

static void on_verb(void *arg, const char *verb, bool ok unused_arg, int64_t us unused_arg)
{
    struct rig *r = arg;
    r->lookups += strcmp(verb, "key_get") == 0;
}

static void write_one(struct rig *r, struct store_op op)
{
    struct error err;
    if (!store_write(r->store, &op, 1, &err))
        fail_msg("%s", err.text);
    assert_int_equal(op.verdict, VERDICT_OK);
}

static void make_key(struct rig *r, struct key_text *k, int64_t expires_ms)
{
    key_make(k);
    struct key_row row = {.id = str_of(k->id),
                          .tenant = STR("acme"),
                          .name = STR("test"),
                          .role = ROLE_MEMBER,
                          .created_ms = NOW,
                          .expires_ms = expires_ms};
    memcpy(row.hash, k->hash, sizeof(row.hash));
    write_one(r, (struct store_op){.kind = OP_KEY_CREATE, .who = &admin, .key = &row});
}

static void rig_open(struct rig *r, bool auth_required)
{
    struct store *memory = NULL;
    struct error err;
    struct tenant_row tenant = {.id = STR("acme"), .created_ms = NOW};
    struct str text = auth_required ? STR("{\"holdfast\":{\"auth\":\"required\"}}") : STR("{}");

    clock_set_fake(NOW, 1000);
    *r = (struct rig){.loop = loop_new(), .mem = arena_new(64u * 1024 * 1024)};
    assert_true(store_open_memory(&memory, &err));
    r->store = store_traced(store_failing(memory), on_verb, r);
    struct lanes_config lanes = {.write = r->store, .lookup = r->store, .query = r->store};
    r->lanes = lanes_new(r->loop, &lanes);
    if (!config_parse(text, STR("test.json"), &(struct config_source){0}, &r->config, &err))
        fail_msg("%s", err.text);
    struct identity_config config = {.loop = r->loop, .lanes = r->lanes};
    if (!identity_new(&config, r->config, &r->id, &err))
        fail_msg("%s", err.text);
    write_one(r, (struct store_op){.kind = OP_TENANT_ENSURE, .who = &admin, .tenant = &tenant});
    make_key(r, &r->key, 0);
}

static void rig_close(struct rig *r)
{
    identity_stop(r->id);
    lanes_free(r->lanes);
    identity_free(r->id);
    loop_free(r->loop);
    config_unref(r->config);
    arena_free(r->mem);
    clock_set_real();
}

static unsigned n_done;

static void on_done(struct identify *q unused_arg)
{
    n_done++;
}

static struct identify question(struct rig *r, const char *name, const char *value)
{
    struct http_head *head = arena_new_of(r->mem, struct http_head);
    if (name)
        head->headers[head->n_headers++] =
            (struct http_header){.name = str_of(name), .value = str_of(value)};
    return (struct identify){.config = r->config, .head = head, .mem = r->mem, .done = on_done};
}

/* Asks and waits. */
static struct identify ask(struct rig *r, const char *name, const char *value)
{
    static struct identify q;

    q = question(r, name, value);
    n_done = 0;
    if (!identify(r->id, &q))
        while (!n_done)
            loop_turn(r->loop);
    return q;
}

static const char *bearer(struct rig *r, const struct key_text *k)
{
    return arena_printf(r->mem, "Bearer %s", k->text).p;
}

TEST(test_identity__no_credential_is_the_local_admin_only_where_none_is_needed)
{
    struct rig r;

    rig_open(&r, false);
    struct identify q = ask(&r, NULL, NULL);
    assert_true(q.ok);
    assert_false(q.had_credential);
    assert_str(q.who.owner, "local");
    rig_close(&r);
    rig_open(&r, true);
    q = ask(&r, NULL, NULL);
    assert_false(q.ok);
    assert_int_equal(q.err.code, ERR_UNAUTHENTICATED);
    q = question(&r, NULL, NULL);
    q.is_unix = true;
    q.peer_uid = geteuid();
    assert_true(identify(r.id, &q) && q.ok);
    q.peer_uid = geteuid() + 1;
    assert_true(identify(r.id, &q) && !q.ok);
    rig_close(&r);
}

TEST(test_identity__a_key_identifies_wherever_it_stands)
{
    struct rig r;

    rig_open(&r, true);
    struct identify q = ask(&r, "authorization", bearer(&r, &r.key));
    assert_true(q.ok);
    assert_str(q.who.tenant, "acme");
    assert_true(q.who.role == ROLE_MEMBER);
    q = ask(&r, "x-api-key", r.key.text);
    assert_true(q.ok);
    q = ask(&r, "authorization", arena_printf(r.mem, "bearer  %s", r.key.text).p);
    assert_true(q.ok);
    q = question(&r, NULL, NULL);
    q.path_key = str_of(r.key.text);
    assert_true(identify(r.id, &q) && q.ok);
    assert_int_equal(r.lookups, 1);
    rig_close(&r);
}

TEST(test_identity__a_credential_that_does_not_hold_is_refused_also_where_none_is_needed)
{
    struct rig r;
    struct key_text other;

    rig_open(&r, false);
    key_make(&other);
    static const char *const bad[] = {"Bearer",       "Bearer ", "Basic YTpi", "hf_", "Bearer hf_x",
                                      "Bearer a.b.c", ""};
    for (size_t i = 0; i < countof(bad); i++) {
        struct identify q = ask(&r, "authorization", bad[i]);
        if (q.ok || q.err.code != ERR_UNAUTHENTICATED || !q.had_credential)
            fail_msg("taken: %s", bad[i]);
    }
    struct identify q = ask(&r, "authorization", bearer(&r, &other));
    assert_false(q.ok);
    assert_int_equal(q.err.code, ERR_UNAUTHENTICATED);
    rig_close(&r);
}

TEST(test_identity__two_credentials_must_be_one)
{
    struct rig r;
    struct key_text other;

    rig_open(&r, true);
    make_key(&r, &other, 0);
    struct identify q = question(&r, "x-api-key", r.key.text);
    q.path_key = str_of(other.text);
    assert_true(identify(r.id, &q));
    assert_false(q.ok);
    rig_close(&r);
}

TEST(test_identity__who_asks_meanwhile_gets_the_same_answer_from_one_lookup)
{
    struct rig r;

    rig_open(&r, true);
    struct identify a = question(&r, "x-api-key", r.key.text);
    struct identify b = question(&r, "x-api-key", r.key.text);
    struct identify gone = question(&r, "x-api-key", r.key.text);
    n_done = 0;
    assert_false(identify(r.id, &a));
    assert_false(identify(r.id, &b));
    assert_false(identify(r.id, &gone));
    identify_cancel(&gone);
    while (n_done < 2)
        loop_turn(r.loop);
    assert_true(a.ok && b.ok && !gone.ok);
    assert_int_equal(r.lookups, 1);
    rig_close(&r);
}

TEST(test_identity__proofs_are_cached_for_a_minute_and_refusals_for_a_second)
{
    struct rig r;
    struct key_text other;

    rig_open(&r, true);
    key_make(&other);
    ask(&r, "x-api-key", r.key.text);
    ask(&r, "x-api-key", other.text);
    assert_int_equal(r.lookups, 2);
    clock_advance_fake(IDENTITY_REFUSED_MS - 1);
    ask(&r, "x-api-key", other.text);
    assert_int_equal(r.lookups, 2);
    clock_advance_fake(1);
    ask(&r, "x-api-key", other.text);
    assert_int_equal(r.lookups, 3);
    clock_advance_fake(IDENTITY_CACHED_MS - IDENTITY_REFUSED_MS - 1);
    ask(&r, "x-api-key", r.key.text);
    assert_int_equal(r.lookups, 3);
    clock_advance_fake(1);
    ask(&r, "x-api-key", r.key.text);
    assert_int_equal(r.lookups, 4);
    rig_close(&r);
}

TEST(test_identity__4096_proofs_are_cached_and_the_oldest_goes_first)
{
    struct rig r;
    struct principal who = {STR("acme"), STR("key:x"), ROLE_MEMBER, .credential = STR("key:x")};
    uint8_t digest[32] = {0};

    rig_open(&r, true);
    for (unsigned i = 0; i < IDENTITY_MAX_CACHED; i++) {
        memcpy(digest, &i, sizeof(i));
        identity_cache_proof(r.id, digest, &who, NULL, 1000);
    }
    assert_int_equal(r.id->proved.n, IDENTITY_MAX_CACHED);
    ask(&r, "x-api-key", r.key.text);
    assert_int_equal(r.id->proved.n, IDENTITY_MAX_CACHED);
    memset(digest, 0, sizeof(digest));
    assert_null(map_get(&r.id->proved.by_digest, str_n((const char *)digest, 32)));
    ask(&r, "x-api-key", r.key.text);
    assert_int_equal(r.lookups, 1);
    rig_close(&r);
}

TEST(test_identity__a_key_past_its_end_is_refused_although_it_was_proved)
{
    struct rig r;
    struct key_text brief;

    rig_open(&r, true);
    make_key(&r, &brief, NOW + 10000);
    assert_true(ask(&r, "x-api-key", brief.text).ok);
    clock_advance_fake(9999);
    assert_true(ask(&r, "x-api-key", brief.text).ok);
    clock_advance_fake(1);
    struct identify q = ask(&r, "x-api-key", brief.text);
    assert_false(q.ok);
    assert_non_null(strstr(q.err.text, "expired"));
    rig_close(&r);
}

static void revoke_key(struct rig *r)
{
    struct key_row row = {.id = str_of(r->key.id), .tenant = STR("acme"), .revoked_ms = NOW};
    write_one(r, (struct store_op){.kind = OP_KEY_REVOKE, .who = &admin, .key = &row});
    identity_revoked(r->id, arena_printf(r->mem, "key:%s", r->key.id));
}

TEST(test_identity__a_revoked_key_is_refused_at_once)
{
    struct rig r;

    rig_open(&r, true);
    assert_true(ask(&r, "x-api-key", r.key.text).ok);
    revoke_key(&r);
    struct identify q = ask(&r, "x-api-key", r.key.text);
    assert_false(q.ok);
    assert_non_null(strstr(q.err.text, "revoked"));
    rig_close(&r);
}

TEST(test_identity__a_revocation_while_it_is_looked_up_counts)
{
    struct rig r;

    rig_open(&r, true);
    struct identify q = question(&r, "x-api-key", r.key.text);
    n_done = 0;
    assert_false(identify(r.id, &q));
    while (r.lookups < 1)
        usleep(100); /* read, not yet told */
    revoke_key(&r);
    while (!n_done)
        loop_turn(r.loop);
    assert_false(q.ok);
    rig_close(&r);
}

struct watch {
    struct identity_watch w;
    struct rig *r;
    struct watch *takes_along;
};

static void on_revoked(struct identity_watch *w)
{
    struct watch *self = container_of(w, struct watch, w);
    self->r->told++;
    if (self->takes_along)
        identity_unwatch(&self->takes_along->w);
}

static struct principal key_holder(struct rig *r)
{
    return ask(r, "x-api-key", r->key.text).who;
}

static void nothing(struct loop_task *task unused_arg)
{
}

static void turn(struct rig *r)
{
    struct loop_task task = {.fn = nothing};
    loop_post(r->loop, &task);
    loop_turn(r->loop);
}

TEST(test_watch__everybody_is_told_once_and_who_left_is_not)
{
    struct rig r;

    rig_open(&r, true);
    struct principal who = key_holder(&r);
    struct watch a = {{on_revoked}, &r}, b = {{on_revoked}, &r}, left = {{on_revoked}, &r};
    identity_watch(r.id, &a.w, &who);
    identity_watch(r.id, &left.w, &who);
    identity_watch(r.id, &b.w, &who);
    identity_unwatch(&left.w);
    identity_unwatch(&left.w);
    revoke_key(&r);
    assert_int_equal(r.told, 0); /* never inside the call */
    turn(&r);
    assert_int_equal(r.told, 2);
    identity_unwatch(&a.w);
    identity_revoked(r.id, who.credential);
    turn(&r);
    assert_int_equal(r.told, 2);
    rig_close(&r);
}

TEST(test_identity_changed_elsewhere__ends_the_key_that_another_node_revoked_and_no_other)
{
    struct rig r;

    rig_open(&r, true);
    struct principal who = key_holder(&r);
    struct watch a = {{on_revoked}, &r};
    struct change_row change = {
        .id = 1, .kind = CHANGE_KEY_REVOKED, .tenant = STR("acme"), .name = STR("another")};
    identity_watch(r.id, &a.w, &who);
    identity_changed_elsewhere(r.id, &change);
    change.name = str_of(r.key.id);
    change.kind = CHANGE_SESSION_ENDED; /* a session of the same name */
    identity_changed_elsewhere(r.id, &change);
    change.kind = CHANGE_LOGIN_ENDED; /* a sign-in of the same name */
    identity_changed_elsewhere(r.id, &change);
    turn(&r);
    assert_int_equal(r.told, 0);
    change.kind = CHANGE_KEY_REVOKED;
    identity_changed_elsewhere(r.id, &change);
    turn(&r);
    assert_int_equal(r.told, 1);
    rig_close(&r);
}

TEST(test_watch__one_may_take_another_along)
{
    struct rig r;

    rig_open(&r, true);
    struct principal who = key_holder(&r);
    struct watch b = {{on_revoked}, &r}, a = {{on_revoked}, &r, &b};
    identity_watch(r.id, &a.w, &who);
    identity_watch(r.id, &b.w, &who);
    revoke_key(&r);
    turn(&r);
    assert_int_equal(r.told, 1);
    rig_close(&r);
}

TEST(test_watch__who_begins_after_the_revocation_is_told_too)
{
    struct rig r;

    rig_open(&r, true);
    struct principal who = key_holder(&r);
    struct watch a = {{on_revoked}, &r};
    revoke_key(&r);
    identity_watch(r.id, &a.w, &who);
    turn(&r);
    assert_int_equal(r.told, 1);
    rig_close(&r);
}

TEST(test_watch__the_end_of_a_key_is_told)
{
    struct rig r;
    struct watch a = {{on_revoked}, &r};

    rig_open(&r, true);
    make_key(&r, &r.key, NOW + 30);
    struct principal who = key_holder(&r);
    identity_watch(r.id, &a.w, &who);
    turn(&r);
    assert_int_equal(r.told, 0);
    clock_advance_fake(30);
    while (!r.told)
        loop_turn(r.loop);
    rig_close(&r);
}

TEST(test_watch__somebody_without_a_credential_is_never_told)
{
    struct rig r;
    struct watch a = {{on_revoked}, &r};

    rig_open(&r, false);
    struct principal who = ask(&r, NULL, NULL).who;
    identity_watch(r.id, &a.w, &who);
    assert_null(a.w.watched);
    rig_close(&r);
}

TEST(test_watch__4096_revocations_are_remembered)
{
    struct rig r;

    rig_open(&r, true);
    for (unsigned i = 0; i <= IDENTITY_MAX_REVOKED; i++)
        identity_revoked(r.id, arena_printf(r.mem, "key:%u", i));
    assert_int_equal(r.id->revoked_by_name.n, IDENTITY_MAX_REVOKED);
    assert_null(map_get(&r.id->revoked_by_name, STR("key:0")));
    assert_non_null(map_get(&r.id->revoked_by_name, STR("key:1")));
    identity_revoked(r.id, STR("key:1"));
    assert_int_equal(r.id->revoked_by_name.n, IDENTITY_MAX_REVOKED);
    clock_advance_fake(IDENTITY_REVOKED_MS);
    identity_revoked(r.id, STR("key:new"));
    assert_int_equal(r.id->revoked_by_name.n, 1);
    rig_close(&r);
}

TEST(test_identity__a_store_that_cannot_say_is_no_refusal)
{
    struct rig r;
    struct store *memory = NULL, *failing;
    struct error err;

    rig_open(&r, true);
    assert_true(store_open_memory(&memory, &err));
    failing = store_failing(memory);
    store_failing_set(failing, 1, false);
    struct lanes_config config = {.write = failing, .lookup = failing, .query = failing};
    struct lanes *lanes = lanes_new(r.loop, &config);
    r.id->config.lanes = lanes;
    struct identify q = ask(&r, "x-api-key", r.key.text);
    assert_false(q.ok);
    assert_int_equal(q.err.code, ERR_UNAVAILABLE);
    r.id->config.lanes = r.lanes;
    assert_true(ask(&r, "x-api-key", r.key.text).ok);
    lanes_free(lanes);
    rig_close(&r);
}

TEST(test_identity__the_use_of_a_key_is_written_at_most_every_five_minutes)
{
    struct rig r;
    struct key_row *row = NULL;
    struct error err;

    rig_open(&r, true);
    ask(&r, "x-api-key", r.key.text);
    for (;;) {
        assert_true(store_key_get(r.store, str_of(r.key.id), r.mem, &row, &err));
        if (row->last_used_ms)
            break;
        usleep(1000);
    }
    assert_int_equal(row->last_used_ms, NOW);
    clock_advance_fake(KEY_USED_EVERY_MS - 1);
    ask(&r, "x-api-key", r.key.text);
    turn(&r);
    assert_true(store_key_get(r.store, str_of(r.key.id), r.mem, &row, &err));
    assert_int_equal(row->last_used_ms, NOW);
    rig_close(&r);
}

TEST(test_identity__1024_credentials_are_looked_up_at_once_and_no_more)
{
    struct rig r;
    struct key_text key;
    struct identify *all;

    rig_open(&r, true);
    all = calloc(IDENTITY_MAX_PROOFS + 1, sizeof(*all));
    n_done = 0;
    for (unsigned i = 0; i < IDENTITY_MAX_PROOFS; i++) {
        key_make(&key);
        all[i] = question(&r, "x-api-key", arena_dup(r.mem, str_of(key.text)).p);
        assert_false(identify(r.id, &all[i]));
    }
    key_make(&key);
    struct identify *last = &all[IDENTITY_MAX_PROOFS];
    *last = question(&r, "x-api-key", key.text);
    assert_true(identify(r.id, last));
    assert_int_equal(last->err.code, ERR_UNAVAILABLE);
    while (n_done < IDENTITY_MAX_PROOFS)
        loop_turn(r.loop);
    assert_false(identify(r.id, last));
    while (n_done <= IDENTITY_MAX_PROOFS)
        loop_turn(r.loop);
    assert_int_equal(last->err.code, ERR_UNAUTHENTICATED);
    assert_true(r.id->refused.n <= IDENTITY_MAX_REFUSED);
    free(all);
    rig_close(&r);
}

/* Of one address, which has used up what may fail. */
static struct http_request *held_up(struct rig *r)
{
    struct http_request *from = arena_new_of(r->mem, struct http_request);
    struct sockaddr_in *sa = (struct sockaddr_in *)(void *)&from->peer.sa;

    sa->sin_family = AF_INET;
    sa->sin_addr.s_addr = htonl(0xcb007105); /* 203.0.113.5 */
    from->head = arena_new_of(r->mem, struct http_head);
    for (unsigned i = 0; i < THROTTLE_AT_ONCE; i++)
        throttle_failed(r->id->throttle, STR("203.0.113.5"), loop_now_ms(r->loop));
    return from;
}

static struct identify wrong_key(struct rig *r, const struct http_request *from)
{
    struct key_text key;

    key_make(&key);
    struct identify q = question(r, "x-api-key", arena_dup(r->mem, str_of(key.text)).p);
    q.from = from;
    return q;
}

TEST(test_identity__a_key_that_holds_passes_from_an_address_that_is_held_up)
{
    struct rig r;

    rig_open(&r, true);
    const struct http_request *from = held_up(&r);
    struct identify q = wrong_key(&r, from);
    n_done = 0;
    assert_false(identify(r.id, &q));
    while (!n_done)
        loop_turn(r.loop);
    assert_false(q.ok);
    assert_int_equal(q.err.code, ERR_LIMIT);
    struct identify good = question(&r, "x-api-key", r.key.text);
    good.from = from;
    assert_false(identify(r.id, &good));
    while (n_done < 2)
        loop_turn(r.loop);
    assert_true(good.ok);
    rig_close(&r);
}

TEST(test_identity__512_credentials_of_held_up_addresses_wait_and_a_familiar_one_need_not)
{
    struct rig r;
    struct identify *all;

    rig_open(&r, true);
    assert_true(ask(&r, "x-api-key", r.key.text).ok);
    clock_advance_fake(IDENTITY_CACHED_MS);
    const struct http_request *from = held_up(&r);
    all = calloc(IDENTITY_LINE_MAX + 1, sizeof(*all));
    n_done = 0;
    unsigned before = r.lookups;
    for (unsigned i = 0; i < IDENTITY_LINE_MAX; i++) {
        all[i] = wrong_key(&r, from);
        assert_false(identify(r.id, &all[i]));
    }
    assert_int_equal(r.lookups, before); /* nothing is looked up until the line moves */
    all[IDENTITY_LINE_MAX] = wrong_key(&r, from);
    assert_true(identify(r.id, &all[IDENTITY_LINE_MAX]));
    assert_int_equal(all[IDENTITY_LINE_MAX].err.code, ERR_LIMIT);
    struct identify good = question(&r, "x-api-key", r.key.text);
    good.from = from;
    assert_false(identify(r.id, &good));
    while (!n_done)
        loop_turn(r.loop);
    assert_true(good.ok);
    identify_cancel(&all[IDENTITY_LINE_MAX - 1]); /* that client left: its proof is dropped */
    while (n_done < IDENTITY_LINE_MAX)
        loop_turn(r.loop);
    while (r.id->n_line)
        loop_turn(r.loop);
    assert_int_equal(r.id->proving.n, 0);
    assert_int_equal(r.lookups, before + IDENTITY_LINE_MAX); /* the good one and 511 others */
    free(all);
    rig_close(&r);
}

TEST(test_identity__who_stands_in_the_line_is_answered_when_it_stops)
{
    struct rig r;

    rig_open(&r, true);
    struct identify q = wrong_key(&r, held_up(&r));
    n_done = 0;
    assert_false(identify(r.id, &q));
    identity_stop(r.id);
    assert_int_equal(n_done, 1);
    assert_int_equal(q.err.code, ERR_UNAVAILABLE);
    rig_close(&r);
}
