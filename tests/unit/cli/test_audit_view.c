/* SPDX-License-Identifier: Apache-2.0 */
/* What `holdfast audit` prints: aligned, told in words, and harmless to a terminal. */
#include "test.h"

#include "audit/event_id.h"
#include "base/unicode.h"
#include "cli/audit_view.h"

static struct execution sample(const char *server, const char *tool, const char *outcome)
{
    return (struct execution){.event = {.id = event_id_make(3, 1234),
                                        .at_ms = 1763197323456,
                                        .server = str_of(server),
                                        .tool = str_of(tool),
                                        .method = STR("tools/call"),
                                        .session_id = STR("0190aaaa-bbbb-7ccc-8ddd-eeeeffff0000"),
                                        .body_len = -1},
                              .outcome = str_of(outcome),
                              .duration_us = 1500};
}

static void rows(struct buf *b, const struct execution *x, size_t n, bool colour)
{
    struct table t;
    buf_reset(b);
    audit_view_begin(&t, AUDIT_VIEW_LIST, 0, colour);
    for (size_t i = 0; i < n; i++)
        audit_view_list_row(&t, &x[i], (struct audit_when){.utc = true});
    table_print(&t, b);
    table_release(&t);
}

TEST(test_audit_view__aligns_its_columns_and_says_outcomes_in_words)
{
    struct execution x[] = {sample("files", "echo", "ok"),
                            sample("a-longer-server", "x", "indeterminate")};
    struct buf b;
    buf_init(&b, 1 << 16);
    x[0].event.owner = STR("user:1");
    x[0].user = STR("ada");
    x[1].event.owner = STR("local");
    x[1].duration_us = -1;
    rows(&b, x, 2, false);
    assert_str(buf_str(&b),
               "TIME                 ID      WHO    SERVER           TOOL  OUTCOME          "
               "DURATION  SESSION\n"
               "2025-11-15 09:02:03  3.1234  ada    files            echo  ✔ ok             "
               "  1.5 ms  0190aaaa-bbbb\n"
               "2025-11-15 09:02:03  3.1234  local  a-longer-server  x     ? indeterminate  "
               "       -  0190aaaa-bbbb\n");
    buf_release(&b);
}

TEST(test_audit_view__a_story_fits_the_terminal_and_shows_the_error)
{
    struct execution x = sample("files", "read_text_file", "tool_error");
    struct table t;
    struct buf b;
    buf_init(&b, 1 << 16);
    x.key = STR("laptop");
    x.client = STR("claude-code");
    x.error = STR("Access denied: /etc/shadow");
    x.arguments = STR("path=\"/etc/shadow\"");
    audit_view_begin(&t, AUDIT_VIEW_STORY, 80, false);
    audit_view_story_row(&t, &x, (struct audit_when){.now_ms = x.event.at_ms, .utc = true});
    table_print(&t, &b);
    assert_non_null(strstr(b.p, "09:02:03  laptop  claude-code  ✘ tool_error"));
    assert_non_null(strstr(b.p, "ms  files.read_text_file\n"
                                "          Access denied: /etc/shadow  path=\"/etc/shadow\"\n"));
    struct str rest = buf_str(&b);
    while (rest.n)
        assert_true(unicode_columns(str_split(&rest, '\n')) <= 80);
    table_release(&t);
    buf_release(&b);
}

TEST(test_audit_view__a_long_story_line_is_cut_and_a_wide_terminal_has_one_line_a_call)
{
    static const size_t widths[] = {80, 110, 0};
    struct execution x = sample("files", "read", "ok");
    char path[201];

    memset(path, 'p', 200);
    path[200] = '\0';
    x.arguments = str_of(path);
    for (size_t i = 0; i < countof(widths); i++) {
        struct table t;
        struct buf b;
        buf_init(&b, 1 << 16);
        audit_view_begin(&t, AUDIT_VIEW_STORY, widths[i], false);
        audit_view_story_row(&t, &x, (struct audit_when){.now_ms = x.event.at_ms, .utc = true});
        table_print(&t, &b);
        struct str rest = buf_str(&b), head = str_split(&rest, '\n');
        struct str row = str_split(&rest, '\n'), note = str_split(&rest, '\n');
        assert_true(head.n > 0);
        assert_int_equal(note.n > 0, widths[i] == 80);
        assert_int_equal(memmem(row.p, row.n, path, 200) != NULL, widths[i] == 0);
        if (widths[i])
            assert_int_equal(unicode_columns(note.n ? note : row), widths[i]);
        table_release(&t);
        buf_release(&b);
    }
}

TEST(test_audit_view__wide_characters_and_marks_keep_the_columns)
{
    struct execution x[] = {sample("files", "\xe8\xaf\xbb\xe5\x8f\x96", "ok"),
                            sample("files", "cafe\xcc\x81", "ok"), sample("files", "read", "ok")};
    struct buf b;
    buf_init(&b, 1 << 16);
    rows(&b, x, 3, false);
    assert_non_null(strstr(b.p, "  \xe8\xaf\xbb\xe5\x8f\x96  ✔"));
    assert_non_null(strstr(b.p, "  cafe\xcc\x81  ✔"));
    assert_non_null(strstr(b.p, "  read  ✔"));
    buf_release(&b);
}

TEST(test_audit_view__colours_only_when_asked)
{
    struct execution x = sample("files", "echo", "tool_error");
    struct buf b;
    buf_init(&b, 1 << 16);
    rows(&b, &x, 1, false);
    assert_null(memchr(b.p, 27, b.n));
    rows(&b, &x, 1, true);
    assert_non_null(memmem(b.p, b.n, "\033[33m✘ tool_error", 18));
    buf_release(&b);
}

TEST(test_audit_view__lets_no_control_byte_of_a_peer_through)
{
    static const char evil[] = "\x1b]52;c;aGk=\x07\r\n\x7f\xc2\x9b\xe2\x80\xae";
    struct execution x = sample(evil, evil, evil);
    struct buf b;
    buf_init(&b, 1 << 16);
    x.error = x.event.owner = x.event.session_id = str_of(evil);
    x.event.body = STR("{\"\xe2\x80\xae\":\"\x7f\xc2\x9b\"}");
    x.event.body_len = 1;
    struct event_row events[] = {x.event, x.event};
    events[1].body = str_of(evil);
    rows(&b, &x, 1, false);
    audit_view_execution(&b, &x, events, 2, false);
    x.event.error = x.event.method = str_of(evil);
    struct table t;
    audit_view_begin(&t, AUDIT_VIEW_EVENTS, 0, false);
    audit_view_event(&t, &x.event, (struct audit_when){.utc = true});
    table_print(&t, &b);
    table_release(&t);
    for (size_t i = 0; i < b.n; i++)
        assert_true((unsigned char)b.p[i] >= 0x20 ? b.p[i] != 0x7f : b.p[i] == '\n');
    assert_null(memmem(b.p, b.n, "\xc2\x9b", 2));
    assert_null(memmem(b.p, b.n, "\xe2\x80\xae", 3));
    buf_release(&b);
}

TEST(test_audit_view__prints_bodies_for_people)
{
    struct buf b;
    buf_init(&b, 1 << 16);
    audit_view_json(&b, STR("{\"a\":[1,{\"b\":\"\\u00e9\"}],\"c\":{},\"d\":[]}"));
    assert_str(buf_str(&b), "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"\\u00e9\"\n    }\n  ],\n "
                            " \"c\": {},\n  \"d\": []\n}\n");
    buf_release(&b);
}

TEST(test_audit_view__shows_a_record_with_what_was_told)
{
    struct execution x = sample("", "build", "ok");
    struct buf b;
    buf_init(&b, 1 << 16);
    x.event.kind = EVENT_RECORD;
    x.event.server = STR_NONE;
    x.event.tokens = 120;
    x.event.tool_id = STR("30000000-0000-7000-8000-000000000001");
    x.event.body_len = 2;
    x.event.body = STR("{}");
    audit_view_execution(&b, &x, &x.event, 1, false);
    assert_non_null(strstr(b.p, "kind      record\n"));
    assert_non_null(strstr(b.p, "tokens    120\n"));
    assert_non_null(strstr(b.p, "tool id   30000000-0000-7000-8000-000000000001\n"));
    assert_non_null(strstr(b.p, "outcome   \xe2\x9c\x94 ok\n"));
    assert_non_null(strstr(b.p, "record (2 bytes)\n{}\n"));
    buf_release(&b);
}

TEST(test_audit_view__shows_both_bodies_and_says_which_are_not_kept)
{
    struct execution x = sample("files", "echo", "ok");
    struct event_row events[] = {x.event, x.event};
    struct buf b;
    buf_init(&b, 1 << 16);
    events[0].body_len = 2;
    events[0].body = STR("{}");
    events[1].kind = EVENT_OUTCOME;
    events[1].body_len = 7;
    audit_view_execution(&b, &x, events, 2, false);
    assert_non_null(strstr(b.p, "params (2 bytes)\n{}\n"));
    assert_non_null(strstr(b.p, "result (7 bytes, not kept)\n"));
    assert_non_null(strstr(b.p, "outcome   ✔ ok\n"));
    buf_release(&b);
}
