/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the three files of the HTTP server: server.c (listeners, limits, recycled requests),
 * server_conn.c (the connection state machine), server_reply.c (answers).  Private to them. */
#ifndef HOLDFAST_HTTP_SERVER_IMPL_H
#define HOLDFAST_HTTP_SERVER_IMPL_H

#include "base/buf.h"
#include "base/list.h"
#include "http/server.h"
#include "io/conn.h"
#include "io/deadline.h"

#define SERVER_MAX_PIPELINED (64 * 1024) /* bytes read ahead of the current answer */
#define SERVER_MAX_DISCARD (64 * 1024)   /* of a refused body, to keep the connection */
#define SERVER_DISCARD_MS 1000
#define SERVER_MAX_FREE 256 /* requests kept for reuse */
#define SERVER_DATE_TEXT 37 /* "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" */

struct http_server {
    struct loop *loop;
    struct http_server_config config;
    http_gate_fn *gate;
    http_handler_fn *handler;
    void *arg;
    struct list listeners, conns;
    unsigned n_open;
    bool is_draining;
    bool out_of_fds; /* accept is paused until a descriptor may be free */
    struct loop_timer *accept_again;
    struct deadline_class head_wait, idle_wait, body_wait, write_wait, discard_wait;
    int64_t body_tick_ms; /* duration of body_wait */
    size_t body_bytes;    /* of all live requests */
    struct server_request *free_requests[SERVER_MAX_FREE];
    unsigned n_free_requests;
    unsigned refs; /* one for the owner, one for each live request */
    struct loop_task release;
    int64_t date_s;
    char date[SERVER_DATE_TEXT + 1];
};

/* One request from its head to its answer.  Recycled with its arena, so that a request needs no
 * malloc.  The fields that an answer touches are first: by then each cache line is cold again. */
struct server_request {
    struct server_conn *conn; /* NULL once the client is gone */
    struct http_server *server;
    size_t counted;          /* its share of server->body_bytes */
    bool has_chunks;         /* `chunked` may hold bytes */
    struct http_request pub; /* without mem and head once it is slim: then it is not recycled */
    struct buf chunked;      /* body of a chunked request */
};

enum server_state {
    SERVER_IDLE,
    SERVER_HEAD,
    SERVER_BODY,
    SERVER_WAITING,
    SERVER_STREAMING,
    SERVER_FLUSHING,
    SERVER_DISCARDING,
    SERVER_LINGERING,
    SERVER_CLOSED
};

/* In the order of use: every request and its answer touch the first two cache lines, an arriving
 * request the third, and the rest is used seldom. */
struct server_conn {
    struct http_server *server;
    struct conn *conn;
    struct server_request *req;   /* set in BODY, WAITING, STREAMING */
    int64_t began_us;             /* time of the first byte of the current head; 0 before it */
    struct http_receipt *receipt; /* for an answer that is being flushed; or NULL */
    enum server_state state;
    enum http_framing framing; /* of the body being read or discarded */
    bool closes;               /* after the current answer */
    bool lingers;              /* … and unread input is likely: see SERVER_LINGERING */
    bool is_feeding;           /* inside feed(), which continues by itself */
    bool is_raw_stream;        /* streamed without chunks: HTTP/1.0 */
    bool is_mute;              /* the request is HEAD: the answer's body is omitted */
    bool is_old;               /* the request is HTTP/1.0 */
    bool is_unix, is_tls;
    bool later_set;
    struct deadline deadline;
    uint64_t body_left;           /* bytes; with HTTP_LENGTH */
    struct buf in;                /* read but not yet used: incomplete head, pipelined requests */
    size_t head_seen, head_tried; /* bytes of an incomplete head searched, and last parsed */
    unsigned peer_uid;
    struct conn_address peer;
    struct http_chunks chunks;
    char *body_to;       /* with HTTP_LENGTH: position of the next byte */
    int64_t body_credit; /* bytes by which the sender may still fall behind its rate */
    size_t discarded;
    uint64_t bytes_out_seen; /* conn_bytes_out() when the write deadline was set */
    unsigned patience;       /* of a stream: write deadlines without progress until it is closed */
    unsigned n_stalls;       /* those that passed */
    struct list link;        /* in server->conns */
    struct loop_task later;
};

/* server.c */
struct server_request *server_request_new(struct server_conn *c);
void server_request_free(struct server_request *r);
must_check bool server_count_body(struct server_request *r, size_t n); /* false: over the budget */
void server_uncount_body(struct server_request *r);
void server_conn_gone(struct server_conn *c); /* off the list; accept may resume */
void server_unref(struct http_server *s);

/* server_conn.c */
void server_conn_new(struct http_server *s, int fd, struct tls_context *tls, bool is_unix,
                     const struct conn_address *peer);
void server_conn_close(struct server_conn *c); /* calls on_abort when an answer was pending */
/* Bytes that arrived before http_upgrade() go to on_bytes. */
void server_conn_upgraded(struct server_conn *c);
void server_conn_answered(struct server_conn *c);      /* the whole answer was handed over */
void server_conn_streams(struct server_conn *c);       /* WAITING to STREAMING */
void server_conn_watch_writing(struct server_conn *c); /* starts the write timeout of a stream */

/* server_reply.c: writes a whole answer; `closes` adds Connection: close. */
struct server_answer {
    int status;
    const char *type;
    struct str headers;
    const struct iovec *parts;
    int n_parts;
};
void server_write_answer(struct server_conn *c, const struct server_answer *a, bool closes);
void server_stream_drained(struct server_conn *c);

#endif
