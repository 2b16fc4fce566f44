/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about sessions, transports and links. */
#include "store_contract.h"

static void every_column_survives(struct fixture *f)
{
    struct session_row row = session_row(f, 1);
    row.user_id = STR(ID "000077");
    row.client_name = STR("claude");
    row.client_type = STR("claude-code");
    row.client_version = STR("");
    row.origin = ORIGIN_KEYED;
    row.initialized = row.provisional = true;
    row.carrier = STR("meta:session_id");
    row.carrier_key = STR("k\0y");
    row.core_session_id = STR("core");
    row.connection_metadata = STR("{\"ip\":\"::1\"}");
    row.context_id = STR(ID "000088");
    row.toolsets = STR("read,write");
    row.setup = STR("{\"audit\":\"full\"}");
    row.lineage = STR("{\"forked_from\":\"ses_0\"}");
    row.sealed_auth = STR("\x00\xff\x01");
    row.sealed_context = STR("\x02\x00\xfe");
    row.ttl_ms = 5000;
    row.tool_count = 7;
    row.tokens_used = INT64_C(1) << 40;
    row.version = 3;
    assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    struct session_row *got = get(f, &alice, ID "000001");
    assert_non_null(got);
    assert_str(got->handle, "ses_1");
    assert_str(got->tenant, "acme");
    assert_str(got->owner, "user:alice");
    assert_str(got->user_id, ID "000077");
    assert_str(got->edge_mcp_id, "node-1");
    assert_str(got->client_name, "claude");
    assert_str(got->client_type, "claude-code");
    assert_non_null(got->client_version.p);
    assert_int_equal(got->client_version.n, 0);
    assert_int_equal(got->status, SESSION_ACTIVE);
    assert_int_equal(got->origin, ORIGIN_KEYED);
    assert_true(got->initialized && got->provisional && !got->counted);
    assert_str(got->carrier, "meta:session_id");
    assert_true(str_eq(got->carrier_key, STR("k\0y")));
    assert_str(got->core_session_id, "core");
    assert_str(got->connection_metadata, "{\"ip\":\"::1\"}");
    assert_str(got->context_id, ID "000088");
    assert_str(got->toolsets, "read,write");
    assert_str(got->setup, "{\"audit\":\"full\"}");
    assert_str(got->lineage, "{\"forked_from\":\"ses_0\"}");
    assert_true(str_eq(got->sealed_auth, STR("\x00\xff\x01")));
    assert_true(str_eq(got->sealed_context, STR("\x02\x00\xfe")));
    assert_int_equal(got->created_ms, NOW);
    assert_int_equal(got->last_activity_ms, NOW);
    assert_int_equal(got->expires_ms, NOW + 24 * HOUR);
    assert_int_equal(got->terminated_ms, 0);
    assert_null(got->termination_reason.p);
    assert_int_equal(got->ttl_ms, 5000);
    assert_int_equal(got->tool_count, 7);
    assert_int_equal(got->tokens_used, INT64_C(1) << 40);
    assert_int_equal(got->version, 3);
}
TEST(test_session_create__every_column_survives)
{
    on_every_store(every_column_survives);
}

static void owner_comes_from_the_principal(struct fixture *f)
{
    struct session_row row = session_row(f, 1);
    row.tenant = STR("umbrella");
    row.owner = STR("user:bob");
    assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    assert_str(get(f, &alice, ID "000001")->tenant, "acme");
    assert_null(get(f, &bob, ID "000001"));
}
TEST(test_session_create__tenant_and_owner_come_from_the_principal)
{
    on_every_store(owner_comes_from_the_principal);
}

static void handles_are_unique_per_tenant(struct fixture *f)
{
    struct session_row row = session_row(f, 1);
    struct session_row other = session_row(f, 2);
    other.handle = row.handle;
    assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    assert_int_equal(create_row(f, &bob, &other, -1), VERDICT_DUPLICATE);
    assert_int_equal(create_row(f, &alice_elsewhere, &other, -1), VERDICT_OK);
    assert_int_equal(end_session(f, &alice, ID "000001"), VERDICT_OK);
    other.id = STR(ID "000003");
    assert_int_equal(create_row(f, &alice, &other, -1), VERDICT_DUPLICATE);
    other = session_row(f, 4);
    other.id = row.id;
    assert_int_equal(create_row(f, &alice, &other, -1), VERDICT_DUPLICATE);
}
TEST(test_session_create__handles_are_unique_per_tenant_for_ever)
{
    on_every_store(handles_are_unique_per_tenant);
}

static struct session_row keyed(struct fixture *f, int n, const char *key)
{
    struct session_row row = session_row(f, n);
    row.carrier = STR("client-id");
    row.carrier_key = str_of(key);
    return row;
}

static struct session_row *by_key(struct fixture *f, const struct principal *who, const char *key)
{
    struct session_row *row = NULL;
    check(f, store_session_by_key(f->store, who, STR("client-id"), str_of(key), f->mem, &row,
                                  &f->err));
    return row;
}

static void keys_are_unique_while_live(struct fixture *f)
{
    struct session_row rows[] = {keyed(f, 1, "k"), keyed(f, 2, "k"), keyed(f, 3, "k"),
                                 keyed(f, 4, "k"), keyed(f, 5, "k")};
    assert_int_equal(create_row(f, &alice, &rows[0], -1), VERDICT_OK);
    assert_int_equal(create_row(f, &alice, &rows[1], -1), VERDICT_DUPLICATE);
    rows[1].carrier = STR("header");
    assert_int_equal(create_row(f, &alice, &rows[1], -1), VERDICT_OK);
    assert_int_equal(create_row(f, &bob, &rows[2], -1), VERDICT_OK);
    assert_str(by_key(f, &alice, "k")->id, ID "000001");
    assert_str(by_key(f, &bob, "k")->id, ID "000003");
    assert_null(by_key(f, &alice_elsewhere, "k"));
    assert_null(by_key(f, &alice, "K"));
    assert_int_equal(end_session(f, &alice, ID "000001"), VERDICT_OK);
    assert_null(by_key(f, &alice, "k"));
    rows[3].expires_ms = NOW + 10;
    assert_int_equal(create_row(f, &alice, &rows[3], -1), VERDICT_OK);
    clock_advance_fake(9);
    assert_int_equal(create_row(f, &alice, &rows[4], -1), VERDICT_DUPLICATE);
    clock_advance_fake(1);
    assert_null(by_key(f, &alice, "k"));
    assert_int_equal(create_row(f, &alice, &rows[4], -1), VERDICT_OK);
    assert_str(by_key(f, &alice, "k")->id, ID "000005");
    assert_int_equal(get(f, &alice, ID "000004")->status, SESSION_EXPIRED);
}
TEST(test_session_create__keys_are_unique_while_their_session_lives)
{
    on_every_store(keys_are_unique_while_live);
}

static struct session_row counted(struct fixture *f, int n)
{
    struct session_row row = session_row(f, n);
    row.counted = true;
    return row;
}

static void limit_is_counted_in_the_batch(struct fixture *f)
{
    struct session_row rows[4];
    struct store_op ops[4];
    for (int i = 0; i < 4; i++) {
        rows[i] = counted(f, i);
        ops[i] = (struct store_op){
            OP_SESSION_CREATE, i % 2 ? &alice : &bob, {.session = &rows[i]}, .max_counted = 3};
    }
    check(f, store_write(f->store, ops, 4, &f->err));
    assert_int_equal(ops[2].verdict, VERDICT_OK);
    assert_int_equal(ops[3].verdict, VERDICT_LIMIT);
    assert_null(get(f, &alice, ID "000003"));
    rows[3].counted = false;
    assert_int_equal(create_row(f, &alice, &rows[3], 3), VERDICT_OK);
    rows[0] = counted(f, 10);
    assert_int_equal(create_row(f, &alice_elsewhere, &rows[0], 3), VERDICT_OK);
    rows[0].id = STR(ID "000011");
    rows[0].handle = STR("ses_1");
    assert_int_equal(create_row(f, &alice, &rows[0], 3), VERDICT_DUPLICATE);
    rows[0] = counted(f, 12);
    assert_int_equal(create_row(f, &alice, &rows[0], -1), VERDICT_OK);
}
TEST(test_session_create__limit_counts_live_counted_sessions_of_the_tenant)
{
    on_every_store(limit_is_counted_in_the_batch);
}

/* How many a run of the reaper ends. */
static int64_t reaped(struct fixture *f)
{
    struct reap_request what = {.now_ms = clock_life_ms(), .batch = 10};
    struct reaped done = {0};

    check(f, store_reap(f->store, &what, &done, &f->err));
    return done.expired;
}

static void ended_sessions_make_room(struct fixture *f)
{
    struct session_row rows[] = {counted(f, 1), counted(f, 2), counted(f, 3), counted(f, 4)};
    rows[1].expires_ms = NOW + 10;
    assert_int_equal(create_row(f, &alice, &rows[0], 2), VERDICT_OK);
    assert_int_equal(create_row(f, &alice, &rows[1], 2), VERDICT_OK);
    assert_int_equal(create_row(f, &alice, &rows[2], 2), VERDICT_LIMIT);
    clock_advance_fake(10);
    assert_int_equal(create_row(f, &alice, &rows[2], 2), VERDICT_OK);
    assert_int_equal(create_row(f, &alice, &rows[3], 2), VERDICT_LIMIT);
    assert_int_equal(reaped(f), 1); /* it is still there to be told of */
    assert_int_equal(create_row(f, &alice, &rows[3], 2), VERDICT_LIMIT);
    assert_int_equal(end_session(f, &alice, ID "000001"), VERDICT_OK);
    assert_int_equal(create_row(f, &alice, &rows[3], 2), VERDICT_OK);
}
TEST(test_session_create__ended_and_expired_sessions_make_room)
{
    on_every_store(ended_sessions_make_room);
}

static enum verdict promote(struct fixture *f, const struct principal *who, const char *id,
                            int64_t expires_ms, int64_t max)
{
    struct session_row row = {.id = str_of(id), .expires_ms = expires_ms};
    return write_one(
        f, (struct store_op){OP_SESSION_PROMOTE, who, {.session = &row}, .max_counted = max});
}

static void promoted_sessions_count_while_used(struct fixture *f)
{
    struct session_row promoted = session_row(f, 1), made = counted(f, 2), next = counted(f, 3);
    promoted.provisional = true;
    promoted.origin = ORIGIN_INJECTED;
    made.origin = ORIGIN_REST;
    assert_int_equal(create_row(f, &alice, &promoted, 2), VERDICT_OK);
    assert_int_equal(create_row(f, &alice, &made, 2), VERDICT_OK);
    assert_int_equal(promote(f, &alice, ID "000001", 0, 2), VERDICT_OK);
    assert_int_equal(create_row(f, &alice, &next, 2), VERDICT_LIMIT);
    clock_advance_fake(SESSION_PROMOTED_IDLE_MS - 1);
    assert_int_equal(create_row(f, &alice, &next, 2), VERDICT_LIMIT);
    clock_advance_fake(1);
    assert_int_equal(create_row(f, &alice, &next, 2), VERDICT_OK);
    assert_int_equal(get(f, &alice, ID "000001")->status, SESSION_ACTIVE); /* it goes on */
    struct tenant_row *tenant = NULL;
    check(f, store_tenant_get(f->store, alice.tenant, f->mem, &tenant, &f->err));
    assert_int_equal(tenant->counted_sessions, 2);
    next = counted(f, 4);
    assert_int_equal(create_row(f, &alice, &next, 2), VERDICT_LIMIT); /* by two that were made */
}
TEST(test_session_limit__what_a_handle_promoted_counts_until_it_is_idle_for_30_minutes)
{
    on_every_store(promoted_sessions_count_while_used);
}

static void promoting_makes_durable_and_counted(struct fixture *f)
{
    struct session_row row = session_row(f, 1);
    row.provisional = true;
    row.expires_ms = NOW + HOUR;
    assert_int_equal(create_row(f, &alice, &row, 0), VERDICT_OK);
    assert_int_equal(promote(f, &bob, ID "000001", 0, -1), VERDICT_MISSING);
    assert_int_equal(promote(f, &alice_elsewhere, ID "000001", 0, -1), VERDICT_MISSING);
    assert_int_equal(promote(f, &alice, ID "000009", 0, -1), VERDICT_MISSING);
    assert_int_equal(promote(f, &alice, ID "000001", 0, 0), VERDICT_LIMIT);
    assert_true(get(f, &alice, ID "000001")->provisional);
    assert_int_equal(promote(f, &alice, ID "000001", 0, 1), VERDICT_OK);
    struct session_row *got = get(f, &alice, ID "000001");
    assert_true(!got->provisional && got->counted);
    assert_int_equal(got->expires_ms, NOW + HOUR);
    assert_int_equal(got->version, 2);
    assert_int_equal(promote(f, &alice, ID "000001", 0, 0), VERDICT_OK);
    assert_int_equal(get(f, &alice, ID "000001")->version, 2);
    struct session_row next = counted(f, 2);
    assert_int_equal(create_row(f, &alice, &next, 1), VERDICT_LIMIT);
    row = session_row(f, 3);
    row.provisional = true;
    assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    assert_int_equal(promote(f, &alice, ID "000003", NOW + 9 * HOUR, -1), VERDICT_OK);
    assert_int_equal(get(f, &alice, ID "000003")->expires_ms, NOW + 9 * HOUR);
    clock_advance_fake(HOUR);
    assert_int_equal(promote(f, &alice, ID "000001", 0, -1), VERDICT_NOT_ACTIVE);
    assert_int_equal(end_session(f, &alice, ID "000003"), VERDICT_OK);
    assert_int_equal(promote(f, &alice, ID "000003", 0, -1), VERDICT_NOT_ACTIVE);
}
TEST(test_session_promote__makes_a_provisional_session_durable_and_counted)
{
    on_every_store(promoting_makes_durable_and_counted);
}

static void ending_is_final(struct fixture *f)
{
    create(f, &alice, 1);
    create(f, &alice, 2);
    assert_int_equal(end_session(f, &bob, ID "000001"), VERDICT_MISSING);
    assert_int_equal(end_session(f, &alice_elsewhere, ID "000001"), VERDICT_MISSING);
    assert_int_equal(end_session(f, &alice, ID "000007"), VERDICT_MISSING);
    assert_int_equal(get(f, &alice, ID "000001")->status, SESSION_ACTIVE);
    assert_int_equal(end_session(f, &alice, ID "000001"), VERDICT_OK);
    struct session_row *got = get(f, &alice, ID "000001");
    assert_int_equal(got->status, SESSION_TERMINATED);
    assert_int_equal(got->terminated_ms, NOW + 5);
    assert_str(got->termination_reason, "done");
    assert_int_equal(got->version, 2);
    assert_int_equal(end_session(f, &alice, ID "000001"), VERDICT_MISSING);
    clock_advance_fake(24 * HOUR);
    assert_int_equal(get(f, &alice, ID "000001")->status, SESSION_TERMINATED);
    assert_int_equal(end_session(f, &alice, ID "000002"), VERDICT_MISSING);
}
TEST(test_session_end__terminal_states_are_final)
{
    on_every_store(ending_is_final);
}

static void status_is_derived(struct fixture *f)
{
    struct session_row *row = NULL;
    create(f, &alice, 1);
    struct session_row forever = session_row(f, 2);
    forever.expires_ms = 0;
    assert_int_equal(create_row(f, &alice, &forever, -1), VERDICT_OK);
    clock_advance_fake(24 * HOUR - 1);
    assert_int_equal(get(f, &alice, ID "000001")->status, SESSION_ACTIVE);
    clock_advance_fake(1);
    check(f, store_session_by_handle(f->store, &alice, STR("ses_1"), f->mem, &row, &f->err));
    assert_int_equal(row->status, SESSION_EXPIRED);
    assert_int_equal(row->terminated_ms, NOW + 24 * HOUR);
    assert_str(row->termination_reason, "expired");
    assert_int_equal(get(f, &alice, ID "000002")->status, SESSION_ACTIVE);
    assert_int_equal(counts(f).sessions_active, 1);
    assert_int_equal(counts(f).sessions_total, 2);
}
TEST(test_session_read__expired_is_seen_without_the_reaper)
{
    on_every_store(status_is_derived);
}

static void several_are_found(struct fixture *f)
{
    create(f, &alice, 1);
    create(f, &alice, 2);
    struct session_find finds[] = {
        {&alice, STR("ses_2"), .mem = f->mem},
        {&bob, STR("ses_1"), .mem = f->mem},
        {&alice, STR("ses_404"), .mem = f->mem},
        {&alice, STR(ID "000001"), .by_id = true, .mem = f->mem},
        {&alice_elsewhere, STR(ID "000001"), .by_id = true, .mem = f->mem},
        {&alice, STR("no\0ne"), .mem = f->mem},
        {&alice, STR("nor this"), .by_id = true, .mem = f->mem},
    };
    check(f, store_sessions_find(f->store, finds, countof(finds), &f->err));
    assert_str(finds[0].row->id, ID "000002");
    assert_str(finds[3].row->handle, "ses_1");
    assert_null(finds[1].row);
    assert_null(finds[2].row);
    for (size_t i = 4; i < countof(finds); i++)
        assert_null(finds[i].row);
    assert_str(get(f, &alice, ID "000001")->handle, "ses_1");
}
TEST(test_sessions_find__each_gets_what_it_would_get_alone)
{
    on_every_store(several_are_found);
}

static void foreign_reads_as_missing(struct fixture *f)
{
    struct session_row *row = NULL;
    create(f, &alice, 1);
    check(f, store_session_by_handle(f->store, &alice, STR("ses_1"), f->mem, &row, &f->err));
    assert_str(row->id, ID "000001");
    check(f, store_session_by_handle(f->store, &bob, STR("ses_1"), f->mem, &row, &f->err));
    assert_null(row);
    row = &(struct session_row){0};
    check(f,
          store_session_by_handle(f->store, &alice_elsewhere, STR("ses_1"), f->mem, &row, &f->err));
    assert_null(row);
    row = &(struct session_row){0};
    check(f, store_session_by_handle(f->store, &alice, STR("ses_2"), f->mem, &row, &f->err));
    assert_null(row);
    assert_null(get(f, &bob, ID "000001"));
    assert_null(get(f, &alice_elsewhere, ID "000001"));
}
TEST(test_session_read__foreign_reads_as_missing)
{
    on_every_store(foreign_reads_as_missing);
}

static size_t page(struct fixture *f, const struct principal *who, const char *before,
                   unsigned limit, struct session_row **ret)
{
    size_t n = 0;
    check(f, store_sessions_page(f->store, who, &(struct session_filter){.before = str_of(before)},
                                 limit, f->mem, ret, &n, &f->err));
    return n;
}

static void pages_go_newest_first(struct fixture *f)
{
    struct principal auditor = {STR("acme"), STR("user:zoe"), ROLE_AUDITOR, .tenant_wide = true};
    struct principal service = {STR("acme"), STR("user:alice"), ROLE_SERVICE};
    struct session_row *rows = NULL;
    for (int i = 1; i <= 5; i++)
        create(f, i % 2 ? &alice : &bob, i);
    create(f, &alice_elsewhere, 6);
    assert_int_equal(page(f, &alice, NULL, 2, &rows), 2);
    assert_str(rows[0].id, ID "000005");
    assert_str(rows[1].id, ID "000003");
    assert_int_equal(page(f, &alice, ID "000003", 2, &rows), 1);
    assert_str(rows[0].id, ID "000001");
    assert_int_equal(page(f, &alice, ID "000001", 2, &rows), 0);
    assert_int_equal(page(f, &service, NULL, 200, &rows), 3);
    assert_int_equal(page(f, &auditor, NULL, 200, &rows), 5);
    assert_int_equal(page(f, &auditor, ID "000003", 200, &rows), 2);
    assert_str(rows[0].id, ID "000002");
    auditor.tenant_wide = false;
    assert_int_equal(page(f, &auditor, NULL, 200, &rows), 0);
}
TEST(test_sessions_page__shows_the_tenant_to_who_reaches_it_and_their_own_to_others)
{
    on_every_store(pages_go_newest_first);
}

static size_t named(struct fixture *f, const struct principal *who, const char *start,
                    struct session_row **ret)
{
    size_t n = 77;
    check(f, store_sessions_named(f->store, who, str_of(start), 200, f->mem, ret, &n, &f->err));
    return n;
}

static void beginnings_find_sessions(struct fixture *f)
{
    struct principal auditor = {STR("acme"), STR("user:zoe"), ROLE_AUDITOR, .tenant_wide = true};
    struct session_row *rows = NULL;

    create(f, &alice, 1);
    create(f, &alice, 12);
    create(f, &bob, 3);
    create(f, &alice_elsewhere, 4);
    assert_int_equal(named(f, &auditor, "ses_", &rows), 3);
    assert_str(rows[0].id, ID "000001");
    assert_int_equal(named(f, &auditor, "ses_1", &rows), 2);
    assert_int_equal(named(f, &auditor, "ses_12", &rows), 1);
    assert_str(rows[0].id, ID "000012");
    assert_int_equal(named(f, &auditor, ID "00000", &rows), 2);
    assert_int_equal(named(f, &auditor, ID "000003", &rows), 1);
    assert_int_equal(named(f, &alice, "ses_", &rows), 2);
    assert_int_equal(named(f, &alice, ID "000003", &rows), 0);
    /* A beginning is text, not a pattern. */
    assert_int_equal(named(f, &auditor, "se__", &rows), 0);
    assert_int_equal(named(f, &auditor, "%", &rows), 0);
    assert_int_equal(named(f, &auditor, "ses_123", &rows), 0);
    assert_int_equal(named(f, &auditor, "", &rows), 0);
}
TEST(test_sessions_named__finds_by_the_beginning_of_a_handle_or_id)
{
    on_every_store(beginnings_find_sessions);
}

static void pages_are_bounded(struct fixture *f)
{
    struct session_row *rows = NULL;
    struct event_row *events = NULL;
    struct event_filter filter = {.kind = -1};
    size_t n = 77;
    check(f, store_sessions_page(f->store, &alice, &(struct session_filter){0}, 200, f->mem, &rows,
                                 &n, &f->err));
    assert_int_equal(n, 0);
    n = 77;
    assert_false(store_sessions_page(f->store, &alice, &(struct session_filter){0}, 201, f->mem,
                                     &rows, &n, &f->err));
    assert_int_equal(f->err.code, ERR_BAD_INPUT);
    assert_false(store_sessions_page(f->store, &alice, &(struct session_filter){0}, 0, f->mem,
                                     &rows, &n, &f->err));
    assert_false(store_events_page(f->store, &filter, 201, f->mem, &events, &n, &f->err));
    assert_false(store_open_intents(f->store, NOW, 0, 201, f->mem, &events, &n, &f->err));
    assert_int_equal(n, 77);
}
TEST(test_pages__are_bounded_at_200)
{
    on_every_store(pages_are_bounded);
}

static struct transport_row transport_row(uint8_t n)
{
    struct transport_row t = {.endpoint = STR("/mcp/files"),
                              .protocol_version = STR("2025-11-25"),
                              .initialize_params = STR("{\"a\":\"\\u0000\"}\0x"),
                              .created_ms = NOW,
                              .last_used_ms = NOW};
    memset(t.id_hash, n, sizeof(t.id_hash));
    return t;
}

static enum verdict transport_op(struct fixture *f, enum op_kind kind, const struct principal *who,
                                 const struct transport_row *t)
{
    return write_one(f, (struct store_op){kind, who, {.transport = t}});
}

static struct transport_row *transport(struct fixture *f, const struct principal *who, uint8_t n)
{
    struct transport_row key = transport_row(n);
    struct transport_row *row = NULL;
    check(f, store_transport_get(f->store, who, key.id_hash, f->mem, &row, &f->err));
    return row;
}

static void transports_live_and_end(struct fixture *f)
{
    struct transport_row t = transport_row(1);
    create(f, &alice, 1);
    create(f, &bob, 2);
    assert_int_equal(transport_op(f, OP_TRANSPORT_CREATE, &alice, &t), VERDICT_OK);
    assert_int_equal(transport_op(f, OP_TRANSPORT_CREATE, &alice, &t), VERDICT_DUPLICATE);
    assert_int_equal(transport_op(f, OP_TRANSPORT_CREATE, &bob, &t), VERDICT_DUPLICATE);
    struct transport_row *got = transport(f, &alice, 1);
    assert_memory_equal(got->id_hash, t.id_hash, 32);
    assert_str(got->tenant, "acme");
    assert_str(got->owner, "user:alice");
    assert_str(got->endpoint, "/mcp/files");
    assert_str(got->protocol_version, "2025-11-25");
    assert_true(str_eq(got->initialize_params, t.initialize_params));
    assert_null(got->session_id.p);
    assert_int_equal(got->created_ms, NOW);
    assert_null(transport(f, &bob, 1));
    assert_null(transport(f, &alice_elsewhere, 1));
    assert_null(transport(f, &alice, 2));
    t.session_id = STR(ID "000002");
    assert_int_equal(transport_op(f, OP_TRANSPORT_LINK, &alice, &t), VERDICT_MISSING);
    assert_int_equal(transport_op(f, OP_TRANSPORT_LINK, &bob, &t), VERDICT_MISSING);
    t.session_id = STR(ID "000009");
    assert_int_equal(transport_op(f, OP_TRANSPORT_LINK, &alice, &t), VERDICT_MISSING);
    t.session_id = STR(ID "000001");
    assert_int_equal(transport_op(f, OP_TRANSPORT_LINK, &alice, &t), VERDICT_OK);
    assert_str(transport(f, &alice, 1)->session_id, ID "000001");
    t.last_used_ms = NOW + 50;
    assert_int_equal(transport_op(f, OP_TRANSPORT_TOUCH, &bob, &t), VERDICT_MISSING);
    assert_int_equal(transport_op(f, OP_TRANSPORT_TOUCH, &alice, &t), VERDICT_OK);
    t.last_used_ms = NOW + 20;
    assert_int_equal(transport_op(f, OP_TRANSPORT_TOUCH, &alice, &t), VERDICT_OK);
    assert_int_equal(transport(f, &alice, 1)->last_used_ms, NOW + 50);
    assert_int_equal(counts(f).transports, 1);
    t.ended_ms = NOW + 60;
    assert_int_equal(transport_op(f, OP_TRANSPORT_END, &bob, &t), VERDICT_MISSING);
    assert_int_equal(transport_op(f, OP_TRANSPORT_END, &alice, &t), VERDICT_OK);
    assert_int_equal(transport_op(f, OP_TRANSPORT_END, &alice, &t), VERDICT_MISSING);
    assert_int_equal(transport_op(f, OP_TRANSPORT_TOUCH, &alice, &t), VERDICT_MISSING);
    assert_int_equal(transport_op(f, OP_TRANSPORT_LINK, &alice, &t), VERDICT_MISSING);
    assert_null(transport(f, &alice, 1));
    assert_int_equal(counts(f).transports, 0);
}
TEST(test_transport__belongs_to_its_owner_until_it_ends)
{
    on_every_store(transports_live_and_end);
}

static void transport_may_begin_linked(struct fixture *f)
{
    struct transport_row t = transport_row(3);
    create(f, &alice, 1);
    t.session_id = STR(ID "000001");
    assert_int_equal(transport_op(f, OP_TRANSPORT_CREATE, &bob, &t), VERDICT_MISSING);
    assert_null(transport(f, &bob, 3));
    assert_int_equal(transport_op(f, OP_TRANSPORT_CREATE, &alice, &t), VERDICT_OK);
    assert_str(transport(f, &alice, 3)->session_id, ID "000001");
}
TEST(test_transport_create__links_only_to_the_owners_session)
{
    on_every_store(transport_may_begin_linked);
}

static void reap_persists_and_deletes(struct fixture *f)
{
    size_t n = 99;
    struct transport_row used = transport_row(1);
    struct transport_row ended = transport_row(2);
    for (int i = 1; i <= 5; i++) {
        struct session_row row = session_row(f, i);
        row.expires_ms = i == 5 ? 0 : NOW + i;
        assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    }
    ended.last_used_ms = NOW + 2;
    ended.ended_ms = NOW + 2;
    assert_int_equal(transport_op(f, OP_TRANSPORT_CREATE, &alice, &used), VERDICT_OK);
    assert_int_equal(transport_op(f, OP_TRANSPORT_CREATE, &alice, &ended), VERDICT_OK);
    assert_int_equal(transport_op(f, OP_TRANSPORT_END, &alice, &ended), VERDICT_MISSING);
    check(f, reap_at(f->store, NOW + 3, 2, &n, &f->err));
    assert_int_equal(n, 2);
    check(f, reap_at(f->store, NOW + 3, 2, &n, &f->err));
    assert_int_equal(n, 1);
    check(f, reap_at(f->store, NOW + 3, 2, &n, &f->err));
    assert_int_equal(n, 0);
    struct session_row *got = get(f, &alice, ID "000002"); /* the clock still stands at NOW */
    assert_int_equal(got->status, SESSION_EXPIRED);
    assert_int_equal(got->terminated_ms, NOW + 2);
    assert_str(got->termination_reason, "expired");
    assert_int_equal(got->version, 2);
    assert_int_equal(get(f, &alice, ID "000004")->status, SESSION_ACTIVE);
    assert_int_equal(get(f, &alice, ID "000005")->status, SESSION_ACTIVE);
    assert_int_equal(transport_op(f, OP_TRANSPORT_CREATE, &alice, &ended), VERDICT_OK);
    check(f, reap_at(f->store, NOW + TRANSPORT_IDLE_MS - 1, 1, &n, &f->err));
    assert_non_null(transport(f, &alice, 1));
    check(f, reap_at(f->store, NOW + TRANSPORT_IDLE_MS, 1, &n, &f->err));
    assert_null(transport(f, &alice, 1));
}
TEST(test_reap__persists_what_expired_and_deletes_dead_transports_in_batches)
{
    on_every_store(reap_persists_and_deletes);
}

static enum verdict put_link(struct fixture *f, const struct principal *who, const char *session,
                             const char *server, int64_t writer)
{
    struct link_row link = {.session_id = str_of(session),
                            .server = str_of(server),
                            .writer = writer,
                            .remote_id = STR("remote"),
                            .opened_ms = NOW};
    return write_one(f, (struct store_op){OP_LINK_PUT, who, {.link = &link}});
}

static enum verdict end_link(struct fixture *f, const struct principal *who, const char *session,
                             const char *server)
{
    struct link_row link = {.session_id = str_of(session),
                            .server = str_of(server),
                            .ended_ms = NOW + 9,
                            .end_reason = STR("child_restarted")};
    return write_one(f, (struct store_op){OP_LINK_END, who, {.link = &link}});
}

static size_t links(struct fixture *f, const struct principal *who, const char *session,
                    struct link_row **ret)
{
    size_t n = 99;
    check(f, store_links_of(f->store, who, str_of(session), f->mem, ret, &n, &f->err));
    return n;
}

static void links_follow_their_session(struct fixture *f)
{
    struct link_row *rows = NULL;
    create(f, &alice, 1);
    assert_int_equal(put_link(f, &bob, ID "000001", "files", 1), VERDICT_MISSING);
    assert_int_equal(put_link(f, &alice, ID "000002", "files", 1), VERDICT_MISSING);
    assert_int_equal(put_link(f, &alice, ID "000001", "git", 1), VERDICT_OK);
    assert_int_equal(put_link(f, &alice, ID "000001", "files", 1), VERDICT_OK);
    assert_int_equal(put_link(f, &alice, ID "000001", "files", 2), VERDICT_OK);
    assert_int_equal(links(f, &bob, ID "000001", &rows), 0);
    assert_int_equal(links(f, &alice_elsewhere, ID "000001", &rows), 0);
    assert_int_equal(links(f, &alice, ID "000001", &rows), 2);
    assert_str(rows[0].server, "files");
    assert_int_equal(rows[0].writer, 2);
    assert_str(rows[0].remote_id, "remote");
    assert_int_equal(rows[0].opened_ms, NOW);
    assert_int_equal(rows[0].ended_ms, 0);
    assert_str(rows[1].server, "git");
    assert_int_equal(end_link(f, &bob, ID "000001", "files"), VERDICT_MISSING);
    assert_int_equal(end_link(f, &alice, ID "000001", "nope"), VERDICT_MISSING);
    assert_int_equal(end_link(f, &alice, ID "000001", "files"), VERDICT_OK);
    assert_int_equal(end_link(f, &alice, ID "000001", "files"), VERDICT_MISSING);
    assert_int_equal(links(f, &alice, ID "000001", &rows), 2);
    assert_int_equal(rows[0].writer, 0);
    assert_int_equal(rows[0].ended_ms, NOW + 9);
    assert_str(rows[0].end_reason, "child_restarted");
    assert_int_equal(put_link(f, &alice, ID "000001", "files", 3), VERDICT_OK);
    links(f, &alice, ID "000001", &rows);
    assert_int_equal(rows[0].ended_ms, 0);
    assert_null(rows[0].end_reason.p);
}
TEST(test_links__follow_their_session_and_its_owner)
{
    on_every_store(links_follow_their_session);
}

static void batch_sees_itself(struct fixture *f)
{
    struct session_row row = session_row(f, 1);
    struct transport_row t = transport_row(1);
    struct link_row link = {
        .session_id = row.id, .server = STR("files"), .writer = 1, .opened_ms = NOW};
    t.session_id = row.id;
    struct store_op ops[] = {
        {OP_SESSION_CREATE, &alice, {.session = &row}, .max_counted = -1},
        {OP_SESSION_CREATE, &alice, {.session = &row}, .max_counted = -1},
        {OP_TRANSPORT_CREATE, &alice, {.transport = &t}},
        {OP_LINK_PUT, &alice, {.link = &link}},
    };
    check(f, store_write(f->store, ops, countof(ops), &f->err));
    assert_int_equal(ops[0].verdict, VERDICT_OK);
    assert_int_equal(ops[1].verdict, VERDICT_DUPLICATE);
    assert_int_equal(ops[2].verdict, VERDICT_OK);
    assert_int_equal(ops[3].verdict, VERDICT_OK);
}
TEST(test_write__a_batch_sees_its_own_ops_and_a_refusal_spares_the_rest)
{
    on_every_store(batch_sees_itself);
}

static void no_principal_no_write(struct fixture *f)
{
    struct session_row good = session_row(f, 1);
    struct session_row row = session_row(f, 2);
    struct principal half = {.tenant = STR("acme")};
    struct store_op ops[] = {{OP_SESSION_CREATE, &alice, {.session = &good}, .max_counted = -1},
                             {OP_SESSION_CREATE, NULL, {.session = &row}, .max_counted = -1}};
    assert_false(store_write(f->store, ops, 2, &f->err));
    assert_int_equal(ops[0].verdict, VERDICT_FAILED);
    assert_int_equal(ops[1].verdict, VERDICT_FAILED);
    assert_null(get(f, &alice, ID "000001"));
    ops[1].who = &half;
    assert_false(store_write(f->store, ops, 2, &f->err));
    ops[1] = (struct store_op){OP_SESSION_END, &alice, {.session = &row}};
    assert_false(store_write(f->store, ops, 2, &f->err));
    check(f, store_write(f->store, NULL, 0, &f->err));
}
TEST(test_write__an_op_without_principal_or_sense_fails_the_batch)
{
    on_every_store(no_principal_no_write);
}

static struct reaped reap_links(struct fixture *f, int64_t now_ms, unsigned links)
{
    struct reap_request what = {
        .now_ms = now_ms, .batch = 10, .writer = 1, .links = links, .mem = f->mem};
    struct reaped done = {0};
    what.lease_until_ms = now_ms + 1000;
    check(f, store_reap(f->store, &what, &done, &f->err));
    return done;
}

static void reap_takes_links(struct fixture *f)
{
    struct link_row *rows = NULL;
    struct reaped done;
    size_t n = 0;

    for (int i = 1; i <= 3; i++)
        create(f, &alice, i);
    struct session_row derived = session_row(f, 4);
    derived.origin = ORIGIN_DERIVED;
    derived.expires_ms = NOW + HOUR;
    assert_int_equal(
        write_one(
            f,
            (struct store_op){OP_SESSION_CREATE, &alice, {.session = &derived}, .max_counted = -1}),
        VERDICT_OK);
    const char *ids[] = {ID "000001", ID "000002", ID "000003", ID "000004"};
    for (size_t i = 0; i < countof(ids); i++)
        assert_int_equal(put_link(f, &alice, ids[i], "files", 7), VERDICT_OK);
    struct session_row over = {.id = str_of(ids[1]), .status = SESSION_TERMINATED};
    over.terminated_ms = NOW;
    assert_int_equal(write_one(f, (struct store_op){OP_SESSION_END, &alice, {.session = &over}}),
                     VERDICT_OK);
    done = reap_links(f, NOW, 0);
    assert_int_equal(done.n_links, 0);
    assert_int_equal(links(f, &alice, ids[1], &rows), 1); /* nobody asked for them */
    done = reap_links(f, NOW, 100);
    assert_int_equal(done.n_links, 1);
    assert_false(done.more_links);
    assert_str(done.links[0].session_id, ids[1]);
    assert_str(done.links[0].server, "files");
    assert_str(done.links[0].remote_id, "remote");
    assert_int_equal(done.links[0].writer, 7);
    assert_int_equal(links(f, &alice, ids[1], &rows), 0);
    assert_int_equal(links(f, &alice, ids[0], &rows), 1);
    done.more_links = true;
    for (int round = 0; round < 10 && done.more_links; round++) {
        done = reap_links(f, NOW + 25 * HOUR, 1);
        n += done.n_links;
        for (size_t i = 0; i < done.n_links; i++)
            assert_int_equal(done.links[i].remote_id.p != NULL,
                             !str_eq(done.links[i].session_id, str_of(ids[3])));
    }
    assert_false(done.more_links);
    assert_int_equal(n, 3);
    assert_int_equal(reap_links(f, NOW + 25 * HOUR, 100).n_links, 0); /* each is told once */
}
TEST(test_reap__links_of_sessions_that_are_over_are_deleted_and_told)
{
    on_every_store(reap_takes_links);
}
