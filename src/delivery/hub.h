/* SPDX-License-Identifier: Apache-2.0 */
/* The hub: delivers the messages that an upstream sends outside of a client's own request, and
 * keeps the ledger of questions that servers have asked their clients.
 *
 * A client behind a transport is reached through its listener if it has one (a pipe, a stream of
 * 2024), else through its standalone stream.  Each message goes to one place only, except changed
 * lists, which go to every listener that may see that server.  Loop thread only. */
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
void hub_drain(struct hub *h); /* before the upstreams are freed: drops all questions */
void hub_free(struct hub *h);  /* after the streams, before the sessions */

/* The values that decide which lists a listener may see: those of the request that opened its
 * stream. */
struct listener_scope {
    struct str endpoint; /* "/mcp", "/mcp/{server}" or "/mcp/p/{profile}" */
    struct principal who;
    struct str client;       /* mcp-client-id; absent when not sent or not needed */
    struct str permissions;  /* mcp-toolset-permissions from a trusted proxy; or absent */
    bool lists_all_toolsets; /* on a dynamic profile, also the toolsets that it may enable */
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

/* A listener that is always connected: embedded in a pipe or a 2024 stream. */
struct listener {
    struct list node;
    struct transport *transport; /* a reference, held while it listens */
    /* One JSON-RPC message; droppable: it may be dropped when the reader is slow. */
    void (*notify)(struct listener *l, struct str json, bool droppable);
};
void hub_listen(struct hub *h, struct listener *l);
void hub_unlisten(struct hub *h, struct listener *l);
/* The transport has a session now: it gets the messages of that session's links. */
void hub_linked(struct hub *h, struct transport *t);
/* The session with this link key has another owner: no transport gets its messages any more, until
 * hub_linked(). */
void hub_leave(struct hub *h, struct str key);
/* A channel that stays open uses the session with this link key without a transport.  Each call is
 * followed by one hub_unattend(). */
void hub_attend(struct hub *h, struct str key);
void hub_unattend(struct hub *h, struct str key);
/* True when a client of that session is connected.  or_expected: also when its stream broke less
 * than five minutes ago.  For "all": true when any session has a client. */
bool hub_is_attended(const struct hub *h, struct str key, bool or_expected);

/* A stream of changes that a modern client subscribed to: embedded in its exchange. */
struct subscriber {
    struct list node;
    struct listener_scope scope; /* borrowed */
    bool kinds[CATALOG_KINDS];
    void (*on_changed)(struct subscriber *s, enum catalog_kind kind);
    /* Holdfast stops: the subscriber unsubscribes and ends its stream. */
    void (*on_end)(struct subscriber *s);
};
void hub_subscribe(struct hub *h, struct subscriber *s);
void hub_unsubscribe(struct hub *h, struct subscriber *s);
void hub_end_subscribers(struct hub *h);

/* A list changed: notifies every listener that may see it. */
void hub_changed(struct hub *h, struct upstream *u, enum catalog_kind kind);
/* Tools were enabled or disabled in a session: notifies its transports on endpoints where that
 * matters.  False: `own`, the transport that made the change, has no listener. */
must_check bool hub_tools_changed(struct hub *h, const struct session *s,
                                  const struct transport *own);
/* Sends a message of this link to the client of its session; false: the session has no listener. */
must_check bool hub_notify(struct hub *h, struct link *l, struct str json, bool droppable);

/* The same for a change of the session's own list, to a listener that may see it. */
must_check bool hub_notify_change(struct hub *h, struct link *l, enum catalog_kind kind,
                                  struct str json);

/* Forwards a server's request to the client behind `t`: enters it in the ledger under an id of ours
 * and writes it to `out`.  about: the call it came with, or NULL; its timeout stops meanwhile.
 * Returns NULL when this client has 64 questions open already or Holdfast stops; the server then
 * got an error. */
struct ask;
must_check struct ask *hub_ask(struct hub *h, struct link *l, struct pending *about,
                               const struct mcp_message *m, struct transport *t, struct buf *out);
void hub_ask_drop(struct ask *a); /* the question could not be sent */
/* The same to a listener for the link's session; false: the session has none. */
must_check bool hub_ask_session(struct hub *h, struct link *l, const struct mcp_message *m);
/* Hands the client's answer to the server that asked.  Answers with unknown ids, or from another
 * transport, are dropped. */
void hub_answer(struct hub *h, const struct transport *t, const struct mcp_message *m);
/* Holdfast stops, and clients cannot answer any more: the servers that asked get an error. */
void hub_end_asks(struct hub *h);
/* The transport's client will not answer any more (DELETE): the servers that asked get an error. */
void hub_transport_ended(struct hub *h, const struct transport *t);
/* The server withdraws a question. */
void hub_ask_cancelled(struct hub *h, struct link *l, const struct mcp_message *m);
/* Forwards a client's progress on a question to the server that asked it. */
void hub_progress(struct hub *h, const struct transport *t, const struct mcp_message *m);

#endif
