/* SPDX-License-Identifier: Apache-2.0 */
/* A served recording is a set of private upstreams around built-in servers.  Their names are random,
 * so that nobody mistakes one for the server that it stands in for.  The memory is freed with the
 * last of the upstreams: a call may hold one for a while. */
#include "replay/serve.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "crypto/hash.h"
#include "identity/scopes.h"
#include "replay/impl.h"

#include <stdlib.h>

bool served_take_room(struct replays *home, struct str tenant, struct served_room *room,
                      struct error *err)
{
    unsigned n = 0, of_tenant = 0;

    list_each(&home->served, node)
    {
        const struct served *s = list_entry(node, struct served, node);
        of_tenant += str_eq(s->who.tenant, tenant);
        n++;
    }
    list_each(&home->rooms, node)
    {
        const struct served_room *r = list_entry(node, struct served_room, node);
        of_tenant += str_eq(r->tenant, tenant);
        n++;
    }
    if (of_tenant < SERVED_PER_TENANT && n < SERVED_PER_NODE) {
        room->tenant = tenant;
        list_push(&home->rooms, &room->node);
        return true;
    }
    return error_set(err, ERR_LIMIT,
                     "%u recordings are served already or being read (at most %d of a tenant and "
                     "%d in all); end "
                     "one with DELETE",
                     of_tenant < SERVED_PER_TENANT ? n : of_tenant, SERVED_PER_TENANT,
                     SERVED_PER_NODE);
}

void served_give_room(struct served_room *room)
{
    if (room->node.next)
        list_remove(&room->node);
}

struct served *served_find(const struct replays *home, const struct principal *who,
                           struct str origin)
{
    list_each(&home->served, node)
    {
        struct served *s = list_entry(node, struct served, node);
        if (str_eq(s->origin, origin) && str_eq(s->who.tenant, who->tenant) &&
            str_eq(s->who.owner, who->owner))
            return s;
    }
    return NULL;
}

/* Takes it out of the list. */
static void forget(struct served *s)
{
    struct replays *home = s->home;

    list_remove(&s->node);
    if (list_empty(&home->served))
        audit_unsubscribe(home->sv->audit, &home->erasures);
}

/* A person is erased: a served recording may hold what is removed now. */
static void on_events(struct audit_subscriber *subscriber, const struct event_row *rows, size_t n)
{
    struct replays *home = container_of(subscriber, struct replays, erasures);

    for (size_t i = 0; i < n; i++) {
        if (rows[i].kind != EVENT_SYSTEM || !str_eq(rows[i].method, STR("user/erase")))
            continue;
        list_each(&home->served, node)
        {
            struct served *s = list_entry(node, struct served, node);
            if (str_eq(s->who.tenant, rows[i].tenant))
                served_end(s);
        }
    }
}

static void on_freed(void *arg)
{
    struct served *s = arg;

    if (--s->n_up)
        return;
    if (!list_empty(&s->node)) /* a stop */
        forget(s);
    for (size_t i = 0; i < s->servers->n; i++)
        builtin_unregister(&s->servers->list[i].builtin);
    loop_timer_free(s->expiry);
    mock_servers_free(s->servers);
    mock_free(s->mock);
    arena_free(s->mem);
}

void served_end(struct served *s)
{
    size_t n = s->servers->n;
    struct upstream **all = s->upstreams;
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct upstream **copy = arena_zalloc(mem, (n + 1) * sizeof(struct upstream *));

    forget(s);
    loop_timer_stop(s->expiry);
    memcpy(copy, all, n * sizeof(struct upstream *));
    for (size_t i = 0; i < n; i++)
        upstream_end_private(copy[i]); /* the last one may free `s` */
    arena_free(mem);
}

static void on_expired(void *arg)
{
    struct served *s = arg;

    log_info("a recording is not served any more: its time is over", LS("session", s->origin));
    served_end(s);
}

static void on_answered(void *arg, const struct mock_answered *a)
{
    struct served *s = arg;

    s->counts[a->rule]++;
}

/* The definitions as the servers offer them now. */
static void define(struct served *s)
{
    for (size_t i = 0; i < s->mock->n_tools; i++) {
        struct mock_tool *t = &s->mock->tools[i];
        struct upstream *up = upstreams_find(s->home->sv->upstreams, t->server);
        struct catalog *c =
            up && principal_may_use_tool(&s->who, t->server, t->name) ? upstream_known(up) : NULL;
        const struct catalog_item *item = c ? catalog_tool(c, t->name) : NULL;
        if (item)
            t->definition = arena_dup(s->mem, catalog_shown(item));
    }
}

static void name_servers(struct served *s)
{
    uint8_t bytes[4];
    char hex[2 * sizeof(bytes) + 1];

    random_bytes(bytes, sizeof(bytes));
    hex_encode(bytes, sizeof(bytes), hex);
    s->names = arena_zalloc(s->mem, (s->servers->n + 1) * sizeof(*s->names));
    for (size_t i = 0; i < s->servers->n; i++) {
        struct mock_server *m = &s->servers->list[i];
        s->names[i] = arena_printf(s->mem, "replay-%s-%.*s", hex, STR_ARG(m->name));
        m->builtin.name = s->names[i].p;
    }
}

static void add_upstreams(struct served *s)
{
    const struct config_source none = {0};
    struct config *config;
    struct error err;
    size_t n = s->servers->n;

    if (!config_parse(STR("{}"), STR_NONE, &none, &config, &err))
        die("an empty configuration is refused: %s", err.text);
    config_serve_builtins(config, s->names, n);
    mock_servers_register(s->servers);
    s->upstreams = arena_zalloc(s->mem, (n + 1) * sizeof(struct upstream *));
    for (size_t i = 0; i < n; i++)
        s->upstreams[s->n_up++] = upstreams_add_private(
            s->home->sv->upstreams, &(struct upstream_private){.config = config,
                                                               .server = &config->servers[i],
                                                               .owner = &s->who,
                                                               .on_freed = on_freed,
                                                               .arg = s});
    config_unref(config);
}

struct served *served_begin(struct replays *home, const struct principal *who, struct str origin,
                            struct mock *mock, int64_t ttl_ms)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct served *s = arena_new_of(mem, struct served);

    s->mem = mem;
    s->home = home;
    s->who = principal_dup(who, mem);
    s->origin = arena_dup(mem, origin);
    s->mock = mock;
    define(s);
    s->servers = mock_servers_new(mock);
    s->servers->on_answered = on_answered;
    s->servers->arg = s;
    name_servers(s);
    add_upstreams(s);
    s->expires_ms = clock_wall_ms() + ttl_ms;
    s->expiry = loop_timer_new(home->sv->loop, on_expired, s);
    loop_timer_start(s->expiry, ttl_ms, 0);
    home->erasures.on_events = on_events;
    if (list_empty(&home->served))
        audit_subscribe(home->sv->audit, &home->erasures);
    list_push(&home->served, &s->node);
    return s;
}
