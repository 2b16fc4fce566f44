/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two files of the HTTP client: client.c (pool, calls, the queue for connections) and
 * client_conn.c (one connection: sending, the response state machine).  Private to them. */
#ifndef HOLDFAST_HTTP_CLIENT_IMPL_H
#define HOLDFAST_HTTP_CLIENT_IMPL_H

#include "base/buf.h"
#include "base/list.h"
#include "http/client.h"
#include "io/address.h"
#include "io/conn.h"
#include "io/deadline.h"

#define CLIENT_MAX_WAITING 4096 /* calls without a connection, per origin */
#define CLIENT_MAX_INTERIM 8    /* 1xx heads before the final one */
#define CLIENT_MAX_FREE_CALLS 256

struct http_pool {
    struct loop *loop;
    struct http_pool_config config;
    char *name;      /* the host without brackets: for lookups and certificates */
    struct str line; /* " HTTP/1.1\r\nHost: …\r\n" */
    struct conn_address address;
    int64_t resolved_ms; /* lookup time of `address`; -1: not resolved, 0: numeric, no expiry */
    struct address_lookup *lookup;
    bool is_localhost, tried_both;
    unsigned turn;             /* with is_localhost: odd for ::1, even for 127.0.0.1 */
    struct list conns;         /* all connections, of client_conn.link */
    struct client_conn **idle; /* idle connections, last used at the end */
    unsigned n_conns, n_opening, n_idle;
    struct list waiting; /* of http_call.link */
    unsigned n_waiting;
    struct http_call *free_calls[CLIENT_MAX_FREE_CALLS];
    unsigned n_free_calls;
    struct deadline_class connect_wait, idle_wait;
    struct list call_waits; /* of call_wait.link */
    struct http_head head;  /* heads are parsed here, one at a time */
    bool is_over;
    struct loop_task release;
};

/* The fields that each call touches are first: with hundreds of calls in flight, every cache line
 * is cold. */
struct http_call {
    struct http_pool *pool;
    struct client_conn *conn; /* NULL while waiting for a connection */
    const struct http_call_events *events;
    void *arg;
    bool to_head;      /* the request is HEAD: its response has no body */
    bool streams;      /* on_head asked for streaming */
    bool is_over;      /* the call has ended; recycled when its last callback returns */
    bool later_set;    /* `later` is scheduled */
    unsigned depth;    /* callbacks of this call on the stack */
    struct error *err; /* reported by `later` */
    struct list link;  /* in pool->waiting, or in no list */
    struct buf body;   /* buffered so far */
    struct deadline deadline;
    struct buf request; /* filled only while waiting for a connection */
    struct loop_task later;
};

enum client_state { CLIENT_OPENING, CLIENT_IDLE, CLIENT_HEAD, CLIENT_BODY, CLIENT_CLOSED };

struct client_conn {
    struct http_pool *pool;
    struct conn *conn;
    struct http_call *call; /* set in HEAD and BODY */
    enum client_state state;
    enum http_framing framing;
    uint64_t body_left;
    uint64_t bytes_out_before; /* conn_bytes_out() before the current call */
    unsigned n_interim;
    bool keeps;                /* may be reused for another call */
    struct deadline deadline;  /* connect or idle */
    struct buf in;             /* an incomplete head */
    struct http_chunks chunks; /* with HTTP_CHUNKED */
    unsigned turn;             /* pool->turn when it was dialled */
    struct list link;          /* in pool->conns */
    struct loop_task release;
};

/* client.c */
void client_call_finish(struct http_call *call, struct str body, const struct error *err,
                        bool sent);
/* Call the user's callbacks; afterwards conn->call says whether the call is still running. */
bool client_call_head(struct http_call *call, const struct http_head *head);
bool client_call_body(struct http_call *call, struct str bytes);
void client_call_drop(struct http_call *call); /* ends it without a callback */
void client_conn_ready(struct client_conn *c); /* idle: takes the next waiting call */
void client_dial_failed(struct client_conn *c, const struct error *err);
void client_dial_as_needed(struct http_pool *p);

/* client_conn.c */
void client_conn_dial(struct http_pool *p);
void client_conn_close(struct client_conn *c); /* its call, if any, must have been detached */
/* Sends the parts as the request of `call`.  Returns false when the connection was broken before a
 * byte was sent: it is closed, and another connection may be tried. */
must_check bool client_conn_send(struct client_conn *c, struct http_call *call,
                                 const struct iovec *parts, int n);
bool client_conn_has_sent(const struct client_conn *c);
/* Sends the call on another connection, after its connection broke before the request was sent. */
void client_call_again(struct http_call *call, struct str request);

#endif
