/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that share one PostgreSQL: limits, leases, whose events are folded by whom, and what they
 * tell each other. */
#include "test.h"

#include <pthread.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/random.h"

#include "pg_cluster.h"

static const struct principal alice = {STR("acme"), STR("user:alice"), ROLE_MEMBER};

struct nodes {
    char url[PG_URL_MAX];
    struct store *a, *b;
    struct arena *mem;
    struct error err;
};

#define check(n, call)                                                                             \
    do {                                                                                           \
        if (!(call))                                                                               \
            fail_msg("%s: %s", #call, (n)->err.text);                                              \
    } while (0)

static void begin(struct nodes *n)
{
    static int number;
    char name[32];
    if (!pg_cluster_url())
        skip_because("no PostgreSQL to start");
    *n = (struct nodes){.mem = arena_new(1 << 20)};
    snprintf(name, sizeof(name), "shared_%d_%d", (int)getpid(), number++);
    pg_database_make(name);
    pg_database_url(name, n->url);
    struct store_config config = {.path = str_of(n->url)};
    check(n, store_open_postgres(&config, &n->a, &n->err));
    check(n, store_open_postgres(&config, &n->b, &n->err));
}

static void end(struct nodes *n)
{
    store_close(n->a);
    store_close(n->b);
    arena_free(n->mem);
}

static struct session_row new_session(char id[UUID_TEXT])
{
    random_uuid7(id);
    return (struct session_row){.id = str_of(id),
                                .handle = str_of(id),
                                .edge_mcp_id = STR("node-1"),
                                .counted = true,
                                .created_ms = clock_life_ms(),
                                .last_activity_ms = clock_life_ms()};
}

struct creator {
    pthread_t thread;
    struct store *store;
    int ok, limit, other;
};

static void *create_many(void *arg)
{
    struct creator *c = arg;
    for (int i = 0; i < 100; i++) {
        char id[UUID_TEXT];
        struct error err;
        struct session_row row = new_session(id);
        struct store_op op = {OP_SESSION_CREATE, &alice, {.session = &row}, .max_counted = 100};
        bool written = store_write(c->store, &op, 1, &err);
        c->ok += written && op.verdict == VERDICT_OK;
        c->limit += written && op.verdict == VERDICT_LIMIT;
        c->other += !written;
    }
    return NULL;
}

TEST(test_postgres_shared__a_limit_holds_exactly_from_two_nodes_at_once)
{
    struct nodes n;
    begin(&n);
    struct creator c[] = {{.store = n.a}, {.store = n.b}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&c[i].thread, NULL, create_many, &c[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(c[i].thread, NULL);
    assert_int_equal(c[0].ok + c[1].ok, 100);
    assert_int_equal(c[0].limit + c[1].limit, 100);
    assert_int_equal(c[0].other + c[1].other, 0);
    end(&n);
}

static void create_one(struct nodes *n, struct store *s, char id[UUID_TEXT])
{
    struct session_row row = new_session(id);
    struct store_op op = {OP_SESSION_CREATE, &alice, {.session = &row}, .max_counted = -1};
    check(n, store_write(s, &op, 1, &n->err));
    assert_int_equal(op.verdict, VERDICT_OK);
}

static void end_one(struct nodes *n, struct store *s, const char *id)
{
    struct session_row row = {.id = str_of(id),
                              .status = SESSION_TERMINATED,
                              .terminated_ms = clock_life_ms(),
                              .termination_reason = STR("done")};
    struct store_op op = {OP_SESSION_END, &alice, {.session = &row}};
    check(n, store_write(s, &op, 1, &n->err));
    assert_int_equal(op.verdict, VERDICT_OK);
}

TEST(test_postgres_shared__what_ends_or_is_revoked_is_told_in_order)
{
    struct nodes n;
    struct change_row *rows = NULL;
    char first[UUID_TEXT], second[UUID_TEXT];
    size_t n_rows = 9;
    begin(&n);
    create_one(&n, n.a, first);
    create_one(&n, n.a, second);
    check(&n, store_changes(n.b, -1, 10, n.mem, &rows, &n_rows, &n.err));
    assert_int_equal(n_rows, 0);
    end_one(&n, n.a, first);
    check(&n, store_changes(n.b, -1, 10, n.mem, &rows, &n_rows, &n.err));
    assert_int_equal(n_rows, 1);
    int64_t seen = rows[0].id;
    struct key_row key = {
        .id = STR("abcdefghijkl"), .tenant = STR("acme"), .created_ms = 1, .revoked_ms = 2};
    struct key_row made = key;
    made.revoked_ms = 0;
    struct store_op ops[] = {{OP_KEY_CREATE, NULL, {.key = &made}},
                             {OP_KEY_REVOKE, NULL, {.key = &key}}};
    check(&n, store_write(n.b, ops, 2, &n.err));
    end_one(&n, n.a, second);
    check(&n, store_changes(n.b, seen, 10, n.mem, &rows, &n_rows, &n.err));
    assert_int_equal(n_rows, 2);
    assert_int_equal(rows[0].kind, CHANGE_KEY_REVOKED);
    assert_str(rows[0].name, "abcdefghijkl");
    assert_int_equal(rows[1].kind, CHANGE_SESSION_ENDED);
    assert_str(rows[1].name, second);
    assert_str(rows[1].tenant, "acme");
    assert_true(rows[0].id > seen && rows[1].id > rows[0].id);
    end(&n);
}

/* The only change after `*seen`, which becomes its id. */
static struct change_row told(struct nodes *n, int64_t *seen)
{
    struct change_row *rows = NULL;
    size_t n_rows = 0;
    check(n, store_changes(n->b, *seen, 10, n->mem, &rows, &n_rows, &n->err));
    assert_int_equal(n_rows, 1);
    *seen = rows[0].id;
    return rows[0];
}

static enum verdict patch(struct nodes *n, const char *id, unsigned fields, int64_t version)
{
    struct session_row row = {.id = str_of(id),
                              .client_name = STR("x"),
                              .sealed_auth = STR("hfs1.k.s.b"),
                              .version = version};
    struct store_op op = {OP_SESSION_PATCH, &alice, {.session = &row}, .fields = fields};
    check(n, store_write(n->a, &op, 1, &n->err));
    return op.verdict;
}

TEST(test_postgres_shared__other_credentials_of_a_session_are_told_and_nothing_else_of_it)
{
    struct nodes n;
    int64_t seen = 0;
    char id[UUID_TEXT];
    begin(&n);
    create_one(&n, n.a, id);
    assert_int_equal(patch(&n, id, FIELD_CLIENT_NAME, 0), VERDICT_OK);
    assert_int_equal(patch(&n, id, FIELD_SEALED_AUTH, 77), VERDICT_STALE);
    assert_int_equal(patch(&n, id, FIELD_CLIENT_NAME | FIELD_SEALED_AUTH, 0), VERDICT_OK);
    struct change_row change = told(&n, &seen);
    assert_int_equal(change.kind, CHANGE_SESSION_SEALED);
    assert_str(change.name, id);
    assert_str(change.tenant, "acme");
    end(&n);
}

static void is_told(unsigned field, enum change_kind kind)
{
    struct nodes n;
    int64_t seen = 0;
    char id[UUID_TEXT];
    begin(&n);
    create_one(&n, n.a, id);
    assert_int_equal(patch(&n, id, field, 77), VERDICT_STALE);
    assert_int_equal(patch(&n, id, field, 0), VERDICT_OK);
    struct change_row change = told(&n, &seen);
    assert_int_equal(change.kind, kind);
    assert_str(change.name, id);
    assert_str(change.tenant, "acme");
    end(&n);
}

TEST(test_postgres_shared__other_toolsets_of_a_session_are_told)
{
    is_told(FIELD_TOOLSETS, CHANGE_SESSION_TOOLSETS);
}

TEST(test_postgres_shared__another_setup_of_a_session_is_told)
{
    is_told(FIELD_SETUP, CHANGE_SESSION_SETUP);
}

TEST(test_postgres_shared__the_end_of_a_transport_is_told_once_with_its_owner)
{
    struct nodes n;
    int64_t seen = 0;
    begin(&n);
    struct transport_row row = {.tenant = STR("acme"),
                                .owner = alice.owner,
                                .endpoint = STR("/mcp"),
                                .protocol_version = STR("2025-11-25"),
                                .created_ms = 1,
                                .last_used_ms = 1,
                                .ended_ms = 2};
    memset(row.id_hash, 0xab, sizeof(row.id_hash));
    struct transport_row made = row;
    made.ended_ms = 0;
    struct store_op ops[] = {{OP_TRANSPORT_CREATE, &alice, {.transport = &made}},
                             {OP_TRANSPORT_END, &alice, {.transport = &row}},
                             {OP_TRANSPORT_END, &alice, {.transport = &row}}};
    check(&n, store_write(n.a, ops, 3, &n.err));
    assert_int_equal(ops[1].verdict, VERDICT_OK);
    assert_int_equal(ops[2].verdict, VERDICT_MISSING);
    struct change_row change = told(&n, &seen);
    assert_int_equal(change.kind, CHANGE_TRANSPORT_ENDED);
    assert_true(str_starts(change.name, STR("abababab")));
    assert_true(str_eq(str_n(change.name.p + 65, change.name.n - 65), alice.owner));
    end(&n);
}

TEST(test_postgres_shared__the_end_of_a_sign_in_is_told_whatever_ended_it)
{
    static const enum op_kind ends[] = {OP_USER_PASSWORD, OP_USER_END, OP_LOGINS_REVOKE,
                                        OP_LOGIN_REVOKE, OP_LOGIN_ROTATE};
    struct nodes n;
    int64_t seen = 0;
    begin(&n);
    struct user_row user = {.id = STR("20000000-0000-8000-8000-000000000001"),
                            .tenant = STR("acme"),
                            .name = STR("ada"),
                            .role = ROLE_MEMBER,
                            .password = STR("hash"),
                            .created_ms = 1};
    struct store_op op = {OP_USER_CREATE, NULL, {.user = &user}};
    check(&n, store_write(n.a, &op, 1, &n.err));
    for (size_t i = 0; i < countof(ends); i++) {
        bool is_user = ends[i] == OP_USER_PASSWORD || ends[i] == OP_USER_END;
        char id[UUID_TEXT], spent[UUID_TEXT];
        random_uuid7(id);
        random_uuid7(spent);
        struct login_row login = {.id = str_of(id),
                                  .tenant = user.tenant,
                                  .user_id = user.id,
                                  .created_ms = 1,
                                  .expires_ms = clock_life_ms() + 1000000,
                                  .last_activity_ms = 1,
                                  .password = user.password};
        memset(login.refresh_hash, (int)i + 1, 32);
        op = (struct store_op){OP_LOGIN_CREATE, NULL, {.login = &login}, .max_counted = 9};
        check(&n, store_write(n.a, &op, 1, &n.err));
        assert_int_equal(op.verdict, VERDICT_OK);
        login.revoked_ms = 2;
        if (ends[i] == OP_LOGIN_ROTATE) { /* and then its copy */
            login.id = str_of(spent);
            memset(login.next_hash, 99, 32);
            op = (struct store_op){OP_LOGIN_ROTATE, NULL, {.login = &login}};
            check(&n, store_write(n.a, &op, 1, &n.err));
            login.arrived_ms = clock_life_ms() + 500000;
        }
        op = (struct store_op){ends[i], NULL, {.login = &login}};
        if (is_user)
            op.user = &user;
        check(&n, store_write(n.a, &op, 1, &n.err));
        assert_int_equal(op.verdict, ends[i] == OP_LOGIN_ROTATE ? VERDICT_STALE : VERDICT_OK);
        bool is_one = ends[i] == OP_LOGIN_REVOKE || ends[i] == OP_LOGIN_ROTATE;
        struct change_row change = told(&n, &seen);
        assert_int_equal(change.kind, is_one ? CHANGE_LOGIN_ENDED : CHANGE_USER_CHANGED);
        assert_true(str_eq(change.name, is_one ? str_of(id) : user.id));
    }
    end(&n);
}

static int64_t start_writer(struct nodes *n, struct store *s, int64_t lease_until_ms)
{
    char uuid[UUID_TEXT];
    random_uuid7(uuid);
    struct writer_row w = {.uuid = str_of(uuid),
                           .node = STR("n"),
                           .started_ms = clock_life_ms(),
                           .lease_until_ms = lease_until_ms};
    check(n, store_writer_start(s, &w, false, &n->err));
    return w.number;
}

static struct reaped reap(struct nodes *n, struct store *s, int64_t writer, int64_t now_ms,
                          int64_t until_ms)
{
    struct reap_request what = {
        .now_ms = now_ms, .batch = 10, .writer = writer, .lease_until_ms = until_ms};
    struct reaped ret;
    check(n, store_reap(s, &what, &ret, &n->err));
    return ret;
}

TEST(test_postgres_shared__one_node_reaps_until_its_lease_lapses_or_it_ends)
{
    struct nodes n;
    begin(&n);
    int64_t now = clock_life_ms();
    int64_t a = start_writer(&n, n.a, now + 15000), b = start_writer(&n, n.b, now + 15000);
    assert_false(reap(&n, n.a, a, now, now + 1000).is_elsewhere);
    assert_true(reap(&n, n.b, b, now + 999, now + 2000).is_elsewhere);
    assert_false(reap(&n, n.a, a, now + 999, now + 2000).is_elsewhere);
    assert_false(reap(&n, n.b, b, now + 2000, now + 9000).is_elsewhere);
    assert_true(reap(&n, n.a, a, now + 2001, now + 3000).is_elsewhere);
    struct writer_row w = {.number = b, .ended_ms = now + 2002};
    struct store_op op = {OP_WRITER_END, NULL, {.writer = &w}};
    check(&n, store_write(n.b, &op, 1, &n.err));
    assert_false(reap(&n, n.a, a, now + 2003, now + 3000).is_elsewhere);
    end(&n);
}

static void append_intent(struct nodes *n, struct store *s, int64_t id)
{
    struct event_row e = {.id = id,
                          .tenant = STR("acme"),
                          .seq = 1,
                          .at_ms = clock_wall_ms(),
                          .kind = EVENT_INTENT,
                          .exec = id,
                          .server = STR("files"),
                          .tool = STR("read"),
                          .body_len = -1};
    memcpy(e.mac, &id, sizeof(id));
    struct store_op op = {OP_EVENT_APPEND, NULL, {.event = &e}};
    check(n, store_write(s, &op, 1, &n->err));
}

static size_t open_intents(struct nodes *n, struct store *s, int64_t now_ms)
{
    struct event_row *rows = NULL;
    size_t found = 99;
    check(n, store_open_intents(s, now_ms, 0, 10, n->mem, &rows, &found, &n->err));
    return found;
}

TEST(test_postgres_shared__events_of_a_lost_node_are_folded_by_another_when_its_lease_lapses)
{
    struct nodes n;
    struct store_counts counts;
    begin(&n);
    int64_t now = clock_life_ms();
    int64_t a = start_writer(&n, n.a, now + 15000);
    append_intent(&n, n.a, a << EVENT_WRITER_SHIFT | 1);
    assert_int_equal(open_intents(&n, n.b, now), 0);
    check(&n, store_counts(n.b, &counts, &n.err));
    assert_int_equal(counts.executions_open, 0);
    assert_int_equal(counts.events, 1);
    assert_int_equal(open_intents(&n, n.b, now + 15000), 1);
    bool left = true;
    check(&n, store_fold(n.a, 100, &left, &n.err));
    check(&n, store_counts(n.a, &counts, &n.err));
    assert_int_equal(counts.executions_open, 1);
    assert_int_equal(counts.events, 1);
    end(&n);
}

struct folder {
    pthread_t thread;
    struct store *store;
    bool ok;
};

static void *fold_all(void *arg)
{
    struct folder *f = arg;
    struct error err;
    f->ok = true;
    for (bool left = true; f->ok && left;)
        f->ok = store_fold(f->store, 3, &left, &err);
    return NULL;
}

/* Writers that nobody knows are folded by both; each event still counts once. */
TEST(test_postgres_shared__two_who_fold_the_same_events_count_each_once)
{
    struct nodes n;
    struct session_row *row = NULL;
    char id[UUID_TEXT];
    begin(&n);
    create_one(&n, n.a, id);
    for (int i = 1; i <= 60; i++) {
        int64_t event = (int64_t)(900 + i % 3) << EVENT_WRITER_SHIFT | i;
        struct event_row e = {.id = event,
                              .tenant = STR("acme"),
                              .seq = i,
                              .at_ms = clock_wall_ms(),
                              .kind = EVENT_RECORD,
                              .exec = event,
                              .session_id = str_of(id),
                              .tool = STR("read"),
                              .outcome = STR("ok"),
                              .tokens = 2,
                              .body_len = -1};
        memcpy(e.mac, &event, sizeof(event));
        struct store_op op = {OP_EVENT_APPEND, NULL, {.event = &e}};
        check(&n, store_write(n.a, &op, 1, &n.err));
    }
    struct folder f[] = {{.store = n.a}, {.store = n.b}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&f[i].thread, NULL, fold_all, &f[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(f[i].thread, NULL);
    assert_true(f[0].ok && f[1].ok);
    check(&n, store_session_by_id(n.a, &alice, str_of(id), n.mem, &row, &n.err));
    assert_int_equal(row->tool_count, 60);
    assert_int_equal(row->tokens_used, 120);
    end(&n);
}

struct opener {
    pthread_t thread;
    const char *url;
    bool ok;
    struct error err;
};

static void *open_and_close(void *arg)
{
    struct opener *o = arg;
    struct store *s = NULL;
    struct store_config config = {.path = str_of(o->url)};
    o->ok = store_open_postgres(&config, &s, &o->err);
    store_close(s);
    return NULL;
}

TEST(test_postgres_shared__nodes_that_start_at_once_migrate_once)
{
    char url[PG_URL_MAX], name[32], sql[64];
    struct opener o[6] = {0};
    if (!pg_cluster_url())
        skip_because("no PostgreSQL to start");
    snprintf(name, sizeof(name), "at_once_%d", (int)getpid());
    snprintf(sql, sizeof(sql), "CREATE DATABASE %s", name);
    pg_cluster_sql(sql);
    pg_database_url(name, url);
    for (size_t i = 0; i < countof(o); i++) {
        o[i].url = url;
        assert_int_equal(pthread_create(&o[i].thread, NULL, open_and_close, &o[i]), 0);
    }
    for (size_t i = 0; i < countof(o); i++)
        pthread_join(o[i].thread, NULL);
    for (size_t i = 0; i < countof(o); i++)
        if (!o[i].ok)
            fail_msg("%s", o[i].err.text);
    pg_database_drop(name);
}
