/* SPDX-License-Identifier: Apache-2.0 */
/* Says how our codec reads byte strings, for comparison with other servers.
 *
 * stdin: byte strings, each behind its length as four bytes, least significant first.  stdout: one
 * line for each, as a server would see a connection that carries these bytes and then ends:
 *   STATE STATUS USED HEADS [METHOD:TARGET:BODY]...
 * STATE is done (nothing left over), more (the last request is incomplete), closed (a request asked
 * to close) or bad (refused with STATUS).  USED is the length of all complete requests, HEADS how
 * many heads were accepted; each complete request follows, target and body in hex. */
#include "base/buf.h"
#include "http/codec.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_INPUT ((size_t)1 << 20)

struct reading {
    enum http_parse verdict;
    struct http_head head;
    struct http_fault fault;
    size_t used;
    unsigned heads;
    bool is_closed;
    struct buf body, requests;
};

static void add_hex(struct buf *out, struct str bytes)
{
    for (size_t i = 0; i < bytes.n; i++)
        buf_addf(out, "%02x", (unsigned char)bytes.p[i]);
}

static enum http_parse read_chunks(struct reading *r, struct str bytes, size_t *ret_used)
{
    struct http_chunks chunks;
    http_chunks_init(&chunks);
    enum http_parse verdict = HTTP_PARSE_MORE;
    size_t at = 0;
    while (at < bytes.n && verdict == HTTP_PARSE_MORE) {
        struct str data;
        size_t used;
        verdict =
            http_chunks_feed(&chunks, str_n(bytes.p + at, bytes.n - at), &used, &data, &r->fault);
        buf_addstr(&r->body, data);
        at += used;
    }
    *ret_used = at;
    return verdict;
}

static enum http_parse read_body(struct reading *r, struct str bytes, size_t *ret_used)
{
    buf_reset(&r->body);
    *ret_used = 0;
    if (r->head.framing == HTTP_CHUNKED)
        return read_chunks(r, bytes, ret_used);
    if (r->head.framing == HTTP_NO_BODY)
        return HTTP_PARSE_OK;
    if (bytes.n < r->head.content_length)
        return HTTP_PARSE_MORE;
    *ret_used = (size_t)r->head.content_length;
    buf_add(&r->body, bytes.p, *ret_used);
    return HTTP_PARSE_OK;
}

/* One request from the front of `bytes`; true when another may follow. */
static bool read_request(struct reading *r, struct str bytes)
{
    size_t head = 0, body = 0;
    r->verdict = http_parse_request(bytes, &r->head, &head, &r->fault);
    if (r->verdict != HTTP_PARSE_OK)
        return false;
    r->heads++;
    r->verdict = read_body(r, str_n(bytes.p + head, bytes.n - head), &body);
    if (r->verdict != HTTP_PARSE_OK)
        return false;
    buf_addf(&r->requests, " %.*s:", STR_ARG(r->head.method));
    add_hex(&r->requests, r->head.target);
    buf_addc(&r->requests, ':');
    add_hex(&r->requests, buf_str(&r->body));
    r->used += head + body;
    r->is_closed = !r->head.keep_alive;
    return !r->is_closed;
}

static void read_connection(struct str bytes)
{
    static struct reading r;
    r = (struct reading){.verdict = HTTP_PARSE_OK};
    buf_init(&r.body, MAX_INPUT);
    buf_init(&r.requests, 4 * MAX_INPUT);
    while (r.used < bytes.n && read_request(&r, str_n(bytes.p + r.used, bytes.n - r.used))) {
    }
    const char *state = r.verdict == HTTP_PARSE_BAD    ? "bad"
                        : r.verdict == HTTP_PARSE_MORE ? "more"
                        : r.is_closed                  ? "closed"
                                                       : "done";
    printf("%s %d %zu %u%.*s\n", state, r.verdict == HTTP_PARSE_BAD ? r.fault.status : 0, r.used,
           r.heads, STR_ARG(buf_str(&r.requests)));
    buf_release(&r.body);
    buf_release(&r.requests);
}

int main(void)
{
    unsigned char prefix[4];
    while (fread(prefix, 1, sizeof(prefix), stdin) == sizeof(prefix)) {
        size_t n = (size_t)prefix[0] | (size_t)prefix[1] << 8 | (size_t)prefix[2] << 16 |
                   (size_t)prefix[3] << 24;
        if (n > MAX_INPUT)
            return 2;
        char *bytes = malloc(n + 1);
        if (!bytes || fread(bytes, 1, n, stdin) != n)
            return 2;
        read_connection(str_n(bytes, n));
        free(bytes);
    }
    return 0;
}
