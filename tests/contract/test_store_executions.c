/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about the executions of a session, records of them, tools and totals.
 */
#include "store_contract.h"

#define TOOL_ID "30000000-0000-7000-8000-000000000001"

static const struct principal auditor = {STR("acme"), STR("user:carol"), ROLE_AUDITOR,
                                         .tenant_wide = true};
static const struct principal auditor_elsewhere = {STR("umbrella"), STR("user:carol"), ROLE_AUDITOR,
                                                   .tenant_wide = true};

static struct execution_row *page(struct fixture *f, const struct principal *who,
                                  const char *session, int64_t before, unsigned limit,
                                  size_t *ret_n)
{
    struct execution_row *rows = NULL;
    check(f, store_executions_page(f->store, who, str_of(session), before, true, limit, f->mem,
                                   &rows, ret_n, &f->err));
    return rows;
}

static struct execution_row only(struct fixture *f, const char *session)
{
    size_t n = 0;
    struct execution_row *rows = page(f, &alice, session, 0, 10, &n);
    assert_int_equal(n, 1);
    return rows[0];
}

static struct event_row with_body(struct event_row e, const char *body)
{
    e.body = str_of(body);
    e.body_len = (int64_t)e.body.n;
    memset(e.body_sha, 1, sizeof(e.body_sha));
    memset(e.stored_sha, 1, sizeof(e.stored_sha));
    return e;
}

static struct event_row record(int64_t id, const char *session)
{
    struct event_row e = event(id, EVENT_RECORD);
    e.exec = id;
    e.owner = STR("user:alice");
    e.session_id = str_of(session);
    e.tool = STR("build");
    e.outcome = STR("ok");
    e.duration_us = -1;
    return e;
}

static void executions_are_joined(struct fixture *f)
{
    char tool[TOOL_UUID_TEXT];
    create(f, &alice, 1);
    append(f, with_body(intent(event_id(1, 1), ID "000001"),
                        "{\"name\":\"read\",\"arguments\":{\"b\": 1,\"a\":2}}"));
    struct event_row end = outcome(event_id(1, 2), event_id(1, 1), ID "000001", "tool_error");
    end.error = STR("No such file.");
    append(f, with_body(end, "{\"isError\":true, \"content\":[]}"));
    fold_all(f);
    struct execution_row x = only(f, ID "000001");
    assert_int_equal(x.exec, event_id(1, 1));
    assert_str(x.session_id, ID "000001");
    assert_str(x.server, "files");
    assert_str(x.tool_name, "read");
    tool_uuid(STR("acme"), STR("files"), STR("read"), tool);
    assert_str(x.tool_id, tool);
    assert_str(x.arguments, "{\"b\": 1,\"a\":2}");
    assert_str(x.result, "{\"isError\":true, \"content\":[]}");
    assert_str(x.outcome, "tool_error");
    assert_str(x.error, "No such file.");
    assert_int_equal(x.duration_ms, 2); /* 1.5 ms, rounded */
    assert_int_equal(x.tokens, -1);
    assert_int_equal(x.executed_ms, NOW + 1);
}
TEST(test_executions_page__joins_intent_and_outcome)
{
    on_every_store(executions_are_joined);
}

static void bodies_when_asked(struct fixture *f)
{
    struct execution_row *rows = NULL;
    size_t n = 0;
    create(f, &alice, 1);
    append(f, with_body(intent(event_id(1, 1), ID "000001"), "{\"arguments\":{}}"));
    append(f, with_body(outcome(event_id(1, 2), event_id(1, 1), ID "000001", "ok"), "{}"));
    append(f, with_body(intent(event_id(1, 3), ID "000001"), "no JSON"));
    append(f, outcome(event_id(1, 4), event_id(1, 3), ID "000001", "ok"));
    append(f, with_body(intent(event_id(1, 5), ID "000001"), "{\"name\":\"x\"}"));
    fold_all(f);
    check(f, store_executions_page(f->store, &alice, STR(ID "000001"), 0, false, 10, f->mem, &rows,
                                   &n, &f->err));
    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++)
        assert_true(!rows[i].arguments.p && !rows[i].result.p);
    rows = page(f, &alice, ID "000001", 0, 10, &n);
    assert_null(rows[0].arguments.p);
    assert_null(rows[1].arguments.p); /* what was kept cannot be shown as JSON */
    assert_null(rows[1].result.p);
    assert_str(rows[2].arguments, "{}");
    assert_str(rows[2].result, "{}");
}
TEST(test_executions_page__bodies_are_there_when_asked_for_and_kept)
{
    on_every_store(bodies_when_asked);
}

static void open_until_told(struct fixture *f)
{
    size_t n = 9;
    create(f, &alice, 1);
    append(f, intent(event_id(1, 1), ID "000001"));
    page(f, &alice, ID "000001", 0, 10, &n);
    assert_int_equal(n, 0); /* not folded yet */
    fold_all(f);
    struct execution_row x = only(f, ID "000001");
    assert_str(x.outcome, "open");
    assert_int_equal(x.duration_ms, -1);
    assert_null(x.error.p);
    append(f, with_body(outcome(event_id(1, 2), event_id(1, 1), ID "000001", "ok"), "[1]"));
    fold_all(f);
    x = only(f, ID "000001");
    assert_str(x.outcome, "ok");
    assert_str(x.result, "[1]");
    append(f, outcome(event_id(1, 3), event_id(1, 1), ID "000001", "error"));
    fold_all(f);
    assert_str(only(f, ID "000001").outcome, "ok"); /* the first is the one that counts */
}
TEST(test_executions_page__an_execution_is_open_until_its_outcome_is_folded)
{
    on_every_store(open_until_told);
}

static void guesses_give_way(struct fixture *f)
{
    create(f, &alice, 1);
    create(f, &alice, 2);
    for (int i = 0; i < 2; i++) { /* folded together, and one by one */
        const char *session = i ? ID "000002" : ID "000001";
        int64_t exec = event_id(1, 1 + 10 * i);
        append(f, intent(exec, session));
        if (i)
            fold_all(f);
        append(f, outcome(exec + 1, exec, session, "indeterminate"));
        fold_all(f);
        assert_str(only(f, session).outcome, "indeterminate");
        append(f, outcome(exec + 2, exec, session, "ok"));
        fold_all(f);
        assert_str(only(f, session).outcome, "ok");
    }
}
TEST(test_executions_page__what_was_only_guessed_gives_way_to_what_is_told_later)
{
    on_every_store(guesses_give_way);
}

static void records_are_executions(struct fixture *f)
{
    struct event_row e = record(event_id(1, 1), ID "000001");
    create(f, &alice, 1);
    e.tokens = 120;
    e.tool_id = STR(TOOL_ID);
    e.duration_us = 7000;
    append(f, with_body(e, "{\"arguments\":{\"x\":1},\"result\":\"done\"}"));
    e = record(event_id(1, 2), ID "000001");
    e.outcome = STR("error");
    e.error = STR("broken");
    append(f, e);
    fold_all(f);
    size_t n = 0;
    struct execution_row *rows = page(f, &alice, ID "000001", 0, 10, &n);
    assert_int_equal(n, 2);
    assert_int_equal(rows[1].exec, event_id(1, 1));
    assert_null(rows[1].server.p);
    assert_str(rows[1].tool_name, "build");
    assert_str(rows[1].tool_id, TOOL_ID);
    assert_str(rows[1].arguments, "{\"x\":1}");
    assert_str(rows[1].result, "\"done\"");
    assert_str(rows[1].outcome, "ok");
    assert_int_equal(rows[1].duration_ms, 7);
    assert_int_equal(rows[1].tokens, 120);
    assert_str(rows[0].outcome, "error");
    assert_str(rows[0].error, "broken");
    assert_null(rows[0].tool_id.p);
    assert_null(rows[0].arguments.p);
    assert_int_equal(rows[0].duration_ms, -1);
    assert_int_equal(rows[0].tokens, -1);
    struct session_row *row = get(f, &alice, ID "000001");
    assert_int_equal(row->tool_count, 2);
    assert_int_equal(row->tokens_used, 120);
    assert_int_equal(row->last_activity_ms, NOW + 2);
    assert_int_equal(counts(f).executions_open, 0);
}
TEST(test_record__is_an_execution_and_counts_with_its_tokens)
{
    on_every_store(records_are_executions);
}

static void tokens_have_an_end(struct fixture *f)
{
    create(f, &alice, 1);
    for (int i = 1; i <= 3; i++) {
        struct event_row e = record(event_id(1, i), ID "000001");
        e.tokens = INT64_MAX - 5;
        append(f, e);
        if (i == 2)
            fold_all(f);
    }
    fold_all(f);
    assert_int_equal(get(f, &alice, ID "000001")->tokens_used, INT64_MAX);
    assert_int_equal(get(f, &alice, ID "000001")->tool_count, 3);
}
TEST(test_fold__more_tokens_than_can_be_counted_are_the_most_that_can)
{
    on_every_store(tokens_have_an_end);
}

static void only_its_own(struct fixture *f)
{
    size_t n = 9;
    struct event_row note = intent(event_id(1, 5), ID "000001");
    note.kind = EVENT_NOTE;
    struct event_row foreign = intent(event_id(1, 6), ID "000001");
    foreign.tenant = STR("umbrella");
    create(f, &alice, 1);
    create(f, &alice, 2);
    append(f, intent(event_id(1, 1), ID "000001"));
    append(f, intent(event_id(1, 2), ID "000002"));
    append(f, intent(event_id(1, 3), ID "000404"));
    append(f, note);
    append(f, foreign);
    fold_all(f);
    assert_int_equal(only(f, ID "000001").exec, event_id(1, 1));
    assert_int_equal(only(f, ID "000002").exec, event_id(1, 2));
    page(f, &bob, ID "000001", 0, 10, &n);
    assert_int_equal(n, 0);
    page(f, &alice_elsewhere, ID "000001", 0, 10, &n);
    assert_int_equal(n, 0);
    page(f, &auditor_elsewhere, ID "000001", 0, 10, &n);
    assert_int_equal(n, 0);
    page(f, &alice, ID "000404", 0, 10, &n);
    assert_int_equal(n, 0);
    page(f, &auditor, ID "000001", 0, 10, &n);
    assert_int_equal(n, 1);
}
TEST(test_executions_page__shows_a_sessions_own_to_whoever_reaches_it)
{
    on_every_store(only_its_own);
}

/* 12 executions of two writers, folded in slices of all sizes, every third still open. */
static void many_executions(struct fixture *f)
{
    create(f, &alice, 1);
    for (int i = 0; i < 12; i++) {
        int64_t exec = event_id(1 + i / 7, 1 + 2 * i);
        append(f, intent(exec, ID "000001"));
        if (i % 3)
            append(f, outcome(exec + 1, exec, ID "000001", "ok"));
        if (i % 5 == 0)
            fold_all(f);
    }
    fold_all(f);
}

static void pages_newest_first(struct fixture *f)
{
    int seen = 0;
    many_executions(f);
    for (int64_t before = 0;;) {
        size_t n = 0;
        struct execution_row *rows = page(f, &alice, ID "000001", before, 5, &n);
        for (size_t k = 0; k < n; k++, seen++) {
            int i = 11 - seen;
            assert_int_equal(rows[k].exec, event_id(1 + i / 7, 1 + 2 * i));
            assert_str(rows[k].outcome, i % 3 ? "ok" : "open");
            before = rows[k].exec;
        }
        if (n < 5)
            break;
    }
    assert_int_equal(seen, 12);
    assert_int_equal(get(f, &alice, ID "000001")->tool_count, 12);
}
TEST(test_executions_page__goes_back_from_the_newest_without_gap_or_repetition)
{
    on_every_store(pages_newest_first);
}

static void pages_have_a_limit(struct fixture *f)
{
    struct execution_row *rows = NULL;
    size_t n = 0;
    create(f, &alice, 1);
    for (int i = 1; i <= STORE_PAGE_MAX + 1; i++)
        append(f, record(event_id(1, i), ID "000001"));
    for (int i = 0; i < 4; i++)
        fold_all(f);
    page(f, &alice, ID "000001", 0, STORE_PAGE_MAX, &n);
    assert_int_equal(n, STORE_PAGE_MAX);
    assert_false(store_executions_page(f->store, &alice, STR(ID "000001"), 0, true,
                                       STORE_PAGE_MAX + 1, f->mem, &rows, &n, &f->err));
    assert_int_equal(f->err.code, ERR_BAD_INPUT);
}
TEST(test_executions_page__is_no_longer_than_a_page)
{
    on_every_store(pages_have_a_limit);
}

static bool tool_is_known(struct fixture *f, const struct principal *who, const char *id)
{
    bool known = false;
    check(f, store_tool_known(f->store, who, str_of(id), &known, &f->err));
    return known;
}

static void tools_are_entered(struct fixture *f)
{
    char tool[TOOL_UUID_TEXT], other[TOOL_UUID_TEXT];
    tool_uuid(STR("acme"), STR("files"), STR("read"), tool);
    tool_uuid(STR("umbrella"), STR("files"), STR("read"), other);
    create(f, &alice, 1);
    append(f, intent(event_id(1, 1), ID "000001"));
    append(f, record(event_id(1, 2), ID "000001"));
    assert_false(tool_is_known(f, &alice, tool));
    fold_all(f);
    assert_true(tool_is_known(f, &alice, tool));
    assert_true(tool_is_known(f, &bob, tool));
    assert_false(tool_is_known(f, &alice_elsewhere, tool));
    assert_false(tool_is_known(f, &alice, other));
    assert_false(tool_is_known(f, &alice_elsewhere, other));
    append(f, intent(event_id(1, 3), ID "000001"));
    fold_all(f);
    assert_true(tool_is_known(f, &alice, tool));
}
TEST(test_tool_known__is_one_that_was_executed_in_the_tenant)
{
    on_every_store(tools_are_entered);
}

static struct session_totals totals(struct fixture *f, const struct principal *who, int64_t since)
{
    struct session_totals t;
    check(f, store_session_totals(f->store, who, clock_life_ms(), since, &t, &f->err));
    return t;
}

/* 1 used for 30 min, 2 ended after 5 ms, 3 past its end after an hour, 4 bob's and old. */
static void totals_add_up(struct fixture *f)
{
    for (int i = 1; i <= 4; i++) {
        struct session_row row = session_row(f, i);
        row.created_ms = i == 4 ? NOW - 48 * HOUR : NOW;
        row.last_activity_ms = i == 1 ? NOW + HOUR / 2 : row.created_ms;
        row.expires_ms = i == 3 ? NOW + HOUR : NOW + 24 * HOUR;
        row.tool_count = i;
        row.tokens_used = 10 * i;
        assert_int_equal(create_row(f, i == 4 ? &bob : &alice, &row, -1), VERDICT_OK);
    }
    assert_int_equal(end_session(f, &alice, ID "000002"), VERDICT_OK);
    clock_advance_fake(HOUR);
    struct session_totals t = totals(f, &alice, 0);
    assert_int_equal(t.active_sessions, 1);
    assert_int_equal(t.total_sessions, 3);
    assert_int_equal(t.total_tool_executions, 6);
    assert_int_equal(t.total_tokens_used, 60);
    double want = (30.0 + 5.0 / 60000 + 60.0) / 3;
    assert_true(t.average_session_time_minutes > want - 1e-6 &&
                t.average_session_time_minutes < want + 1e-6);
    t = totals(f, &auditor, 0);
    assert_int_equal(t.total_sessions, 4);
    assert_int_equal(t.active_sessions, 2);
    assert_int_equal(totals(f, &auditor, NOW).total_sessions, 3);
    assert_int_equal(totals(f, &auditor, NOW + 59999).total_sessions, 3); /* of the whole minute */
    assert_int_equal(totals(f, &auditor, NOW + 60000).total_sessions, 1);
    t = totals(f, &auditor_elsewhere, 0);
    assert_int_equal(t.total_sessions, 0);
    assert_true(t.average_session_time_minutes == 0);
}
TEST(test_session_totals__are_of_the_sessions_one_may_see_that_were_used_since)
{
    on_every_store(totals_add_up);
}

/* What the totals have to be: every session that the principal sees, one by one. */
static struct session_totals added_up(struct fixture *f, const struct principal *who, int64_t since)
{
    struct session_totals t = {0};
    struct session_filter filter = {.now_ms = clock_life_ms()};
    struct session_row *rows = NULL;
    size_t n = 0;
    double lived_ms = 0;
    do {
        check(f, store_sessions_page(f->store, who, &filter, STORE_PAGE_MAX, f->mem, &rows, &n,
                                     &f->err));
        for (size_t i = 0; i < n; i++) {
            const struct session_row *r = &rows[i];
            if (r->created_ms < since && r->last_activity_ms < since)
                continue;
            t.active_sessions += r->status == SESSION_ACTIVE || r->status == SESSION_IDLE;
            t.total_sessions++;
            t.total_tool_executions += r->tool_count;
            t.total_tokens_used += r->tokens_used;
            lived_ms += (double)((r->terminated_ms ? r->terminated_ms : r->last_activity_ms) -
                                 r->created_ms);
        }
        filter.before = n ? rows[n - 1].id : STR_NONE;
    } while (n == STORE_PAGE_MAX);
    if (t.total_sessions)
        t.average_session_time_minutes = lived_ms / 60000 / (double)t.total_sessions;
    return t;
}

static void assert_totals_hold(struct fixture *f)
{
    static const struct principal *const whose[] = {&alice, &bob, &auditor, &auditor_elsewhere};
    int64_t minute = clock_life_ms() / 60000 * 60000;
    const int64_t sinces[] = {0, minute - 2 * HOUR, minute - 10 * 60000, minute - 60000, minute};
    int64_t active = 0, total = 0;
    for (size_t i = 0; i < countof(whose); i++)
        for (size_t j = 0; j < countof(sinces); j++) {
            struct session_totals is = totals(f, whose[i], sinces[j]);
            struct session_totals want = added_up(f, whose[i], sinces[j]);
            double off = is.average_session_time_minutes - want.average_session_time_minutes;
            assert_int_equal(is.active_sessions, want.active_sessions);
            assert_int_equal(is.total_sessions, want.total_sessions);
            assert_int_equal(is.total_tool_executions, want.total_tool_executions);
            assert_int_equal(is.total_tokens_used, want.total_tokens_used);
            assert_true(off > -1e-6 && off < 1e-6);
            if (j == 0 && whose[i]->tenant_wide) {
                active += want.active_sessions;
                total += want.total_sessions;
            }
        }
    assert_int_equal(counts(f).sessions_active, active);
    assert_int_equal(counts(f).sessions_total, total);
}

/* Everything that a session can go through, in an order that is the same in every run. */
struct life {
    struct fixture *f;
    uint32_t seed;
    int made;
    int64_t events;
};

static unsigned draw(struct life *l, unsigned n)
{
    l->seed = l->seed * 1664525 + 1013904223;
    return (l->seed >> 16) % n;
}

static const struct principal *owner_of(int n)
{
    return n % 5 == 4 ? &alice_elsewhere : n % 5 >= 2 ? &bob : &alice;
}

static void life_create(struct life *l)
{
    struct session_row row = session_row(l->f, ++l->made);
    row.created_ms = clock_life_ms() - draw(l, 3) * HOUR;
    row.last_activity_ms = clock_life_ms() - draw(l, 90000);
    row.expires_ms = draw(l, 4) ? clock_life_ms() + 60000 * (1 + draw(l, 60)) : 0;
    row.tool_count = draw(l, 3);
    row.tokens_used = draw(l, 1000);
    row.provisional = draw(l, 2);
    row.counted = !row.provisional;
    create_row(l->f, owner_of(l->made), &row, -1);
}

static void life_call(struct life *l, int n)
{
    struct event_row e = record(event_id(1, ++l->events), "");
    e.tenant = owner_of(n)->tenant;
    e.owner = owner_of(n)->owner;
    e.session_id = arena_printf(l->f->mem, ID "%06d", n);
    e.at_ms = clock_wall_ms();
    e.tokens = draw(l, 2) ? (int64_t)draw(l, 100000) : -1;
    append(l->f, e);
    if (draw(l, 2))
        fold_now(l->f);
}

static void life_change(struct life *l, int n)
{
    static const enum op_kind kinds[] = {OP_SESSION_END, OP_SESSION_USE, OP_SESSION_REFRESH,
                                         OP_SESSION_PROMOTE, OP_SESSION_PATCH};
    struct session_row row = {.id = arena_printf(l->f->mem, ID "%06d", n),
                              .status = draw(l, 4) ? SESSION_TERMINATED : SESSION_EXPIRED,
                              .termination_reason = STR("done"),
                              .terminated_ms = clock_life_ms(),
                              .last_activity_ms = clock_life_ms(),
                              .expires_ms = clock_life_ms() + draw(l, 3) * HOUR,
                              .client_name = STR("c")};
    write_one(l->f, (struct store_op){kinds[draw(l, countof(kinds))],
                                      owner_of(n),
                                      {.session = &row},
                                      .max_counted = -1,
                                      .fields = FIELD_CLIENT_NAME});
}

static void life_reap(struct life *l)
{
    struct reap_request what = {
        .now_ms = clock_life_ms(), .idle_ms = 10 * 60000, .batch = 1 + draw(l, 5)};
    struct reaped reaped;
    check(l->f, store_reap(l->f->store, &what, &reaped, &l->f->err));
}

static void totals_hold_through_life(struct fixture *f)
{
    struct life l = {.f = f, .seed = 7};
    for (int step = 0; step < 400; step++) {
        int n = l.made ? 1 + (int)draw(&l, (unsigned)l.made) : 0;
        switch (n ? draw(&l, 8) : 0) {
        case 0:
        case 1:
            life_create(&l);
            break;
        case 2:
        case 3:
            life_call(&l, n);
            break;
        case 4:
        case 5:
            life_change(&l, n);
            break;
        case 6:
            life_reap(&l);
            break;
        default:
            clock_advance_fake(draw(&l, 10 * 60000));
        }
        if (step % 20 == 19)
            assert_totals_hold(f);
    }
    clock_advance_fake(5 * HOUR);
    assert_totals_hold(f); /* what is past its end and not reaped */
}
TEST(test_session_totals__are_those_of_all_sessions_whatever_was_done_to_them)
{
    on_every_store(totals_hold_through_life);
}

static void totals_end_at_the_largest(struct fixture *f)
{
    for (int i = 1; i <= 3; i++) {
        struct session_row row = session_row(f, i);
        row.tokens_used = i < 3 ? INT64_MAX / 2 : 100;
        assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
        if (i == 2)
            assert_int_equal(totals(f, &alice, 0).total_tokens_used, INT64_MAX - 1);
    }
    assert_int_equal(totals(f, &alice, 0).total_tokens_used, INT64_MAX);
}
TEST(test_session_totals__tokens_stop_at_the_largest_number)
{
    on_every_store(totals_end_at_the_largest);
}
