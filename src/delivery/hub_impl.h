/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by hub.c (listeners) and ask.c (questions). */
#ifndef HOLDFAST_DELIVERY_HUB_IMPL_H
#define HOLDFAST_DELIVERY_HUB_IMPL_H

#include "base/map.h"
#include "delivery/hub.h"
#include "io/deadline.h"

struct hub {
    struct loop *loop;
    struct streams *streams;
    struct upstreams *upstreams;
    hub_may_see_fn *may_see; /* NULL: everything of the endpoint is visible */
    void *may_see_arg;
    struct list listeners;   /* struct listener */
    struct list subscribers; /* struct subscriber */
    struct map seats;        /* transport id_hash → struct seat */
    struct map rooms;        /* a session's link key → struct room */
    struct map attended;     /* likewise → struct attended, for channels without a transport */
    struct map asks;         /* our id → struct ask */
    struct list ask_list;
    uint64_t next_ask;
    bool is_stopping;
    struct deadline_class ask_deadlines;
};

/* A client that listens; in a room once its transport has a session. */
struct seat {
    struct transport *transport; /* a reference */
    unsigned uses;               /* by a listener or a stream; rarely more than one */
    struct room *room;
    struct list in_room;
    struct arena *mem;            /* memory of `scope`; NULL: no scope */
    struct listener_scope *scope; /* NULL: it may see everything of its endpoint */
};

/* A session with listeners. */
struct room {
    struct str key; /* owned */
    struct list seats;
};

/* The channels that use a session. */
struct attended {
    unsigned channels;
    struct str key; /* stored behind this struct */
};

/* The transport that gets the messages of this link; NULL: none. */
struct transport *hub_seat_for(struct hub *h, struct link *l);
void hub_notify_transport(struct hub *h, struct transport *t, struct str json, bool droppable);
void asks_init(struct hub *h);
void asks_release(struct hub *h);

#endif
