/* SPDX-License-Identifier: Apache-2.0 */
/* Heads, chunks and fields from arbitrary bytes; the first byte chooses which.
 *
 * Held to: a prefix is MORE or has the verdict of the whole; spans lie inside the bytes; what was
 * accepted, written out again, is accepted again with the same meaning; chunks decode the same
 * however they are cut; decoding never grows. */
#include "base/buf.h"
#include "http/codec.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define require(claim)                                                                             \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #claim);                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum kind { REQUEST, RESPONSE, RESPONSE_TO_HEAD };

struct outcome {
    enum http_parse verdict;
    size_t used;
    struct http_fault fault;
    struct http_head head;
};

static void parse(enum kind kind, struct str bytes, struct outcome *ret)
{
    ret->used = 0;
    ret->fault = (struct http_fault){0};
    ret->verdict = kind == REQUEST ? http_parse_request(bytes, &ret->head, &ret->used, &ret->fault)
                                   : http_parse_response(bytes, kind == RESPONSE_TO_HEAD,
                                                         &ret->head, &ret->used, &ret->fault);
}

/* The same bytes at the end of an allocation of their own, where reading on is seen. */
static void parse_copy(enum kind kind, struct str bytes, struct outcome *ret)
{
    char *copy = malloc(bytes.n + 1);
    require(copy);
    memcpy(copy + 1, bytes.p, bytes.n);
    parse(kind, str_n(copy + 1, bytes.n), ret);
    free(copy);
}

static void check_prefix(enum kind kind, struct str bytes, size_t n, const struct outcome *whole)
{
    static struct outcome part;
    if (n % 16 == 0)
        parse_copy(kind, str_n(bytes.p, n), &part);
    else
        parse(kind, str_n(bytes.p, n), &part);
    if (part.verdict == HTTP_PARSE_MORE)
        return;
    require(part.verdict == whole->verdict);
    require(part.used == whole->used);
    require(part.fault.status == whole->fault.status && part.fault.reason == whole->fault.reason);
}

static void check_span(struct str span, struct str bytes)
{
    require(!span.p || (span.p >= bytes.p && span.p + span.n <= bytes.p + bytes.n));
}

static void check_head(enum kind kind, const struct http_head *h, struct str bytes)
{
    check_span(h->method, bytes);
    check_span(h->target, bytes);
    check_span(h->path, bytes);
    check_span(h->query, bytes);
    check_span(h->host, bytes);
    require(h->n_headers <= HTTP_MAX_HEADERS);
    for (unsigned i = 0; i < h->n_headers; i++) {
        check_span(h->headers[i].name, bytes);
        check_span(h->headers[i].value, bytes);
        require(h->headers[i].name.n > 0 &&
                str_find(h->headers[i].name, '_') == h->headers[i].name.n);
        require(h->headers[i].value.n == str_trim(h->headers[i].value).n);
    }
    require(h->minor == 0 || h->minor == 1);
    require(http_header_count(h, STR("content-length")) <= 1);
    require(http_header_count(h, STR("transfer-encoding")) <= 1);
    require((h->framing == HTTP_LENGTH) <= (h->content_length > 0));
    if (kind != REQUEST)
        return;
    require(h->path.p[0] == '/' && h->target.n <= HTTP_MAX_TARGET);
    require(h->minor == 0 || http_header_count(h, STR("host")) == 1);
    require(h->framing != HTTP_UNTIL_CLOSE);
}

/* Writes the head anew from its spans; it must be read back as the same. */
static void check_round_trip(enum kind kind, const struct http_head *h)
{
    static struct outcome again;
    struct buf out;
    buf_init(&out, 2 * HTTP_MAX_HEAD);
    if (kind == REQUEST)
        buf_addf(&out, "%.*s %.*s HTTP/1.%d\r\n", STR_ARG(h->method), STR_ARG(h->target), h->minor);
    else
        buf_addf(&out, "HTTP/1.%d %d\r\n", h->minor, h->status);
    for (unsigned i = 0; i < h->n_headers; i++) {
        buf_addstr(&out, h->headers[i].name);
        buf_addz(&out, ":");
        buf_addstr(&out, h->headers[i].value);
        buf_addz(&out, "\r\n");
    }
    buf_addz(&out, "\r\n");
    parse(kind, buf_str(&out), &again);
    require(again.verdict == HTTP_PARSE_OK && again.used == out.n);
    require(again.head.n_headers == h->n_headers && again.head.framing == h->framing);
    require(again.head.content_length == h->content_length &&
            again.head.keep_alive == h->keep_alive);
    require(again.head.expect_continue == h->expect_continue && again.head.status == h->status);
    require(str_eq(again.head.path, h->path) && str_eq(again.head.query, h->query));
    buf_release(&out);
}

static void fuzz_head(enum kind kind, struct str bytes)
{
    static struct outcome whole;
    parse(kind, bytes, &whole);
    size_t step = 1 + bytes.n / 256;
    for (size_t n = 0; n < bytes.n; n += step)
        check_prefix(kind, bytes, n, &whole);
    if (whole.verdict != HTTP_PARSE_OK) {
        require(whole.verdict == HTTP_PARSE_MORE || whole.fault.reason);
        return;
    }
    require(whole.used <= bytes.n && whole.used <= HTTP_MAX_HEAD);
    check_prefix(kind, bytes, whole.used, &whole);
    check_head(kind, &whole.head, bytes);
    check_round_trip(kind, &whole.head);
}

struct decoded {
    enum http_parse verdict;
    size_t used;
    const char *reason;
    struct buf body;
};

static struct decoded decode(struct str bytes, size_t piece)
{
    struct decoded d = {.verdict = HTTP_PARSE_MORE};
    buf_init(&d.body, bytes.n + 1);
    struct http_chunks c;
    http_chunks_init(&c);
    while (d.used < bytes.n && d.verdict == HTTP_PARSE_MORE) {
        size_t n = bytes.n - d.used < piece ? bytes.n - d.used : piece, used = 0;
        struct str data = STR_NONE;
        struct http_fault fault = {0};
        d.verdict = http_chunks_feed(&c, str_n(bytes.p + d.used, n), &used, &data, &fault);
        require(used > 0 && used <= n && data.n <= used);
        check_span(data, str_n(bytes.p + d.used, n));
        buf_addstr(&d.body, data);
        d.used += used;
        d.reason = fault.reason;
    }
    return d;
}

static void fuzz_chunks(struct str bytes)
{
    struct decoded whole = decode(bytes, bytes.n);
    static const size_t pieces[] = {1, 2, 3, 7};
    for (size_t i = 0; i < countof(pieces); i++) {
        struct decoded cut = decode(bytes, pieces[i]);
        require(cut.verdict == whole.verdict && cut.used == whole.used &&
                cut.reason == whole.reason);
        require(str_eq(buf_str(&cut.body), buf_str(&whole.body)));
        buf_release(&cut.body);
    }
    buf_release(&whole.body);
}

static void fuzz_fields(struct str bytes)
{
    char *out = malloc(bytes.n ? bytes.n : 1);
    require(out);
    int n = http_percent_decode(bytes, out, true);
    require(n >= -1 && n <= (int)bytes.n);
    for (int i = 0; i < n; i++)
        require(out[i] != '/' && out[i] != '\\' && out[i] != '\0');
    int in_query = http_percent_decode(bytes, out, false);
    require(in_query >= n && in_query <= (int)bytes.n);
    free(out);
    unsigned count = 0;
    struct str value = http_query_get(bytes, STR("a"), &count);
    check_span(value, bytes);
    require((value.p != NULL) == (count > 0));
    http_list_has(bytes, STR("close"));
    http_value_is_safe(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str bytes = str_n((const char *)data + 1, size - 1);
    switch (data[0] % 5) {
    case 3:
        fuzz_chunks(bytes);
        break;
    case 4:
        fuzz_fields(bytes);
        break;
    default:
        fuzz_head((enum kind)(data[0] % 5), bytes);
    }
    return 0;
}
