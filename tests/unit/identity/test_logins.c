/* SPDX-License-Identifier: Apache-2.0 */
/* Signing in over a store in memory that fails on demand, with the clock in hand.  Passwords are
 * hashed for real, so each test does so seldom.  Nothing numbers events here:
 * tests/e2e/test_users.py looks for them. */
#include "test.h"

#include "base/clock.h"
#include "identity/identity_impl.h"
#include "identity/logins.h"

#include <stdlib.h>

#define NOW INT64_C(1800000000000)
#define USER "20000000-0000-8000-8000-000000000001"

/* A call and its memory: two that are under way at once are in two threads' hands. */
struct own_call {
    struct login_call call;
    struct arena *mem;
    struct own_call *next;
};

struct rig {
    struct own_call *calls;
    struct loop *loop;
    struct store *store;
    struct lanes *lanes;
    struct config *config;
    struct own_tokens *own;
    struct identity *id;
    struct logins *logins;
    struct arena *mem;
};

static void write_one(struct rig *r, struct store_op op)
{
    struct error err;
    if (!store_write(r->store, &op, 1, &err))
        fail_msg("%s", err.text);
    assert_int_equal(op.verdict, VERDICT_OK);
}

/* The hash of a password is the password. */
static bool fits(struct str password, struct str hash)
{
    return hash.p && str_eq(password, hash);
}

static void rig_open(struct rig *r)
{
    static const uint8_t seed[32] = {1, 2, 3};
    struct store *memory = NULL;
    struct error err;
    struct user_row user = {.id = STR(USER),
                            .tenant = STR("acme"),
                            .name = STR("ada"),
                            .role = ROLE_AUDITOR,
                            .password = STR("correct horse"),
                            .created_ms = NOW};

    clock_set_fake(NOW, 1000);
    *r = (struct rig){.loop = loop_new(), .mem = arena_new(64u * 1024 * 1024)};
    assert_true(store_open_memory(&memory, &err));
    r->store = store_failing(memory);
    store_failing_set(r->store, 0, false);
    struct lanes_config lanes = {.write = r->store, .lookup = r->store, .query = r->store};
    r->lanes = lanes_new(r->loop, &lanes);
    if (!config_parse(STR("{\"holdfast\":{\"auth\":\"required\"}}"), STR("test.json"),
                      &(struct config_source){0}, &r->config, &err))
        fail_msg("%s", err.text);
    r->own = own_tokens_new(seed);
    struct identity_config config = {.loop = r->loop, .lanes = r->lanes, .own = r->own};
    if (!identity_new(&config, r->config, &r->id, &err))
        fail_msg("%s", err.text);
    struct logins_config logins = {
        .loop = r->loop, .lanes = r->lanes, .identity = r->id, .own = r->own, .fits = fits};
    r->logins = logins_new(&logins);
    write_one(r, (struct store_op){.kind = OP_USER_CREATE, .user = &user});
}

static void rig_close(struct rig *r)
{
    identity_stop(r->id);
    logins_stop(r->logins);
    lanes_free(r->lanes);
    logins_free(r->logins);
    identity_free(r->id);
    own_tokens_free(r->own);
    loop_free(r->loop);
    config_unref(r->config);
    for (struct own_call *next, *c = r->calls; c; c = next) {
        next = c->next;
        arena_free(c->mem);
    }
    arena_free(r->mem);
    clock_set_real();
}

static void on_done(struct login_call *c)
{
    ++*(unsigned *)c->user;
}

static struct login_call *new_call(struct rig *r)
{
    struct arena *mem = arena_new(1024u * 1024);
    struct own_call *own = arena_new_of(mem, struct own_call);

    *own = (struct own_call){.call = {.mem = mem}, .mem = mem, .next = r->calls};
    r->calls = own;
    return &own->call;
}

static struct login_call *begin_login(struct rig *r, const char *name, const char *password,
                                      const char *address, unsigned *n_done)
{
    struct login_call *c = new_call(r);

    c->tenant = STR("acme");
    c->name = str_of(name);
    c->password = str_of(password);
    c->address = str_of(address);
    c->done = on_done;
    c->user = n_done;
    if (logins_login(r->logins, c))
        ++*n_done;
    return c;
}

#define JOSE_TYPED "jose\xcc\x81"   /* an accent of its own */
#define JOSE_COMPOSED "jos\xc3\xa9" /* one letter */

static void add_user(struct rig *r, const char *id, const char *name, const char *password)
{
    struct user_row user = {.id = str_of(id),
                            .tenant = STR("acme"),
                            .name = str_of(name),
                            .role = ROLE_MEMBER,
                            .password = str_of(password),
                            .created_ms = NOW};
    write_one(r, (struct store_op){.kind = OP_USER_CREATE, .user = &user});
}

static struct login_call *login(struct rig *r, const char *name, const char *password,
                                const char *address)
{
    unsigned n_done = 0;
    struct login_call *c = begin_login(r, name, password, address, &n_done);

    while (!n_done)
        loop_turn(r->loop);
    return c;
}

static struct login_call *begin_refresh(struct rig *r, const char *token, unsigned *n_done)
{
    struct login_call *c = new_call(r);

    c->token = str_of(token);
    c->address = STR("192.0.2.9");
    c->done = on_done;
    c->user = n_done;
    if (logins_refresh(r->logins, c))
        ++*n_done;
    return c;
}

static struct login_call *refresh(struct rig *r, const char *token)
{
    unsigned n_done = 0;
    struct login_call *c = begin_refresh(r, token, &n_done);

    while (!n_done)
        loop_turn(r->loop);
    return c;
}

static unsigned n_identified;

static void on_identified(struct identify *q unused_arg)
{
    n_identified++;
}

static struct identify who(struct rig *r, struct str token)
{
    struct http_head *head = arena_new_of(r->mem, struct http_head);
    static struct identify q;

    head->headers[head->n_headers++] = (struct http_header){
        .name = STR("authorization"), .value = arena_printf(r->mem, "Bearer %.*s", STR_ARG(token))};
    q = (struct identify){.config = r->config, .head = head, .mem = r->mem, .done = on_identified};
    n_identified = 0;
    if (!identify(r->id, &q))
        while (!n_identified)
            loop_turn(r->loop);
    return q;
}

TEST(test_login__is_who_the_user_is_until_the_token_ends)
{
    struct rig r;

    rig_open(&r);
    struct login_call *c = login(&r, "ada", "correct horse", "192.0.2.1");
    assert_int_equal(c->result, LOGIN_OK);
    assert_int_equal(strlen(c->refresh_token), REFRESH_LENGTH);
    struct identify q = who(&r, c->access_token);
    assert_true(q.ok);
    assert_str(q.who.tenant, "acme");
    assert_str(q.who.owner, "user:" USER);
    assert_str(q.who.user_id, USER);
    assert_int_equal(q.who.role, ROLE_AUDITOR);
    assert_true(str_eq(login_of_credential(q.who.credential), c->login->id));
    assert_int_equal(q.who.expires_ms, NOW + OWN_TOKEN_MS);
    clock_advance_fake(OWN_TOKEN_MS - 1);
    assert_true(who(&r, c->access_token).ok);
    clock_advance_fake(1);
    assert_false(who(&r, c->access_token).ok);
    rig_close(&r);
}

TEST(test_login__a_token_of_another_key_is_nobody)
{
    static const uint8_t seed[32] = {9};
    struct own_tokens *other = own_tokens_new(seed);
    struct rig r;

    rig_open(&r);
    struct login_call *c = login(&r, "ada", "correct horse", "192.0.2.1");
    struct str forged = own_token_mint(other, c->login, c->row, NOW, r.mem);
    assert_false(who(&r, forged).ok);
    assert_true(who(&r, own_token_mint(r.own, c->login, c->row, NOW, r.mem)).ok);
    own_tokens_free(other);
    rig_close(&r);
}

static void fail_times(struct rig *r, const char *name, const char *address, int n)
{
    for (int i = 0; i < n; i++)
        assert_int_equal(login(r, name, "wrong", address)->result, LOGIN_REFUSED);
}

static bool signs_in(struct rig *r, const char *address)
{
    return login(r, "ada", "correct horse", address)->result == LOGIN_OK;
}

TEST(test_login__five_failures_lock_the_user_in_that_network_for_a_minute_then_for_two)
{
    struct rig r;

    rig_open(&r);
    fail_times(&r, "ada", "192.0.2.1", LOGIN_NETWORK_FAILURES);
    assert_false(signs_in(&r, "192.0.2.1"));
    clock_advance_fake(LOGIN_NETWORK_LOCK_MS - 1);
    assert_false(signs_in(&r, "192.0.2.2"));
    clock_advance_fake(1);
    fail_times(&r, "ada", "192.0.2.1", 1);
    clock_advance_fake(2 * LOGIN_NETWORK_LOCK_MS - 1);
    assert_false(signs_in(&r, "192.0.2.1"));
    clock_advance_fake(1);
    assert_true(signs_in(&r, "192.0.2.1"));
    rig_close(&r);
}

TEST(test_login__somebody_elsewhere_does_not_keep_the_user_out)
{
    struct rig r;

    rig_open(&r);
    for (int hour = 0; hour < 30; hour++) { /* one wrong password an hour, for longer than a day */
        fail_times(&r, "ada", "203.0.113.66", 1);
        clock_advance_fake(INT64_C(3600) * 1000);
    }
    assert_true(signs_in(&r, "192.0.2.1"));
    fail_times(&r, "ada", "203.0.113.66", LOGIN_NETWORK_FAILURES);
    assert_false(signs_in(&r, "203.0.113.67"));
    assert_true(signs_in(&r, "198.51.100.1")); /* also where it was never before */
    rig_close(&r);
}

static void fail_from_many(struct rig *r)
{
    for (int i = 0; i < LOGIN_FREE_FAILURES; i++) {
        struct str address = arena_printf(r->mem, "10.0.%d.1", i);
        fail_times(r, "ada", address.p, 1);
    }
}

TEST(test_login__failures_from_many_networks_slow_the_user_but_where_it_is_known)
{
    struct rig r;

    rig_open(&r);
    fail_from_many(&r);
    assert_false(signs_in(&r, "192.0.2.1"));
    clock_advance_fake(LOGIN_LOCK_MS);
    struct login_call *c = login(&r, "ada", "correct horse", "192.0.2.1");
    assert_int_equal(c->result, LOGIN_OK);
    fail_from_many(&r);
    assert_false(signs_in(&r, "198.51.100.1"));
    assert_true(signs_in(&r, "192.0.2.77")); /* the network of a live sign-in */
    fail_from_many(&r);
    struct login_row over = {.tenant = STR("acme"),
                             .user_id = STR(USER),
                             .revoked_ms = NOW,
                             .revoke_reason = STR("logout")};
    write_one(&r, (struct store_op){.kind = OP_LOGINS_REVOKE, .login = &over});
    assert_true(signs_in(&r, "192.0.2.78")); /* it was there lately */
    rig_close(&r);
}

TEST(test_login__where_a_user_is_known_locks_are_short)
{
    struct rig r;

    rig_open(&r);
    assert_true(signs_in(&r, "2001:db8:0:1::1"));
    fail_times(&r, "ada", "2001:db8:0:1::2", LOGIN_NETWORK_FAILURES);
    assert_false(signs_in(&r, "2001:db8:0:1::1"));
    clock_advance_fake(LOGIN_LOCK_MS);
    assert_true(signs_in(&r, "2001:db8:0:1::1"));
    fail_times(&r, "nobody", "2001:db8:0:1::2", LOGIN_NETWORK_FAILURES);
    for (int i = 0; i < LOGIN_ADDRESS_FAILURES; i++)
        fail_times(&r, arena_printf(r.mem, "nobody %d", i).p, "2001:db8:0:1:ff::2", 1);
    assert_true(signs_in(&r, "2001:db8:0:1::1")); /* although the address is locked */
    rig_close(&r);
}

TEST(test_login__another_password_lifts_the_lock)
{
    struct rig r;
    struct user_row user = {
        .id = STR(USER), .tenant = STR("acme"), .password = STR("battery staple")};

    rig_open(&r);
    fail_times(&r, "ada", "192.0.2.1", LOGIN_NETWORK_FAILURES);
    write_one(&r, (struct store_op){.kind = OP_USER_PASSWORD, .user = &user});
    assert_int_equal(login(&r, "ada", "battery staple", "192.0.2.1")->result, LOGIN_OK);
    rig_close(&r);
}

/* For names that nobody has, each once. */
static void fail_at_address(struct rig *r, int n, const char *address)
{
    static int last;

    for (int i = 0; i < n; i++)
        fail_times(r, arena_printf(r->mem, "stranger %d", last++).p, address, 1);
}

TEST(test_login__twenty_failures_lock_their_address_and_no_other)
{
    struct rig r;

    rig_open(&r);
    fail_at_address(&r, LOGIN_ADDRESS_FAILURES - 1, "192.0.2.1");
    fail_at_address(&r, LOGIN_ADDRESS_FAILURES, "192.0.3.1");
    assert_false(signs_in(&r, "192.0.3.1"));
    assert_true(signs_in(&r, "192.0.2.1"));
    fail_at_address(&r, 1, "192.0.3.1"); /* while it is locked nothing is counted */
    clock_advance_fake(LOGIN_NETWORK_LOCK_MS - 1);
    assert_false(signs_in(&r, "192.0.3.1"));
    clock_advance_fake(1);
    fail_at_address(&r, 1, "192.0.3.1");
    clock_advance_fake(LOGIN_NETWORK_LOCK_MS);
    assert_false(signs_in(&r, "192.0.3.1"));
    clock_advance_fake(LOGIN_NETWORK_LOCK_MS);
    assert_true(signs_in(&r, "192.0.3.1"));
    rig_close(&r);
}

TEST(test_login__so_many_may_wait_and_one_more_is_told_to_come_back)
{
    struct login_call *calls[LOGIN_MAX_WAITING + 1];
    unsigned n_done = 0;
    struct rig r;

    rig_open(&r);
    for (size_t i = 0; i < countof(calls); i++)
        calls[i] = begin_login(&r, "ada", "correct horse", "192.0.2.1", &n_done);
    assert_int_equal(n_done, 1);
    assert_int_equal(calls[LOGIN_MAX_WAITING]->result, LOGIN_BUSY);
    while (n_done < countof(calls))
        loop_turn(r.loop);
    for (size_t i = 0; i < LOGIN_MAX_WAITING; i++)
        assert_int_equal(calls[i]->result, LOGIN_OK);
    assert_int_equal(login(&r, "ada", "correct horse", "192.0.2.1")->result, LOGIN_OK);
    rig_close(&r);
}

TEST(test_login__with_a_store_that_is_gone_says_so_and_counts_nothing)
{
    struct rig r;

    rig_open(&r);
    store_failing_set(r.store, 1, false);
    struct login_call *c = login(&r, "ada", "correct horse", "192.0.2.1");
    assert_int_equal(c->result, LOGIN_UNAVAILABLE);
    assert_int_equal(c->err.code, ERR_UNAVAILABLE);
    store_failing_set(r.store, 0, false);
    rig_close(&r);
}

TEST(test_refresh__of_two_under_way_one_wins_and_both_leave_the_sign_in_alone)
{
    unsigned n_done = 0;
    struct rig r;

    rig_open(&r);
    struct login_call *c = login(&r, "ada", "correct horse", "192.0.2.1");
    struct login_call *one = begin_refresh(&r, c->refresh_token, &n_done),
                      *two = begin_refresh(&r, c->refresh_token, &n_done);
    while (n_done < 2)
        loop_turn(r.loop);
    assert_int_equal(one->result, LOGIN_OK);
    assert_int_equal(two->result, LOGIN_CONFLICT);
    assert_true(who(&r, one->access_token).ok);
    assert_int_equal(refresh(&r, one->refresh_token)->result, LOGIN_OK);
    rig_close(&r);
}

static unsigned n_told;

static void on_told(struct identity_watch *w unused_arg)
{
    n_told++;
}

TEST(test_refresh__a_copy_ends_the_sign_in_and_what_is_open_in_its_name)
{
    struct identity_watch watch = {.on_revoked = on_told};
    struct rig r;

    rig_open(&r);
    struct login_call *c = login(&r, "ada", "correct horse", "192.0.2.1");
    struct identify q = who(&r, c->access_token);
    identity_watch(r.id, &watch, &q.who);
    n_told = 0;
    clock_advance_fake(10);
    struct login_call *thief = refresh(&r, c->refresh_token);
    assert_int_equal(thief->result, LOGIN_OK);
    clock_advance_fake(10);
    assert_int_equal(refresh(&r, c->refresh_token)->result, LOGIN_REFUSED);
    while (!n_told)
        loop_turn(r.loop);
    assert_false(who(&r, thief->access_token).ok);
    assert_false(who(&r, c->access_token).ok);
    assert_int_equal(refresh(&r, thief->refresh_token)->result, LOGIN_REFUSED);
    rig_close(&r);
}

TEST(test_refresh__is_for_thirty_days)
{
    struct rig r;

    rig_open(&r);
    struct login_call *c = login(&r, "ada", "correct horse", "192.0.2.1");
    clock_advance_fake(LOGIN_LIFE_MS - 1);
    c = refresh(&r, c->refresh_token);
    assert_int_equal(c->result, LOGIN_OK);
    clock_advance_fake(LOGIN_LIFE_MS);
    assert_int_equal(refresh(&r, c->refresh_token)->result, LOGIN_REFUSED);
    rig_close(&r);
}

TEST(test_identity_user_changed__closes_everything_of_the_user_and_of_nobody_else)
{
    struct identity_watch watch = {.on_revoked = on_told};
    struct rig r;

    rig_open(&r);
    struct login_call *c = login(&r, "ada", "correct horse", "192.0.2.1");
    struct identify q = who(&r, c->access_token);
    identity_watch(r.id, &watch, &q.who);
    n_told = 0;
    identity_user_changed(r.id, STR("20000000-0000-8000-8000-000000000002"));
    assert_non_null(watch.watched);
    identity_user_changed(r.id, STR(USER));
    while (!n_told)
        loop_turn(r.loop);
    assert_int_equal(n_told, 1);
    rig_close(&r);
}

TEST(test_watch__the_next_token_of_a_sign_in_lets_a_stream_live_on)
{
    struct identity_watch first = {.on_revoked = on_told}, second = {.on_revoked = on_told};
    struct rig r;

    rig_open(&r);
    struct login_call *c = login(&r, "ada", "correct horse", "192.0.2.1");
    struct identify q = who(&r, c->access_token);
    identity_watch(r.id, &first, &q.who);
    clock_advance_fake(OWN_TOKEN_MS / 2);
    c = refresh(&r, c->refresh_token);
    q = who(&r, c->access_token);
    identity_watch(r.id, &second, &q.who);
    n_told = 0;
    clock_advance_fake(OWN_TOKEN_MS / 2 + 1000);
    assert_true(who(&r, c->access_token).ok);
    assert_non_null(second.watched);
    identity_revoked(r.id, q.who.credential);
    while (n_told < 2)
        loop_turn(r.loop);
    rig_close(&r);
}

TEST(test_logins__a_name_is_found_in_either_encoding_of_its_accents)
{
    struct rig r;

    rig_open(&r);
    add_user(&r, "20000000-0000-8000-8000-000000000002", JOSE_COMPOSED, "new");
    assert_int_equal(login(&r, JOSE_COMPOSED, "new", "192.0.2.1")->result, LOGIN_OK);
    assert_int_equal(login(&r, JOSE_TYPED, "new", "192.0.2.1")->result, LOGIN_OK);
    assert_int_equal(login(&r, "jose", "new", "192.0.2.1")->result, LOGIN_REFUSED);
    assert_int_equal(login(&r, "JOS\xc3\x89", "new", "192.0.2.1")->result, LOGIN_REFUSED);
    rig_close(&r);
}

/* A user whose name was stored as it was typed, beside another with the composed name. */
TEST(test_logins__a_stored_name_is_found_as_it_was_typed)
{
    struct rig r;

    rig_open(&r);
    add_user(&r, "20000000-0000-8000-8000-000000000002", JOSE_TYPED, "old");
    assert_int_equal(login(&r, JOSE_TYPED, "old", "192.0.2.1")->result, LOGIN_OK);
    add_user(&r, "20000000-0000-8000-8000-000000000003", JOSE_COMPOSED, "new");
    assert_int_equal(login(&r, JOSE_TYPED, "old", "192.0.2.1")->result, LOGIN_OK);
    assert_int_equal(login(&r, JOSE_TYPED, "new", "192.0.2.1")->result, LOGIN_REFUSED);
    assert_int_equal(login(&r, JOSE_COMPOSED, "new", "192.0.2.1")->result, LOGIN_OK);
    rig_close(&r);
}

TEST(test_logins__both_encodings_of_a_name_share_one_lockout)
{
    struct rig r;

    rig_open(&r);
    add_user(&r, "20000000-0000-8000-8000-000000000002", JOSE_COMPOSED, "new");
    for (int i = 0; i < LOGIN_NETWORK_FAILURES; i++)
        assert_int_equal(
            login(&r, i % 2 ? JOSE_TYPED : JOSE_COMPOSED, "wrong", "192.0.2.1")->result,
            LOGIN_REFUSED);
    assert_int_equal(login(&r, JOSE_COMPOSED, "new", "192.0.2.1")->result, LOGIN_REFUSED);
    assert_int_equal(login(&r, JOSE_TYPED, "new", "192.0.2.1")->result, LOGIN_REFUSED);
    rig_close(&r);
}
