/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about events, their fold, their chains and their writers. */
#include "store_contract.h"

static size_t page(struct fixture *f, struct event_filter filter, unsigned limit,
                   struct event_row **ret)
{
    size_t n = 99;
    check(f, store_events_page(f->store, &filter, limit, f->mem, ret, &n, &f->err));
    return n;
}

static struct event_row *one(struct fixture *f, int64_t id)
{
    struct event_row *rows = NULL;
    struct event_filter filter = {
        .kind = -1, .after = id - 1, .before = id + 1, .with_bodies = true};
    assert_int_equal(page(f, filter, 2, &rows), 1);
    return rows;
}

static void every_field_survives(struct fixture *f)
{
    struct event_row e = outcome(event_id(7, 9), event_id(7, 8), "s1", "tool_error");
    e.parent = event_id(6, 1);
    e.transport = STR("0a1b2c3d");
    e.carrier = STR("header");
    e.era = STR("2025-11-25>2026-07-28");
    e.error = STR("No such file.");
    e.body_len = 70000;
    memset(e.body_sha, 0xab, 32);
    e.body = STR("{\"a\":\"\\u0000\"}\0\xff");
    memset(e.stored_sha, 0xcd, 32);
    append(f, e);
    struct event_row *got = one(f, e.id);
    assert_int_equal(got->id, e.id);
    assert_str(got->tenant, "acme");
    assert_int_equal(got->seq, 9);
    assert_int_equal(got->at_ms, NOW + 9);
    assert_int_equal(got->kind, EVENT_OUTCOME);
    assert_int_equal(got->exec, event_id(7, 8));
    assert_int_equal(got->parent, event_id(6, 1));
    assert_str(got->owner, "user:alice");
    assert_str(got->session_id, "s1");
    assert_str(got->transport, "0a1b2c3d");
    assert_str(got->carrier, "header");
    assert_str(got->server, "files");
    assert_str(got->method, "tools/call");
    assert_str(got->tool, "read");
    assert_str(got->era, "2025-11-25>2026-07-28");
    assert_str(got->outcome, "tool_error");
    assert_str(got->error, "No such file.");
    assert_int_equal(got->duration_us, 1500);
    assert_int_equal(got->body_len, 70000);
    assert_memory_equal(got->body_sha, e.body_sha, 32);
    assert_true(str_eq(got->body, e.body));
    assert_memory_equal(got->stored_sha, e.stored_sha, 32);
    assert_memory_equal(got->mac, e.mac, 32);
}
TEST(test_event_append__every_field_survives)
{
    on_every_store(every_field_survives);
}

static void absent_is_not_empty(struct fixture *f)
{
    struct event_row bare = event(event_id(1, 1), EVENT_SYSTEM);
    struct event_row empty = event(event_id(1, 2), EVENT_SYSTEM);
    empty.tool = STR("");
    empty.body = STR("");
    empty.body_len = 0;
    append(f, bare);
    append(f, empty);
    struct event_row *got = one(f, bare.id);
    assert_null(got->tool.p);
    assert_null(got->body.p);
    assert_int_equal(got->body_len, -1);
    got = one(f, empty.id);
    assert_non_null(got->tool.p);
    assert_non_null(got->body.p);
    assert_int_equal(got->body.n, 0);
}
TEST(test_event_append__absent_and_empty_stay_apart)
{
    on_every_store(absent_is_not_empty);
}

static void second_append_changes_nothing(struct fixture *f)
{
    struct event_row e = event(event_id(1, 1), EVENT_SYSTEM);
    append(f, e);
    e.tool = STR("changed");
    append(f, e);
    assert_null(one(f, e.id)->tool.p);
    assert_int_equal(counts(f).events, 1);
    fold_all(f);
    append(f, e);
    assert_int_equal(counts(f).events, 1);
}
TEST(test_event_append__a_second_append_of_one_id_is_ok_and_changes_nothing)
{
    on_every_store(second_append_changes_nothing);
}

/* Enough rows that a backend's multi-row statement is used as well as its single one. */
static void large_batches_arrive_whole(struct fixture *f)
{
    struct event_row events[101];
    struct store_op ops[101];
    struct event_row *rows = NULL;
    for (int i = 0; i < 101; i++) {
        events[i] = event(event_id(2, i + 1), EVENT_SYSTEM);
        ops[i] = (struct store_op){OP_EVENT_APPEND, NULL, {.event = &events[i]}};
    }
    check(f, store_write(f->store, ops, 50, &f->err));
    check(f, store_write(f->store, ops, 101, &f->err));
    for (int i = 0; i < 101; i++)
        assert_int_equal(ops[i].verdict, VERDICT_OK);
    assert_int_equal(page(f, (struct event_filter){.kind = -1}, 200, &rows), 101);
    for (int i = 0; i < 101; i++)
        assert_int_equal(rows[i].id, event_id(2, i + 1));
}
TEST(test_event_append__a_batch_repeated_in_part_arrives_whole)
{
    on_every_store(large_batches_arrive_whole);
}

static void another_event_under_a_taken_id_fails(struct fixture *f)
{
    struct event_row first = event(event_id(1, 1), EVENT_SYSTEM);
    struct event_row good = event(event_id(1, 2), EVENT_SYSTEM);
    struct event_row bad = first;
    struct session_row row = session_row(f, 1);
    bad.mac[0] ^= 1;
    append(f, first);
    struct store_op ops[] = {{OP_SESSION_CREATE, &alice, {.session = &row}, .max_counted = -1},
                             {OP_EVENT_APPEND, NULL, {.event = &good}},
                             {OP_EVENT_APPEND, NULL, {.event = &bad}}};
    assert_false(store_write(f->store, ops, 3, &f->err));
    assert_int_not_equal(f->err.code, ERR_UNAVAILABLE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ops[i].verdict, VERDICT_FAILED);
    assert_null(get(f, &alice, ID "000001"));
    assert_int_equal(counts(f).events, 1);
    bad.id = good.id;
    assert_false(store_write(f->store, &ops[1], 2, &f->err));
    assert_int_equal(counts(f).events, 1);
    check(f, store_write(f->store, ops, 2, &f->err));
}
TEST(test_event_append__another_event_under_a_taken_id_fails_the_whole_batch)
{
    on_every_store(another_event_under_a_taken_id_fails);
}

static void events_need_id_and_tenant(struct fixture *f)
{
    struct event_row e = event(event_id(1, 1), EVENT_SYSTEM);
    struct store_op op = {OP_EVENT_APPEND, NULL, {.event = &e}};
    e.tenant = STR_NONE;
    assert_false(store_write(f->store, &op, 1, &f->err));
    e.tenant = STR("acme");
    e.id = 0;
    assert_false(store_write(f->store, &op, 1, &f->err));
    assert_int_equal(counts(f).events, 0);
}
TEST(test_event_append__needs_id_and_tenant)
{
    on_every_store(events_need_id_and_tenant);
}

static void append_some(struct fixture *f)
{
    struct event_row other = intent(event_id(2, 1), "s2");
    append(f, intent(event_id(1, 1), "s1"));
    append(f, intent(event_id(1, 2), "s2"));
    append(f, outcome(event_id(1, 3), event_id(1, 1), "s1", "ok"));
    append(f, outcome(event_id(1, 4), event_id(1, 2), "s2", "error"));
    other.tenant = STR("umbrella");
    other.server = STR("git");
    other.tool = STR("log");
    append(f, other);
    struct event_row note = event(event_id(2, 2), EVENT_NOTE);
    note.exec = note.id;
    append(f, note);
}

static void expect(struct fixture *f, struct event_filter filter, size_t n, int64_t first,
                   int64_t last)
{
    struct event_row *rows = NULL;
    assert_int_equal(page(f, filter, 200, &rows), n);
    if (n) {
        assert_int_equal(rows[0].id, first);
        assert_int_equal(rows[n - 1].id, last);
    }
}

static void check_filters(struct fixture *f)
{
    expect(f, (struct event_filter){.kind = -1}, 6, event_id(1, 1), event_id(2, 2));
    expect(f, (struct event_filter){.kind = -1, .newest_first = true}, 6, event_id(2, 2),
           event_id(1, 1));
    expect(f, (struct event_filter){.kind = -1, .after = event_id(1, 2), .before = event_id(2, 1)},
           2, event_id(1, 3), event_id(1, 4));
    expect(f, (struct event_filter){.kind = -1, .tenant = STR("acme")}, 5, event_id(1, 1),
           event_id(2, 2));
    expect(f, (struct event_filter){.kind = -1, .tenant = STR("acm")}, 0, 0, 0);
    expect(f, (struct event_filter){.kind = -1, .since_ms = NOW + 3}, 2, event_id(1, 3),
           event_id(1, 4));
    expect(f, (struct event_filter){.kind = -1, .session_id = STR("s1")}, 2, event_id(1, 1),
           event_id(1, 3));
    expect(f, (struct event_filter){.kind = -1, .session_prefix = STR("s")}, 5, event_id(1, 1),
           event_id(2, 1));
    expect(f, (struct event_filter){.kind = -1, .session_prefix = STR("s2")}, 3, event_id(1, 2),
           event_id(2, 1));
    expect(f, (struct event_filter){.kind = -1, .session_prefix = STR("s2x")}, 0, 0, 0);
    expect(f, (struct event_filter){.kind = -1, .open = true}, 1, event_id(2, 1), event_id(2, 1));
    expect(f, (struct event_filter){.kind = -1, .server = STR("git")}, 1, event_id(2, 1),
           event_id(2, 1));
    expect(f, (struct event_filter){.kind = -1, .tool = STR("read"), .newest_first = true}, 4,
           event_id(1, 4), event_id(1, 1));
    expect(f, (struct event_filter){.kind = -1, .outcome = STR("error")}, 1, event_id(1, 4),
           event_id(1, 4));
    expect(f, (struct event_filter){.kind = EVENT_INTENT}, 3, event_id(1, 1), event_id(2, 1));
    expect(f, (struct event_filter){.kind = EVENT_INTENT, .session_id = STR("s2")}, 2,
           event_id(1, 2), event_id(2, 1));
    expect(f, (struct event_filter){.kind = -1, .exec = event_id(1, 1)}, 2, event_id(1, 1),
           event_id(1, 3));
    expect(f, (struct event_filter){.kind = -1, .exec = event_id(1, 2), .newest_first = true}, 2,
           event_id(1, 4), event_id(1, 2));
    expect(f, (struct event_filter){.kind = -1, .exec = event_id(1, 1), .tenant = STR("umbrella")},
           0, 0, 0);
    expect(f, (struct event_filter){.kind = -1, .exec = event_id(2, 1)}, 1, event_id(2, 1),
           event_id(2, 1));
    expect(f, (struct event_filter){.kind = -1, .exec = event_id(2, 2)}, 1, event_id(2, 2),
           event_id(2, 2));
    expect(f, (struct event_filter){.kind = -1, .exec = event_id(3, 1)}, 0, 0, 0);
}

/* The same answers before and after the fold: it must not matter which way a store takes. */
static void filters_filter(struct fixture *f)
{
    append_some(f);
    check_filters(f);
    fold_all(f);
    check_filters(f);
}
TEST(test_events_page__filters_and_orders_alike_before_and_after_the_fold)
{
    on_every_store(filters_filter);
}

/* Found lost, then heard of after all; and told twice. */
static void expect_open(struct fixture *f, size_t n, const int64_t *ids)
{
    struct event_filter filter = {.kind = -1, .open = true};
    struct event_row *rows = NULL;
    assert_int_equal(page(f, filter, 200, &rows), n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(rows[i].id, ids[i]);
    filter.newest_first = true;
    for (size_t i = 0; i < n; i++) { /* page by page */
        assert_int_equal(page(f, filter, 1, &rows), 1);
        assert_int_equal(rows[0].id, ids[n - 1 - i]);
        filter.before = rows[0].id;
    }
    assert_int_equal(page(f, filter, 1, &rows), 0);
}

/* Intent and outcome may each be folded or not, and the writers' events lie apart. */
static void open_ones_are_found(struct fixture *f)
{
    struct event_row *rows = NULL;
    append(f, intent(event_id(1, 1), "s1"));
    append(f, intent(event_id(1, 2), "s1"));
    append(f, outcome(event_id(1, 3), event_id(1, 2), "s1", "ok"));
    append(f, intent(event_id(1, 4), "s2"));
    append(f, intent(event_id(2, 1), "s2"));
    expect_open(f, 3, (int64_t[]){event_id(1, 1), event_id(1, 4), event_id(2, 1)});
    fold_all(f);
    expect_open(f, 3, (int64_t[]){event_id(1, 1), event_id(1, 4), event_id(2, 1)});
    append(f, outcome(event_id(1, 5), event_id(1, 1), "s1", "ok"));
    append(f, intent(event_id(1, 6), "s1"));
    append(f, outcome(event_id(3, 1), event_id(2, 1), "s2", "indeterminate"));
    expect_open(f, 2, (int64_t[]){event_id(1, 4), event_id(1, 6)});
    struct event_filter filter = {.kind = -1, .open = true, .session_prefix = STR("s2")};
    assert_int_equal(page(f, filter, 200, &rows), 1);
    assert_int_equal(rows[0].id, event_id(1, 4));
    filter = (struct event_filter){.kind = -1, .open = true, .since_ms = NOW + 5};
    assert_int_equal(page(f, filter, 200, &rows), 1);
    assert_int_equal(rows[0].id, event_id(1, 6));
    fold_all(f);
    expect_open(f, 2, (int64_t[]){event_id(1, 4), event_id(1, 6)});
    append(f, outcome(event_id(1, 7), event_id(1, 4), "s2", "ok"));
    append(f, outcome(event_id(1, 8), event_id(1, 6), "s1", "ok"));
    expect_open(f, 0, NULL);
    fold_all(f);
    expect_open(f, 0, NULL);
}
TEST(test_events_page__open_ones_are_the_intents_without_an_outcome_however_far_folded)
{
    on_every_store(open_ones_are_found);
}

/* Of two nodes the one with the higher number was idle for long. */
static void since_is_of_each_writer(struct fixture *f)
{
    for (int i = 1; i <= 3; i++) {
        struct event_row e = intent(event_id(2, i), "s1");
        e.at_ms = NOW - 5 * HOUR + i;
        append(f, e);
        append(f, intent(event_id(1, i), "s1"));
    }
    expect(f, (struct event_filter){.kind = -1, .newest_first = true, .since_ms = NOW}, 3,
           event_id(1, 3), event_id(1, 1));
    expect(f, (struct event_filter){.kind = -1, .since_ms = NOW}, 3, event_id(1, 1),
           event_id(1, 3));
    expect(f, (struct event_filter){.kind = -1, .newest_first = true, .since_ms = NOW - 6 * HOUR},
           6, event_id(2, 3), event_id(1, 1));
}
TEST(test_events_page__what_is_old_of_one_writer_does_not_hide_what_is_new_of_another)
{
    on_every_store(since_is_of_each_writer);
}

static void every_outcome_is_shown(struct fixture *f)
{
    const struct event_filter first = {.kind = -1, .exec = event_id(1, 1)};
    const struct event_filter second = {.kind = -1, .exec = event_id(1, 2)};
    append(f, intent(event_id(1, 1), "s1"));
    append(f, intent(event_id(1, 2), "s1"));
    append(f, outcome(event_id(2, 1), event_id(1, 1), "s1", "indeterminate"));
    append(f, outcome(event_id(2, 2), event_id(1, 1), "s1", "ok"));
    append(f, outcome(event_id(2, 3), event_id(1, 2), "s1", "ok"));
    expect(f, first, 3, event_id(1, 1), event_id(2, 2));
    fold_all(f);
    expect(f, first, 3, event_id(1, 1), event_id(2, 2));
    expect(f, second, 2, event_id(1, 2), event_id(2, 3));
    append(f, outcome(event_id(2, 4), event_id(1, 2), "s1", "ok"));
    fold_all(f);
    expect(f, second, 3, event_id(1, 2), event_id(2, 4));
    assert_int_equal(counts(f).executions_open, 0);
}
TEST(test_events_page__shows_every_outcome_of_an_execution)
{
    on_every_store(every_outcome_is_shown);
}

static void pages_continue(struct fixture *f)
{
    struct event_row *rows = NULL;
    append_some(f);
    assert_int_equal(page(f, (struct event_filter){.kind = -1}, 4, &rows), 4);
    assert_int_equal(page(f, (struct event_filter){.kind = -1, .after = rows[3].id}, 4, &rows), 2);
    assert_int_equal(rows[0].id, event_id(2, 1));
}
TEST(test_events_page__continues_after_an_id)
{
    on_every_store(pages_continue);
}

static void bodies_only_when_asked(struct fixture *f)
{
    struct event_row *rows = NULL;
    struct event_row e = event(event_id(1, 1), EVENT_NOTE);
    e.body = STR("{}");
    append(f, e);
    assert_int_equal(page(f, (struct event_filter){.kind = -1}, 1, &rows), 1);
    assert_null(rows[0].body.p);
    assert_int_equal(page(f, (struct event_filter){.kind = -1, .with_bodies = true}, 1, &rows), 1);
    assert_str(rows[0].body, "{}");
}
TEST(test_events_page__gives_bodies_only_when_asked)
{
    on_every_store(bodies_only_when_asked);
}

static void check_heads(struct fixture *f)
{
    struct chain_head *heads = NULL;
    struct event_row last = event(event_id(1, 4), EVENT_OUTCOME);
    size_t n = 0;
    check(f, store_chain_heads(f->store, f->mem, &heads, &n, &f->err));
    assert_int_equal(n, 3);
    assert_str(heads[0].tenant, "acme");
    assert_int_equal(heads[0].writer, 1);
    assert_int_equal(heads[0].seq, 4);
    assert_int_equal(heads[0].last_id, event_id(1, 4));
    assert_memory_equal(heads[0].mac, last.mac, 32);
    assert_str(heads[1].tenant, "acme");
    assert_int_equal(heads[1].writer, 2);
    assert_int_equal(heads[1].last_id, event_id(2, 2));
    assert_str(heads[2].tenant, "umbrella");
    assert_int_equal(heads[2].last_id, event_id(2, 1));
    assert_int_equal(counts(f).events, 6);
}

static void heads_are_the_last_of_each_chain(struct fixture *f)
{
    struct chain_head *heads = NULL;
    bool left = false;
    size_t n = 9;
    check(f, store_chain_heads(f->store, f->mem, &heads, &n, &f->err));
    assert_int_equal(n, 0);
    append_some(f);
    check_heads(f);
    check(f, store_fold(f->store, 3, &left, &f->err));
    check_heads(f);
    fold_all(f);
    check_heads(f);
}
TEST(test_chain_heads__are_the_last_events_of_each_tenant_and_writer_however_far_folded)
{
    on_every_store(heads_are_the_last_of_each_chain);
}

static void fold_says_what_is_left(struct fixture *f)
{
    bool left = true;
    check(f, store_fold(f->store, 10, &left, &f->err));
    assert_false(left);
    append_some(f);
    check(f, store_fold(f->store, 4, &left, &f->err));
    assert_true(left);
    check(f, store_fold(f->store, 2, &left, &f->err));
    assert_false(left);
    check(f, store_fold(f->store, 2, &left, &f->err));
    assert_false(left);
}
TEST(test_fold__says_whether_anything_is_left)
{
    on_every_store(fold_says_what_is_left);
}

static void fold_counts_once(struct fixture *f)
{
    create(f, &alice, 1);
    append(f, intent(event_id(1, 1), ID "000001"));
    fold_all(f);
    struct session_row *row = get(f, &alice, ID "000001");
    assert_int_equal(row->tool_count, 1);
    assert_int_equal(row->last_activity_ms, NOW + 1);
    assert_int_equal(counts(f).executions_open, 1);
    append(f, outcome(event_id(1, 2), event_id(1, 1), ID "000001", "ok"));
    append(f, intent(event_id(1, 3), ID "000001"));
    append(f, outcome(event_id(1, 4), event_id(1, 3), ID "000001", "tool_error"));
    fold_all(f);
    fold_all(f);
    row = get(f, &alice, ID "000001");
    assert_int_equal(row->tool_count, 2);
    assert_int_equal(row->last_activity_ms, NOW + 4);
    assert_int_equal(row->version, 1);
    assert_int_equal(counts(f).executions_open, 0);
    append(f, outcome(event_id(1, 4), event_id(1, 3), ID "000001", "tool_error"));
    fold_all(f);
    assert_int_equal(get(f, &alice, ID "000001")->tool_count, 2);
}
TEST(test_fold__counts_each_execution_once)
{
    on_every_store(fold_counts_once);
}

static void refusals_are_no_executions(struct fixture *f)
{
    create(f, &alice, 1);
    append(f, outcome(event_id(1, 1), event_id(1, 1), ID "000001", "refused"));
    fold_all(f);
    assert_int_equal(get(f, &alice, ID "000001")->tool_count, 0);
    append(f, outcome(event_id(1, 2), event_id(1, 2), ID "000001", "ok"));
    append(f, intent(event_id(1, 3), ID "000001"));
    append(f, outcome(event_id(1, 4), event_id(1, 3), ID "000001", "refused"));
    struct event_row note = intent(event_id(1, 5), ID "000001");
    note.kind = EVENT_NOTE;
    append(f, note);
    append(f, event(event_id(1, 6), EVENT_ANCHOR));
    fold_all(f);
    struct session_row *row = get(f, &alice, ID "000001");
    assert_int_equal(row->tool_count, 2);
    assert_int_equal(row->last_activity_ms, NOW + 5);
    assert_int_equal(counts(f).executions_open, 0);
}
TEST(test_fold__a_refusal_without_an_intent_is_no_execution)
{
    on_every_store(refusals_are_no_executions);
}

static void fold_respects_tenants(struct fixture *f)
{
    create(f, &alice, 1);
    struct event_row e = intent(event_id(1, 1), ID "000001");
    e.tenant = STR("umbrella");
    append(f, e);
    append(f, intent(event_id(1, 2), ID "999999"));
    fold_all(f);
    assert_int_equal(get(f, &alice, ID "000001")->tool_count, 0);
    assert_int_equal(get(f, &alice, ID "000001")->last_activity_ms, NOW);
}
TEST(test_fold__another_tenants_event_does_not_touch_a_session)
{
    on_every_store(fold_respects_tenants);
}

static void use_at(struct fixture *f, int64_t count, const char *session, int64_t at_ms)
{
    struct event_row e = intent(event_id(1, count), session);
    e.at_ms = at_ms;
    append(f, e);
    fold_all(f);
}

static void use_slides_the_end(struct fixture *f)
{
    struct session_row fixed = session_row(f, 2);
    struct session_row forever = session_row(f, 3);
    create(f, &alice, 1);
    fixed.ttl_ms = 24 * HOUR;
    forever.expires_ms = 0;
    assert_int_equal(create_row(f, &alice, &fixed, -1), VERDICT_OK);
    assert_int_equal(create_row(f, &alice, &forever, -1), VERDICT_OK);
    use_at(f, 1, ID "000001", NOW + 2 * HOUR);
    use_at(f, 2, ID "000001", NOW + HOUR);
    use_at(f, 3, ID "000002", NOW + 2 * HOUR);
    use_at(f, 4, ID "000003", NOW + 2 * HOUR);
    assert_int_equal(get(f, &alice, ID "000001")->expires_ms, NOW + 26 * HOUR);
    assert_int_equal(get(f, &alice, ID "000001")->last_activity_ms, NOW + 2 * HOUR);
    assert_int_equal(get(f, &alice, ID "000002")->expires_ms, NOW + 24 * HOUR);
    assert_int_equal(get(f, &alice, ID "000003")->expires_ms, 0);
    use_at(f, 5, ID "000001", NOW + 26 * HOUR); /* too late */
    assert_int_equal(get(f, &alice, ID "000001")->expires_ms, NOW + 26 * HOUR);
}
TEST(test_fold__use_slides_the_end_of_a_session_without_ttl)
{
    on_every_store(use_slides_the_end);
}

static void life_has_an_end(struct fixture *f)
{
    struct session_row row = session_row(f, 1);
    row.expires_ms = NOW + SESSION_LIFE_MAX_MS - 10;
    assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    use_at(f, 1, ID "000001", NOW + 10);
    assert_int_equal(get(f, &alice, ID "000001")->expires_ms, NOW + SESSION_LIFE_MAX_MS);
    use_at(f, 2, ID "000001", NOW + 11);
    assert_int_equal(get(f, &alice, ID "000001")->expires_ms, NOW + SESSION_LIFE_MAX_MS);
}
TEST(test_fold__no_use_moves_the_end_past_the_longest_life)
{
    on_every_store(life_has_an_end);
}

/* Events carry the wall clock's time, sessions live by clock_life_ms(). */
static void use_after_a_jump(struct fixture *f)
{
    static const int64_t jumps[] = {HOUR, -HOUR, 365 * 24 * HOUR, -365 * 24 * HOUR};
    create(f, &alice, 1);
    for (size_t i = 0; i < countof(jumps); i++) {
        (void)clock_life_ms();
        clock_jump_fake(jumps[i]);
        clock_advance_fake(HOUR);
        struct event_row e = intent(event_id(1, 1 + (int64_t)i), ID "000001");
        e.at_ms = clock_wall_ms();
        append(f, e);
        fold_now(f);
        struct session_row *row = get(f, &alice, ID "000001");
        assert_int_equal(row->last_activity_ms, NOW + (1 + (int64_t)i) * HOUR);
        assert_int_equal(row->expires_ms, NOW + (25 + (int64_t)i) * HOUR);
    }
}
TEST(test_fold__a_wall_clock_that_jumps_moves_no_session)
{
    on_every_store(use_after_a_jump);
}

static void reap_folds_first(struct fixture *f)
{
    size_t n = 9;
    create(f, &alice, 1);
    struct event_row e = intent(event_id(1, 1), ID "000001");
    e.at_ms = NOW + HOUR;
    append(f, e);
    clock_advance_fake(24 * HOUR);
    check(f, reap_at(f->store, NOW + 24 * HOUR, 10, &n, &f->err));
    assert_int_equal(n, 0);
    assert_int_equal(get(f, &alice, ID "000001")->status, SESSION_ACTIVE);
    check(f, reap_at(f->store, NOW + 25 * HOUR, 10, &n, &f->err));
    assert_int_equal(n, 1);
}
TEST(test_reap__does_not_end_a_session_whose_use_was_not_yet_folded)
{
    on_every_store(reap_folds_first);
}

static int64_t start_writer(struct fixture *f, const char *uuid, int64_t started_ms, bool exclusive)
{
    struct writer_row w = {.uuid = str_of(uuid),
                           .node = STR("node-1"),
                           .started_ms = started_ms,
                           .lease_until_ms = started_ms + 15000};
    check(f, store_writer_start(f->store, &w, exclusive, &f->err));
    return w.number;
}

static enum verdict writer_op(struct fixture *f, enum op_kind kind, int64_t number, int64_t ms)
{
    struct writer_row w = {.number = number, .lease_until_ms = ms, .ended_ms = ms};
    return write_one(f, (struct store_op){kind, NULL, {.writer = &w}});
}

static void writers_are_numbered(struct fixture *f)
{
    assert_int_equal(start_writer(f, "a", NOW, false), 1);
    assert_int_equal(start_writer(f, "b", NOW, false), 2);
    assert_int_equal(writer_op(f, OP_WRITER_RENEW, 1, NOW + 1), VERDICT_OK);
    assert_int_equal(writer_op(f, OP_WRITER_RENEW, 3, NOW + 1), VERDICT_MISSING);
    assert_int_equal(writer_op(f, OP_WRITER_END, 1, NOW + 1), VERDICT_OK);
    assert_int_equal(writer_op(f, OP_WRITER_END, 1, NOW + 1), VERDICT_MISSING);
    assert_int_equal(writer_op(f, OP_WRITER_RENEW, 1, NOW + 1), VERDICT_MISSING);
    assert_int_equal(start_writer(f, "c", NOW, true), 3);
}
TEST(test_writer__numbers_grow_and_an_end_is_final)
{
    on_every_store(writers_are_numbered);
}

static size_t open_intents(struct fixture *f, int64_t now_ms, int64_t after, unsigned limit,
                           struct event_row **ret)
{
    size_t n = 99;
    check(f, store_open_intents(f->store, now_ms, after, limit, f->mem, ret, &n, &f->err));
    return n;
}

static void open_intents_of_lost_writers(struct fixture *f)
{
    struct event_row *rows = NULL;
    start_writer(f, "a", NOW, false);
    start_writer(f, "b", NOW, false);
    struct event_row first = intent(event_id(1, 1), "s1");
    first.body = STR("{}");
    append(f, first);
    append(f, intent(event_id(1, 2), "s1"));
    append(f, intent(event_id(2, 1), "s2"));
    append(f, outcome(event_id(1, 3), event_id(1, 2), "s1", "ok"));
    assert_int_equal(open_intents(f, NOW + 14999, 0, 10, &rows), 0);
    assert_int_equal(open_intents(f, NOW + 15000, 0, 10, &rows), 2);
    assert_int_equal(rows[0].id, event_id(1, 1));
    assert_int_equal(rows[0].kind, EVENT_INTENT);
    assert_str(rows[0].tenant, "acme");
    assert_str(rows[0].session_id, "s1");
    assert_str(rows[0].tool, "read");
    assert_int_equal(rows[0].at_ms, NOW + 1);
    assert_null(rows[0].body.p);
    assert_int_equal(rows[1].id, event_id(2, 1));
    assert_int_equal(open_intents(f, NOW + 15000, 0, 1, &rows), 1);
    assert_int_equal(open_intents(f, NOW + 15000, rows[0].id, 1, &rows), 1);
    assert_int_equal(rows[0].id, event_id(2, 1));
    assert_int_equal(writer_op(f, OP_WRITER_RENEW, 2, NOW + 60000), VERDICT_OK);
    assert_int_equal(open_intents(f, NOW + 15000, 0, 10, &rows), 1);
    assert_int_equal(writer_op(f, OP_WRITER_END, 2, NOW + 2), VERDICT_OK);
    assert_int_equal(open_intents(f, NOW + 3, 0, 10, &rows), 1);
    assert_int_equal(rows[0].id, event_id(2, 1));
    append(f, outcome(event_id(3, 1), event_id(2, 1), "s2", "indeterminate"));
    append(f, outcome(event_id(3, 2), event_id(1, 1), "s1", "indeterminate"));
    assert_int_equal(open_intents(f, NOW + 15000, 0, 10, &rows), 0);
    assert_int_equal(counts(f).executions_open, 0);
}
TEST(test_open_intents__are_those_whose_writer_is_gone)
{
    on_every_store(open_intents_of_lost_writers);
}

static void exclusive_start_lapses_the_others(struct fixture *f)
{
    struct event_row *rows = NULL;
    int64_t first = start_writer(f, "a", NOW, true);
    append(f, intent(event_id(first, 1), "s1"));
    start_writer(f, "b", NOW + 1, false);
    assert_int_equal(open_intents(f, NOW + 2, 0, 10, &rows), 0);
    int64_t own = start_writer(f, "c", NOW + 2, true);
    append(f, intent(event_id(own, 1), "s1"));
    assert_int_equal(open_intents(f, NOW + 2, 0, 10, &rows), 1);
    assert_int_equal(rows[0].id, event_id(first, 1));
}
TEST(test_writer_start__alone_lapses_every_other_lease)
{
    on_every_store(exclusive_start_lapses_the_others);
}

static void a_start_lapses_its_previous(struct fixture *f)
{
    struct event_row *rows = NULL;
    int64_t first = start_writer(f, "a", NOW, false);
    int64_t other = start_writer(f, "b", NOW, false);
    append(f, intent(event_id(first, 1), "s1"));
    append(f, intent(event_id(other, 1), "s1"));
    struct writer_row next = {.uuid = STR("c"),
                              .node = STR("node-1"),
                              .previous = STR("a"),
                              .started_ms = NOW + 1,
                              .lease_until_ms = NOW + 15001};
    check(f, store_writer_start(f->store, &next, false, &f->err));
    assert_int_equal(open_intents(f, NOW + 2, 0, 10, &rows), 1);
    assert_int_equal(rows[0].id, event_id(first, 1));
}
TEST(test_writer_start__lapses_the_lease_of_the_one_before_it)
{
    on_every_store(a_start_lapses_its_previous);
}
