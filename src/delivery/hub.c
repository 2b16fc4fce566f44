/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners, the sessions they listen for, and the servers they make us watch. */
#include "delivery/hub_impl.h"

#include "base/log.h"

#include <stdlib.h>

static void take_seat(struct hub *h, struct transport *t);
static void leave_seat(struct hub *h, struct transport *t);

static void on_standing(void *arg, struct transport *t, bool is_there)
{
    if (is_there)
        take_seat(arg, t);
    else
        leave_seat(arg, t);
}

struct hub *hub_new(struct loop *loop, struct streams *streams)
{
    struct hub *h = xcalloc(1, sizeof(*h));
    h->loop = loop;
    h->streams = streams;
    list_init(&h->listeners);
    list_init(&h->subscribers);
    map_init(&h->seats);
    map_init(&h->rooms);
    asks_init(h);
    streams_on_standing(streams, on_standing, h);
    return h;
}

void hub_set_upstreams(struct hub *h, struct upstreams *upstreams)
{
    h->upstreams = upstreams;
}

/* Absent: several servers are behind it, all of them or those of a profile. */
static struct str server_of(struct str endpoint)
{
    static const struct str prefix = {"/mcp/", 5};
    return str_starts(endpoint, prefix) && !str_starts(endpoint, STR("/mcp/p/"))
               ? str_n(endpoint.p + prefix.n, endpoint.n - prefix.n)
               : STR_NONE;
}

static bool concerns(struct str endpoint, struct str server)
{
    struct str own = server_of(endpoint);
    return !own.p || str_eq(own, server);
}

static struct str seat_key(const struct transport *t)
{
    return str_n((const char *)t->id_hash, sizeof(t->id_hash));
}

static void leave_room(struct hub *h, struct seat *seat)
{
    struct room *room = seat->room;
    if (!room)
        return;
    list_remove(&seat->in_room);
    seat->room = NULL;
    if (list_first(&room->seats))
        return;
    map_remove(&h->rooms, room->key);
    free((char *)room->key.p);
    free(room);
}

static void enter_room(struct hub *h, struct seat *seat)
{
    struct session *session = seat->transport->session;
    if (!session || (seat->room && str_eq(seat->room->key, session->link_key)))
        return;
    leave_room(h, seat); /* of the session before: that one has ended */
    struct room *room = map_get(&h->rooms, session->link_key);
    if (!room) {
        room = xcalloc(1, sizeof(*room));
        room->key = str_n(strndup(session->link_key.p, session->link_key.n), session->link_key.n);
        list_init(&room->seats);
        map_put(&h->rooms, room->key, room);
    }
    seat->room = room;
    list_push_front(&room->seats, &seat->in_room); /* whoever came last is surely there */
}

static void take_seat(struct hub *h, struct transport *t)
{
    struct seat *seat = map_get(&h->seats, seat_key(t));
    if (!seat) {
        seat = xcalloc(1, sizeof(*seat));
        seat->transport = t;
        list_init(&seat->in_room);
        transport_ref(t);
        map_put(&h->seats, seat_key(t), seat);
        if (h->upstreams)
            upstreams_watch(h->upstreams, server_of(t->endpoint), 1);
    }
    seat->uses++;
    enter_room(h, seat);
}

static void leave_seat(struct hub *h, struct transport *t)
{
    struct seat *seat = map_get(&h->seats, seat_key(t));
    if (!seat || --seat->uses)
        return;
    leave_room(h, seat);
    if (h->upstreams)
        upstreams_watch(h->upstreams, server_of(t->endpoint), -1);
    map_remove(&h->seats, seat_key(t));
    transport_unref(seat->transport);
    free(seat);
}

void hub_drain(struct hub *h)
{
    asks_release(h);
    h->upstreams = NULL;
}

void hub_free(struct hub *h)
{
    struct str key;
    void *seat;

    for (size_t at = 0; map_next(&h->seats, &at, &key, &seat); at = 0) {
        ((struct seat *)seat)->uses = 1;
        leave_seat(h, ((struct seat *)seat)->transport);
    }
    map_release(&h->seats);
    map_release(&h->rooms);
    free(h);
}

void hub_listen(struct hub *h, struct listener *l)
{
    transport_ref(l->transport);
    l->transport->listener = l;
    list_push(&h->listeners, &l->node);
    take_seat(h, l->transport);
}

void hub_unlisten(struct hub *h, struct listener *l)
{
    if (l->transport->listener == l)
        l->transport->listener = NULL;
    list_remove(&l->node);
    leave_seat(h, l->transport);
    transport_unref(l->transport);
    l->transport = NULL;
}

void hub_linked(struct hub *h, struct transport *t)
{
    struct seat *seat = map_get(&h->seats, seat_key(t));
    if (seat)
        enter_room(h, seat);
}

void hub_subscribe(struct hub *h, struct subscriber *s)
{
    list_push(&h->subscribers, &s->node);
    if (h->upstreams)
        upstreams_watch(h->upstreams, server_of(s->endpoint), 1);
}

void hub_unsubscribe(struct hub *h, struct subscriber *s)
{
    list_remove(&s->node);
    if (h->upstreams)
        upstreams_watch(h->upstreams, server_of(s->endpoint), -1);
}

void hub_end_subscribers(struct hub *h)
{
    for (struct list *n = list_first(&h->subscribers); n; n = list_first(&h->subscribers)) {
        struct subscriber *s = list_entry(n, struct subscriber, node);
        s->on_end(s);
    }
}

static bool wants_change(void *arg, const struct transport *t)
{
    return concerns(t->endpoint, upstream_name(arg));
}

void hub_changed(struct hub *h, struct upstream *u, enum catalog_kind kind)
{
    struct buf text;

    buf_init(&text, 1024);
    buf_addf(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"%.*s\"}",
             STR_ARG(catalog_kinds[kind].changed));
    streams_broadcast(h->streams, wants_change, u, buf_str(&text));
    list_each(&h->listeners, n)
    {
        struct listener *l = list_entry(n, struct listener, node);
        if (concerns(l->transport->endpoint, upstream_name(u)))
            l->tell(l, buf_str(&text), true);
    }
    buf_release(&text);
    list_each(&h->subscribers, n)
    {
        struct subscriber *s = list_entry(n, struct subscriber, node);
        if (s->kinds[kind] && concerns(s->endpoint, upstream_name(u)))
            s->on_changed(s, kind);
    }
}

static bool is_there(struct hub *h, const struct transport *t)
{
    struct stream *stream = streams_standalone(h->streams, t);
    return t->listener || (stream && stream_is_connected(stream));
}

static bool uses_session(void *arg, const struct transport *t)
{
    return t->session == arg;
}

bool hub_tools_changed(struct hub *h, const struct session *s, const struct transport *own)
{
    static const struct str text = {
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}", 61};

    streams_broadcast(h->streams, uses_session, (void *)s, text);
    list_each(&h->listeners, n)
    {
        struct listener *l = list_entry(n, struct listener, node);
        if (l->transport->session == s)
            l->tell(l, text, true);
    }
    return own && is_there(h, own);
}

/* The newest that is there; while none is, the newest that may come back. */
struct transport *hub_seat_for(struct hub *h, struct link *l)
{
    struct room *room = link_is_shared(l) ? NULL : map_get(&h->rooms, link_key(l));
    struct list *newest = room ? list_first(&room->seats) : NULL;

    if (!newest)
        return NULL;
    list_each(&room->seats, n)
    {
        struct transport *t = list_entry(n, struct seat, in_room)->transport;
        if (is_there(h, t))
            return t;
    }
    return list_entry(newest, struct seat, in_room)->transport;
}

void hub_tell_transport(struct hub *h, struct transport *t, struct str json, bool droppable)
{
    struct stream *stream;

    if (t->listener)
        t->listener->tell(t->listener, json, droppable);
    else if ((stream = streams_standalone(h->streams, t)))
        stream_send(stream, json, droppable ? STREAM_MAY : STREAM_MUST);
    else
        log_debug("nobody listens any more", LZ("transport", t->shown));
}

bool hub_tell(struct hub *h, struct link *l, struct str json, bool droppable)
{
    struct transport *t = hub_seat_for(h, l);
    if (t)
        hub_tell_transport(h, t, json, droppable);
    return t != NULL;
}
