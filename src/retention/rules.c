/* SPDX-License-Identifier: Apache-2.0 */
#include "retention/rules.h"

#include "base/map.h"

#include <stdio.h>

#include <stdlib.h>

struct rules {
    const struct config *config;
    struct arena *mem;
    int64_t now_ms;
    struct map by_tenant, held;
    uint64_t mark;
};

static struct str duration_text(const char *option, int64_t ms, struct arena *mem)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};

    for (size_t i = 0; i < countof(units); i++)
        if (ms % units[i].ms == 0)
            return arena_printf(mem, "%s %lld%s", option, (long long)(ms / units[i].ms),
                                units[i].unit);
    return str_of(option);
}

struct rules *rules_new(const struct config *c, int64_t now_ms)
{
    struct rules *r = xcalloc(1, sizeof(*r));

    r->config = c;
    r->mem = arena_new(SIZE_MAX / 4);
    r->now_ms = now_ms;
    map_init(&r->by_tenant);
    map_init(&r->held);
    r->mark = 14695981039346656037u;
    return r;
}

void rules_free(struct rules *r)
{
    if (!r)
        return;
    map_release(&r->by_tenant);
    map_release(&r->held);
    arena_free(r->mem);
    free(r);
}

/* Order does not matter: the rows have none. */
static uint64_t digest_of(struct str key)
{
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < key.n; i++)
        h = (h ^ (uint8_t)key.p[i]) * 1099511628211u;
    return h;
}

static struct str held_key(enum held_kind kind, struct str tenant, struct str name,
                           struct arena *mem)
{
    return arena_printf(mem, "%d %.*s %.*s", (int)kind, STR_ARG(tenant), STR_ARG(name));
}

void rules_hold(struct rules *r, const struct held_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct str key = held_key(rows[i].kind, rows[i].tenant, rows[i].name, r->mem);
        map_put(&r->held, key, r);
        r->mark += digest_of(key);
    }
}

uint64_t rules_mark(const struct rules *r)
{
    return r->mark;
}

const struct rule *rules_of(struct rules *r, struct str tenant)
{
    struct rule *rule = map_get(&r->by_tenant, tenant);

    if (rule)
        return rule;
    struct audit_keep keep = config_audit_keep(r->config, tenant);
    rule = arena_new_of(r->mem, struct rule);
    rule->tenant = arena_dup(r->mem, tenant);
    if (keep.keep_ms) {
        rule->events_before_ms = r->now_ms - keep.keep_ms;
        rule->keep = duration_text("keep", keep.keep_ms, r->mem);
    }
    if (keep.bodies_ms) {
        rule->bodies_before_ms = r->now_ms - keep.bodies_ms;
        rule->bodies = duration_text("bodies", keep.bodies_ms, r->mem);
    }
    map_put(&r->by_tenant, rule->tenant, rule);
    return rule;
}

static bool holds(const struct rules *r, enum held_kind kind, struct str tenant, struct str name)
{
    char key[512];
    int n = name.n ? snprintf(key, sizeof(key), "%d %.*s %.*s", (int)kind, STR_ARG(tenant),
                              STR_ARG(name))
                   : 0;

    return n > 0 && (size_t)n < sizeof(key) && map_get(&r->held, str_n(key, (size_t)n)) != NULL;
}

bool rules_hold_event(const struct rules *r, const struct event_row *e)
{
    return holds(r, HELD_SESSION, e->tenant, e->session_id) ||
           holds(r, HELD_OWNER, e->tenant, e->owner);
}

/* The shortest age of all tenants; 0: none. */
static int64_t shortest(const struct config *c, bool bodies)
{
    int64_t ms = bodies ? c->audit.bodies_ms : c->audit.keep_ms;

    for (size_t i = 0; i < c->n_tenants; i++) {
        int64_t own = bodies ? c->tenants[i].audit.bodies_ms : c->tenants[i].audit.keep_ms;
        ms = own && (!ms || own < ms) ? own : ms;
    }
    return ms;
}

bool rules_remove_events(const struct rules *r, int64_t *ret_before_ms)
{
    int64_t ms = shortest(r->config, false);

    *ret_before_ms = r->now_ms - ms;
    return ms != 0;
}

bool rules_remove_bodies(const struct rules *r, int64_t *ret_before_ms)
{
    int64_t ms = shortest(r->config, true);

    *ret_before_ms = r->now_ms - ms;
    return ms != 0;
}

bool rules_are_set(const struct config *c, int64_t *ret_shortest_ms)
{
    int64_t events = shortest(c, false), bodies = shortest(c, true);

    *ret_shortest_ms = !bodies || (events && events < bodies) ? events : bodies;
    return events || bodies;
}
