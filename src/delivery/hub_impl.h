/* SPDX-License-Identifier: Apache-2.0 */
/* What hub.c (listeners) and ask.c (questions) share. */
#ifndef HOLDFAST_DELIVERY_HUB_IMPL_H
#define HOLDFAST_DELIVERY_HUB_IMPL_H

#include "base/map.h"
#include "delivery/hub.h"
#include "io/deadline.h"

struct hub {
    struct loop *loop;
    struct streams *streams;
    struct upstreams *upstreams;
    hub_may_see_fn *may_see; /* NULL: everything that its endpoint has */
    void *may_see_arg;
    struct list listeners;   /* struct listener */
    struct list subscribers; /* struct subscriber */
    struct map seats;        /* transport id_hash → struct seat */
    struct map rooms;        /* a session's link key → struct room */
    struct map attended;     /* likewise → struct attended, of channels without a transport */
    struct map asks;         /* our id → struct ask */
    struct list ask_list;
    uint64_t next_ask;
    bool is_stopping;
    struct deadline_class ask_deadlines;
};

/* A client that listens; in a room once its transport has a session. */
struct seat {
    struct transport *transport; /* a reference */
    unsigned uses;               /* a listener, a stream: at most a few for a moment */
    struct room *room;
    struct list in_room;
    struct arena *mem;            /* of the next; NULL: nothing is hidden from it */
    struct listener_scope *scope; /* of the listener */
};

/* A session somebody listens for. */
struct room {
    struct str key; /* owned */
    struct list seats;
};

/* Channels that use a session. */
struct attended {
    unsigned channels;
    struct str key; /* behind it */
};

/* Who is told for this link; NULL: nobody. */
struct transport *hub_seat_for(struct hub *h, struct link *l);
void hub_tell_transport(struct hub *h, struct transport *t, struct str json, bool droppable);
void asks_init(struct hub *h);
void asks_release(struct hub *h);

#endif
