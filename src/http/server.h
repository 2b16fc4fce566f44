/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/1.1 server: listeners, connections, keep-alive, limits and timeouts of every phase, one
 * request at a time per connection (pipelined requests wait, at most 64 KiB).
 *
 * A handler gets a whole `struct http_request` (head and body) and must answer it exactly once:
 * with http_reply(), or http_stream_begin() … http_stream_end().  It may answer later, from the
 * loop.  If the client disconnects first, `on_abort` is called once, and later answers are dropped;
 * http_request_done() then frees the request (the handler calls nothing else). */
#ifndef HOLDFAST_HTTP_SERVER_H
#define HOLDFAST_HTTP_SERVER_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/principal.h"
#include "http/codec.h"
#include "io/address.h"
#include "io/loop.h"

struct http_server;
struct route_found;
struct tls_context;

/* Reports once how the sending of an answer ended: the kernel took all of it, or the connection
 * closed first. */
struct http_receipt {
    void (*fn)(struct http_receipt *receipt, bool is_sent);
};

struct http_request {
    struct arena *mem; /* of this request; the spans below are in it */
    struct str extra;  /* header lines for every answer, also refusals; set by the gate, in mem */
    /* Called when the whole answer was handed over and some of it could not be sent yet.  Returns a
     * receipt to be notified when the sending ends, or NULL.  May be NULL. */
    struct http_receipt *(*on_unsent)(struct http_request *r);
    struct http_head *head;
    struct str body;                 /* whole, de-chunked; empty when the request has no body */
    const struct route_found *route; /* set by the gate, in mem; NULL before */
    void *user;                      /* for the handler */
    const struct principal *who;     /* in mem; a stream of this request ends with its credential */
    void (*on_abort)(struct http_request *r); /* set by a handler that answers later; may be NULL */
    void (*on_drained)(struct http_request *r); /* the stream's queue is empty; may be NULL */
    void (*on_bytes)(struct http_request *r, struct str bytes); /* after http_upgrade() */
    int64_t began_us; /* clock_mono_us() at the first byte of the head */
    bool is_tls, is_unix;
    unsigned peer_uid; /* with is_unix: SO_PEERCRED */
    /* Writes the body of a refusal that the server itself makes after the head (413, 408 …).
     * Returns the body, in mem; may set refusal_type and add to extra.  Set by the gate; NULL:
     * {"error":"reason"}. */
    struct str (*format_refusal)(struct http_request *r, int status, const char *reason);
    const char *refusal_type; /* for refusals by gate and format_refusal; NULL: application/json */
    struct conn_address peer;
};

struct http_server_config {
    size_t max_body; /* 4 MiB: 413 from Content-Length before reading, chunked counted */
    int64_t head_ms, idle_ms, write_stall_ms; /* 10 s, 60 s, 30 s */
    int64_t body_grace_ms;                    /* 5 s, afterwards at least body_min_rate bytes/s */
    unsigned body_min_rate;                   /* 512 */
    unsigned max_connections;                 /* at this number accept is paused */
    size_t body_budget; /* bytes of all bodies in flight; beyond it: 503 + Retry-After */
};
extern const struct http_server_config http_server_defaults;

/* Called with the head alone, before a body is read: returns 0 to continue, or a status to refuse
 * the request with (Host, Origin, 415, 404 …).  `ret_body` gets the refusal's body (JSON text, in
 * mem). */
typedef int http_gate_fn(void *arg, struct http_request *r, struct str *ret_body);
typedef void http_handler_fn(void *arg, struct http_request *r);

struct http_server *http_server_new(struct loop *loop, const struct http_server_config *config,
                                    http_gate_fn *gate, http_handler_fn *handler,
                                    void *arg) must_check;
/* Takes over a listening fd. */
void http_server_listen(struct http_server *s, int fd, struct tls_context *tls, bool is_unix);
/* Takes over a connected fd, as if a listener had accepted it.  With is_unix the peer's user is
 * known to the handlers. */
void http_server_adopt(struct http_server *s, int fd, bool is_unix);
/* Connections accepted from now on use `tls`; open connections keep their context.  Affects only
 * listeners with a TLS context: plain listeners stay plain. */
void http_server_set_tls(struct http_server *s, struct tls_context *tls);
/* Accepts the connections that the kernel has completed, then closes the listeners. */
void http_server_stop_listening(struct http_server *s);
/* Closes idle connections now and the others after their current answer.  A connection that has
 * sent nothing yet is closed by a second call: its request may be on its way. */
void http_server_drain(struct http_server *s);
unsigned http_server_open(const struct http_server *s); /* connections */
/* Counts connections with an answer that the kernel has not fully taken yet. */
unsigned http_server_flushing(const struct http_server *s);
void http_server_free(struct http_server *s); /* closes the remaining connections */

/* `headers` is raw lines "Name: value\r\n…" or absent.  Content-Type and Content-Length are written
 * from the arguments (no Content-Type when `type` is NULL; no body on 202/204/304).  The request
 * may be freed before this returns: do not touch it afterwards. */
void http_reply(struct http_request *r, int status, const char *type, struct str headers,
                struct str body);
/* The same with the body in parts, written with one writev. */
struct iovec;
void http_reply_parts(struct http_request *r, int status, const char *type, struct str headers,
                      const struct iovec *parts, int n);
/* For every text/event-stream: proxies must not buffer it. */
#define HTTP_EVENT_STREAM_LINES                                                                    \
    STR("Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n")
/* A streamed answer (chunked).  `max_queue` bounds the bytes queued for a slow reader. */
void http_stream_begin(struct http_request *r, int status, const char *type, struct str headers,
                       size_t max_queue);
/* Returns false when the queue is full, or the client is gone; nothing was added. */
must_check bool http_stream_write(struct http_request *r, struct str bytes);
void http_stream_end(struct http_request *r);   /* frees the request */
void http_stream_abort(struct http_request *r); /* closes the connection; frees the request */
/* Instead of an answer: 101 with these header lines, which name the protocol.  From now on r->on_bytes,
 * set before, gets what the peer sends, http_stream_write() sends, and http_stream_end() closes the
 * connection when the queue is empty.  False: the connection cannot be upgraded (HTTP/1.0), and the
 * handler must still answer. */
must_check bool http_upgrade(struct http_request *r, struct str headers, size_t max_queue);
/* A stream whose client may stop reading for a while: the connection is closed only after write_stall_ms
 * have passed `times` times without any byte taken. */
void http_stream_patient(struct http_request *r, unsigned times);
/* For a stream that may be idle for long: frees mem, head and body. */
void http_stream_slim(struct http_request *r);
/* The memory of a request, for a handler that outlives the request.  Head, body spans and
 * everything in mem stay valid until the release.  The request is slim afterwards
 * (http_stream_slim()). */
struct http_request_memory {
    struct arena *mem;
    struct http_head *head;
    struct buf chunked;
};
void http_request_take_memory(struct http_request *r, struct http_request_memory *ret);
void http_request_memory_release(struct http_request_memory *m);
size_t http_stream_queued(const struct http_request *r);
bool http_request_aborted(const struct http_request *r);
/* "TLSv1.3"; "none" without TLS, or when the client is gone. */
const char *http_request_tls_version(const struct http_request *r);
/* Instead of an answer: takes the plain connection out of the server, which frees the request.  The
 * caller owns the descriptor and writes everything on it, including the 101.  The peer must have
 * waited for the 101: bytes that it sent early are lost.  Returns -1 when the connection cannot be
 * taken (TLS, bytes in flight, no free descriptor); the handler must then still answer. */
must_check int http_request_detach(struct http_request *r);
/* Frees an aborted request when the handler has finished with it. */
void http_request_done(struct http_request *r);

#endif
