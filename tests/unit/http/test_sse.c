/* SPDX-License-Identifier: Apache-2.0 */
/* Event streams: what is read is independent of how it was cut, and what is written reads back. */
#include "test.h"

#include "http/sse.h"

#include <stdlib.h>

/* Events as one line each: type|id|retry|data, with '-' for an absent id or retry. */
struct seen {
    struct buf text;
    unsigned count;
    unsigned stop_after; /* 0: never */
};

static bool on_event(void *arg, const struct sse_event *e)
{
    struct seen *seen = arg;
    buf_addstr(&seen->text, e->type);
    buf_addc(&seen->text, '|');
    buf_addstr(&seen->text, e->id.p ? e->id : STR("-"));
    buf_addc(&seen->text, '|');
    if (e->has_retry)
        buf_addu(&seen->text, e->retry_ms);
    else
        buf_addc(&seen->text, '-');
    buf_addc(&seen->text, '|');
    buf_addstr(&seen->text, e->data);
    buf_addc(&seen->text, ';');
    return ++seen->count != seen->stop_after;
}

static bool feed_in_pieces(struct str bytes, size_t piece, size_t max, struct seen *seen)
{
    struct sse_reader r;
    sse_reader_init(&r, max);
    bool is_good = true;
    for (size_t i = 0; i < bytes.n && is_good; i += piece) {
        size_t n = bytes.n - i < piece ? bytes.n - i : piece;
        char *copy = malloc(n);
        memcpy(copy, bytes.p + i, n);
        is_good = sse_feed(&r, str_n(copy, n), on_event, seen);
        free(copy);
    }
    sse_reader_release(&r);
    return is_good;
}

static const struct {
    const char *name;
    struct str bytes;
    const char *events;
} rows[] = {
    {"one event", STR("data: hello\n\n"), "message|-|-|hello;"},
    {"CR LF", STR("data: hello\r\n\r\n"), "message|-|-|hello;"},
    {"CR", STR("data: hello\r\r"), "message|-|-|hello;"},
    {"mixed line ends", STR("data: a\rdata: b\ndata: c\r\n\ndata: d\n\r\n"),
     "message|-|-|a\nb\nc;message|-|-|d;"},
    {"CR LF is one end", STR("data: a\r\ndata: b\r\n\r\n"), "message|-|-|a\nb;"},
    {"LF CR is two ends", STR("data: a\n\rdata: b\n\n"), "message|-|-|a;message|-|-|b;"},
    {"no space after the colon", STR("data:{\"a\":1}\n\n"), "message|-|-|{\"a\":1};"},
    {"only one space is taken", STR("data:  a\n\n"), "message|-|-| a;"},
    {"all fields", STR("event: x\nid: 7\nretry: 5000\ndata: d\n\n"), "x|7|5000|d;"},
    {"fields are for one event", STR("event: x\nid: 7\ndata: d\n\ndata: e\n\n"),
     "x|7|-|d;message|-|-|e;"},
    {"the last type and id win", STR("event: x\nid: 1\nevent: y\nid: 2\ndata: d\n\n"), "y|2|-|d;"},
    {"comments", STR(": hi\ndata: a\n:\n: there\ndata: b\n\n:\n\n"), "message|-|-|a\nb;"},
    {"empty data lines", STR("data: a\ndata\ndata:\n\n"), "message|-|-|a\n\n;"},
    {"only empty data", STR("data:\n\n"), ""},
    {"data without a colon", STR("data\n\n"), ""},
    {"two empty data lines", STR("data\ndata\n\n"), "message|-|-|\n;"},
    {"no data", STR("event: x\n\ndata: a\n\n"), "message|-|-|a;"},
    {"priming event", STR("id: X\nretry: 5000\ndata: \n\n"), "message|X|5000|;"},
    {"id without data", STR("id: X\n\n"), "message|X|-|;"},
    {"empty id", STR("id\ndata: a\n\n"), "message||-|a;"},
    {"id with NUL", STR("id: a\0b\ndata: a\n\n"), "message|-|-|a;"},
    {"retry alone waits", STR("retry: 10\n\ndata: a\n\ndata: b\n\n"),
     "message|-|10|a;message|-|-|b;"},
    {"retry that is no number", STR("retry: 10s\nretry: -1\nretry:\ndata: a\n\n"),
     "message|-|-|a;"},
    {"unknown field", STR("foo: bar\nDATA: x\n data: y\ndata: a\n\n"), "message|-|-|a;"},
    {"colon in a value", STR("data: a: b\n\n"), "message|-|-|a: b;"},
    {"byte order mark",
     STR("\xef\xbb\xbf"
         "data: a\n\n"),
     "message|-|-|a;"},
    {"byte order mark later",
     STR("data: a\n\n\xef\xbb\xbf"
         "data: b\n\n"),
     "message|-|-|a;"},
    {"two byte order marks",
     STR("\xef\xbb\xbf\xef\xbb\xbf"
         "data: a\n\n"),
     ""},
    {"empty lines first", STR("\n\r\n\rdata: a\n\n"), "message|-|-|a;"},
    {"unfinished event", STR("data: a\n\ndata: b\n"), "message|-|-|a;"},
    {"unfinished line", STR("data: a\n\ndata: b"), "message|-|-|a;"},
    {"NUL in data", STR("data: a\0\n\n"), NULL},
};

TEST(test_sse__events_are_read_the_same_however_they_are_cut)
{
    for (size_t i = 0; i < countof(rows); i++) {
        for (size_t piece = 1; piece <= rows[i].bytes.n; piece++) {
            struct seen seen = {0};
            buf_init(&seen.text, 1 << 16);
            assert_true(feed_in_pieces(rows[i].bytes, piece, 1024, &seen));
            struct str expected = rows[i].events ? str_of(rows[i].events) : STR("message|-|-|a\0;");
            if (!str_eq(buf_str(&seen.text), expected))
                fail_msg("%s, in pieces of %zu: '%.*s'", rows[i].name, piece,
                         STR_ARG(buf_str(&seen.text)));
            buf_release(&seen.text);
        }
    }
}

TEST(test_sse__a_false_answer_stops_the_reader)
{
    struct seen seen = {.stop_after = 2};
    buf_init(&seen.text, 1 << 16);
    assert_false(feed_in_pieces(STR("data: a\n\ndata: b\n\ndata: c\n\n"), 1000, 100, &seen));
    assert_int_equal(seen.count, 2);
    buf_release(&seen.text);
}

/* One event with `length` bytes of data on `lines` lines. */
static bool is_taken(size_t length, size_t lines, size_t piece, size_t max)
{
    struct buf b;
    buf_init(&b, 1 << 16);
    size_t left = length;
    for (size_t i = lines; i > 0; i--) {
        buf_addz(&b, "data: ");
        size_t n = i > 1 ? 1 : left;
        for (size_t j = 0; j < n; j++)
            buf_addc(&b, 'x');
        left -= n + 1;
        buf_addc(&b, '\n');
    }
    buf_addc(&b, '\n');
    struct seen seen = {0};
    buf_init(&seen.text, 1 << 16);
    bool is_good = feed_in_pieces(buf_str(&b), piece, max, &seen);
    assert_int_equal(seen.count, is_good);
    buf_release(&seen.text);
    buf_release(&b);
    return is_good;
}

TEST(test_sse__data_at_the_ceiling_fits_and_one_more_does_not)
{
    for (size_t piece = 1; piece < 200; piece += 60) {
        assert_true(is_taken(100, 1, piece, 100));
        assert_false(is_taken(101, 1, piece, 100));
        assert_true(is_taken(100, 20, piece, 100));
        assert_false(is_taken(101, 20, piece, 100));
    }
}

TEST(test_sse__a_line_without_end_is_bounded)
{
    for (size_t piece = 1; piece <= 200; piece += 199) {
        char text[200];
        memset(text, ':', sizeof(text));
        struct seen seen = {0};
        assert_true(feed_in_pieces(str_n(text, 100 + 16), piece, 100, &seen));
        assert_false(feed_in_pieces(str_n(text, 100 + 17), piece, 100, &seen));
    }
}

TEST(test_sse__a_large_event_is_not_kept)
{
    struct sse_reader r;
    sse_reader_init(&r, 1 << 20);
    struct seen seen = {0};
    buf_init(&seen.text, 1 << 20);
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_addz(&b, "data: ");
    for (int i = 0; i < 100000; i++)
        buf_addz(&b, "12345");
    assert_true(sse_feed(&r, buf_str(&b), on_event, &seen));
    assert_true(sse_feed(&r, STR("\n\n"), on_event, &seen));
    assert_int_equal(seen.count, 1);
    assert_true(r.data.cap + r.line.cap <= 128 << 10);
    buf_release(&b);
    buf_release(&seen.text);
    sse_reader_release(&r);
}

static void check_written(const struct buf *b, const char *expected)
{
    assert_str(buf_str(b), expected);
}

TEST(test_sse__events_are_written_with_what_they_have)
{
    struct buf b;
    buf_init(&b, 1 << 16);
    sse_write(&b, STR_NONE, STR_NONE, STR("{}"));
    check_written(&b, "data: {}\n\n");
    buf_reset(&b);
    sse_write(&b, STR("message"), STR("7"), STR("{}"));
    check_written(&b, "event: message\nid: 7\ndata: {}\n\n");
    buf_reset(&b);
    sse_write_retry(&b, 5000);
    sse_write(&b, STR_NONE, STR("7"), STR(""));
    check_written(&b, "retry: 5000\nid: 7\ndata: \n\n");
    buf_release(&b);
}

TEST(test_sse__no_data_can_forge_a_field)
{
    struct buf b;
    buf_init(&b, 1 << 16);
    sse_write(&b, STR_NONE, STR_NONE, STR("a\nid: 1\revent: x\r\n\r\ndata: y\n"));
    check_written(&b, "data: a\ndata: id: 1\ndata: event: x\ndata: \ndata: data: y\ndata: \n\n");
    struct seen seen = {0};
    buf_init(&seen.text, 1 << 16);
    assert_true(feed_in_pieces(buf_str(&b), 1000, 1000, &seen));
    assert_str(buf_str(&seen.text), "message|-|-|a\nid: 1\nevent: x\n\ndata: y\n;");
    buf_release(&seen.text);
    buf_release(&b);
}

TEST(test_sse__comments_are_written_and_read_as_nothing)
{
    struct buf b;
    buf_init(&b, 1 << 16);
    sse_write_comment(&b, STR("keep-alive"));
    check_written(&b, ": keep-alive\n\n");
    sse_write_comment(&b, STR("a\ndata: b"));
    struct seen seen = {0};
    assert_true(feed_in_pieces(buf_str(&b), 1000, 1000, &seen));
    assert_int_equal(seen.count, 0);
    buf_release(&b);
}
