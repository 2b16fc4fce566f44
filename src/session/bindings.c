/* SPDX-License-Identifier: Apache-2.0 */
/* What this process knows of bound carriers (session.h): each known carrier is bound or free.  While
 * the store has no binding at all, nothing is held here and no carrier is looked up. */
#include "session/session_impl.h"
#include "session/setup.h"
#include "session/share_store/ops.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

/* Above that, all are forgotten and asked for again. */
#define BINDINGS_KNOWN_MAX 65536
#define DROP_BYTES (64u * 1024)

enum known { KNOWN_FREE = 1, KNOWN_BOUND };
struct bindings {
    bool any; /* the store has bindings, or had some */
    struct map known;
    uint64_t changes;
};
struct known_carrier {
    enum known is;
    struct str key; /* stored after this struct */
};

struct bindings *bindings_new(bool any)
{
    struct bindings *b = xcalloc(1, sizeof(*b));

    b->any = any;
    map_init(&b->known);
    return b;
}

static void forget_all(struct bindings *b)
{
    struct str key;
    void *value;

    for (size_t at = 0; map_next(&b->known, &at, &key, &value);)
        free(value);
    map_release(&b->known);
    map_init(&b->known);
}

void bindings_free(struct bindings *b)
{
    forget_all(b);
    map_release(&b->known);
    free(b);
}

uint64_t bindings_changes(const struct bindings *b)
{
    return b->changes;
}

static void know(struct bindings *b, struct str tenant, struct str owner, struct str carrier,
                 struct str key, enum known is)
{
    char room[KEY_ROOM];
    struct str name = sessions_key_in(room, sizeof(room), 'b', tenant, owner, carrier, key);
    struct known_carrier *k = name.p ? map_get(&b->known, name) : NULL;

    if (!name.p)
        return;
    if (!k) {
        if (b->known.n >= BINDINGS_KNOWN_MAX)
            forget_all(b);
        k = xcalloc(1, sizeof(*k) + name.n);
        k->key = str_n(memcpy(k + 1, name.p, name.n), name.n);
        map_put(&b->known, k->key, k);
    }
    k->is = is;
}

bool sessions_may_be_bound(struct sessions *s, const struct principal *who, struct str carrier,
                           struct str key)
{
    char room[KEY_ROOM];

    if (likely(!s->bindings->any))
        return false;
    struct str name =
        sessions_key_in(room, sizeof(room), 'b', who->tenant, who->owner, carrier, key);
    const struct known_carrier *k = name.p ? map_get(&s->bindings->known, name) : NULL;
    return name.p && (!k || k->is == KNOWN_BOUND);
}

void sessions_bound(struct sessions *s, struct str tenant, struct str owner, struct str carrier,
                    struct str key)
{
    s->bindings->any = true;
    s->bindings->changes++;
    know(s->bindings, tenant, owner, carrier, key, KNOWN_BOUND);
}

void bindings_none(struct bindings *b, struct str tenant, struct str owner, struct str carrier,
                   struct str key, uint64_t since)
{
    if (b->changes == since)
        know(b, tenant, owner, carrier, key, KNOWN_FREE);
}

void sessions_recheck_bindings(struct sessions *s)
{
    s->bindings->any = true;
    s->bindings->changes++;
    forget_all(s->bindings);
}

static bool holds_secrets(const struct session *s)
{
    return s->sealed_auth.p || s->context || (s->rules && s->rules->n_credentials);
}

/* A hand-over binds carriers that only the store knows. */
void sessions_handed_over(struct sessions *s, struct str tenant, struct str id, bool had_secrets)
{
    const struct session *former = sessions_by_id(s, tenant, id);
    char key[64];

    had_secrets = had_secrets || (former && holds_secrets(former));
    sessions_recheck_bindings(s);
    sessions_ended(s, tenant, id);
    int n = snprintf(key, sizeof(key), "s:%.*s", STR_ARG(id));
    if (s->on_handed_over)
        s->on_handed_over(s->on_handed_over_arg, str_n(key, (size_t)n), had_secrets);
}

void sessions_on_handed_over(struct sessions *s,
                             void (*fn)(void *arg, struct str link_key, bool had_secrets),
                             void *arg)
{
    s->on_handed_over = fn;
    s->on_handed_over_arg = arg;
}

struct drop {
    struct write_job job;
    struct store_op op;
    struct binding_row row;
    struct principal who;
    struct arena *mem;
};

static void dropped(struct write_job *job)
{
    struct drop *d = container_of(job, struct drop, job);

    arena_free(d->mem);
    free(d);
}

void sessions_unbind(struct sessions *s, const struct principal *who, struct str carrier,
                     struct str key, struct str share_id)
{
    struct drop *d = xcalloc(1, sizeof(*d));

    know(s->bindings, who->tenant, who->owner, carrier, key, KNOWN_FREE);
    d->mem = arena_new(DROP_BYTES);
    d->who.tenant = arena_dup(d->mem, who->tenant);
    d->who.owner = arena_dup(d->mem, who->owner);
    d->row = (struct binding_row){
        .carrier = arena_dup(d->mem, carrier),
        .carrier_key = arena_dup(d->mem, key),
        .share_id = arena_dup(d->mem, share_id),
    };
    d->op = op_binding_drop(&d->who, &d->row);
    d->job = (struct write_job){.ops = &d->op, .n = 1, .done = dropped};
    if (!lane_write(s->lanes, &d->job))
        dropped(&d->job);
}
