/* SPDX-License-Identifier: Apache-2.0 */
/* Which events of a slice go: check the seals, decide by age, keep executions whole, and write the
 * checkpoints of what goes. */
#include "retention/plan_impl.h"

#include "audit/checkpoint.h"
#include "audit/event_id.h"
#include "crypto/hash.h"

/* Of one execution: the scan for more would go over all later events.  An outcome behind a guessed one
 * goes by its own age. */
#define PAIR 2

/* One chain of the writer.  The first two members follow the seals, the next two the checkpoints. */
struct link {
    struct str tenant;
    int64_t seq, marked;
    uint8_t mac[SHA256_BYTES], before[SHA256_BYTES];
    struct removed_row last; /* the last checkpoint up to `marked`; last_seq 0: none */
    bool is_new;             /* it is not written yet */
};

static struct link *link_of(struct plan *p, struct str tenant)
{
    struct link *l = map_get(&p->links, tenant);

    if (l)
        return l;
    l = arena_new_of(p->walk_mem, struct link);
    l->tenant = arena_dup(p->walk_mem, tenant);
    map_put(&p->links, l->tenant, l);
    return l;
}

bool plan_begin_writer(struct plan *p, struct store *store, struct error *err)
{
    struct removed_row *rows = NULL;
    size_t n = 0;

    map_release(&p->links);
    map_init(&p->links);
    arena_reset(p->walk_mem);
    return store_removed(store, p->writers[p->at].writer, p->walk_mem, &rows, &n, err) &&
           checkpoints_set(p->known, p->chain, rows, n, err);
}

/* Whether the event is as it was sealed, and follows the one before it or a checkpoint. */
static bool follows(struct plan *p, const struct event_row *e, struct error *err)
{
    char id[EVENT_ID_TEXT];
    uint8_t mac[SHA256_BYTES];
    bool ok = e->tenant.n != 0;

    if (ok) {
        struct link *l = link_of(p, e->tenant);
        const struct removed_row *r;
        while (e->seq > l->seq + 1 &&
               (r = checkpoints_at(p->known, event_id_writer(e->id), e->tenant, l->seq + 1))) {
            l->seq = r->last_seq;
            memcpy(l->mac, r->after, sizeof(l->mac));
        }
        chain_mac(p->chain, l->mac, e, mac);
        ok = e->seq == l->seq + 1 && crypto_equal(mac, e->mac, sizeof(mac));
        l->seq = e->seq;
        memcpy(l->mac, e->mac, sizeof(l->mac));
    }
    return ok || error_set(err, ERR_CHAIN_BROKEN,
                           "event %s differs from its seal, so no event of its writer is removed "
                           "from there on; run `holdfast audit verify`",
                           event_id_format(e->id, id));
}

static int64_t last_of(const struct plan *p, int64_t writer)
{
    for (size_t i = 0; i < p->n_writers; i++)
        if (p->writers[i].writer == writer)
            return p->writers[i].last_id;
    return 0;
}

static bool goes(struct plan *p, const struct event_row *e)
{
    const struct rule *rule = rules_of(p->rules, e->tenant);
    bool by_size = rule->more_events > 0 && e->at_ms < rule->events_until_ms;

    return (e->at_ms < rule->events_before_ms || by_size) &&
           e->id < last_of(p, event_id_writer(e->id)) && !plan_is_open(p, e) &&
           !rules_hold_event(p->rules, e);
}

/* The events of an execution that are in the slice. */
struct group {
    int64_t exec;
    bool has_intent, has_outcome, stays;
    struct group *next;
};

static bool is_paired(const struct event_row *e)
{
    return (e->kind == EVENT_INTENT || e->kind == EVENT_OUTCOME) && e->exec;
}

static struct group *group_of(struct map *groups, struct group **all, int64_t exec,
                              struct arena *mem)
{
    struct group *g = map_get(groups, str_n((const char *)&exec, sizeof(exec)));

    if (g)
        return g;
    g = arena_new_of(mem, struct group);
    g->exec = exec;
    g->next = *all;
    *all = g;
    map_put(groups, str_n((const char *)&g->exec, sizeof(g->exec)), g);
    return g;
}

/* Looks at the events of the execution that are not in the slice. */
static bool complete(struct plan *p, struct store *store, struct group *g, struct arena *mem,
                     struct error *err)
{
    struct event_filter filter = {.kind = -1, .exec = g->exec};
    struct event_row *rows = NULL;
    size_t n = 0;

    if (!store_events_page(store, &filter, PAIR, mem, &rows, &n, err))
        return false;
    for (size_t i = 0; i < n; i++) {
        g->has_outcome |= rows[i].kind == EVENT_OUTCOME;
        g->stays |= is_paired(&rows[i]) && !goes(p, &rows[i]);
    }
    g->stays |= g->has_intent && !g->has_outcome;
    return true;
}

static bool keep_executions_whole(struct plan *p, struct store *store, struct slice *sl,
                                  struct error *err)
{
    struct map groups = {0};
    struct group *all = NULL;
    bool ok = true;

    for (size_t i = 0; i < sl->n; i++) {
        const struct event_row *e = &sl->events[i];
        if (!is_paired(e))
            continue;
        struct group *g = group_of(&groups, &all, e->exec, sl->mem);
        g->has_intent |= e->kind == EVENT_INTENT;
        g->has_outcome |= e->kind == EVENT_OUTCOME;
        g->stays |= sl->fates[i] != FATE_GOES;
    }
    for (struct group *g = all; ok && g; g = g->next)
        if (!g->stays && !(g->has_intent && g->has_outcome))
            ok = complete(p, store, g, sl->mem, err);
    for (size_t i = 0; ok && i < sl->n; i++) {
        const struct event_row *e = &sl->events[i];
        if (is_paired(e) && sl->fates[i] == FATE_GOES &&
            group_of(&groups, &all, e->exec, sl->mem)->stays)
            sl->fates[i] = FATE_STAYS;
    }
    map_release(&groups);
    return ok;
}

static void put_checkpoint(struct plan *p, struct link *l, struct removal *r)
{
    struct removed_row *row = arena_new_of(r->mem, struct removed_row);

    if (!l->is_new)
        return;
    l->is_new = false;
    *row = l->last;
    row->tenant = arena_dup(r->mem, l->tenant);
    row->rule = arena_dup(r->mem, row->rule);
    row->removed_ms = p->now_ms;
    checkpoint_seal(p->chain, row, row->seal);
    removal_add(r, op_removed_put(row));
}

/* A checkpoint that is there already, right behind the last event. */
static void pass_checkpoint(struct plan *p, struct link *l, const struct removed_row *known,
                            struct removal *r)
{
    struct removed_row *last = &l->last;

    if (l->is_new && last->last_seq + 1 == known->first_seq) { /* both become one */
        last->last_seq = known->last_seq;
        last->last_id = known->last_id;
        last->oldest_ms = last->oldest_ms < known->oldest_ms ? last->oldest_ms : known->oldest_ms;
        last->newest_ms = last->newest_ms > known->newest_ms ? last->newest_ms : known->newest_ms;
        last->by_age += known->by_age;
        last->by_size += known->by_size;
        memcpy(last->after, known->after, sizeof(last->after));
    } else {
        put_checkpoint(p, l, r);
        *last = *known;
    }
    l->marked = known->last_seq;
    memcpy(l->before, known->after, sizeof(l->before));
}

static void begin_checkpoint(struct plan *p, struct link *l, const struct event_row *e,
                             struct removal *r)
{
    put_checkpoint(p, l, r);
    l->last = (struct removed_row){.writer = event_id_writer(e->id),
                                   .tenant = l->tenant,
                                   .first_seq = e->seq,
                                   .first_id = e->id,
                                   .oldest_ms = e->at_ms,
                                   .newest_ms = e->at_ms};
    memcpy(l->last.before, l->before, sizeof(l->before));
}

static void mark_removed(struct plan *p, struct link *l, const struct event_row *e,
                         struct removal *r)
{
    struct removed_row *last = &l->last;

    if (last->last_seq == 0 || last->last_seq + 1 != e->seq)
        begin_checkpoint(p, l, e, r);
    last->last_seq = e->seq;
    last->last_id = e->id;
    last->oldest_ms = e->at_ms < last->oldest_ms ? e->at_ms : last->oldest_ms;
    last->newest_ms = e->at_ms > last->newest_ms ? e->at_ms : last->newest_ms;
    const struct rule *rule = rules_of(p->rules, e->tenant);
    bool by_age = e->at_ms < rule->events_before_ms;
    last->by_age += by_age;
    last->by_size += !by_age;
    last->rule = by_age ? rule->keep : rule->size;
    memcpy(last->after, e->mac, sizeof(last->after));
    l->is_new = true;
}

/* The events of removals themselves are not told of: that would never end. */
static void count_removed(struct plan *p, const struct event_row *e, struct removal *r)
{
    bool by_age = e->at_ms < rules_of(p->rules, e->tenant)->events_before_ms;
    struct tally_row t = {
        .kind = by_age ? TALLY_BY_AGE : TALLY_BY_SIZE, .tenant = e->tenant, .events = 1};

    if (e->kind == EVENT_SYSTEM && str_eq(e->method, STR(RETENTION_METHOD)))
        return;
    t.bytes = event_size_of(e).event;
    t.body_bytes = (int64_t)e->body.n;
    removal_tally(r, &t);
}

static void write_checkpoints(struct plan *p, struct slice *sl, struct removal *r)
{
    size_t at = 0;
    void *value;
    struct str key;

    for (size_t i = 0; i < sl->n; i++) {
        const struct event_row *e = &sl->events[i];
        struct link *l = link_of(p, e->tenant);
        const struct removed_row *known;
        while (e->seq > l->marked + 1 &&
               (known = checkpoints_at(p->known, event_id_writer(e->id), e->tenant, l->marked + 1)))
            pass_checkpoint(p, l, known, r);
        if (sl->fates[i] == FATE_GOES) {
            mark_removed(p, l, e, r);
            count_removed(p, e, r);
        }
        l->marked = e->seq;
        memcpy(l->before, e->mac, sizeof(l->before));
    }
    while (map_next(&p->links, &at, &key, &value))
        put_checkpoint(p, value, r);
}

bool plan_events(struct plan *p, struct store *store, struct slice *sl, struct removal *r,
                 struct error *err)
{
    size_t going = 0;

    for (size_t i = 0; i < sl->n; i++)
        if (!follows(p, &sl->events[i], err))
            return false;
    for (size_t i = 0; i < sl->n; i++) {
        const struct event_row *e = &sl->events[i];
        bool may = e->id < sl->last_id && going < p->events_max && goes(p, e);
        sl->fates[i] = may ? FATE_GOES : FATE_STAYS;
        going += may;
        if (may)
            rules_of(p->rules, e->tenant)->more_events -=
                event_size_of(e).event + (int64_t)e->body.n;
    }
    if (!keep_executions_whole(p, store, sl, err))
        return false;
    write_checkpoints(p, sl, r);
    return true;
}
