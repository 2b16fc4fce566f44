/* SPDX-License-Identifier: Apache-2.0 */
/* Chunked bodies: what they decode to or why they are refused, the same however the bytes are cut.
 */
#include "test.h"

#include "base/buf.h"
#include "http/codec.h"

#include <stdlib.h>

struct row {
    const char *name;
    struct str bytes;
    const char *decoded; /* NULL: refused */
};
#define ROW(name, bytes, decoded)                                                                  \
    {                                                                                              \
        name, {bytes, sizeof(bytes) - 1}, decoded                                                  \
    }

static const struct row rows[] = {
    ROW("empty body", "0\r\n\r\n", ""),
    ROW("one chunk", "5\r\nhello\r\n0\r\n\r\n", "hello"),
    ROW("two chunks", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "hello"),
    ROW("hex sizes in both cases", "a\r\n0123456789\r\nB\r\n0123456789a\r\n0\r\n\r\n",
        "01234567890123456789a"),
    ROW("leading zeros", "0005\r\nhello\r\n000\r\n\r\n", "hello"),
    ROW("line ends inside data", "4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n"),
    ROW("extension", "1;a\r\nx\r\n0\r\n\r\n", "x"),
    ROW("extension with a value", "1;a=b\r\nx\r\n0;c=d;e\r\n\r\n", "x"),
    ROW("extension with a quoted value", "1;a=\"b; =\\\"\t\\\\\"\r\nx\r\n0\r\n\r\n", "x"),
    ROW("trailer", "0\r\nX: y\r\nZ:\r\n\r\n", ""),
    ROW("trailer that looks like framing", "0\r\nContent-Length: 5\r\n\r\n", ""),

    /* H3: line ends */
    ROW("LF after the size", "5\nhello\r\n0\r\n\r\n", NULL),
    ROW("LF after data", "5\r\nhello\n0\r\n\r\n", NULL),
    ROW("LF after the last size", "0\n\r\n", NULL),
    ROW("LF for the last line", "0\r\n\n", NULL),
    ROW("CR alone after the size", "5\rhello\r\n0\r\n\r\n", NULL),
    ROW("CR alone after data", "5\r\nhello\r0\r\n\r\n", NULL),
    ROW("CR alone for the last line", "0\r\n\rX", NULL),
    ROW("CR CR LF", "5\r\r\nhello\r\n0\r\n\r\n", NULL),
    ROW("no line end after data", "5\r\nhello0\r\n\r\n", NULL),
    ROW("data longer than its size", "3\r\nhello\r\n0\r\n\r\n", NULL),
    ROW("LF in a trailer", "0\r\nX: y\n\r\n", NULL),
    ROW("CR in a trailer", "0\r\nX: y\rz\r\n\r\n", NULL),

    /* H4: extensions */
    ROW("LF in an extension", "4;\nX\r\nabcd\r\n0\r\n\r\n", NULL),
    ROW("CR in an extension", "4;a\rb\r\nabcd\r\n0\r\n\r\n", NULL),
    ROW("LF in an extension's value", "4;a=b\nX\r\nabcd\r\n0\r\n\r\n", NULL),
    ROW("LF in a quoted value", "4;a=\"\n\"\r\nabcd\r\n0\r\n\r\n", NULL),
    ROW("LF after a backslash", "4;a=\"\\\n\"\r\nabcd\r\n0\r\n\r\n", NULL),
    ROW("CR LF in a quoted value", "4;a=\"\r\n\"\r\nabcd\r\n0\r\n\r\n", NULL),
    ROW("space before the semicolon", "4 ;a\r\nabcd\r\n0\r\n\r\n", NULL),
    ROW("space after the semicolon", "4; a\r\nabcd\r\n0\r\n\r\n", NULL),
    ROW("space after the size", "4 \r\nabcd\r\n0\r\n\r\n", NULL),
    ROW("extension without a name", "4;\r\nabcd\r\n0\r\n\r\n", NULL),
    ROW("extension without a name but a value", "4;=b\r\nabcd\r\n0\r\n\r\n", NULL),
    ROW("extension without its value", "4;a=\r\nabcd\r\n0\r\n\r\n", NULL),
    ROW("text behind a quoted value", "4;a=\"b\"c\r\nabcd\r\n0\r\n\r\n", NULL),
    ROW("NUL in an extension", "4;a\0b\r\nabcd\r\n0\r\n\r\n", NULL),
    ROW("extension without a semicolon", "4a=b\r\nabcd\r\n0\r\n\r\n", NULL),

    /* H5: sizes */
    ROW("no size", "\r\nhello\r\n0\r\n\r\n", NULL),
    ROW("size 0x5", "0x5\r\nhello\r\n0\r\n\r\n", NULL),
    ROW("size +5", "+5\r\nhello\r\n0\r\n\r\n", NULL),
    ROW("size -5", "-5\r\nhello\r\n0\r\n\r\n", NULL),
    ROW("size with a blank before it", " 5\r\nhello\r\n0\r\n\r\n", NULL),
    ROW("size with an underscore", "1_0\r\nhello\r\n0\r\n\r\n", NULL),
    ROW("size g", "g\r\nhello\r\n0\r\n\r\n", NULL),
    ROW("size past the largest", "8000000000000000\r\n", NULL),
    ROW("size past 64 bits", "ffffffffffffffff1\r\n", NULL),
    ROW("size that wraps to 5", "10000000000000005\r\nhello\r\n0\r\n\r\n", NULL),

    /* trailers follow the rules of headers */
    ROW("trailer with a space before the colon", "0\r\nX : y\r\n\r\n", NULL),
    ROW("folded trailer", "0\r\nX: y\r\n z\r\n\r\n", NULL),
    ROW("trailer without a name", "0\r\n: y\r\n\r\n", NULL),
    ROW("trailer without a colon", "0\r\nGET / HTTP/1.1\r\n\r\n", NULL),
    ROW("NUL in a trailer", "0\r\nX: \0\r\n\r\n", NULL),
};

struct result {
    enum http_parse verdict;
    size_t used;
    const char *reason;
    struct buf decoded;
};

/* Feeds at most `piece` bytes at a time, each from its own allocation. */
static struct result decode(struct str bytes, size_t piece)
{
    struct result r = {.verdict = HTTP_PARSE_MORE};
    buf_init(&r.decoded, 1 << 20);
    struct http_chunks c;
    http_chunks_init(&c);
    while (r.used < bytes.n && r.verdict == HTTP_PARSE_MORE) {
        size_t n = bytes.n - r.used < piece ? bytes.n - r.used : piece;
        char *copy = malloc(n);
        memcpy(copy, bytes.p + r.used, n);
        size_t used = 0;
        struct str data;
        struct http_fault fault = {0};
        r.verdict = http_chunks_feed(&c, str_n(copy, n), &used, &data, &fault);
        assert_true(used > 0 && used <= n);
        buf_addstr(&r.decoded, data);
        r.used += used;
        r.reason = fault.reason;
        free(copy);
    }
    return r;
}

static void check_row(const struct row *row, size_t piece)
{
    struct result r = decode(row->bytes, piece);
    if (r.verdict != (row->decoded ? HTTP_PARSE_OK : HTTP_PARSE_BAD))
        fail_msg("%s, in pieces of %zu: verdict %d", row->name, piece, r.verdict);
    if (row->decoded) {
        assert_str(buf_str(&r.decoded), row->decoded);
        assert_int_equal(r.used, row->bytes.n);
    } else {
        assert_non_null(r.reason);
    }
    buf_release(&r.decoded);
}

TEST(test_chunks__bodies_are_decoded_or_refused_as_tabled)
{
    for (size_t i = 0; i < countof(rows); i++) {
        for (size_t piece = 1; piece <= rows[i].bytes.n; piece++)
            check_row(&rows[i], piece);
    }
}

TEST(test_chunks__bytes_behind_the_body_are_not_taken)
{
    struct result r = decode(STR("1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\n"), 1000);
    assert_int_equal(r.verdict, HTTP_PARSE_OK);
    assert_int_equal(r.used, strlen("1\r\nx\r\n0\r\n\r\n"));
    buf_release(&r.decoded);
}

TEST(test_chunks__a_complete_body_stays_complete)
{
    struct http_chunks c;
    http_chunks_init(&c);
    size_t used;
    struct str data;
    struct http_fault fault;
    assert_int_equal(http_chunks_feed(&c, STR("0\r\n\r\n"), &used, &data, &fault), HTTP_PARSE_OK);
    assert_int_equal(http_chunks_feed(&c, STR("5\r\n"), &used, &data, &fault), HTTP_PARSE_OK);
    assert_int_equal(used, 0);
}

TEST(test_chunks__a_refused_body_stays_refused)
{
    struct http_chunks c;
    http_chunks_init(&c);
    size_t used;
    struct str data;
    struct http_fault fault;
    assert_int_equal(http_chunks_feed(&c, STR("x"), &used, &data, &fault), HTTP_PARSE_BAD);
    assert_int_equal(http_chunks_feed(&c, STR("0\r\n\r\n"), &used, &data, &fault), HTTP_PARSE_BAD);
}

TEST(test_chunks__the_largest_size_is_taken)
{
    struct http_chunks c;
    http_chunks_init(&c);
    size_t used;
    struct str data;
    struct http_fault fault;
    assert_int_equal(http_chunks_feed(&c, STR("7fffffffffffffff\r\nab"), &used, &data, &fault),
                     HTTP_PARSE_MORE);
    assert_str(data, "ab");
    assert_int_equal(used, 20);
    assert_int_equal(c.left, INT64_MAX - 2);
}

/* A body whose one size line, without its CR LF, has `length` bytes. */
static enum http_parse verdict_of_line(size_t length)
{
    char text[512];
    memset(text, 'a', length);
    memcpy(text, "1;", 2);
    memcpy(text + length, "\r\nx\r\n0\r\n\r\n", 10);
    struct result r = decode(str_n(text, length + 10), 1000);
    buf_release(&r.decoded);
    return r.verdict;
}

TEST(test_chunks__size_line_of_256_bytes_fits_and_one_more_does_not)
{
    assert_int_equal(verdict_of_line(256), HTTP_PARSE_OK);
    assert_int_equal(verdict_of_line(257), HTTP_PARSE_BAD);
}

TEST(test_chunks__the_line_limit_is_for_each_chunk)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 300; i++)
        buf_addz(&b, "1;ext\r\nx\r\n");
    buf_addz(&b, "0\r\n\r\n");
    struct result r = decode(buf_str(&b), 1000);
    assert_int_equal(r.verdict, HTTP_PARSE_OK);
    assert_int_equal(r.decoded.n, 300);
    buf_release(&r.decoded);
    buf_release(&b);
}

static enum http_parse verdict_of_trailers(size_t length)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_addz(&b, "0\r\nX:");
    for (size_t i = 4; i < length; i++)
        buf_addc(&b, 'y');
    buf_addz(&b, "\r\n\r\n");
    struct result r = decode(buf_str(&b), 1000);
    buf_release(&r.decoded);
    buf_release(&b);
    return r.verdict;
}

TEST(test_chunks__trailers_of_8_kib_fit_and_one_more_does_not)
{
    assert_int_equal(verdict_of_trailers(8192), HTTP_PARSE_OK);
    assert_int_equal(verdict_of_trailers(8193), HTTP_PARSE_BAD);
}
