/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about the verbs of the registry on sessions: use, patch, refresh,
 * context, what stands or falls together, and how far a principal reaches. */
#include "store_contract.h"

#define CONTEXT "10000000-0000-7000-8000-000000"

static const struct principal admin = {STR("acme"), STR("user:carol"), ROLE_ADMIN,
                                       .tenant_wide = true};
static const struct principal admin_elsewhere = {STR("umbrella"), STR("user:carol"), ROLE_ADMIN,
                                                 .tenant_wide = true};

static enum verdict on_session(struct fixture *f, enum op_kind kind, const struct principal *who,
                               struct session_row row)
{
    return write_one(f, (struct store_op){kind, who, {.session = &row}});
}

static enum verdict use(struct fixture *f, const struct principal *who, const char *id,
                        int64_t at_ms)
{
    return on_session(f, OP_SESSION_USE, who,
                      (struct session_row){.id = str_of(id), .last_activity_ms = at_ms});
}

static enum verdict patch(struct fixture *f, const struct principal *who, struct session_row row,
                          unsigned fields)
{
    return write_one(f,
                     (struct store_op){OP_SESSION_PATCH, who, {.session = &row}, .fields = fields});
}

static enum verdict refresh(struct fixture *f, const struct principal *who, const char *id,
                            int64_t expires_ms, int64_t ttl_ms)
{
    return on_session(
        f, OP_SESSION_REFRESH, who,
        (struct session_row){.id = str_of(id), .expires_ms = expires_ms, .ttl_ms = ttl_ms});
}

static enum verdict put_context(struct fixture *f, const struct principal *who, const char *session,
                                const char *id, const char *document, int64_t version)
{
    struct context_row row = {.id = str_of(id),
                              .session_id = str_of(session),
                              .document = str_of(document),
                              .version = version,
                              .created_ms = clock_life_ms(),
                              .updated_ms = clock_life_ms()};
    return write_one(f, (struct store_op){OP_CONTEXT_PUT, who, {.context = &row}});
}

static struct context_row *get_context(struct fixture *f, const struct principal *who,
                                       const char *id)
{
    struct context_row *row = NULL;
    check(f, store_context_get(f->store, who, str_of(id), f->mem, &row, &f->err));
    return row;
}

static struct reaped reap(struct fixture *f, int64_t now_ms, int64_t idle_ms, unsigned batch)
{
    struct reap_request what = {.now_ms = now_ms, .idle_ms = idle_ms, .batch = batch};
    struct reaped done = {0};
    check(f, store_reap(f->store, &what, &done, &f->err));
    return done;
}

static void use_moves_on(struct fixture *f)
{
    create(f, &alice, 1);
    assert_int_equal(use(f, &alice, ID "000001", NOW + HOUR), VERDICT_OK);
    struct session_row *row = get(f, &alice, ID "000001");
    assert_int_equal(row->last_activity_ms, NOW + HOUR);
    assert_int_equal(row->expires_ms, NOW + 25 * HOUR);
    assert_int_equal(row->version, 2);
    assert_int_equal(use(f, &alice, ID "000001", NOW + 5), VERDICT_OK);
    row = get(f, &alice, ID "000001");
    assert_int_equal(row->last_activity_ms, NOW + HOUR);
    assert_int_equal(row->expires_ms, NOW + 25 * HOUR);
    assert_int_equal(row->tool_count, 0);
}
TEST(test_session_use__moves_activity_and_a_sliding_end_and_never_back)
{
    on_every_store(use_moves_on);
}

static void use_of_a_fixed_end(struct fixture *f)
{
    struct session_row row = session_row(f, 1);
    row.ttl_ms = 24 * HOUR;
    assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    assert_int_equal(use(f, &alice, ID "000001", NOW + HOUR), VERDICT_OK);
    assert_int_equal(get(f, &alice, ID "000001")->expires_ms, NOW + 24 * HOUR);
}
TEST(test_session_use__leaves_an_end_that_was_given_alone)
{
    on_every_store(use_of_a_fixed_end);
}

static void verbs_need_a_live_session(struct fixture *f)
{
    struct session_row named = {.id = STR(ID "000001"), .client_name = STR("x")};
    create(f, &alice, 1);
    for (int foreign = 0; foreign < 2; foreign++) {
        const struct principal *who = foreign ? &bob : &alice_elsewhere;
        assert_int_equal(use(f, who, ID "000001", NOW + 1), VERDICT_MISSING);
        assert_int_equal(patch(f, who, named, FIELD_CLIENT_NAME), VERDICT_MISSING);
        assert_int_equal(refresh(f, who, ID "000001", NOW + HOUR, 0), VERDICT_MISSING);
        assert_int_equal(put_context(f, who, ID "000001", CONTEXT "000001", "{}", -1),
                         VERDICT_MISSING);
    }
    clock_advance_fake(24 * HOUR); /* its end */
    assert_int_equal(use(f, &alice, ID "000001", NOW + 1), VERDICT_NOT_ACTIVE);
    named.version = 7; /* not active goes before stale */
    assert_int_equal(patch(f, &alice, named, FIELD_CLIENT_NAME), VERDICT_NOT_ACTIVE);
    assert_int_equal(refresh(f, &alice, ID "000001", NOW + 48 * HOUR, 0), VERDICT_NOT_ACTIVE);
    assert_int_equal(put_context(f, &alice, ID "000001", CONTEXT "000001", "{}", 7),
                     VERDICT_NOT_ACTIVE);
    assert_int_equal(get(f, &alice, ID "000001")->version, 1);
    assert_null(get(f, &alice, ID "000001")->client_name.p);
    assert_null(get_context(f, &alice, CONTEXT "000001"));
}
TEST(test_session_verbs__a_session_that_is_foreign_or_ended_is_told_apart_from_none)
{
    on_every_store(verbs_need_a_live_session);
}

static void just_before_its_end(struct fixture *f)
{
    create(f, &alice, 1);
    create(f, &alice, 2);
    clock_advance_fake(24 * HOUR - 1);
    assert_int_equal(use(f, &alice, ID "000001", NOW + 24 * HOUR - 1), VERDICT_OK);
    assert_int_equal(refresh(f, &alice, ID "000002", NOW + 25 * HOUR, 0), VERDICT_OK);
    clock_advance_fake(1);
    assert_int_equal(get(f, &alice, ID "000001")->status, SESSION_ACTIVE);
    assert_int_equal(get(f, &alice, ID "000002")->status, SESSION_ACTIVE);
    assert_int_equal(end_session(f, &alice, ID "000001"), VERDICT_OK);
    assert_int_equal(use(f, &alice, ID "000001", NOW + 25 * HOUR), VERDICT_NOT_ACTIVE);
}
TEST(test_session_verbs__a_session_may_be_used_until_its_end)
{
    on_every_store(just_before_its_end);
}

static void patch_writes_what_it_names(struct fixture *f)
{
    struct session_row row = session_row(f, 1);
    row.client_name = STR("old");
    row.client_type = STR("ide");
    row.client_version = STR("1");
    assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    struct session_row to = {.id = STR(ID "000001"),
                             .client_name = STR("new"),
                             .client_type = STR("agent"),
                             .connection_metadata = STR("{\"b\":1,\"a\":2}"),
                             .core_session_id = STR("core"),
                             .context_id = STR(CONTEXT "000009"),
                             .sealed_auth = STR("\x00\xff"),
                             .toolsets = STR("read,write"),
                             .setup = STR("{\"audit\":\"full\"}"),
                             .initialized = true};
    assert_int_equal(patch(f, &alice, to, FIELD_CLIENT_NAME | FIELD_CLIENT_VERSION), VERDICT_OK);
    struct session_row *got = get(f, &alice, ID "000001");
    assert_str(got->client_name, "new");
    assert_str(got->client_type, "ide");
    assert_null(got->client_version.p);
    assert_null(got->connection_metadata.p);
    assert_null(got->toolsets.p);
    assert_null(got->setup.p);
    assert_false(got->initialized);
    assert_int_equal(got->version, 2);
    assert_int_equal(patch(f, &alice, to,
                           FIELD_CLIENT_TYPE | FIELD_CONNECTION_METADATA | FIELD_CORE_SESSION_ID |
                               FIELD_CONTEXT_ID | FIELD_INITIALIZED | FIELD_SEALED_AUTH |
                               FIELD_TOOLSETS | FIELD_SETUP),
                     VERDICT_OK);
    got = get(f, &alice, ID "000001");
    assert_str(got->client_type, "agent");
    assert_str(got->connection_metadata, "{\"b\":1,\"a\":2}");
    assert_str(got->core_session_id, "core");
    assert_str(got->context_id, CONTEXT "000009");
    assert_true(str_eq(got->sealed_auth, STR("\x00\xff")));
    assert_str(got->toolsets, "read,write");
    assert_str(got->setup, "{\"audit\":\"full\"}");
    assert_true(got->initialized);
    assert_int_equal(got->version, 3);
    to.toolsets = STR_NONE;
    assert_int_equal(patch(f, &alice, to, FIELD_TOOLSETS), VERDICT_OK);
    assert_null(get(f, &alice, ID "000001")->toolsets.p);
}
TEST(test_session_patch__writes_the_columns_it_names_and_no_other)
{
    on_every_store(patch_writes_what_it_names);
}

static void patch_expects_a_version(struct fixture *f)
{
    struct session_row to = {.id = STR(ID "000001"), .client_name = STR("a"), .version = 1};
    create(f, &alice, 1);
    assert_int_equal(patch(f, &alice, to, FIELD_CLIENT_NAME), VERDICT_OK);
    to.client_name = STR("b");
    assert_int_equal(patch(f, &alice, to, FIELD_CLIENT_NAME), VERDICT_STALE);
    assert_str(get(f, &alice, ID "000001")->client_name, "a");
    to.version = 2;
    assert_int_equal(patch(f, &alice, to, FIELD_CLIENT_NAME), VERDICT_OK);
    assert_str(get(f, &alice, ID "000001")->client_name, "b");
}
TEST(test_session_patch__of_two_who_saw_the_same_version_one_is_stale)
{
    on_every_store(patch_expects_a_version);
}

static void refresh_gives_an_end(struct fixture *f)
{
    create(f, &alice, 1);
    assert_int_equal(refresh(f, &alice, ID "000001", NOW + 7 * HOUR, 7 * HOUR), VERDICT_OK);
    struct session_row *row = get(f, &alice, ID "000001");
    assert_int_equal(row->expires_ms, NOW + 7 * HOUR);
    assert_int_equal(row->ttl_ms, 7 * HOUR);
    assert_int_equal(row->version, 2);
}
TEST(test_session_refresh__gives_a_new_end)
{
    on_every_store(refresh_gives_an_end);
}

static void wide_reaches_the_tenant(struct fixture *f)
{
    struct session_row to = {.id = STR(ID "000001"), .client_name = STR("x")}, *row = NULL;
    create(f, &alice, 1);
    create(f, &bob, 2);
    assert_non_null(get(f, &admin, ID "000001"));
    assert_null(get(f, &admin_elsewhere, ID "000001"));
    check(f, store_session_by_handle(f->store, &admin, STR("ses_2"), f->mem, &row, &f->err));
    assert_str(row->owner, "user:bob");
    check(f,
          store_session_by_handle(f->store, &admin_elsewhere, STR("ses_2"), f->mem, &row, &f->err));
    assert_null(row);
    assert_int_equal(use(f, &admin, ID "000001", NOW + 1), VERDICT_OK);
    assert_int_equal(patch(f, &admin, to, FIELD_CLIENT_NAME), VERDICT_OK);
    assert_int_equal(refresh(f, &admin, ID "000001", NOW + HOUR, 0), VERDICT_OK);
    assert_int_equal(put_context(f, &admin, ID "000001", CONTEXT "000001", "{}", 0), VERDICT_OK);
    assert_int_equal(end_session(f, &admin_elsewhere, ID "000001"), VERDICT_MISSING);
    assert_int_equal(end_session(f, &admin, ID "000001"), VERDICT_OK);
    assert_str(get(f, &alice, ID "000001")->owner, "user:alice");
    /* But names are given, and state is kept, by whoever uses a session. */
    assert_int_equal(
        on_session(f, OP_SESSION_PROMOTE, &admin, (struct session_row){.id = STR(ID "000002")}),
        VERDICT_MISSING);
    struct link_row link = {.session_id = STR(ID "000002"), .server = STR("s"), .opened_ms = NOW};
    assert_int_equal(write_one(f, (struct store_op){OP_LINK_PUT, &admin, {.link = &link}}),
                     VERDICT_MISSING);
}
TEST(test_tenant_wide__reaches_every_session_of_the_tenant_and_none_beyond)
{
    on_every_store(wide_reaches_the_tenant);
}

static void context_has_versions(struct fixture *f)
{
    create(f, &alice, 1);
    assert_int_equal(put_context(f, &alice, ID "000001", CONTEXT "000001", "{}", 1), VERDICT_STALE);
    assert_null(get(f, &alice, ID "000001")->context_id.p);
    assert_int_equal(
        put_context(f, &alice, ID "000001", CONTEXT "000001", "{\"b\": 1, \"a\":2}", 0),
        VERDICT_OK);
    struct context_row *row = get_context(f, &alice, CONTEXT "000001");
    assert_str(row->document, "{\"b\": 1, \"a\":2}");
    assert_str(row->tenant, "acme");
    assert_null(row->session_id.p);
    assert_int_equal(row->version, 1);
    assert_int_equal(row->created_ms, NOW);
    assert_str(get(f, &alice, ID "000001")->context_id, CONTEXT "000001");
    assert_int_equal(get(f, &alice, ID "000001")->version, 2);
    clock_advance_fake(5);
    assert_int_equal(put_context(f, &alice, ID "000001", CONTEXT "000002", "[]", 0), VERDICT_STALE);
    assert_int_equal(put_context(f, &alice, ID "000001", CONTEXT "000002", "[1]", 1), VERDICT_OK);
    assert_int_equal(put_context(f, &alice, ID "000001", CONTEXT "000002", "[2]", 1),
                     VERDICT_STALE);
    assert_int_equal(put_context(f, &alice, ID "000001", CONTEXT "000002", "[3]", -1), VERDICT_OK);
    row = get_context(f, &alice, CONTEXT "000001");
    assert_str(row->document, "[3]");
    assert_int_equal(row->version, 3);
    assert_int_equal(row->created_ms, NOW);
    assert_int_equal(row->updated_ms, NOW + 5);
    assert_null(get_context(f, &alice, CONTEXT "000002"));
    assert_int_equal(get(f, &alice, ID "000001")->version, 2);
}
TEST(test_context_put__makes_and_replaces_by_the_version_it_expects)
{
    on_every_store(context_has_versions);
}

static void contexts_are_shared(struct fixture *f)
{
    struct session_row to = {.id = STR(ID "000002"), .context_id = STR(CONTEXT "000001")};
    create(f, &alice, 1);
    create(f, &bob, 2);
    create(f, &alice_elsewhere, 3);
    assert_int_equal(put_context(f, &alice, ID "000001", CONTEXT "000001", "1", 0), VERDICT_OK);
    assert_null(get_context(f, &bob, CONTEXT "000001")); /* to know its id is not enough */
    assert_str(get_context(f, &admin, CONTEXT "000001")->document, "1");
    assert_int_equal(patch(f, &bob, to, FIELD_CONTEXT_ID), VERDICT_OK);
    assert_str(get_context(f, &bob, CONTEXT "000001")->document, "1");
    assert_int_equal(put_context(f, &bob, ID "000002", CONTEXT "000005", "2", 1), VERDICT_OK);
    assert_str(get_context(f, &alice, CONTEXT "000001")->document, "2");
    assert_null(get_context(f, &alice_elsewhere, CONTEXT "000001"));
    assert_int_equal(put_context(f, &alice_elsewhere, ID "000003", CONTEXT "000001", "3", -1),
                     VERDICT_DUPLICATE);
    assert_str(get_context(f, &alice, CONTEXT "000001")->document, "2");
}
TEST(test_context_put__sessions_of_a_tenant_may_share_a_document_and_no_other_tenant)
{
    on_every_store(contexts_are_shared);
}

static void required_fails_the_batch(struct fixture *f)
{
    create(f, &alice, 1);
    struct session_row one = {.id = STR(ID "000001"), .last_activity_ms = NOW + 9};
    struct session_row none = {.id = STR(ID "000404"), .last_activity_ms = NOW + 9};
    struct session_row made = session_row(f, 2);
    struct event_row e = event(event_id(1, 1), EVENT_RECORD);
    struct store_op ops[] = {
        {OP_SESSION_USE, &alice, {.session = &one}, .required = true},
        {OP_SESSION_CREATE, &alice, {.session = &made}, .max_counted = -1},
        {OP_EVENT_APPEND, NULL, {.event = &e}},
        {OP_SESSION_USE, &alice, {.session = &none}, .required = true},
    };
    assert_false(store_write(f->store, ops, countof(ops), &f->err));
    assert_int_equal(f->err.code, ERR_CONFLICT);
    assert_int_equal(ops[3].verdict, VERDICT_MISSING);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(ops[i].verdict, VERDICT_FAILED);
    assert_int_equal(get(f, &alice, ID "000001")->last_activity_ms, NOW);
    assert_null(get(f, &alice, ID "000002"));
    assert_int_equal(counts(f).events, 0);
    none.id = STR(ID "000001");
    check(f, store_write(f->store, ops, countof(ops), &f->err));
    for (size_t i = 0; i < countof(ops); i++)
        assert_int_equal(ops[i].verdict, VERDICT_OK);
    assert_int_equal(counts(f).events, 1);
}
TEST(test_required__a_refused_op_takes_the_batch_with_it_and_tells_why)
{
    on_every_store(required_fails_the_batch);
}

static enum verdict use_in_event(struct fixture *f, const char *id, int64_t at_ms)
{
    struct session_row row = {.id = str_of(id), .last_activity_ms = at_ms};
    return write_one(
        f, (struct store_op){OP_SESSION_USE, &alice, {.session = &row}, .is_in_event = true});
}

static void told_use_waits(struct fixture *f)
{
    int64_t now = clock_life_ms();
    create(f, &alice, 1);
    assert_int_equal(refresh(f, &alice, ID "000001", now + 2 * SESSION_END_NEAR_MS, 0), VERDICT_OK);
    int64_t version = get(f, &alice, ID "000001")->version;
    assert_int_equal(use_in_event(f, ID "000001", now + 9), VERDICT_OK);
    assert_int_equal(get(f, &alice, ID "000001")->version, version);
    assert_int_equal(get(f, &alice, ID "000001")->last_activity_ms, NOW);
    assert_int_equal(refresh(f, &alice, ID "000001", now + SESSION_END_NEAR_MS / 2, 0), VERDICT_OK);
    assert_int_equal(use_in_event(f, ID "000001", now + 9), VERDICT_OK);
    assert_int_equal(get(f, &alice, ID "000001")->last_activity_ms, now + 9);
    assert_int_equal(use_in_event(f, ID "000404", now + 9), VERDICT_MISSING);
    assert_int_equal(refresh(f, &alice, ID "000001", now - 1, 0), VERDICT_OK);
    assert_int_equal(use_in_event(f, ID "000001", now + 10), VERDICT_NOT_ACTIVE);
}
TEST(test_session_use__told_by_an_event_it_is_only_looked_at_while_its_end_is_far)
{
    on_every_store(told_use_waits);
}

static void taken_event_id(struct fixture *f)
{
    struct session_row one = {.id = STR(ID "000001"), .last_activity_ms = NOW + 9};
    struct event_row e = event(event_id(1, 1), EVENT_RECORD), other = e;
    create(f, &alice, 1);
    append(f, e);
    other.mac[0] ^= 1;
    struct store_op ops[] = {
        {OP_SESSION_USE, &alice, {.session = &one}, .required = true},
        {OP_EVENT_APPEND, NULL, {.event = &other}},
    };
    assert_false(store_write(f->store, ops, countof(ops), &f->err));
    assert_int_not_equal(f->err.code, ERR_CONFLICT);
    assert_int_equal(ops[0].verdict, VERDICT_FAILED);
    assert_int_equal(get(f, &alice, ID "000001")->last_activity_ms, NOW);
}
TEST(test_required__an_event_under_a_taken_id_fails_the_batch_as_ever)
{
    on_every_store(taken_event_id);
}

static void others_may_be_refused(struct fixture *f)
{
    struct session_row none = {.id = STR(ID "000404"), .last_activity_ms = NOW + 9};
    struct session_row made = session_row(f, 2);
    struct store_op ops[] = {
        {OP_SESSION_USE, &alice, {.session = &none}},
        {OP_SESSION_CREATE, &alice, {.session = &made}, .max_counted = -1, .required = true},
    };
    check(f, store_write(f->store, ops, countof(ops), &f->err));
    assert_int_equal(ops[0].verdict, VERDICT_MISSING);
    assert_int_equal(ops[1].verdict, VERDICT_OK);
    assert_non_null(get(f, &alice, ID "000002"));
}
TEST(test_required__what_is_not_required_may_be_refused_beside_it)
{
    on_every_store(others_may_be_refused);
}

static size_t page_ids(struct fixture *f, const struct principal *who, struct session_filter filter,
                       unsigned limit, const char *want)
{
    struct session_row *rows = NULL;
    char got[64] = "";
    size_t n = 0;
    check(f, store_sessions_page(f->store, who, &filter, limit, f->mem, &rows, &n, &f->err));
    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(got);
        snprintf(got + at, sizeof(got) - at, "%c", rows[i].id.p[rows[i].id.n - 1]);
    }
    assert_string_equal(got, want);
    return n;
}

#define ACTIVE (1U << SESSION_ACTIVE)
#define IDLE (1U << SESSION_IDLE)
#define EXPIRED (1U << SESSION_EXPIRED)
#define TERMINATED (1U << SESSION_TERMINATED)

/* 1 active, 2 idle by its last use, 3 past its end, 4 expired, 5 terminated, 6 active, bob's. */
static struct session_filter many_sessions(struct fixture *f, unsigned statuses)
{
    struct session_filter filter = {
        .now_ms = NOW + HOUR, .idle_ms = HOUR / 2, .statuses = statuses};
    for (int i = 1; i <= 6; i++) {
        struct session_row row = session_row(f, i);
        row.last_activity_ms = i == 2 ? NOW + HOUR / 2 : NOW + HOUR;
        row.expires_ms = i == 3 ? NOW + HOUR : row.expires_ms;
        row.client_type = i % 2 ? STR("ide") : STR_NONE;
        assert_int_equal(create_row(f, i == 6 ? &bob : &alice, &row, -1), VERDICT_OK);
    }
    struct session_row over = {
        .id = STR(ID "000004"), .status = SESSION_EXPIRED, .terminated_ms = NOW};
    assert_int_equal(on_session(f, OP_SESSION_END, &alice, over), VERDICT_OK);
    assert_int_equal(end_session(f, &alice, ID "000005"), VERDICT_OK);
    clock_advance_fake(HOUR);
    return filter;
}

static void pages_by_status(struct fixture *f)
{
    struct session_filter filter = many_sessions(f, 0);
    static const struct {
        unsigned statuses;
        const char *own, *tenant;
    } cases[] = {
        {0, "54321", "654321"},
        {ACTIVE, "1", "61"},
        {IDLE, "2", "2"},
        {ACTIVE | IDLE, "21", "621"},
        {EXPIRED, "43", "43"},
        {TERMINATED, "5", "5"},
        {ACTIVE | EXPIRED, "431", "6431"},
        {ACTIVE | IDLE | EXPIRED | TERMINATED, "54321", "654321"},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        filter.statuses = cases[i].statuses;
        page_ids(f, &alice, filter, 10, cases[i].own);
        page_ids(f, &admin, filter, 10, cases[i].tenant);
        page_ids(f, &admin_elsewhere, filter, 10, "");
    }
    filter.statuses = ACTIVE | IDLE;
    filter.idle_ms = 0; /* nothing idles then */
    page_ids(f, &alice, filter, 10, "21");
    filter.statuses = IDLE;
    page_ids(f, &alice, filter, 10, "");
    filter = (struct session_filter){.client_type = STR("ide"), .now_ms = NOW};
    page_ids(f, &alice, filter, 10, "531");
}
TEST(test_sessions_page__shows_the_statuses_that_are_asked_for_as_they_are_then)
{
    on_every_store(pages_by_status);
}

static void pages_go_on(struct fixture *f)
{
    struct session_filter filter = many_sessions(f, EXPIRED | ACTIVE);
    page_ids(f, &admin, filter, 2, "64");
    filter.before = STR(ID "000004");
    page_ids(f, &admin, filter, 1, "3");
    filter.before = STR(ID "000003");
    page_ids(f, &admin, filter, 2, "1");
    filter.before = STR(ID "000001");
    page_ids(f, &admin, filter, 2, "");
}
TEST(test_sessions_page__is_filled_past_what_does_not_match)
{
    on_every_store(pages_go_on);
}

static void reap_idles(struct fixture *f)
{
    for (int i = 1; i <= 3; i++) {
        struct session_row row = session_row(f, i);
        row.last_activity_ms = NOW - i;
        assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    }
    struct reaped done = reap(f, NOW + HOUR - 2, HOUR, 10);
    assert_int_equal(done.idled, 2); /* at the limit, and past it; not 1 ms before */
    assert_int_equal(done.expired, 0);
    assert_int_equal(get(f, &alice, ID "000001")->status, SESSION_ACTIVE);
    assert_int_equal(get(f, &alice, ID "000002")->status, SESSION_IDLE);
    assert_int_equal(get(f, &alice, ID "000003")->status, SESSION_IDLE);
    assert_int_equal(reap(f, NOW + HOUR - 2, HOUR, 10).idled, 0);
    assert_int_equal(counts(f).sessions_active, 3);
    assert_int_equal(use(f, &alice, ID "000002", NOW + HOUR - 2), VERDICT_OK);
    assert_int_equal(get(f, &alice, ID "000002")->status, SESSION_ACTIVE);
    struct event_row e = intent(event_id(1, 1), ID "000003");
    clock_advance_fake(HOUR);
    append(f, e);
    fold_now(f);
    assert_int_equal(get(f, &alice, ID "000003")->status, SESSION_ACTIVE);
}
TEST(test_reap__idle_is_written_down_and_use_takes_it_back)
{
    on_every_store(reap_idles);
}

static void reap_has_a_batch(struct fixture *f)
{
    for (int i = 1; i <= 3; i++) {
        struct session_row row = session_row(f, i);
        row.last_activity_ms = NOW - i;
        assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    }
    assert_int_equal(reap(f, NOW + HOUR, 0, 10).idled, 0); /* switched off */
    assert_int_equal(reap(f, NOW + HOUR, HOUR, 2).idled, 2);
    assert_int_equal(get(f, &alice, ID "000001")->status, SESSION_ACTIVE);
    assert_int_equal(reap(f, NOW + HOUR, HOUR, 2).idled, 1);
    assert_int_equal(reap(f, NOW + HOUR, HOUR, 2).idled, 0);
    struct reaped done = reap(f, NOW + 24 * HOUR, HOUR, 2);
    assert_int_equal(done.expired, 2);
    assert_int_equal(done.idled, 0);
    assert_false(done.is_elsewhere);
}
TEST(test_reap__idles_the_longest_unused_first_so_many_at_once)
{
    on_every_store(reap_has_a_batch);
}

static void reap_pulls_back(struct fixture *f)
{
    static const int64_t ahead[] = {5 * 60000, 5 * 60000 + 1, 365 * 24 * HOUR};
    for (int i = 0; i < 3; i++) {
        struct session_row row = session_row(f, i + 1);
        row.created_ms = row.last_activity_ms = NOW + ahead[i];
        row.expires_ms = i == 1 ? 0 : NOW + ahead[i] + 24 * HOUR;
        assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    }
    assert_int_equal(reap(f, NOW, HOUR, 10).clamped, 2);
    assert_int_equal(get(f, &alice, ID "000001")->last_activity_ms, NOW + ahead[0]);
    assert_int_equal(get(f, &alice, ID "000002")->last_activity_ms, NOW);
    assert_int_equal(get(f, &alice, ID "000002")->expires_ms, 0);
    struct session_row *row = get(f, &alice, ID "000003");
    assert_int_equal(row->last_activity_ms, NOW);
    assert_int_equal(row->expires_ms, NOW + 24 * HOUR);
    assert_int_equal(row->created_ms, NOW);
    assert_int_equal(reap(f, NOW, HOUR, 10).clamped, 0);
}
TEST(test_reap__what_was_used_in_the_future_is_pulled_back_to_now)
{
    on_every_store(reap_pulls_back);
}

static void reap_tells_lifetimes(struct fixture *f)
{
    int64_t lived[2] = {-1, -1};
    for (int i = 1; i <= 3; i++) {
        struct session_row row = session_row(f, i);
        row.created_ms = NOW - i * HOUR;
        row.expires_ms = NOW + i;
        assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    }
    struct reap_request what = {
        .now_ms = NOW + 3, .batch = 2, .lease_until_ms = NOW + HOUR, .ret_lived_ms = lived};
    struct reaped done = {0};
    check(f, store_reap(f->store, &what, &done, &f->err));
    assert_int_equal(done.expired, 2);
    assert_int_equal(lived[0] + lived[1], 3 * HOUR + 3); /* in any order */
    assert_true(lived[0] == HOUR + 1 || lived[1] == HOUR + 1);
    check(f, store_reap(f->store, &what, &done, &f->err));
    assert_int_equal(done.expired, 1);
    assert_int_equal(lived[0], 3 * HOUR + 3);
}
TEST(test_reap__tells_how_long_what_expired_has_lived)
{
    on_every_store(reap_tells_lifetimes);
}

static void end_at(struct fixture *f, const char *id, int64_t at_ms)
{
    struct session_row row = {.id = str_of(id),
                              .status = SESSION_TERMINATED,
                              .termination_reason = STR("done"),
                              .terminated_ms = at_ms};
    assert_int_equal(write_one(f, (struct store_op){OP_SESSION_END, &alice, {.session = &row}}),
                     VERDICT_OK);
}

static size_t delete_over(struct fixture *f, int64_t over_ms, unsigned batch)
{
    struct reap_request what = {.now_ms = NOW + HOUR, .over_ms = over_ms, .batch = batch};
    struct reaped done = {0};
    check(f, store_reap(f->store, &what, &done, &f->err));
    return done.deleted;
}

static void reap_deletes_what_is_over(struct fixture *f)
{
    for (int i = 1; i <= 4; i++) {
        struct session_row row = session_row(f, i);
        assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    }
    assert_int_equal(put_context(f, &alice, ID "000001", CONTEXT "000001", "{}", 0), VERDICT_OK);
    struct session_row shares = {.id = STR(ID "000002"), .context_id = STR(CONTEXT "000001")};
    assert_int_equal(write_one(f, (struct store_op){OP_SESSION_PATCH,
                                                    &alice,
                                                    {.session = &shares},
                                                    .fields = FIELD_CONTEXT_ID}),
                     VERDICT_OK);
    end_at(f, ID "000001", NOW);
    end_at(f, ID "000002", NOW + 1);
    end_at(f, ID "000003", NOW + 1);
    assert_int_equal(delete_over(f, NOW - 1, 10), 0);
    assert_int_equal(delete_over(f, 0, 10), 0); /* switched off */
    assert_int_equal(delete_over(f, NOW, 10), 1);
    assert_null(get(f, &alice, ID "000001"));
    assert_non_null(get(f, &alice, ID "000002"));
    assert_non_null(get_context(f, &alice, CONTEXT "000001")); /* another session has it */
    assert_int_equal(delete_over(f, NOW + 1, 1), 1);
    assert_int_equal(delete_over(f, NOW + 1, 1), 1);
    assert_int_equal(delete_over(f, NOW + 1, 1), 0);
    assert_null(get(f, &alice, ID "000002"));
    assert_null(get_context(f, &alice, CONTEXT "000001"));
    assert_int_equal(put_context(f, &alice, ID "000004", CONTEXT "000001", "{}", 0), VERDICT_OK);
    assert_non_null(get(f, &alice, ID "000004"));
}
TEST(test_reap__sessions_that_ended_long_ago_are_deleted_with_their_context)
{
    on_every_store(reap_deletes_what_is_over);
}
