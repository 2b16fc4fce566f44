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
    int64_t events_before_ms, bodies_before_ms; /* of all tenants */
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

static struct str size_text(size_t bytes, struct arena *mem)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;

    for (; i + 1 < countof(units) && bytes % 1024 == 0; i++)
        bytes /= 1024;
    return arena_printf(mem, "max_size %zu%s", bytes, units[i]);
}

struct rules *rules_new(const struct config *c, int64_t now_ms)
{
    struct rules *r = xcalloc(1, sizeof(*r));

    r->config = c;
    r->mem = arena_new(SIZE_MAX / 4);
    r->now_ms = now_ms;
    map_init(&r->by_tenant);
    map_init(&r->held);
    r->events_before_ms = shortest(c, false) ? now_ms - shortest(c, false) : 0;
    r->bodies_before_ms = shortest(c, true) ? now_ms - shortest(c, true) : 0;
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
    }
}

struct rule *rules_of(struct rules *r, struct str tenant)
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
    if (keep.max_size)
        rule->size = size_text(keep.max_size, r->mem);
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

/* The end of the day in which the oldest `bytes` end. */
static int64_t until(const struct size_row *rows, size_t n, int64_t bytes, bool bodies)
{
    size_t i = 0;

    for (; i + 1 < n; i++) {
        bytes -= bodies ? rows[i].body_bytes : rows[i].event_bytes + rows[i].body_bytes;
        if (bytes <= 0)
            break;
    }
    return (rows[i].day + 1) * SIZES_DAY_MS;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void measure(struct rules *r, const struct size_row *rows, size_t n)
{
    struct rule *rule = rules_of(r, rows[0].tenant);
    size_t most = config_audit_keep(r->config, rows[0].tenant).max_size;
    int64_t events = 0, bodies = 0;

    for (size_t i = 0; i < n; i++) {
        events += rows[i].event_bytes;
        bodies += rows[i].body_bytes;
    }
    int64_t excess = events + bodies - (int64_t)most;
    if (!most || excess <= 0)
        return;
    rule->more_bodies = excess < bodies ? excess : bodies;
    rule->bodies_until_ms = until(rows, n, rule->more_bodies, true);
    r->bodies_before_ms = later(r->bodies_before_ms, rule->bodies_until_ms);
    if (excess <= bodies)
        return;
    rule->more_events = excess - bodies;
    rule->events_until_ms = until(rows, n, excess, false);
    r->events_before_ms = later(r->events_before_ms, rule->events_until_ms);
}

void rules_leave_to_events(struct rules *r, struct rule *rule, int64_t bytes)
{
    rule->more_bodies -= bytes;
    rule->more_events = later(rule->more_events, 0) + bytes;
    rule->events_until_ms = later(rule->events_until_ms, rule->bodies_until_ms);
    r->events_before_ms = later(r->events_before_ms, rule->events_until_ms);
}

void rules_measure(struct rules *r, const struct size_row *rows, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && str_eq(rows[end].tenant, rows[i].tenant); end++)
            ;
        measure(r, rows + i, end - i);
    }
}

int64_t rules_events_before(const struct rules *r)
{
    return r->events_before_ms;
}

int64_t rules_bodies_before(const struct rules *r)
{
    return r->bodies_before_ms;
}

#define EVERY_MIN_MS 1000
#define EVERY_MAX_MS ((int64_t)3600 * 1000)
#define EVERY_SIZE_MS ((int64_t)60 * 1000)
#define EVERY_PART 200 /* of the shortest age: what is too old stays so much longer at most */

int64_t rules_interval_ms(const struct config *c)
{
    int64_t events = shortest(c, false), bodies = shortest(c, true);
    int64_t age = !bodies || (events && events < bodies) ? events : bodies;
    int64_t every = later(age / EVERY_PART, EVERY_MIN_MS);
    bool has_size = c->audit.max_size != 0;

    for (size_t i = 0; i < c->n_tenants; i++)
        has_size |= c->tenants[i].audit.max_size != 0;
    every = age ? every < EVERY_MAX_MS ? every : EVERY_MAX_MS : 0;
    return has_size && (!every || every > EVERY_SIZE_MS) ? EVERY_SIZE_MS : every;
}
