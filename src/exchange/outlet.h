/* SPDX-License-Identifier: Apache-2.0 */
/* Outlets: where the messages of one exchange go.  An exchange does not know whether its client is
 * behind an HTTP request, a pipe, an element of a batch or a stream of 2024; its outlet does.
 *
 * The receiver of a client message fills an `arrival` and calls exchange_start().  Exactly one
 * finish() follows, after any number of send(). */
#ifndef HOLDFAST_EXCHANGE_OUTLET_H
#define HOLDFAST_EXCHANGE_OUTLET_H

#include "base/arena.h"
#include "front/caller.h"
#include "http/server.h"

struct exchange;
struct session;
struct transport;
struct services;

enum outlet_weight {
    OUTLET_MUST,     /* results and requests: never dropped */
    OUTLET_PROGRESS, /* a newer one may replace it */
    OUTLET_MAY,      /* logs: dropped and counted when the reader is slow */
};

struct outlet {
    const char *name;
    bool has_headers; /* a modern request must mirror its body in headers */
    /* May be NULL. x exists and has not run yet; the outlet stores it for
     * exchange_on_disconnect(). */
    void (*begin)(struct exchange *x);
    /* Sends a message before the result.  False: this client takes no message before its result. */
    bool (*send)(struct exchange *x, struct str json, enum outlet_weight weight);
    /* Sends the reply: x->status, x->headers, x->out.  The caller does not touch x afterwards; its
     * memory may be freed. */
    void (*finish)(struct exchange *x);
    /* May be NULL.  The reply is written.  For a receiver that needs the server's own bytes:
     * x->call, if there is one, is over and lives until this returns.  finish() follows. */
    void (*answered)(struct exchange *x);
    /* May be NULL.  The answer is slow.  An outlet that can make its connection resumable does so
     * now. */
    void (*slow)(struct exchange *x);
    /* May be NULL: lost replies of this outlet are not stored.  True when the reply cannot reach
     * its client now. */
    bool (*is_lost)(const struct exchange *x);
    /* May be NULL.  The client has initialised, and its transport t is stored.  For channels that
     * stay open and hold the transport themselves. */
    void (*initialized)(struct exchange *x, struct transport *t);
    /* May be NULL. x uses the channel's own session, which has this link key. */
    void (*attends)(struct exchange *x, struct str key);
    /* May be NULL. x asks to cancel the request with this id (raw bytes).  For channels, which find
     * the request themselves.  The cancelled request gets no answer. */
    void (*cancel)(struct exchange *x, struct str id);
};
extern const struct outlet outlet_http;

/* One client message as it arrived. */
struct arrival {
    const struct outlet *outlet;
    void *outlet_data;            /* owned by the outlet; copied to x->outlet_data */
    struct http_request *http;    /* NULL when it did not come by HTTP */
    const struct http_head *head; /* empty without headers, never NULL */
    struct arena *mem;            /* of the exchange; lives until finish() */
    struct str verb;              /* "POST", "GET", "DELETE" */
    struct str body;
    struct str server;     /* from the path; absent: all servers, … */
    struct str profile;    /* … or those of this profile */
    bool by_proxy;         /* set only with a profile: a trusted proxy sent the request */
    bool is_2024;          /* the request came on an event stream of 2024 */
    struct str endpoint;   /* "/mcp", "/mcp/files": where a transport id is valid */
    struct str path_key;   /* the credential in the path; or absent */
    struct caller *caller; /* of a route; moved into the exchange.  NULL: not by a route */
    /* For items of a batch and messages of a channel: the principal of the batch or channel.  NULL:
     * the identify step finds it. */
    const struct principal *who;
    const struct refusal *refused; /* the front has refused the caller; or NULL */
    struct transport *transport;   /* the exchange takes a reference; or NULL */
    /* The session of the request, which then names no other; the exchange takes a reference.  NULL:
     * the session step finds it. */
    struct session *session;
    struct str key;           /* a session name from /mcp/messages?session_id=; or absent */
    const char *transport_id; /* for the transport that initialize makes; NULL: a new id */
    /* The channel's session name, used when nothing else names a session; or absent. */
    struct str channel;
    bool channel_resumes; /* … and that of the session of its transport */
};
void exchange_start(struct services *sv, const struct arrival *a);
/* The client disconnected.  finish() follows, at once or when the exchange has done waiting, and
 * sends nothing. */
void exchange_on_disconnect(struct exchange *x);
/* Starts an exchange for an HTTP request to an MCP endpoint: of a server, of a profile, or of all
 * servers.  path_key is present only on /mcp/k/…; the endpoint is then the path without the key. */
void exchange_start_http(struct services *sv, struct http_request *r, struct caller *caller,
                         struct str server, struct str profile, struct str path_key);

#endif
