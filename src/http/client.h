/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing HTTP/1.1 with pooled keep-alive connections per origin.  A connection serves one call at
 * a time; anything odd in a response (extra bytes, short body, CL+TE, 3xx) ends the connection and
 * the call, and it is never reused (threats H18, M24).  No redirects, no cookies, no content
 * codings. */
#ifndef HOLDFAST_HTTP_CLIENT_H
#define HOLDFAST_HTTP_CLIENT_H

#include "base/error.h"
#include "http/codec.h"
#include "io/loop.h"

#include <sys/uio.h>

struct http_pool; /* one origin */
struct http_call; /* one request and its response */
struct tls_context;

struct http_pool_config {
    struct str host; /* as in the URL */
    uint16_t port;
    struct tls_context *tls;  /* NULL for http:// */
    unsigned max_connections; /* 256; further calls wait in a queue */
    int64_t connect_ms;       /* 5 s */
    int64_t idle_ms;          /* 30 s, for pooled connections */
    size_t max_body;          /* 16 MiB of a gathered (non-stream) response */
};
struct http_pool *http_pool_new(struct loop *loop,
                                const struct http_pool_config *config) must_check;
void http_pool_free(struct http_pool *p); /* calls still open fail with ERR_CANCELLED first */

struct http_call_events {
    /* Head arrived.  Return true to have the body streamed to on_body as it comes, false to have it
     * gathered and given whole to on_done.  `head` lives only for the call. */
    bool (*on_head)(void *arg, const struct http_head *head);
    bool (*on_body)(
        void *arg,
        struct str bytes); /* streamed; false ends the call (connection closed), no on_done */
    /* Once: err NULL when the response is complete; `body` as gathered (lives only for the call).
     * `sent` in failures: false when not one byte of the request left us, so it may be sent again.
     */
    void (*on_done)(void *arg, struct str body, const struct error *err, bool sent);
};
/* Sends head+body with one writev when a connection is idle.  `head_lines` is everything after the
 * request line and Host ("Name: value\r\n…", without Content-Length, which is added); all bytes are
 * copied if they cannot be written at once.  `deadline_ms` covers the whole call; 0 for none.
 * Completions come from the loop, never before this returns. */
struct http_call *http_call_start(struct http_pool *p, const char *method, struct str target,
                                  struct str head_lines, const struct iovec *body, int n_body,
                                  int64_t deadline_ms, const struct http_call_events *events,
                                  void *arg) must_check;
/* Ends it without a callback; the connection is closed unless the call had not been sent. */
void http_call_cancel(struct http_call *c);
/* From now on the call may take `ms` more, whatever its deadline was: the user has what it wanted,
 * and only the end of the response is missing, which lets the connection be kept. */
void http_call_within(struct http_call *c, int64_t ms);
void http_call_pause(struct http_call *c, bool paused); /* back-pressure on a streamed body */

struct http_url {
    bool is_tls;
    struct str host;
    uint16_t port;
    struct str target;
};
must_check bool http_url_parse(struct str url, struct http_url *ret, struct error *err);

#endif
