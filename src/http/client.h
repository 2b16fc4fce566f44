/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing HTTP/1.1 with pooled keep-alive connections per origin.  A connection serves one call at
 * a time.  Any irregular response (extra bytes, short body, CL+TE, 3xx) fails the call and closes
 * the connection, which is never reused (threats H18, M24).  No redirects, no cookies, no content
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
    int64_t idle_ms;          /* 30 s, keep-alive of pooled connections */
    size_t max_body;          /* 16 MiB, of a buffered (not streamed) response */
};
struct http_pool *http_pool_new(struct loop *loop,
                                const struct http_pool_config *config) must_check;
void http_pool_free(struct http_pool *p); /* open calls fail with ERR_CANCELLED first */

struct http_call_events {
    /* The head arrived.  Return true to stream the body to on_body, false to buffer it and pass it
     * whole to on_done.  `head` is valid only during the call. */
    bool (*on_head)(void *arg, const struct http_head *head);
    bool (*on_body)(
        void *arg,
        struct str bytes); /* streamed; false ends the call (connection closed), no on_done */
    /* Called once.  err NULL: the response is complete, and `body` is the buffered body (valid only
     * during the call).  On failure, `sent` false means that no byte of the request was sent, so
     * the request may be retried. */
    void (*on_done)(void *arg, struct str body, const struct error *err, bool sent);
};
/* Sends head and body with one writev if a connection is idle.  `head_lines` is everything after
 * the request line and Host ("Name: value\r\n…", without Content-Length, which is added).  All
 * bytes that cannot be written at once are copied.  `deadline_ms` covers the whole call; 0: no
 * timeout.  Callbacks come from the loop, never before this returns. */
struct http_call *http_call_start(struct http_pool *p, const char *method, struct str target,
                                  struct str head_lines, const struct iovec *body, int n_body,
                                  int64_t deadline_ms, const struct http_call_events *events,
                                  void *arg) must_check;
/* Ends the call without a callback.  Its connection, if it has one, is closed. */
void http_call_cancel(struct http_call *c);
/* Replaces the deadline: the call may take `ms` more from now on.  For a caller that has all the
 * data it needs and waits only for the end of the response, so that the connection can be
 * reused. */
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
