/* SPDX-License-Identifier: Apache-2.0 */
/* The hub: who hears what an upstream says outside of a client's own request, and the ledger of
 * what servers have asked their clients.
 *
 * A client behind a transport is told through its listener when it has one (a pipe, a stream of
 * 2024), else through its standalone stream.  Each message goes to one place only, but for changed
 * lists, which concern everybody who sees that server where it listens.  Loop thread only. */
#ifndef HOLDFAST_DELIVERY_HUB_H
#define HOLDFAST_DELIVERY_HUB_H

#include "base/list.h"
#include "delivery/stream.h"
#include "mcp/message.h"
#include "session/session.h"
#include "upstream/upstream.h"

struct hub;

struct hub *hub_new(struct loop *loop, struct streams *streams) must_check;
void hub_set_upstreams(struct hub *h,
                       struct upstreams *upstreams); /* once, after upstreams_new() */
void hub_drain(struct hub *h); /* before the upstreams go: questions are dropped */
void hub_free(struct hub *h);  /* after the streams, before the sessions */

/* What decides which lists a listener may see: the values of the request that opened its stream. */
struct listener_scope {
    struct str endpoint; /* "/mcp", "/mcp/{server}" or "/mcp/p/{profile}" */
    struct principal who;
    struct str client;      /* mcp-client-id; absent: none, or nothing hangs on it */
    struct str permissions; /* mcp-toolset-permissions of a trusted proxy; absent: none */
    bool is_modern;
};
/* The visibility filter: whether a listener of this scope may see the list of this kind of this
 * server.  u NULL: whether it may see the toolsets that its session enables.  s: the session of the
 * listener, or NULL. */
typedef bool hub_may_see_fn(void *arg, const struct listener_scope *a, const struct session *s,
                            const struct upstream *u, enum catalog_kind kind);
void hub_set_visibility(struct hub *h, hub_may_see_fn *may_see, void *arg); /* once */
/* Sets the scope of the transport that listens; copied.  A transport without a scope may see
 * everything of its endpoint. */
void hub_set_listener_scope(struct hub *h, const struct transport *t,
                            const struct listener_scope *a);

/* Somebody who is always there to be told: embedded in a pipe or a 2024 stream. */
struct listener {
    struct list node;
    struct transport *transport; /* a reference, held while it listens */
    /* One JSON-RPC message; droppable: it may be left out when the reader is slow. */
    void (*tell)(struct listener *l, struct str json, bool droppable);
};
void hub_listen(struct hub *h, struct listener *l);
void hub_unlisten(struct hub *h, struct listener *l);
/* The transport has a session now: what that session's links say is for it. */
void hub_linked(struct hub *h, struct transport *t);
/* A channel that stays uses the session with this link key without a transport; each is followed by
 * one hub_unattend(). */
void hub_attend(struct hub *h, struct str key);
void hub_unattend(struct hub *h, struct str key);
/* Is a client of that session connected?  or_expected: its stream may have broken less than five
 * minutes ago.  For "all": is there any? */
bool hub_is_attended(const struct hub *h, struct str key, bool or_expected);

/* A stream of changes that a modern client asked for: embedded in its exchange. */
struct subscriber {
    struct list node;
    struct listener_scope scope; /* borrowed */
    bool kinds[CATALOG_KINDS];
    void (*on_changed)(struct subscriber *s, enum catalog_kind kind);
    void (*on_end)(struct subscriber *s); /* we stop: it unsubscribes and takes its leave */
};
void hub_subscribe(struct hub *h, struct subscriber *s);
void hub_unsubscribe(struct hub *h, struct subscriber *s);
void hub_end_subscribers(struct hub *h);

/* A list changed: everybody who sees it is told. */
void hub_changed(struct hub *h, struct upstream *u, enum catalog_kind kind);
/* Tools were enabled or disabled in a session: whoever uses it where that counts is told.  false:
 * `own`, the transport that did it, has nobody who listens. */
must_check bool hub_tools_changed(struct hub *h, const struct session *s,
                                  const struct transport *own);
/* A message of this link to the client of its session; false: nobody listens there. */
must_check bool hub_tell(struct hub *h, struct link *l, struct str json, bool droppable);

/* The same for a list of its own that changed, to one who sees it. */
must_check bool hub_tell_change(struct hub *h, struct link *l, enum catalog_kind kind,
                                struct str json);

/* A server's request, on its way to the client behind `t`: entered in the ledger under an id of
 * ours and written to `out`.  about: the call it came with, whose clock stops meanwhile, or NULL.
 * NULL: this client has 64 questions open already, or we stop, and the server was told so. */
struct ask;
must_check struct ask *hub_ask(struct hub *h, struct link *l, struct pending *about,
                               const struct mcp_message *m, struct transport *t, struct buf *out);
void hub_unask(struct ask *a); /* it could not be sent */
/* The same to whoever listens for the link's session; false: nobody does. */
must_check bool hub_ask_session(struct hub *h, struct link *l, const struct mcp_message *m);
/* The client's answer: handed to the server that asked.  Unknown and foreign ids are dropped. */
void hub_answer(struct hub *h, const struct transport *t, const struct mcp_message *m);
/* We stop: no client can reach us any more with its answer, and the servers that asked are told. */
void hub_end_asks(struct hub *h);
/* Its client will not answer any more (DELETE): the servers that asked are told. */
void hub_transport_ended(struct hub *h, const struct transport *t);
/* The server takes a question back. */
void hub_ask_cancelled(struct hub *h, struct link *l, const struct mcp_message *m);
/* A client's notification about a question (progress) goes to the server that asked it. */
void hub_progress(struct hub *h, const struct transport *t, const struct mcp_message *m);

#endif
