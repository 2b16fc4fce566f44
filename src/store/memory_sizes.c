/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the audit in the memory store: counted anew for every question. */
#include "store/memory_impl.h"

#include "store/sizes.h"

static struct sizes count(const struct memory_store *s)
{
    struct sizes sizes = {0};

    for (size_t i = 0; i < s->n_events; i++)
        if (s->events[i].folded && !s->events[i].removed)
            sizes_add(&sizes, s->events[i].row.tenant, s->events[i].row.at_ms,
                      event_size_of(&s->events[i].row));
    sizes_sort(&sizes);
    return sizes;
}

static void add_day(struct audit_size_row *to, const struct size_row *day, bool is_recent)
{
    if (!to->events || day->first_ms < to->first_ms)
        to->first_ms = day->first_ms;
    if (!to->events || day->last_ms > to->last_ms)
        to->last_ms = day->last_ms;
    to->events += day->events;
    to->event_bytes += day->event_bytes;
    to->bodies += day->bodies;
    to->body_bytes += day->body_bytes;
    to->recent_events += is_recent ? day->events : 0;
    to->recent_event_bytes += is_recent ? day->event_bytes : 0;
    to->recent_body_bytes += is_recent ? day->body_bytes : 0;
}

static bool audit_sizes(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct audit_size_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    size_t n = 0;

    pthread_mutex_lock(&s->lock);
    struct sizes sizes = count(s);
    for (size_t i = 0; i < sizes.n; i++) {
        const struct size_row *day = sizes.rows[i];
        if ((c->tenant.p && !str_eq(day->tenant, c->tenant)) ||
            (c->after.p && str_cmp(day->tenant, c->after) <= 0))
            continue;
        if (!n || !str_eq(rows[n - 1].tenant, day->tenant)) {
            if (n == c->limit)
                break;
            rows[n++].tenant = arena_dup(c->mem, day->tenant);
        }
        add_day(&rows[n - 1], day, day->day >= c->number);
    }
    sizes_release(&sizes);
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static bool database_size(struct store *store unused_arg, struct store_call *c,
                          struct error *err unused_arg)
{
    *(struct database_size *)c->ret = (struct database_size){0};
    return true;
}

static enum verdict subtract(struct memory_store *s unused_arg,
                             const struct store_op *op unused_arg, int64_t now_ms unused_arg)
{
    return VERDICT_OK;
}

const struct mem_op mem_size_ops[] = {
    {OP_SIZES_SUBTRACT, subtract},
    {0},
};

const struct verb_handler mem_size_verbs[] = {
    {VERB_AUDIT_SIZES, audit_sizes},
    {VERB_DATABASE_SIZE, database_size},
    {0},
};
