/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners, the sessions they listen for, and the servers that are watched for them. */
#include "delivery/hub_impl.h"

#include "base/log.h"

#include <stdlib.h>

#define SCOPE_BYTES (1u << 20) /* far more than scopes and two headers need */

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
    map_init(&h->attended);
    asks_init(h);
    streams_on_standing(streams, on_standing, h);
    return h;
}

void hub_set_upstreams(struct hub *h, struct upstreams *upstreams)
{
    h->upstreams = upstreams;
}

/* The server of the endpoint; absent for an endpoint of several servers. */
static struct str server_of(struct str endpoint)
{
    static const struct str prefix = {"/mcp/", 5};
    return str_starts(endpoint, prefix) && !str_starts(endpoint, STR("/mcp/p/"))
               ? str_n(endpoint.p + prefix.n, endpoint.n - prefix.n)
               : STR_NONE;
}

void hub_set_visibility(struct hub *h, hub_may_see_fn *may_see, void *arg)
{
    h->may_see = may_see;
    h->may_see_arg = arg;
}

static struct str seat_key(const struct transport *t)
{
    return str_n((const char *)t->id_hash, sizeof(t->id_hash));
}

static bool may_see(struct hub *h, const struct listener_scope *a, const struct session *s,
                    const struct upstream *u, enum catalog_kind kind)
{
    struct str own = server_of(a->endpoint);

    if (u && own.p && !str_eq(own, upstream_name(u)))
        return false;
    return !h->may_see || h->may_see(h->may_see_arg, a, s, u, kind);
}

static bool transport_may_see(struct hub *h, const struct transport *t, const struct upstream *u,
                              enum catalog_kind kind)
{
    const struct seat *seat = map_get(&h->seats, seat_key(t));
    const struct listener_scope unlimited = {.endpoint = t->endpoint};

    return may_see(h, seat && seat->scope ? seat->scope : &unlimited, t->session, u, kind);
}

/* Most listeners have no scope, and cost no memory. */
void hub_set_listener_scope(struct hub *h, const struct transport *t,
                            const struct listener_scope *a)
{
    struct seat *seat = map_get(&h->seats, seat_key(t));

    if (!seat)
        return;
    arena_free(seat->mem);
    seat->mem = NULL;
    seat->scope = NULL;
    if (!a->who.scopes && !a->client.p && !a->permissions.p)
        return;
    seat->mem = arena_new(SCOPE_BYTES);
    seat->scope = arena_new_of(seat->mem, struct listener_scope);
    *seat->scope = (struct listener_scope){
        .endpoint = t->endpoint,
        .who = principal_dup(&a->who, seat->mem),
        .client = arena_dup(seat->mem, a->client),
        .permissions = arena_dup(seat->mem, a->permissions),
        .lists_all_toolsets = a->lists_all_toolsets,
    };
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
    leave_room(h, seat); /* of the previous session, which has ended */
    struct room *room = map_get(&h->rooms, session->link_key);
    if (!room) {
        room = xcalloc(1, sizeof(*room));
        room->key = str_n(strndup(session->link_key.p, session->link_key.n), session->link_key.n);
        list_init(&room->seats);
        map_put(&h->rooms, room->key, room);
    }
    seat->room = room;
    /* The newest is the most likely to be connected. */
    list_push_front(&room->seats, &seat->in_room);
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
    arena_free(seat->mem);
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
    for (size_t at = 0; map_next(&h->attended, &at, &key, &seat);)
        free(seat);
    map_release(&h->attended);
    free(h);
}

void hub_attend(struct hub *h, struct str key)
{
    struct attended *a = map_get(&h->attended, key);

    if (!a) {
        a = xcalloc(1, sizeof(*a) + key.n);
        a->key = str_n(memcpy(a + 1, key.p, key.n), key.n);
        map_put(&h->attended, a->key, a);
    }
    a->channels++;
}

void hub_unattend(struct hub *h, struct str key)
{
    struct attended *a = map_get(&h->attended, key);

    if (!a || --a->channels)
        return;
    map_remove(&h->attended, a->key);
    free(a);
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

void hub_leave(struct hub *h, struct str key)
{
    struct room *room;

    while ((room = map_get(&h->rooms, key)))
        leave_room(h, list_entry(list_first(&room->seats), struct seat, in_room));
}

void hub_subscribe(struct hub *h, struct subscriber *s)
{
    list_push(&h->subscribers, &s->node);
    if (h->upstreams)
        upstreams_watch(h->upstreams, server_of(s->scope.endpoint), 1);
}

void hub_unsubscribe(struct hub *h, struct subscriber *s)
{
    list_remove(&s->node);
    if (h->upstreams)
        upstreams_watch(h->upstreams, server_of(s->scope.endpoint), -1);
}

void hub_end_subscribers(struct hub *h)
{
    for (struct list *n = list_first(&h->subscribers); n; n = list_first(&h->subscribers)) {
        struct subscriber *s = list_entry(n, struct subscriber, node);
        s->on_end(s);
    }
}

/* A change, with the transports that it concerns. */
struct change {
    struct hub *hub;
    const struct session *session; /* only transports of this session; NULL: all */
    const struct upstream *up;     /* NULL: the toolsets of the session changed */
    enum catalog_kind kind;
};

static bool wants_change(void *arg, const struct transport *t)
{
    const struct change *c = arg;

    return (!c->session || t->session == c->session) &&
           transport_may_see(c->hub, t, c->up, c->kind);
}

static void notify_transports(struct change *c)
{
    struct buf text;

    buf_init(&text, 1024);
    buf_addf(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"%.*s\"}",
             STR_ARG(catalog_kinds[c->kind].changed));
    streams_broadcast(c->hub->streams, wants_change, c, buf_str(&text));
    list_each(&c->hub->listeners, n)
    {
        struct listener *l = list_entry(n, struct listener, node);
        if (wants_change(c, l->transport))
            l->notify(l, buf_str(&text), true);
    }
    buf_release(&text);
}

void hub_changed(struct hub *h, struct upstream *u, enum catalog_kind kind)
{
    struct change change = {.hub = h, .up = u, .kind = kind};

    notify_transports(&change);
    list_each(&h->subscribers, n)
    {
        struct subscriber *s = list_entry(n, struct subscriber, node);
        if (s->kinds[kind] && may_see(h, &s->scope, NULL, u, kind))
            s->on_changed(s, kind);
    }
}

static bool is_there(const struct hub *h, const struct transport *t)
{
    struct stream *stream = streams_standalone(h->streams, t);
    return t->listener || (stream && stream_is_connected(stream));
}

bool hub_is_attended(const struct hub *h, struct str key, bool or_expected)
{
    const struct room *room = map_get(&h->rooms, key);

    if (str_eq(key, STR("all")))
        return h->rooms.n || h->attended.n;
    if (map_get(&h->attended, key) || (room && or_expected))
        return true;
    if (room)
        list_each(&room->seats, n)
        {
            if (is_there(h, list_entry(n, struct seat, in_room)->transport))
                return true;
        }
    return false;
}

bool hub_tools_changed(struct hub *h, const struct session *s, const struct transport *own)
{
    struct change change = {.hub = h, .session = s, .kind = CATALOG_TOOLS};

    notify_transports(&change);
    return own && is_there(h, own);
}

/* The newest connected transport; without one, the newest that may come back.  c: only transports
 * that want this change; NULL: any. */
static struct transport *seat_for(struct hub *h, struct link *l, struct change *c)
{
    struct room *room = link_is_shared(l) ? NULL : map_get(&h->rooms, link_key(l));
    struct transport *newest = NULL;

    if (!room)
        return NULL;
    list_each(&room->seats, n)
    {
        struct transport *t = list_entry(n, struct seat, in_room)->transport;
        if (c && !wants_change(c, t))
            continue;
        if (is_there(h, t))
            return t;
        if (!newest)
            newest = t;
    }
    return newest;
}

struct transport *hub_seat_for(struct hub *h, struct link *l)
{
    return seat_for(h, l, NULL);
}

void hub_notify_transport(struct hub *h, struct transport *t, struct str json, bool droppable)
{
    struct stream *stream;

    if (t->listener)
        t->listener->notify(t->listener, json, droppable);
    else if ((stream = streams_standalone(h->streams, t)))
        stream_send(stream, json, droppable ? STREAM_MAY : STREAM_MUST);
    else
        log_debug("the last listener of a transport has left", LZ("transport", t->shown));
}

bool hub_notify(struct hub *h, struct link *l, struct str json, bool droppable)
{
    struct transport *t = hub_seat_for(h, l);
    if (t)
        hub_notify_transport(h, t, json, droppable);
    return t != NULL;
}

bool hub_notify_change(struct hub *h, struct link *l, enum catalog_kind kind, struct str json)
{
    struct change change = {.hub = h, .up = link_upstream(l), .kind = kind};
    struct transport *t = seat_for(h, l, &change);
    if (t)
        hub_notify_transport(h, t, json, false);
    return t != NULL;
}
