/* SPDX-License-Identifier: Apache-2.0 */
/* Executions joined from events, from a store and through the daemon's JSON alike. */
#include "audit_db.h"

#include "audit/event_id.h"
#include "audit/event_json.h"
#include "audit/event_query.h"
#include "audit/executions.h"
#include "store/store_impl.h"

/* One page as the API answers it. */
static void write_page(struct buf *out, const struct event_row *rows, size_t n, int64_t scanned)
{
    struct js_writer w;
    js_begin(&w, out);
    js_object(&w);
    events_write(&w, rows, n, scanned);
    js_object_end(&w);
}

/* 250 calls on server "files", the last of them open; every tenth fails; one note in the middle. */
#define CALLS 250

static void fill(struct audit_db *db)
{
    audit_db_open(db, false);
    for (int i = 0; i < CALLS; i++) {
        struct event_row intent = audit_db_event(EVENT_INTENT, STR("default"));
        intent.at_ms += i;
        intent.session_id = i % 2 ? STR("0190aaaa-1") : STR("0190bbbb-2");
        audit_db_body(&intent, STR("{\"n\":1}"));
        audit_db_write(db, (struct event_row *[]){&intent}, 1);
        if (i == CALLS - 1)
            break;
        struct event_row outcome = intent;
        outcome.id = outcome.seq = 0;
        outcome.kind = EVENT_OUTCOME;
        outcome.outcome = i % 10 ? STR("ok") : STR("tool_error");
        outcome.error = i % 10 ? STR_NONE : STR("It failed.");
        outcome.duration_us = i;
        audit_db_body(&outcome, STR("{\"r\":1}"));
        audit_db_write(db, (struct event_row *[]){&outcome}, 1);
        if (i == 100) {
            struct event_row note = audit_db_event(EVENT_NOTE, STR("default"));
            note.method = STR("resources/read");
            note.outcome = STR("ok");
            audit_db_write(db, (struct event_row *[]){&note}, 1);
        }
    }
}

static bool from_store(void *arg, struct str path, struct arena *mem, struct str *ret_body,
                       struct error *err)
{
    struct event_filter filter;
    struct event_row *rows;
    struct buf b;
    unsigned limit;
    size_t n;
    struct str query = path;
    str_split(&query, '?');
    if (!audit_events_query_parse(query, &filter, &limit, mem, err) ||
        !store_events_page(arg, &filter, limit, mem, &rows, &n, err))
        return false;
    buf_init(&b, SIZE_MAX / 4);
    write_page(&b, rows, n, 0);
    *ret_body = arena_dup(mem, buf_str(&b));
    buf_release(&b);
    return true;
}

/* A store whose time is over after seven events. */
static bool from_slow_store(void *arg, struct str path, struct arena *mem, struct str *ret_body,
                            struct error *err)
{
    struct event_filter filter;
    struct event_row *rows;
    struct buf b;
    unsigned limit;
    size_t n, kept = 0;
    struct str query = path;
    str_split(&query, '?');
    if (!audit_events_query_parse(query, &filter, &limit, mem, err))
        return false;
    struct event_filter all = {.kind = -1,
                               .after = filter.after,
                               .before = filter.before,
                               .newest_first = filter.newest_first,
                               .with_bodies = filter.with_bodies,
                               .exec = filter.exec,
                               .open = filter.open};
    if (!store_events_page(arg, &all, 7, mem, &rows, &n, err))
        return false;
    int64_t scanned = n == 7 ? rows[n - 1].id : 0;
    for (size_t i = 0; i < n; i++)
        if (event_filter_matches(&filter, &rows[i]))
            rows[kept++] = rows[i];
    buf_init(&b, SIZE_MAX / 4);
    write_page(&b, rows, kept, scanned);
    *ret_body = arena_dup(mem, buf_str(&b));
    buf_release(&b);
    return true;
}

/* No time at all: each page ends after the first rows it looked at, and the next goes on there. */
static void check_pages(struct event_source *source)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct execution_filter filter = {.limit = 1000, .events = {.server = STR("nobody")}};
    struct execution *rows;
    size_t n, counted = 0, pages = 0;
    int64_t end = 0;

    filter.ret_end = &end;
    must(executions_newest(source, &filter, mem, &rows, &n, &must_err));
    assert_int_equal(n, 0);
    assert_true(end > 0); /* although nothing matched */
    filter.events = (struct event_filter){0};
    do {
        filter.events.before = pages ? end : 0;
        end = 0;
        must(executions_newest(source, &filter, mem, &rows, &n, &must_err));
        counted += n;
        pages++;
    } while (end);
    assert_true(pages > 10);
    assert_int_equal(counted, CALLS + 1);
    arena_free(mem);
}

static void check_list(struct event_source *source)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct execution *rows;
    size_t n;
    struct execution_filter filter = {.limit = 3};
    must(executions_newest(source, &filter, mem, &rows, &n, &must_err));
    assert_int_equal(n, 3);
    assert_str(rows[0].outcome, "open");
    assert_int_equal(rows[0].duration_us, -1);
    assert_str(rows[1].outcome, "ok");
    assert_int_equal(rows[1].duration_us, CALLS - 2);
    assert_true(rows[1].event.id < rows[0].event.id);

    filter = (struct execution_filter){.limit = 1000};
    must(executions_newest(source, &filter, mem, &rows, &n, &must_err));
    assert_int_equal(n, CALLS + 1);

    filter = (struct execution_filter){.limit = 1000, .outcome = STR("tool_error")};
    must(executions_newest(source, &filter, mem, &rows, &n, &must_err));
    assert_int_equal(n, CALLS / 10);
    assert_str(rows[0].error, "It failed.");

    filter = (struct execution_filter){.limit = 1000, .outcome = STR("open")};
    must(executions_newest(source, &filter, mem, &rows, &n, &must_err));
    assert_int_equal(n, 1);

    filter = (struct execution_filter){.limit = 1000, .session = STR("0190aaaa")};
    must(executions_newest(source, &filter, mem, &rows, &n, &must_err));
    assert_int_equal(n, CALLS / 2);

    filter = (struct execution_filter){.limit = 1000, .events = {.since_ms = 1700000000000 + 200}};
    must(executions_newest(source, &filter, mem, &rows, &n, &must_err));
    assert_int_equal(n, CALLS - 200);

    filter = (struct execution_filter){.limit = 1000, .events = {.server = STR("nobody")}};
    must(executions_newest(source, &filter, mem, &rows, &n, &must_err));
    assert_int_equal(n, 0);
    arena_free(mem);
}

static void check_get(struct event_source *source, int64_t writer)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct execution x;
    struct event_row *events;
    size_t n;
    /* The first call's intent and outcome name the same execution. */
    for (int64_t count = 1; count <= 2; count++) {
        must(execution_get(source, event_id_make(writer, count), mem, &x, &events, &n, &must_err));
        assert_int_equal(n, 2);
        assert_int_equal(x.event.id, event_id_make(writer, 1));
        assert_str(x.outcome, "tool_error");
        assert_str(events[0].body, "{\"n\":1}");
        assert_str(events[1].body, "{\"r\":1}");
    }
    must(execution_get(source, event_id_make(writer, 2 * CALLS), mem, &x, &events, &n, &must_err));
    assert_int_equal(n, 1);
    assert_str(x.outcome, "open");
    assert_false(execution_get(source, event_id_make(writer, 2 * CALLS + 1), mem, &x, &events, &n,
                               &must_err));
    assert_int_equal(must_err.code, ERR_NOT_FOUND);
    arena_free(mem);
}

TEST(test_executions__are_joined_and_filtered_from_a_store)
{
    struct audit_db db;
    fill(&db);
    struct event_source *source = event_source_of_store(db.store);
    check_list(source);
    check_get(source, db.writer);
    event_source_close(source);
    db.store = NULL;
    audit_db_close(&db);
}

TEST(test_executions__are_the_same_through_the_daemon)
{
    struct audit_db db;
    fill(&db);
    struct event_source *source = event_source_of_daemon(from_store, db.store);
    check_list(source);
    check_get(source, db.writer);
    event_source_close(source);
    audit_db_close(&db);
}

TEST(test_executions__are_found_however_little_one_page_looks_at)
{
    struct audit_db db;
    fill(&db);
    struct event_source *source = event_source_of_daemon(from_slow_store, db.store);
    check_list(source);
    check_pages(source);
    event_source_close(source);
    audit_db_close(&db);
}

static enum event_walk verify_one(void *arg, const struct event_row *e, struct error *err)
{
    return chain_verify_event(arg, e, err) ? EVENT_WALK_ON : EVENT_WALK_FAIL;
}

TEST(test_verify__works_through_the_daemon)
{
    struct audit_db db;
    fill(&db);
    audit_db_anchor(&db);
    struct event_source *source = event_source_of_daemon(from_store, db.store);
    struct event_filter filter = {.kind = -1, .with_bodies = true};
    struct chain_verifier *v = chain_verifier_new(db.chain);
    must(event_source_walk(source, &filter, verify_one, v, &must_err));
    must(chain_verify_end(v, buf_str(&db.anchor_lines), &must_err));
    assert_int_equal(chain_verified(v).events, 2 * CALLS + 1);
    chain_verifier_free(v);
    event_source_close(source);
    audit_db_close(&db);
}

/* The same execution again, and the same text of it. */
static void check_json(const struct execution *x)
{
    struct arena *mem = arena_new(1 << 20);
    struct js_writer w;
    struct js_doc doc;
    struct buf first, second;
    struct execution again;

    buf_init(&first, 1 << 16);
    buf_init(&second, 1 << 16);
    js_begin(&w, &first);
    execution_to_json(x, &w);
    assert_true(js_parse(buf_str(&first), &js_limits_upstream, mem, &doc, NULL));
    must(execution_from_json(&doc, js_root(&doc), mem, &again, &must_err));
    assert_int_equal(again.event.id, x->event.id);
    assert_int_equal(again.event.at_ms, x->event.at_ms);
    assert_int_equal(again.duration_us, x->duration_us);
    js_begin(&w, &second);
    execution_to_json(&again, &w);
    assert_int_equal(first.n, second.n);
    assert_memory_equal(first.p, second.p, first.n);
    buf_release(&first);
    buf_release(&second);
    arena_free(mem);
}

TEST(test_executions__are_read_from_the_json_that_they_are_written_as)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct execution_filter filter = {.limit = 1000};
    struct execution *rows;
    struct audit_db db;
    size_t n;

    fill(&db);
    struct event_source *source = event_source_borrowing(db.store);
    must(executions_newest(source, &filter, mem, &rows, &n, &must_err));
    assert_int_equal(n, CALLS + 1);
    for (size_t i = 0; i < n; i++)
        check_json(&rows[i]);
    event_source_close(source);
    audit_db_close(&db);
    arena_free(mem);
}

/* What REST was told of is an execution by itself: listed, shown and sealed like any other. */
TEST(test_executions__a_record_is_its_own_outcome)
{
    struct audit_db db;
    struct execution *rows, x;
    struct event_row *events;
    size_t n;
    audit_db_open(&db, false);
    struct event_row e = audit_db_event(EVENT_RECORD, STR("default"));
    e.server = STR_NONE;
    e.outcome = STR("error");
    e.error = STR("It failed.");
    e.duration_us = 7000;
    e.tokens = 42;
    e.tool_id = STR("30000000-0000-7000-8000-000000000001");
    audit_db_body(&e, STR("{\"arguments\":{}}"));
    audit_db_write(&db, (struct event_row *[]){&e}, 1);
    assert_int_equal(e.exec, e.id);
    struct arena *mem = arena_new(1 << 20);
    struct event_source *source = event_source_of_daemon(from_store, db.store);
    struct execution_filter filter = {.limit = 3};
    must(executions_newest(source, &filter, mem, &rows, &n, &must_err));
    assert_int_equal(n, 1);
    assert_str(rows[0].outcome, "error");
    assert_int_equal(rows[0].duration_us, 7000);
    assert_int_equal(rows[0].event.tokens, 42);
    assert_str(rows[0].event.tool_id, "30000000-0000-7000-8000-000000000001");
    must(execution_get(source, e.id, mem, &x, &events, &n, &must_err));
    assert_int_equal(n, 1);
    assert_str(x.error, "It failed.");
    assert_str(events[0].body, "{\"arguments\":{}}");
    struct chain_verifier *v = chain_verifier_new(db.chain);
    must(chain_verify_event(v, &events[0], &must_err));
    events[0].tokens++;
    assert_false(chain_verify_event(v, &events[0], &must_err));
    chain_verifier_free(v);
    event_source_close(source);
    arena_free(mem);
    audit_db_close(&db);
}

/* Notes what it was asked, and has nothing. */
static bool from_nothing(void *arg, struct str path, struct arena *mem, struct str *ret_body,
                         struct error *err unused_arg)
{
    struct buf b;
    snprintf(arg, 256, "%.*s", STR_ARG(path));
    buf_init(&b, SIZE_MAX / 4);
    write_page(&b, NULL, 0, 0);
    *ret_body = arena_dup(mem, buf_str(&b));
    buf_release(&b);
    return true;
}

static void asks(const struct execution_filter *filter, const char *want, const char * not )
{
    char asked[256] = "";
    struct arena *mem = arena_new(1 << 20);
    struct event_source *source = event_source_of_daemon(from_nothing, asked);
    struct execution *rows;
    size_t n;
    must(executions_newest(source, filter, mem, &rows, &n, &must_err));
    if (!strstr(asked, want))
        fail_msg("%s is not in %s", want, asked);
    if (not &&strstr(asked, not ))
        fail_msg("%s is in %s", not, asked);
    event_source_close(source);
    arena_free(mem);
}

TEST(test_executions__the_source_filters_and_begins_where_the_session_does)
{
    struct execution_filter f = {.limit = 10, .outcome = STR("open")};
    asks(&f, "open=1", "since=");
    f = (struct execution_filter){.limit = 10, .session = STR("018bcfe5-6800-7abc")};
    asks(&f, "session_prefix=018bcfe5-6800-7abc", "open=");
    asks(&f, "since=1699996400000&", NULL); /* an hour before it was made */
    f.events.since_ms = 1700000000000;
    asks(&f, "since=1700000000000&", NULL);
    f = (struct execution_filter){.limit = 10, .session = STR("018bcfe5-6800-4abc")};
    asks(&f, "session_prefix=", "since="); /* that id tells no time */
    f.session = STR("018bcfe5-6800");
    asks(&f, "session_prefix=", "since="); /* nor does so little of one */
    f.session = STR("018bcfe5-68x0-7abc");
    asks(&f, "session_prefix=", "since=");
}

TEST(test_executions__a_reply_is_the_first_line_of_a_result_or_the_message_of_an_error)
{
    static const char *const rows[][2] = {
        {"{\"content\":[{\"type\":\"text\",\"text\":\"no such file\\nat "
         "open()\"}],\"isError\":true}",
         "no such file"},
        {"{\"content\":[{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"text\",\"text\":\"two\"}]"
         "}",
         "one"},
        {"{\"code\":-32602,\"message\":\"unknown tool\"}", "unknown tool"},
        {"{\"content\":[{\"type\":\"image\",\"data\":\"AA==\"}]}", NULL},
        {"{\"content\":[],\"isError\":true}", NULL},
        {"{\"content\":\"text\",\"message\":7}", NULL},
        {"{\"content\":[7]}", NULL},
        {"[]", NULL},
        {"{\"content\":[{\"text\":\"cut o", NULL},
    };
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct buf body;

    for (size_t i = 0; i < countof(rows); i++) {
        struct str said = execution_reply_text(str_of(rows[i][0]), mem);
        assert_int_equal(said.p != NULL, rows[i][1] != NULL);
        if (said.p)
            assert_str(said, rows[i][1]);
    }
    assert_null(execution_reply_text(STR_NONE, mem).p);
    buf_init(&body, 1 << 16);
    buf_addz(&body, "{\"message\":\"");
    for (size_t i = 0; i < EXECUTION_ARGUMENTS; i++)
        buf_addz(&body, "ä");
    buf_addz(&body, "\"}");
    assert_int_equal(execution_reply_text(buf_str(&body), mem).n, EXECUTION_ARGUMENTS);
    buf_release(&body);
    arena_free(mem);
}
