/* SPDX-License-Identifier: Apache-2.0 */
/* The listeners for changes of each server's lists, and the link of our own over which an HTTP
 * server can announce changes while no session has a link open.
 *
 * Counts are kept by name, not by upstream, so a reload that replaces a server keeps its listeners.
 * The tick of the set drives everything: a watch link is opened when there are listeners, reopened
 * after 1 s … 60 s when it is lost, and ended 30 s after the last listener.  Changes during a loss
 * are not known, so the lists then count as stale. */
#include "upstream/upstream_impl.h"

#include "base/log.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define AGAIN_FIRST_MS 1000
#define AGAIN_LAST_MS (60 * 1000)
#define LINGER_MS (30 * 1000)

struct watch {
    struct str name; /* stored behind this struct */
    unsigned listeners;
};

void watches_init(struct upstreams *s)
{
    map_init(&s->watches);
    list_init(&s->watch_wants);
    s->watches_all = 0;
}

void watches_release(struct upstreams *s)
{
    struct str name;
    void *value;

    for (size_t at = 0; map_next(&s->watches, &at, &name, &value);)
        free(value);
    map_release(&s->watches);
}

static struct watch *watch_of(struct upstreams *s, struct str name)
{
    struct watch *w = map_get(&s->watches, name);
    if (w)
        return w;
    w = xcalloc(1, sizeof(*w) + name.n);
    w->name = str_n(memcpy(w + 1, name.p, name.n), name.n);
    map_put(&s->watches, w->name, w);
    return w;
}

static unsigned counted(unsigned count, int by)
{
    assert(by > 0 || count >= (unsigned)-by);
    return count + (unsigned)by;
}

static void watch_now(struct upstreams *s)
{
    int64_t now = loop_now_ms(s->loop);
    list_each(&s->all, n)
    {
        struct upstream *u = list_entry(n, struct upstream, node);
        if (upstream_is_watched(u))
            watch_tick(u, now);
    }
}

void upstreams_watch(struct upstreams *s, struct str server, int by)
{
    if (!server.p) {
        s->watches_all = counted(s->watches_all, by);
    } else {
        struct watch *w = watch_of(s, server);
        w->listeners = counted(w->listeners, by);
        if (!w->listeners) {
            map_remove(&s->watches, w->name);
            free(w);
        }
    }
    if (by > 0)
        watch_now(s);
}

bool upstream_is_watched(const struct upstream *u)
{
    return u->set->watches_all || map_get(&u->set->watches, u->config->name);
}

/* The watch link of one upstream. */
struct watcher {
    struct upstream *up;
    struct link_wait wait;
    bool is_opening;
    uint64_t generation;   /* of its link; 0: no link */
    struct pending listen; /* modern: the subscription */
    bool is_listening, is_acknowledged;
    bool was_lost;
    /* The catalog's filled_ms when the server refused to notify; 0: it did not refuse. */
    int64_t deaf_since_ms;
    int64_t last_event_ms; /* when it last had a listener */
    int64_t began_ms, next_ms;
    unsigned failures;
};

static unsigned announced(const struct upstream *u);

/* True when the server is watched, or when there is nothing to wait for. */
static bool is_watched(const struct upstream *u)
{
    const struct watcher *w = u->watcher;
    struct link *l;

    if (u->ops != &upstream_remote || !w || !u->catalog || !announced(u) || w->failures ||
        w->deaf_since_ms == u->catalog->filled_ms)
        return true;
    l = w->generation ? map_get(&u->links, STR(LINK_KEY_WATCH)) : NULL;
    return l && (!mcp_era(link_era(l))->has_listen || w->is_acknowledged);
}

static bool all_watched(struct upstreams *s, struct str server)
{
    list_each(&s->all, n)
    {
        struct upstream *u = list_entry(n, struct upstream, node);
        if ((!server.p || str_eq(server, u->config->name)) && !is_watched(u))
            return false;
    }
    return true;
}

/* A watch began or failed.  At the end of the turn, calls every waiter whose servers are
 * watched. */
static void on_notify_watched(struct loop_task *task)
{
    struct upstreams *s = container_of(task, struct upstreams, notify_watched);
    struct list wants;

    s->notify_watched_queued = false;
    list_init(&wants);
    list_move_all(&wants, &s->watch_wants);
    for (struct list *n = list_pop(&wants); n; n = list_pop(&wants)) {
        struct watch_want *w = list_entry(n, struct watch_want, node);
        if (all_watched(s, w->server))
            w->done(w);
        else
            list_push(&s->watch_wants, &w->node);
    }
}

static void notify_watched_later(struct upstreams *s)
{
    if (s->notify_watched_queued || list_empty(&s->watch_wants))
        return;
    s->notify_watched_queued = true;
    s->notify_watched.fn = on_notify_watched;
    loop_defer(s->loop, &s->notify_watched);
}

bool upstreams_watched(struct upstreams *s, struct str server, struct watch_want *w)
{
    list_init(&w->node);
    w->server = server;
    if (all_watched(s, server))
        return true;
    list_push(&s->watch_wants, &w->node);
    return false;
}

void watch_want_cancel(struct watch_want *w)
{
    list_remove(&w->node);
}

static void again_later(struct watcher *w)
{
    int64_t now = loop_now_ms(w->up->set->loop);

    if (now - w->began_ms > AGAIN_LAST_MS)
        w->failures = 0;
    int64_t wait = AGAIN_FIRST_MS << (w->failures < 6 ? w->failures : 6);
    w->next_ms = now + (wait < AGAIN_LAST_MS ? wait : AGAIN_LAST_MS);
    w->failures++;
    w->was_lost = true;
    notify_watched_later(w->up->set);
}

static unsigned announced(const struct upstream *u)
{
    unsigned kinds = 0;
    for (unsigned kind = 0; kind < CATALOG_KINDS; kind++)
        if (catalog_announces(u->catalog, kind))
            kinds |= 1u << kind;
    return kinds;
}

static bool on_announcement(struct pending *p, const struct mcp_message *m)
{
    struct watcher *w = container_of(p, struct watcher, listen);

    for (unsigned kind = 0; kind < CATALOG_KINDS; kind++)
        if (m->kind == MCP_NOTIFICATION && str_eq(m->method, catalog_kinds[kind].changed)) {
            upstream_changed(w->up, kind);
            return true;
        }
    if (str_eq(m->method, STR("notifications/subscriptions/acknowledged"))) {
        w->is_acknowledged = true;
        notify_watched_later(w->up->set);
    }
    return m->kind == MCP_NOTIFICATION;
}

static void on_listen_over(struct pending *p, struct mcp_message *m, struct arena *mem)
{
    struct watcher *w = container_of(p, struct watcher, listen);

    w->is_listening = false;
    if (m->error && w->up->catalog) {
        log_debug("a server does not take subscriptions", LS("server", w->up->config->name));
        w->deaf_since_ms = w->up->catalog->filled_ms;
    }
    again_later(w);
    arena_free(mem);
}

static void on_listen_fail(struct pending *p, const struct error *err unused_arg,
                           bool left unused_arg)
{
    struct watcher *w = container_of(p, struct watcher, listen);
    w->is_listening = false;
    again_later(w);
}

bool link_subscribe(struct link *l, uint64_t id, struct pending *p)
{
    struct exec token = exec_housekeeping(EXEC_SUBSCRIBE);
    unsigned kinds = announced(l->up);
    struct error ignored;
    char text[1024];

    int n =
        snprintf(text, sizeof(text),
                 "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"subscriptions/listen\","
                 "\"params\":{\"notifications\":{\"toolsListChanged\":%s,"
                 "\"promptsListChanged\":%s,\"resourcesListChanged\":%s}," MCP_OUR_ENVELOPE "}}",
                 (unsigned long long)id, kinds & 1u << CATALOG_TOOLS ? "true" : "false",
                 kinds & 1u << CATALOG_PROMPTS ? "true" : "false",
                 kinds & 1u << CATALOG_RESOURCES ? "true" : "false");
    struct outgoing m = {.method = STR("subscriptions/listen"), .text = str_n(text, (size_t)n)};
    return upstream_send(l, &token, p, &m, &ignored);
}

/* Subscribes at modern servers; legacy servers notify without it. */
static void listen_on(struct watcher *w, struct link *l)
{
    w->listen = (struct pending){
        .id = upstream_next_id(w->up->set),
        .patient = true,
        .on_reply = on_listen_over,
        .on_fail = on_listen_fail,
        .on_message = on_announcement,
    };
    w->is_acknowledged = false;
    w->is_listening = link_subscribe(l, w->listen.id, &w->listen);
    if (!w->is_listening)
        again_later(w);
}

static void on_link(struct link_wait *wait, struct link *l, const struct error *err)
{
    struct watcher *w = container_of(wait, struct watcher, wait);

    w->is_opening = false;
    w->began_ms = loop_now_ms(w->up->set->loop);
    if (err) {
        again_later(w);
        return;
    }
    w->generation = link_generation(l);
    if (w->was_lost && w->up->catalog)
        w->up->catalog_stale |= announced(w->up);
    if (mcp_era(link_era(l))->has_listen && w->up->catalog)
        listen_on(w, l);
    notify_watched_later(w->up->set);
}

static void open_watch(struct watcher *w)
{
    struct link_identity who = {.key = STR(LINK_KEY_WATCH), .owner = STR(LINK_KEY_WATCH)};
    struct link *l;
    struct error err;

    w->wait.done = on_link;
    if (!upstream_link(w->up, &who, &w->wait, &l, &err))
        again_later(w);
    else if (l)
        on_link(&w->wait, l, NULL);
    else
        w->is_opening = true;
}

/* True when a server with listeners needs a watch link now. */
static bool wants_link(struct watcher *w, int64_t now)
{
    struct upstream *u = w->up;
    struct link *l = upstream_find_link(u, STR(LINK_KEY_WATCH), w->generation);

    if (w->generation && !l) {
        w->generation = 0;
        again_later(w);
    }
    if (w->is_opening || now < w->next_ms ||
        (l && (!mcp_era(link_era(l))->has_listen || w->is_listening)))
        return false;
    if (!u->catalog && !u->probe && now >= u->retry_at_ms)
        probe_start(u);
    return u->catalog && w->deaf_since_ms != u->catalog->filled_ms && announced(u);
}

void watch_tick(struct upstream *u, int64_t now)
{
    bool watched = upstream_is_watched(u);

    if (u->ops != &upstream_remote || (!watched && !u->watcher))
        return;
    if (!u->watcher) {
        u->watcher = xcalloc(1, sizeof(*u->watcher));
        u->watcher->up = u;
        list_init(&u->watcher->wait.link);
    }
    if (watched) {
        u->watcher->last_event_ms = now;
        if (wants_link(u->watcher, now))
            open_watch(u->watcher);
    } else if (now - u->watcher->last_event_ms >= LINGER_MS) {
        watch_stop(u);
    }
}

void watch_stop(struct upstream *u)
{
    static const struct error quiet = {.code = ERR_NONE};
    struct link *l = map_get(&u->links, STR(LINK_KEY_WATCH));

    if (u->watcher && u->watcher->is_opening) {
        link_wait_cancel(&u->watcher->wait);
        u->watcher->is_opening = false;
    }
    if (l)
        link_end(l, &quiet);
    if (u->watcher) {
        u->watcher->generation = 0;
        u->watcher->failures = 0;
        u->watcher->next_ms = 0;
    }
}

void watch_is_deaf(struct link *l)
{
    struct upstream *u = l->up;

    if (!u->watcher || !u->catalog || !str_eq(l->key, STR(LINK_KEY_WATCH)))
        return;
    u->watcher->deaf_since_ms = u->catalog->filled_ms;
    watch_stop(u);
    notify_watched_later(u->set);
}
