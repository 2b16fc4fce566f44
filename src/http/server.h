/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/1.1 server: listeners, connections, keep-alive, limits and deadlines of every phase, one
 * request at a time per connection (pipelined ones wait their turn, at most 64 KiB of them).
 *
 * A handler gets a `struct http_request`, whole (head and body), and owes exactly one answer:
 * http_reply(), or http_stream_begin() … http_stream_end().  It may answer later, from the loop.
 * When the client goes away first, `on_abort` is called once, and answers afterwards are dropped;
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
struct tls_context;

/* Hears once how it ends with an answer that was handed over: the kernel took all of it, or the
 * connection went first. */
struct http_receipt {
    void (*fn)(struct http_receipt *receipt, bool is_sent);
};

struct http_request {
    struct arena *mem; /* this request's; spans below live in it */
    struct str extra;  /* header lines of every answer, refusals too; set by the gate, in mem */
    /* The whole answer was handed over and some of it could not be sent yet: who wants to hear how
     * that ends gives a receipt.  May be NULL. */
    struct http_receipt *(*on_unsent)(struct http_request *r);
    struct http_head *head;
    struct str body;             /* whole, de-chunked; empty without one */
    void *user;                  /* the handler's */
    const struct principal *who; /* in mem; set by the front for routes that want one, else NULL */
    void (*on_abort)(struct http_request *r); /* set by a handler that answers later; may be NULL */
    void (*on_drained)(
        struct http_request *r); /* nothing of a stream is queued any more; or NULL */
    int64_t began_us;            /* clock_mono_us() at the first byte of the head */
    bool is_tls, is_unix;
    unsigned peer_uid; /* with is_unix: SO_PEERCRED */
    /* Words what the server itself refuses after the head (413, 408 …): returns the body, in mem,
     * and may set refusal_type and add to extra.  Set by the gate; NULL: {"error":"reason"}. */
    struct str (*word_refusal)(struct http_request *r, int status, const char *reason);
    const char *refusal_type; /* of the gate's body and of that; NULL: application/json */
    struct conn_address peer;
};

struct http_server_config {
    size_t max_body; /* 4 MiB: 413 from Content-Length before reading, chunked counted */
    int64_t head_ms, idle_ms, write_stall_ms; /* 10 s, 60 s, 30 s */
    int64_t body_grace_ms;                    /* 5 s, afterwards at least body_min_rate bytes/s */
    unsigned body_min_rate;                   /* 512 */
    unsigned max_connections;                 /* above it: accept is paused */
    size_t body_budget; /* bytes of all bodies in flight; above it: 503 + Retry-After */
};
extern const struct http_server_config http_server_defaults;

/* Called on the head alone, before a body is read: return 0 to go on, or a status to refuse with
 * (Host, Origin, 415, 404 …).  `ret_body` gets the refusal's body (JSON text, in mem). */
typedef int http_gate_fn(void *arg, struct http_request *r, struct str *ret_body);
typedef void http_handler_fn(void *arg, struct http_request *r);

struct http_server *http_server_new(struct loop *loop, const struct http_server_config *config,
                                    http_gate_fn *gate, http_handler_fn *handler,
                                    void *arg) must_check;
/* Takes a listening fd. */
void http_server_listen(struct http_server *s, int fd, struct tls_context *tls, bool is_unix);
/* Connections accepted from now on use `tls`; those that are open go on as they began.  Only for
 * listeners that had a context: plain ones stay plain. */
void http_server_set_tls(struct http_server *s, struct tls_context *tls);
void http_server_stop_listening(struct http_server *s);
/* Closes idle connections now and the others after their current answer. */
void http_server_drain(struct http_server *s);
unsigned http_server_open(const struct http_server *s); /* connections */
/* Connections whose answer has not yet been taken whole by the kernel. */
unsigned http_server_flushing(const struct http_server *s);
void http_server_free(struct http_server *s); /* closes what is left */

/* `headers` is raw lines "Name: value\r\n…" or absent; Content-Type and Content-Length are written
 * from the arguments (no Content-Type when `type` is NULL; no body on 202/204).  The request may be
 * freed before this returns: do not touch it afterwards. */
void http_reply(struct http_request *r, int status, const char *type, struct str headers,
                struct str body);
/* The same with the body in parts, written with one writev. */
struct iovec;
void http_reply_parts(struct http_request *r, int status, const char *type, struct str headers,
                      const struct iovec *parts, int n);
/* With every text/event-stream: nobody between us and the client may hold it back. */
#define HTTP_EVENT_STREAM_LINES                                                                    \
    STR("Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n")
/* A streamed answer (chunked).  `max_queue` bounds what waits for a slow reader. */
void http_stream_begin(struct http_request *r, int status, const char *type, struct str headers,
                       size_t max_queue);
/* false: the queue is full; nothing was added. */
must_check bool http_stream_write(struct http_request *r, struct str bytes);
void http_stream_end(struct http_request *r);   /* frees the request */
void http_stream_abort(struct http_request *r); /* closes the connection; frees the request */
/* For a stream that may idle for long: gives back mem, head and body, which are gone afterwards. */
void http_stream_slim(struct http_request *r);
/* The memory of a request, taken over by a handler that outlives the request.  Head, body spans and
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
/* "TLSv1.3"; "none" when it came in the clear, or its client has gone. */
const char *http_request_tls_version(const struct http_request *r);
/* Instead of an answer: the plain connection leaves the server, which forgets it and the request;
 * the caller owns the descriptor, and what is said on it, 101 included.  The peer must have waited
 * for that: bytes it sent early are lost.  -1: it cannot leave (TLS, bytes under way, no descriptor
 * free); an answer is still owed. */
must_check int http_request_detach(struct http_request *r);
/* The handler is finished with an aborted request. */
void http_request_done(struct http_request *r);

#endif
