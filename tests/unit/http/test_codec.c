/* SPDX-License-Identifier: Apache-2.0 */
/* Heads: which shapes are taken, which are refused and with what status, and that neither depends
 * on how the bytes were cut.  The tables are the catalogue; each row is fed whole, byte by byte,
 * and with more bytes behind it. */
#include "test.h"

#include "base/buf.h"
#include "http/codec.h"

#include <stdlib.h>

#define OK 200 /* in the tables: accepted */

struct row {
    const char *name;
    struct str bytes;
    int expected; /* OK, or the status of the refusal */
};
#define ROW(name, bytes, expected)                                                                 \
    {                                                                                              \
        name, {bytes, sizeof(bytes) - 1}, expected                                                 \
    }
#define GET "GET / HTTP/1.1\r\n"
#define HOST "Host: a\r\n"
#define POST "POST /mcp HTTP/1.1\r\nHost: a\r\n"
#define END "\r\n"

static const struct row requests[] = {
    ROW("plain", GET HOST END, OK),
    ROW("no headers in 1.0", "GET / HTTP/1.0\r\n\r\n", OK),
    ROW("query", "GET /a?b=c&d={x|y} HTTP/1.1\r\n" HOST END, OK),
    ROW("value without blanks around it", GET "Host:a\r\nX:y\r\n" END, OK),
    ROW("blanks around a value", GET HOST "X: \t a \t \r\n" END, OK),
    ROW("spaces around a framing value", GET "Host:   a  \r\n" END, OK),
    ROW("empty value", GET HOST "X:\r\n" END, OK),
    ROW("UTF-8 in a value", GET HOST "User-Agent: caf\xc3\xa9\r\n" END, OK),
    ROW("tab inside a value", GET HOST "X: a\tb\r\n" END, OK),
    ROW("all token bytes in a name", GET HOST "!#$%&'*+-.^`|~09azAZ: 1\r\n" END, OK),
    ROW("extension method", "PROPFIND / HTTP/1.1\r\n" HOST END, OK),
    ROW("OPTIONS of a path", "OPTIONS /mcp HTTP/1.1\r\n" HOST END, OK),

    /* H1, H6: who says how long the body is */
    ROW("length then chunked", POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" END, 400),
    ROW("chunked then length", POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n" END, 400),
    ROW("length 0 then chunked", POST "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n" END,
        400),
    ROW("two equal lengths", POST "Content-Length: 5\r\nContent-Length: 5\r\n" END, 400),
    ROW("two different lengths", POST "Content-Length: 5\r\nContent-Length: 6\r\n" END, 400),
    ROW("two lengths in odd case", POST "content-length: 5\r\nCONTENT-LENGTH: 5\r\n" END, 400),

    /* H2: Transfer-Encoding */
    ROW("chunked", POST "Transfer-Encoding: chunked\r\n" END, OK),
    ROW("chunked in odd case", POST "tRANSFER-eNCODING: ChUnKeD\r\n" END, OK),
    ROW("chunked on 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" END, 400),
    ROW("chunked twice in a list", POST "Transfer-Encoding: chunked, chunked\r\n" END, 400),
    ROW("chunked on two lines",
        POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END, 400),
    ROW("chunked then identity",
        POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n" END, 400),
    ROW("xchunked", POST "Transfer-Encoding: xchunked\r\n" END, 400),
    ROW("chunkedx", POST "Transfer-Encoding: chunkedx\r\n" END, 400),
    ROW("gzip, chunked", POST "Transfer-Encoding: gzip, chunked\r\n" END, 400),
    ROW("identity", POST "Transfer-Encoding: identity\r\n" END, 400),
    ROW("empty coding", POST "Transfer-Encoding:\r\n" END, 400),
    ROW("coding with a comma", POST "Transfer-Encoding: ,chunked\r\n" END, 400),
    ROW("coding with a parameter", POST "Transfer-Encoding: chunked;q=1\r\n" END, 400),
    ROW("quoted coding", POST "Transfer-Encoding: \"chunked\"\r\n" END, 400),
    ROW("coding with a vertical tab", POST "Transfer-Encoding: \vchunked\r\n" END, 400),
    ROW("coding with a form feed", POST "Transfer-Encoding: chunked\f\r\n" END, 400),
    ROW("coding behind a tab", POST "Transfer-Encoding:\tchunked\r\n" END, 400),
    ROW("coding behind a tab and a space", POST "Transfer-Encoding:\t chunked\r\n" END, 400),
    ROW("coding before a tab", POST "Transfer-Encoding: chunked\t\r\n" END, 400),
    ROW("coding before a space and a tab", POST "Transfer-Encoding: chunked \t\r\n" END, 400),
    ROW("length behind a tab", POST "Content-Length:\t5\r\n" END, 400),
    ROW("Host before a tab", GET "Host: a\t\r\n" END, 400),
    ROW("coding with a NUL", POST "Transfer-Encoding: chunked\0\r\n" END, 400),
    ROW("coding with a no-break space",
        POST "Transfer-Encoding: \xa0"
             "chunked\r\n" END,
        400),
    ROW("coding behind a bare CR", POST "X: a\rTransfer-Encoding: chunked\r\n" END, 400),
    ROW("folded coding", POST "Transfer-Encoding:\r\n chunked\r\n" END, 400),

    /* H3: line ends */
    ROW("LF after the request line", "GET / HTTP/1.1\n" HOST END, 400),
    ROW("LF after a header", GET "Host: a\n" END, 400),
    ROW("LF for the blank line", GET HOST "\n", 400),
    ROW("CR inside the request line", "GET /\r HTTP/1.1\r\n" HOST END, 400),
    ROW("CR inside a value", GET HOST "X: a\rb\r\n" END, 400),
    ROW("CR before CR LF", GET "Host: a\r\r\n" END, 400),
    ROW("CR instead of the blank line", GET HOST "\rX", 400),
    ROW("CR inside a name", GET "Ho\rst: a\r\n" END, 400),
    ROW("LF inside a name", GET HOST "X\nY: a\r\n" END, 400),
    ROW("LF before the request", "\n" GET HOST END, 400),
    ROW("CR LF before the request", "\r\n" GET HOST END, 400),
    ROW("U+2028 for a line end", "GET / HTTP/1.1\xe2\x80\xa8" HOST END, 400),

    /* H5: lengths */
    ROW("largest length", POST "Content-Length: 9223372036854775807\r\n" END, OK),
    ROW("length past the largest", POST "Content-Length: 9223372036854775808\r\n" END, 400),
    ROW("length past 64 bits", POST "Content-Length: 99999999999999999999\r\n" END, 400),
    ROW("length that wraps to 5", POST "Content-Length: 18446744073709551621\r\n" END, 400),
    ROW("leading zeros", POST "Content-Length: 005\r\n" END, OK),
    ROW("negative length", POST "Content-Length: -1\r\n" END, 400),
    ROW("signed length", POST "Content-Length: +5\r\n" END, 400),
    ROW("hex length", POST "Content-Length: 0x10\r\n" END, 400),
    ROW("two numbers", POST "Content-Length: 5 5\r\n" END, 400),
    ROW("list of lengths", POST "Content-Length: 5,5\r\n" END, 400),
    ROW("list of lengths with a blank", POST "Content-Length: 5, 5\r\n" END, 400),
    ROW("empty length", POST "Content-Length:\r\n" END, 400),
    ROW("blank length", POST "Content-Length:  \r\n" END, 400),
    ROW("fraction", POST "Content-Length: 5.0\r\n" END, 400),
    ROW("exponent", POST "Content-Length: 1e1\r\n" END, 400),
    ROW("quoted length", POST "Content-Length: \"5\"\r\n" END, 400),
    ROW("length with NUL", POST "Content-Length: 5\0\r\n" END, 400),
    ROW("Arabic digit", POST "Content-Length: \xd9\xa5\r\n" END, 400),

    /* H8: names and values */
    ROW("space before the colon", GET HOST "Authorization : x\r\n" END, 400),
    ROW("tab before the colon", GET HOST "Authorization\t: x\r\n" END, 400),
    ROW("space before the colon of Host", GET "Host : a\r\n" END, 400),
    ROW("folded line", GET HOST "X: a\r\n b\r\n" END, 400),
    ROW("line folded by a tab", GET HOST "X: a\r\n\tb\r\n" END, 400),
    ROW("blank before the first header", GET " " HOST END, 400),
    ROW("line of one blank", GET HOST " \r\n" END, 400),
    ROW("NUL in a value", GET HOST "X: a\0b\r\n" END, 400),
    ROW("NUL in a name", GET HOST "X\0Y: a\r\n" END, 400),
    ROW("DEL in a value", GET HOST "X: a\x7f\r\n" END, 400),
    ROW("control byte in a value", GET HOST "X: a\x01\r\n" END, 400),
    ROW("control byte after sixteen others", GET HOST "X: 0123456789abcdefg\x1f\r\n" END, 400),
    ROW("empty name", GET HOST ": a\r\n" END, 400),
    ROW("no colon", GET HOST "abc\r\n" END, 400),
    ROW("slash in a name", GET HOST "X/Y: a\r\n" END, 400),
    ROW("UTF-8 in a name", GET HOST "X\xc3\xa9: a\r\n" END, 400),
    ROW("quotes in a name", GET HOST "\"X\": a\r\n" END, 400),
    ROW("name with an underscore", GET HOST "Mcp_Session_Id: a\r\n" END, OK),
    ROW("length with an underscore", POST "Content_Length: x\r\n" END, OK),
    ROW("underscore and a space before the colon", GET HOST "a_b : c\r\n" END, 400),
    ROW("underscore and a control byte", GET HOST "a_b: \x02\r\n" END, 400),

    /* H9: Host and forms of the target */
    ROW("no Host", GET END, 400),
    ROW("Host with an underscore twin only", GET "Ho_st: a\r\n" END, 400),
    ROW("two Hosts", GET "Host: a\r\nHost: a\r\n" END, 400),
    ROW("two Hosts in 1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n" END, 400),
    ROW("empty Host", GET "Host:\r\n" END, 400),
    ROW("Host with a path", GET "Host: a/?x=\r\n" END, 400),
    ROW("Host with a query", GET "Host: a?x\r\n" END, 400),
    ROW("Host with a fragment", GET "Host: a#x\r\n" END, 400),
    ROW("Host with a user", GET "Host: b@a\r\n" END, 400),
    ROW("Host with a blank", GET "Host: a b\r\n" END, 400),
    ROW("Host with a comma", GET "Host: a,b\r\n" END, 400),
    ROW("Host with a percent", GET "Host: a%2fb\r\n" END, 400),
    ROW("Host with a backslash", GET "Host: a\\b\r\n" END, 400),
    ROW("Host with UTF-8", GET "Host: \xc3\xa9\r\n" END, 400),
    ROW("Host with an empty label", GET "Host: a..b\r\n" END, 400),
    ROW("Host that begins with a dot", GET "Host: .a\r\n" END, 400),
    ROW("Host that ends with a dot", GET "Host: a.\r\n" END, OK),
    ROW("Host with a port", GET "Host: localhost:65535\r\n" END, OK),
    ROW("Host with too large a port", GET "Host: localhost:65536\r\n" END, 400),
    ROW("Host with an empty port", GET "Host: localhost:\r\n" END, 400),
    ROW("Host with a word for a port", GET "Host: localhost:http\r\n" END, 400),
    ROW("Host with two ports", GET "Host: localhost:1:2\r\n" END, 400),
    ROW("Host that is only a port", GET "Host: :80\r\n" END, 400),
    ROW("IPv6 Host", GET "Host: [::1]:4653\r\n" END, OK),
    ROW("IPv6 Host without an end", GET "Host: [::1\r\n" END, 400),
    ROW("IPv6 Host with a name", GET "Host: [localhost]\r\n" END, 400),
    ROW("IPv6 Host with a zone", GET "Host: [fe80::1%25eth0]\r\n" END, 400),
    ROW("IPv6 Host with words behind", GET "Host: [::1]x\r\n" END, 400),
    ROW("empty IPv6 Host", GET "Host: []\r\n" END, 400),
    ROW("absolute form that agrees", "GET http://A:80/x HTTP/1.1\r\nHost: a:80\r\n" END, OK),
    ROW("absolute form with https", "GET HTTPS://a/x HTTP/1.1\r\nHost: a\r\n" END, OK),
    ROW("absolute form without a path", "GET http://a HTTP/1.1\r\nHost: a\r\n" END, OK),
    ROW("absolute form that disagrees", "GET http://a/x HTTP/1.1\r\nHost: b\r\n" END, 400),
    ROW("absolute form with another port", "GET http://a:81/x HTTP/1.1\r\nHost: a:80\r\n" END, 400),
    ROW("absolute form without Host", "GET http://a/x HTTP/1.1\r\n" END, 400),
    ROW("absolute form with a user", "GET http://u@a/x HTTP/1.1\r\nHost: a\r\n" END, 400),
    ROW("absolute form without a host", "GET http:///x HTTP/1.1\r\nHost: a\r\n" END, 400),
    ROW("absolute form with only a query", "GET http://a?x HTTP/1.1\r\nHost: a\r\n" END, 400),
    ROW("absolute form of another scheme", "GET file:///etc HTTP/1.1\r\nHost: a\r\n" END, 400),
    ROW("absolute form cut short", "GET http:// HTTP/1.1\r\nHost: a\r\n" END, 400),
    ROW("relative target", "GET mcp HTTP/1.1\r\n" HOST END, 400),
    ROW("asterisk", "OPTIONS * HTTP/1.1\r\n" HOST END, 400),
    ROW("CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n" END, 405),
    ROW("CONNECT of a path", "CONNECT /x HTTP/1.1\r\n" HOST END, 405),

    /* request lines */
    ROW("versionless", "GET /\r\n" HOST END, 400),
    ROW("versionless with LF", "GET /\n\n", 400),
    ROW("0.9", "GET / HTTP/0.9\r\n" HOST END, 505),
    ROW("1.2", "GET / HTTP/1.2\r\n" HOST END, 505),
    ROW("2.0", "GET / HTTP/2.0\r\n" HOST END, 505),
    ROW("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ROW("one digit of version", "GET / HTTP/1\r\n" HOST END, 400),
    ROW("version in small letters", "GET / http/1.1\r\n" HOST END, 400),
    ROW("two digits of minor version", "GET / HTTP/1.11\r\n" HOST END, 400),
    ROW("blank after the version", "GET / HTTP/1.1 \r\n" HOST END, 400),
    ROW("two spaces before the target", "GET  / HTTP/1.1\r\n" HOST END, 400),
    ROW("two spaces before the version", "GET /  HTTP/1.1\r\n" HOST END, 400),
    ROW("tab before the target", "GET\t/ HTTP/1.1\r\n" HOST END, 400),
    ROW("space inside the target", "GET /a b HTTP/1.1\r\n" HOST END, 400),
    ROW("space before the method", " GET / HTTP/1.1\r\n" HOST END, 400),
    ROW("method in small letters", "get / HTTP/1.1\r\n" HOST END, 400),
    ROW("method with a colon", "GET: / HTTP/1.1\r\n" HOST END, 400),
    ROW("method of 20", "AAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\n" HOST END, OK),
    ROW("method of 21", "AAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\n" HOST END, 400),
    ROW("no method", "/ HTTP/1.1\r\n" HOST END, 400),
    ROW("no target", "GET HTTP/1.1\r\n" HOST END, 400),
    ROW("fragment", "GET /a#b HTTP/1.1\r\n" HOST END, 400),
    ROW("NUL in the target", "GET /a\0b HTTP/1.1\r\n" HOST END, 400),
    ROW("UTF-8 in the target", "GET /\xc3\xa9 HTTP/1.1\r\n" HOST END, 400),
    ROW("angle bracket in the target", "GET /<a HTTP/1.1\r\n" HOST END, 400),
    ROW("TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),

    /* H16: Expect */
    ROW("100-continue", POST "Content-Length: 1\r\nExpect: 100-Continue\r\n" END, OK),
    ROW("another expectation", POST "Expect: 200-ok\r\n" END, 417),
    ROW("a list of expectations", POST "Expect: 100-continue, x\r\n" END, 417),
    ROW("an empty expectation", POST "Expect:\r\n" END, 417),
    ROW("two expectations", POST "Expect: 100-continue\r\nExpect: 100-continue\r\n" END, 417),

    /* H17 is decided by whoever reads Content-Encoding; the head is well-formed */
    ROW("compressed body", POST "Content-Encoding: gzip\r\nContent-Length: 9\r\n" END, OK),
};

static const struct row responses[] = {
    ROW("plain", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" END, OK),
    ROW("empty reason", "HTTP/1.1 200 \r\n" END, OK),
    ROW("no reason", "HTTP/1.1 200\r\n" END, OK),
    ROW("1.0", "HTTP/1.0 200 OK\r\n" END, OK),
    ROW("UTF-8 reason", "HTTP/1.1 404 pas trouv\xc3\xa9\r\n" END, OK),
    ROW("Host and Expect mean nothing here",
        "HTTP/1.1 200 OK\r\nHost: a/b\r\nHost: c\r\nExpect: x\r\n" END, OK),
    ROW("length and chunked",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n" END, 400),
    ROW("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n" END, 400),
    ROW("chunked on 1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n" END, 400),
    ROW("gzip, chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n" END, 400),
    ROW("LF", "HTTP/1.1 200 OK\n\n", 400),
    ROW("LF after a header", "HTTP/1.1 200 OK\r\nX: y\n\r\n", 400),
    ROW("folded", "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n" END, 400),
    ROW("space before the colon", "HTTP/1.1 200 OK\r\nX : y\r\n" END, 400),
    ROW("two digits", "HTTP/1.1 20 OK\r\n" END, 400),
    ROW("four digits", "HTTP/1.1 2000 OK\r\n" END, 400),
    ROW("status 099", "HTTP/1.1 099 OK\r\n" END, 400),
    ROW("status 600", "HTTP/1.1 600 OK\r\n" END, 400),
    ROW("status 599", "HTTP/1.1 599 OK\r\n" END, OK),
    ROW("tab for the reason's space", "HTTP/1.1 200\tOK\r\n" END, 400),
    ROW("two spaces before the status", "HTTP/1.1  200 OK\r\n" END, 400),
    ROW("NUL in the reason", "HTTP/1.1 200 O\0K\r\n" END, 400),
    ROW("2.0", "HTTP/2.0 200 OK\r\n" END, 505),
    ROW("ICY", "ICY 200 OK\r\n" END, 400),
    ROW("a request", GET HOST END, 400),
};

typedef enum http_parse parse_fn(struct str bytes, struct http_head *h, size_t *used,
                                 struct http_fault *fault);

static enum http_parse parse_reply(struct str bytes, struct http_head *h, size_t *used,
                                   struct http_fault *fault)
{
    return http_parse_response(bytes, false, h, used, fault);
}

/* The bytes at the very end of their own allocation, so that ASan sees a read past them. */
static enum http_parse parse_exactly(parse_fn *parse, struct str bytes, struct http_head *h,
                                     size_t *used, struct http_fault *fault)
{
    char *copy = malloc(bytes.n + 1);
    memcpy(copy + 1, bytes.p, bytes.n);
    enum http_parse verdict = parse(str_n(copy + 1, bytes.n), h, used, fault);
    free(copy);
    return verdict;
}

static void check_row(parse_fn *parse, const struct row *row)
{
    struct http_head h;
    size_t used = 0;
    struct http_fault fault = {0};
    int seen = 0;
    for (size_t n = 0; n <= row->bytes.n && !seen; n++) {
        enum http_parse verdict = parse_exactly(parse, str_n(row->bytes.p, n), &h, &used, &fault);
        if (verdict == HTTP_PARSE_OK)
            seen = used == row->bytes.n && n == used ? OK : -1;
        else if (verdict == HTTP_PARSE_BAD)
            seen = fault.status;
    }
    if (seen != row->expected)
        fail_msg("%s: byte by byte it is %d, not %d", row->name, seen, row->expected);

    char longer[1024];
    assert_true(row->bytes.n + 8 < sizeof(longer));
    memcpy(longer, row->bytes.p, row->bytes.n);
    memcpy(longer + row->bytes.n, "GET / HT", 8);
    struct http_fault again = {0};
    enum http_parse verdict = parse(str_n(longer, row->bytes.n + 8), &h, &used, &again);
    if (row->expected == OK && (verdict != HTTP_PARSE_OK || used != row->bytes.n))
        fail_msg("%s: with bytes behind it, it is not the same head", row->name);
    if (row->expected != OK && (verdict != HTTP_PARSE_BAD || again.reason != fault.reason))
        fail_msg("%s: whole it is refused for another reason", row->name);
}

TEST(test_codec__requests_are_taken_or_refused_as_tabled)
{
    for (size_t i = 0; i < countof(requests); i++)
        check_row(http_parse_request, &requests[i]);
}

TEST(test_codec__responses_are_taken_or_refused_as_tabled)
{
    for (size_t i = 0; i < countof(responses); i++)
        check_row(parse_reply, &responses[i]);
}

TEST(test_codec__refusals_are_sentences)
{
    for (size_t i = 0; i < countof(requests); i++) {
        struct http_head h;
        size_t used;
        struct http_fault fault = {0};
        if (http_parse_request(requests[i].bytes, &h, &used, &fault) != HTTP_PARSE_BAD)
            continue;
        assert_non_null(fault.reason);
        assert_true(fault.reason[0] >= 'A' && fault.reason[0] <= 'Z');
        assert_int_equal(fault.reason[strlen(fault.reason) - 1], '.');
    }
}

static struct http_head parse_good(struct str bytes)
{
    struct http_head h;
    size_t used = 0;
    struct http_fault fault = {0};
    enum http_parse verdict = http_parse_request(bytes, &h, &used, &fault);
    if (verdict == HTTP_PARSE_BAD)
        fail_msg("refused: %s", fault.reason);
    assert_int_equal(verdict, HTTP_PARSE_OK);
    assert_int_equal(used, bytes.n);
    return h;
}

TEST(test_codec__request_is_split_into_its_parts)
{
    struct http_head h =
        parse_good(STR("POST /mcp/a?x=1?2 HTTP/1.1\r\nHost: h:1\r\nContent-Length: 7\r\n"
                       "Accept: a\r\naccept:  b \r\nX_Y: dropped\r\n\r\n"));
    assert_str(h.method, "POST");
    assert_str(h.target, "/mcp/a?x=1?2");
    assert_str(h.path, "/mcp/a");
    assert_str(h.query, "x=1?2");
    assert_str(h.host, "h:1");
    assert_int_equal(h.minor, 1);
    assert_int_equal(h.framing, HTTP_LENGTH);
    assert_int_equal(h.content_length, 7);
    assert_true(h.keep_alive);
    assert_int_equal(h.n_headers, 4);
    assert_str(http_header_get(&h, STR("ACCEPT")), "a");
    assert_int_equal(http_header_count(&h, STR("Accept")), 2);
    assert_str(h.headers[3].value, "b");
    assert_null(http_header_get(&h, STR("X_Y")).p);
    assert_null(http_header_get(&h, STR("X-Y")).p);
}

/* However many there are: all are found, in any case, and nothing else. */
TEST(test_http_header_get__finds_what_is_there_and_only_that)
{
    for (unsigned n = 1; n <= HTTP_MAX_HEADERS - 1; n++) {
        struct buf text;
        buf_init(&text, 1 << 16);
        buf_addz(&text, "GET / HTTP/1.1\r\nHost: a\r\n");
        for (unsigned i = 1; i <= n; i++)
            buf_addf(&text, "%cx%.*s: %u\r\n", 'A' + (char)(i % 26), (int)(i / 4),
                     "--------------------------------", i);
        buf_addz(&text, "\r\n");
        struct http_head h = parse_good(buf_str(&text));
        for (unsigned i = 0; i < h.n_headers; i++) {
            char name[64];
            struct str as = h.headers[i].name;
            for (size_t k = 0; k < as.n; k++)
                name[k] = (char)(as.p[k] >= 'A' && as.p[k] <= 'Z' ? as.p[k] + 32 : as.p[k]);
            assert_non_null(http_header_get(&h, str_n(name, as.n)).p);
            assert_true(http_header_count(&h, str_n(name, as.n)) >= 1);
            name[1] = 'y'; /* the same mark, another name */
            assert_null(http_header_get(&h, str_n(name, as.n)).p);
        }
        assert_null(http_header_get(&h, STR("authorization")).p);
        assert_int_equal(http_header_count(&h, STR("cookie")), 0);
        buf_release(&text);
    }
}

TEST(test_codec__query_is_absent_or_empty)
{
    assert_null(parse_good(STR("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")).query.p);
    struct http_head h = parse_good(STR("GET /a? HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_non_null(h.query.p);
    assert_int_equal(h.query.n, 0);
}

TEST(test_codec__absolute_form_is_reduced)
{
    struct http_head h = parse_good(STR("GET http://a:1/x?y HTTP/1.1\r\nHost: A:1\r\n\r\n"));
    assert_str(h.target, "/x?y");
    assert_str(h.path, "/x");
    assert_str(h.host, "A:1");
    h = parse_good(STR("GET http://a HTTP/1.0\r\n\r\n"));
    assert_str(h.target, "/");
    assert_str(h.path, "/");
    assert_str(h.host, "a");
}

TEST(test_codec__keep_alive_follows_version_and_connection)
{
    static const struct {
        struct str bytes;
        bool keep_alive;
    } rows[] = {
        {STR("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), true},
        {STR("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), false},
        {STR("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n"), false},
        {STR("GET / HTTP/1.1\r\nHost: a\r\nConnection: closed\r\n\r\n"), true},
        {STR("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n"),
         false},
        {STR("GET / HTTP/1.0\r\n\r\n"), false},
        {STR("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), true},
        {STR("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"), false},
    };
    for (size_t i = 0; i < countof(rows); i++)
        assert_int_equal(parse_good(rows[i].bytes).keep_alive, rows[i].keep_alive);
}

TEST(test_codec__bodies_are_framed)
{
    assert_int_equal(parse_good(STR(GET HOST END)).framing, HTTP_NO_BODY);
    assert_int_equal(parse_good(STR(POST "Content-Length: 0\r\n" END)).framing, HTTP_NO_BODY);
    assert_int_equal(parse_good(STR(POST "Transfer-Encoding: chunked\r\n" END)).framing,
                     HTTP_CHUNKED);
}

TEST(test_codec__continue_is_expected_only_before_a_body)
{
    assert_true(
        parse_good(STR(POST "Expect: 100-continue\r\nContent-Length: 1\r\n" END)).expect_continue);
    assert_true(parse_good(STR(POST "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n" END))
                    .expect_continue);
    assert_false(parse_good(STR(POST "Expect: 100-continue\r\n" END)).expect_continue);
    assert_false(
        parse_good(STR("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n" END))
            .expect_continue);
}

TEST(test_codec__responses_are_framed)
{
    static const struct {
        struct str bytes;
        bool to_head;
        enum http_framing framing;
        bool keep_alive;
    } rows[] = {
        {STR("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"), false, HTTP_LENGTH, true},
        {STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), false, HTTP_NO_BODY, true},
        {STR("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"), true, HTTP_NO_BODY, true},
        {STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), false, HTTP_CHUNKED, true},
        {STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), true, HTTP_NO_BODY, true},
        {STR("HTTP/1.1 200 OK\r\n\r\n"), false, HTTP_UNTIL_CLOSE, false},
        {STR("HTTP/1.1 200 OK\r\n\r\n"), true, HTTP_NO_BODY, true},
        {STR("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n"), false, HTTP_UNTIL_CLOSE, false},
        {STR("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n"), false,
         HTTP_LENGTH, true},
        {STR("HTTP/1.1 100 Continue\r\n\r\n"), false, HTTP_NO_BODY, true},
        {STR("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"), false, HTTP_NO_BODY, true},
        {STR("HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n"), false, HTTP_NO_BODY, true},
        {STR("HTTP/1.1 304 Not\r\nContent-Length: 5\r\n\r\n"), false, HTTP_NO_BODY, true},
        {STR("HTTP/1.1 202 A\r\nConnection: close\r\nContent-Length: 5\r\n\r\n"), false,
         HTTP_LENGTH, false},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct http_head h;
        size_t used = 0;
        struct http_fault fault = {0};
        assert_int_equal(http_parse_response(rows[i].bytes, rows[i].to_head, &h, &used, &fault),
                         HTTP_PARSE_OK);
        assert_int_equal(used, rows[i].bytes.n);
        assert_int_equal(h.framing, rows[i].framing);
        assert_int_equal(h.keep_alive, rows[i].keep_alive);
    }
}

TEST(test_codec__status_is_read)
{
    struct http_head h;
    size_t used;
    struct http_fault fault;
    assert_int_equal(
        http_parse_response(STR("HTTP/1.1 429 Slow\r\n\r\n"), false, &h, &used, &fault),
        HTTP_PARSE_OK);
    assert_int_equal(h.status, 429);
    assert_null(h.method.p);
}

/* Appends to a text of fixed room. */
static size_t put(char *text, size_t n, const char *more)
{
    size_t len = strlen(more);
    memcpy(text + n, more, len);
    return n + len;
}

static int verdict_of(const char *text, size_t n)
{
    struct http_head h;
    size_t used = 0;
    struct http_fault fault = {0};
    enum http_parse verdict = http_parse_request(str_n(text, n), &h, &used, &fault);
    return verdict == HTTP_PARSE_OK ? OK : verdict == HTTP_PARSE_MORE ? 0 : fault.status;
}

TEST(test_codec__a_hundred_headers_fit_and_one_more_does_not)
{
    for (unsigned count = HTTP_MAX_HEADERS - 1; count <= HTTP_MAX_HEADERS + 1; count++) {
        static char text[8192];
        size_t n = put(text, 0, GET HOST);
        for (unsigned i = 1; i < count; i++)
            n = put(text, n, i % 2 ? "X: y\r\n" : "dropped_but_counted: y\r\n");
        n = put(text, n, END);
        assert_int_equal(verdict_of(text, n), count <= HTTP_MAX_HEADERS ? OK : 431);
    }
}

TEST(test_codec__target_of_8_kib_fits_and_one_more_does_not)
{
    for (size_t length = HTTP_MAX_TARGET; length <= HTTP_MAX_TARGET + 1; length++) {
        static char text[HTTP_MAX_TARGET + 128];
        size_t n = put(text, 0, "GET /");
        memset(text + n, 'a', length - 1);
        n += length - 1;
        assert_int_equal(verdict_of(text, n), length <= HTTP_MAX_TARGET ? 0 : 414);
        n = put(text, n, " HTTP/1.1\r\n" HOST END);
        assert_int_equal(verdict_of(text, n), length <= HTTP_MAX_TARGET ? OK : 414);
    }
}

TEST(test_codec__head_of_32_kib_fits_and_one_more_does_not)
{
    for (size_t length = HTTP_MAX_HEAD; length <= HTTP_MAX_HEAD + 1; length++) {
        static char text[HTTP_MAX_HEAD + 16];
        size_t n = put(text, 0, GET HOST "X: ");
        memset(text + n, 'a', length - n - 4);
        n = put(text, length - 4, "\r\n\r\n");
        assert_int_equal(n, length);
        assert_int_equal(verdict_of(text, n), length <= HTTP_MAX_HEAD ? OK : 431);
        assert_int_equal(verdict_of(text, HTTP_MAX_HEAD - 1), 0);
        assert_int_equal(verdict_of(text, HTTP_MAX_HEAD), length <= HTTP_MAX_HEAD ? OK : 431);
    }
}

TEST(test_codec__what_is_wrong_behind_the_limit_is_not_looked_at)
{
    static char text[HTTP_MAX_HEAD + 16];
    size_t n = put(text, 0, GET HOST "X: ");
    memset(text + n, 'a', sizeof(text) - n);
    text[HTTP_MAX_HEAD] = '\0';
    assert_int_equal(verdict_of(text, sizeof(text)), 431);
    text[HTTP_MAX_HEAD - 1] = '\0';
    assert_int_equal(verdict_of(text, sizeof(text)), 400);
}

TEST(test_codec__host_of_255_bytes_and_a_port_fits)
{
    for (size_t length = 255; length <= 256; length++) {
        char text[512];
        size_t n = put(text, 0, GET "Host: ");
        memset(text + n, 'h', length);
        n = put(text, n + length, ":65535\r\n" END);
        assert_int_equal(verdict_of(text, n), length == 255 ? OK : 400);
    }
}

TEST(test_codec__nothing_is_not_a_fault)
{
    struct http_head h;
    size_t used;
    struct http_fault fault;
    assert_int_equal(http_parse_request(STR_NONE, &h, &used, &fault), HTTP_PARSE_MORE);
    assert_int_equal(http_parse_response(STR_NONE, false, &h, &used, &fault), HTTP_PARSE_MORE);
}
