/* SPDX-License-Identifier: Apache-2.0 */
/* Events through JSON and back, and the query strings that ask for them. */
#include "test.h"

#include "audit/event_id.h"
#include "audit/event_json.h"
#include "audit/event_query.h"
#include "audit/source.h"

/* One page as the API answers it. */
static void write_page(struct buf *out, const struct event_row *rows, size_t n, int64_t scanned)
{
    struct js_writer w;
    js_begin(&w, out);
    js_object(&w);
    events_write(&w, rows, n, scanned);
    js_object_end(&w);
}

static struct event_row sample(void)
{
    struct event_row e = {
        .id = event_id_make(3, 17),
        .tenant = STR("default"),
        .seq = 9,
        .at_ms = 1700000000123,
        .kind = EVENT_OUTCOME,
        .exec = event_id_make(3, 16),
        .parent = event_id_make(2, 1),
        .owner = STR("local"),
        .session_id = STR(""),
        .carrier = STR("meta:a.b"),
        .server = STR("fi\"les"),
        .method = STR("tools/call"),
        .tool = STR("\xc3\xa9\x01\x7f"),
        .era = STR("2025-11-25>2026-07-28"),
        .outcome = STR("ok"),
        .error = STR("half a character \xe2\x82"),
        .duration_us = -5,
        .tokens = INT64_MAX,
        .tool_id = STR("30000000-0000-7000-8000-000000000001"),
        .client = STR("Editor"),
        .request_len = 17,
        .origin = STR("{\"at_ms\":1}"),
        .body_len = INT64_MAX,
        .body = STR("{\"a\":\"\\u0000\"}"),
    };
    memset(e.body_sha, 0xab, 32);
    e.stored_sha[31] = 1;
    memset(e.mac, 0xff, 32);
    return e;
}

static void assert_same(struct str a, struct str b)
{
    assert_int_equal(a.p == NULL, b.p == NULL);
    assert_true(str_eq(a, b));
}

static void assert_event(const struct event_row *a, const struct event_row *b)
{
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->seq, b->seq);
    assert_int_equal(a->at_ms, b->at_ms);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->exec, b->exec);
    assert_int_equal(a->parent, b->parent);
    assert_int_equal(a->duration_us, b->duration_us);
    assert_int_equal(a->body_len, b->body_len);
    assert_int_equal(a->tokens, b->tokens);
    assert_int_equal(a->request_len, b->request_len);
    const struct str ta[] = {a->tenant, a->owner,   a->session_id, a->transport, a->carrier,
                             a->server, a->method,  a->tool,       a->era,       a->outcome,
                             a->error,  a->tool_id, a->client,     a->origin,    a->body};
    const struct str tb[] = {b->tenant, b->owner,   b->session_id, b->transport, b->carrier,
                             b->server, b->method,  b->tool,       b->era,       b->outcome,
                             b->error,  b->tool_id, b->client,     b->origin,    b->body};
    for (size_t i = 0; i < countof(ta); i++)
        assert_same(ta[i], tb[i]);
    assert_memory_equal(a->body_sha, b->body_sha, 32);
    assert_memory_equal(a->stored_sha, b->stored_sha, 32);
    assert_memory_equal(a->mac, b->mac, 32);
}

TEST(test_event_json__comes_back_exactly)
{
    struct event_row in[] = {sample(),
                             {.id = 1, .kind = (enum event_kind)99, .body_len = -1},
                             {.id = -7},
                             {.id = 2, .kind = EVENT_RECORD, .tool_id = STR(""), .body_len = -1}},
                     *out;
    struct buf b;
    struct error err;
    size_t n;
    int64_t scanned = 0;
    buf_init(&b, 1 << 20);
    struct arena *mem = arena_new(1 << 20);
    write_page(&b, in, countof(in), 77);
    if (!events_from_json(buf_str(&b), mem, &out, &n, &scanned, &err))
        fail_msg("%s", err.text);
    assert_int_equal(n, countof(in));
    assert_int_equal(scanned, 77);
    for (size_t i = 0; i < n; i++)
        assert_event(&in[i], &out[i]);
    arena_free(mem);
    buf_release(&b);
}

TEST(test_event_json__reads_well_for_people)
{
    struct buf b;
    struct js_writer w;
    struct event_row e = {
        .id = event_id_make(3, 17), .tenant = STR("default"), .kind = EVENT_NOTE, .body_len = -1};
    buf_init(&b, 1 << 20);
    js_begin(&w, &b);
    event_to_json(&e, &w);
    assert_str(
        buf_str(&b),
        "{\"id\":\"3.17\",\"kind\":\"note\",\"at_ms\":0,\"time\":\"1970-01-01T00:00:00.000Z\","
        "\"tenant\":\"default\",\"seq\":0,\"duration_us\":0,\"body_len\":-1}");
    buf_release(&b);
}

TEST(test_event_json__refuses_what_is_no_event)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"events\":{}}",
        "{\"events\":[1]}",
        "{\"events\":[{\"id\":\"x\"}]}",
        "{\"events\":[{\"kind\":\"hello\"}]}",
        "{\"events\":[{\"mac\":\"ab\"}]}",
        "{\"events\":[{\"tool\":7}]}",
        "{\"events\":[{\"tool\":{\"hex\":\"abc\"}}]}",
        "{\"events\":[{\"seq\":\"1\"}]}",
        "{\"events\":[],\"scanned\":\"x\"}",
    };
    for (size_t i = 0; i < countof(wrong); i++) {
        struct arena *mem = arena_new(1 << 20);
        struct event_row *rows;
        size_t n;
        int64_t scanned;
        struct error err;
        assert_false(events_from_json(str_of(wrong[i]), mem, &rows, &n, &scanned, &err));
        assert_int_equal(err.code, ERR_PARSE);
        arena_free(mem);
    }
}

TEST(test_event_id__reads_what_it_writes)
{
    static const int64_t ids[] = {0, 1, EVENT_COUNT_MASK, EVENT_COUNT_MASK + 1, INT64_MAX};
    for (size_t i = 0; i < countof(ids); i++) {
        char text[EVENT_ID_TEXT];
        int64_t id = -1;
        assert_true(event_id_parse(str_of(event_id_format(ids[i], text)), &id));
        assert_int_equal(id, ids[i]);
    }
    static const char *const wrong[] = {"",   ".",    "3.", ".3",        "3.4.5",
                                        "-1", "3.-1", "a",  "8388608.1", "1.1099511627776"};
    for (size_t i = 0; i < countof(wrong); i++) {
        int64_t id = -1;
        assert_false(event_id_parse(str_of(wrong[i]), &id));
        assert_int_equal(id, -1);
    }
}

TEST(test_event_query__reads_what_it_writes)
{
    struct event_filter in = {.tenant = STR("a&b"),
                              .after = event_id_make(1, 2),
                              .before = event_id_make(3, 4),
                              .since_ms = 1700000000000,
                              .session_id = STR("s"),
                              .session_prefix = STR("0190-a"),
                              .open = true,
                              .server = STR("fi les"),
                              .tool = STR("\xc3\xa9+%"),
                              .outcome = STR("ok"),
                              .exec = 7,
                              .kind = EVENT_NOTE,
                              .newest_first = true,
                              .with_bodies = true},
                        out;
    struct buf b;
    struct error err;
    unsigned limit;
    buf_init(&b, 4096);
    struct arena *mem = arena_new(1 << 16);
    audit_events_query_format(&in, 17, &b);
    if (!audit_events_query_parse(buf_str(&b), &out, &limit, mem, &err))
        fail_msg("%s", err.text);
    assert_int_equal(limit, 17);
    assert_int_equal(out.after, in.after);
    assert_int_equal(out.before, in.before);
    assert_int_equal(out.since_ms, in.since_ms);
    assert_int_equal(out.exec, 7);
    assert_int_equal(out.kind, EVENT_NOTE);
    assert_true(out.newest_first && out.with_bodies && out.open);
    assert_same(out.session_prefix, in.session_prefix);
    assert_same(out.tenant, in.tenant);
    assert_same(out.session_id, in.session_id);
    assert_same(out.server, in.server);
    assert_same(out.tool, in.tool);
    assert_same(out.outcome, in.outcome);
    arena_free(mem);
    buf_release(&b);
}

TEST(test_event_query__asks_for_everything_by_default)
{
    struct event_filter f;
    struct error err;
    unsigned limit;
    struct arena *mem = arena_new(1 << 16);
    assert_true(audit_events_query_parse(STR_NONE, &f, &limit, mem, &err));
    assert_int_equal(limit, EVENTS_PAGE_DEFAULT);
    assert_int_equal(f.kind, -1);
    assert_null(f.tenant.p);
    assert_false(f.newest_first || f.with_bodies);
    arena_free(mem);
}

TEST(test_event_query__limit_is_one_to_two_hundred_and_the_rest_is_refused)
{
    static const struct {
        const char *query;
        bool fine;
    } cases[] = {
        {"limit=1", true},    {"limit=200", true},  {"limit=0", false},   {"limit=201", false},
        {"limit=", false},    {"nothing=1", false}, {"after=x", false},   {"kind=x", false},
        {"order=up", false},  {"bodies=2", false},  {"server=%4", false}, {"server=%zz", false},
        {"server=%41", true}, {"&&", true},         {"open=1", true},     {"open=yes", false},
        {"server", true},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct event_filter f;
        struct error err;
        unsigned limit = 7;
        struct arena *mem = arena_new(1 << 16);
        assert_int_equal(audit_events_query_parse(str_of(cases[i].query), &f, &limit, mem, &err),
                         cases[i].fine);
        if (!cases[i].fine)
            assert_int_equal(limit, 7);
        arena_free(mem);
    }
}

/* A daemon that answers from a row in memory. */
static bool answer(void *arg, struct str path, struct arena *mem, struct str *ret_body,
                   struct error *err)
{
    int *asked = arg;
    struct event_row e = sample();
    struct buf b;
    (void)err;
    buf_init(&b, 1 << 20);
    e.id = event_id_make(1, 1);
    assert_true(str_starts(path, STR("/api/v1/audit/events?")));
    write_page(&b, &e, ++*asked == 1 ? 1 : 0, 0);
    *ret_body = arena_dup(mem, buf_str(&b));
    buf_release(&b);
    return true;
}

static enum event_walk count_one(void *arg, const struct event_row *e, struct error *err)
{
    (void)e;
    (void)err;
    ++*(int *)arg;
    return EVENT_WALK_ON;
}

TEST(test_event_source__walks_the_daemons_pages)
{
    int asked = 0, seen = 0;
    struct error err;
    struct event_filter filter = {.kind = -1};
    struct event_source *s = event_source_of_daemon(answer, &asked);
    if (!event_source_walk(s, &filter, count_one, &seen, &err))
        fail_msg("%s", err.text);
    assert_int_equal(seen, 1);
    event_source_close(s);
}
