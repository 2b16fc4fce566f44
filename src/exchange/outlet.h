/* SPDX-License-Identifier: Apache-2.0 */
/* Outlets: where the messages of one exchange go.  An exchange does not know whether its client is
 * behind an HTTP request, a pipe, an element of a batch or a stream of 2024; its outlet does.
 *
 * Whoever has a client message makes an `arrival` and calls exchange_start(); exactly one finish()
 * follows, with any number of send() before it. */
#ifndef HOLDFAST_EXCHANGE_OUTLET_H
#define HOLDFAST_EXCHANGE_OUTLET_H

#include "base/arena.h"
#include "base/principal.h"
#include "http/server.h"

struct exchange;
struct transport;
struct services;

enum outlet_weight {
    OUTLET_MUST,     /* results and requests: never dropped */
    OUTLET_PROGRESS, /* a newer one may take its place */
    OUTLET_MAY,      /* logs: dropped and counted when the reader is slow */
};

struct outlet {
    const char *name;
    bool has_headers; /* a modern request mirrors its body in headers */
    /* x exists and has not run yet: to be remembered for exchange_gone(); may be NULL. */
    void (*begin)(struct exchange *x);
    /* A message before the result; false: this client cannot be told anything before it. */
    bool (*send)(struct exchange *x, struct str json, enum outlet_weight weight);
    /* The reply: x->status, x->headers, x->out.  Nobody touches x afterwards, as its memory may go
     * with it. */
    void (*finish)(struct exchange *x);
    /* May be NULL: the answer takes long.  Where a dropped connection can be resumed, now is the
     * time to make it so. */
    void (*slow)(struct exchange *x);
    /* May be NULL: nobody will come for the reply.  Does this one not reach its client now? */
    bool (*is_lost)(const struct exchange *x);
    /* May be NULL: the client has initialised, and its transport is stored.  For channels that stay
     * and carry the transport themselves. */
    void (*initialized)(struct exchange *x, struct transport *t);
    /* May be NULL: x belongs to the channel's own session, which has this link key. */
    void (*attends)(struct exchange *x, struct str key);
    /* May be NULL: x wants the request with this id (raw bytes) cancelled, where the channel and
     * not the transport knows whose it is.  That request is not answered any more. */
    void (*cancel)(struct exchange *x, struct str id);
};
extern const struct outlet outlet_http;

/* One client message as it came. */
struct arrival {
    const struct outlet *outlet;
    void *outlet_data;            /* owned by the outlet; copied to x->outlet_data */
    struct http_request *http;    /* NULL where there is none */
    const struct http_head *head; /* where there are no headers: an empty one */
    struct arena *mem;            /* the exchange's; lives until finish() */
    struct str verb;              /* "POST", "GET", "DELETE" */
    struct str body;
    struct str server;           /* the path's; absent: all servers, … */
    struct str profile;          /* … or those of this profile */
    bool by_proxy;               /* with one: a trusted proxy sent it */
    bool is_2024;                /* on an event stream of 2024 */
    struct str endpoint;         /* "/mcp", "/mcp/files": where a transport id is valid */
    struct str path_key;         /* a credential that stood in the path; or absent */
    const struct principal *who; /* known already; NULL: to be identified */
    struct transport *transport; /* known already (a reference is taken), or NULL */
    struct str key;           /* names the session as /mcp/messages?session_id= does; or absent */
    const char *transport_id; /* what initialize gives the transport; NULL: a new one */
    struct str channel;       /* of a channel that stays: its session when nothing else names one */
    bool channel_resumes;     /* … and that of its transport */
};
void exchange_start(struct services *sv, const struct arrival *a);
/* The client went away.  finish() still follows, and sends nothing. */
void exchange_gone(struct exchange *x);
/* An HTTP request to an MCP endpoint, of a server, of a profile, or of all servers; path_key absent
 * but on /mcp/k/…, whose endpoint is the one without it. */
void exchange_start_http(struct services *sv, struct http_request *r, struct str server,
                         struct str profile, struct str path_key);

#endif
