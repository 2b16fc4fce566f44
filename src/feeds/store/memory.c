/* SPDX-License-Identifier: Apache-2.0 */
/* The verb of feeds in the memory store. */
#include "feeds/store/family.h"
#include "feeds/store/verbs.h"

#include "store/memory_impl.h"

static int64_t last_of(const struct memory_store *s, int64_t writer)
{
    int64_t last = 0;
    for (size_t i = 0; i < s->n_events; i++)
        if (s->events[i].row.id >> EVENT_WRITER_SHIFT == writer)
            last = s->events[i].row.id;
    return last;
}

static bool event_writers(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct event_writer *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_writers && n < c->limit; i++) {
        const struct writer_row *w = &s->writers[i];
        if (w->number > c->after_id &&
            (w->ended_ms ? w->ended_ms : w->lease_until_ms) >= c->since_ms)
            rows[n++] = (struct event_writer){.number = w->number,
                                              .last_id = last_of(s, w->number),
                                              .started_ms = w->started_ms,
                                              .lease_until_ms = w->lease_until_ms,
                                              .ended_ms = w->ended_ms};
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static const struct mem_op ops[] = {{0}};
static const struct verb_handler verbs[] = {{VERB_EVENT_WRITERS, event_writers}, {0}};

static size_t tables(void *arrays unused_arg, struct mem_table *ret unused_arg)
{
    return 0;
}

const struct memory_family feeds_memory = {.size = 1, .tables = tables, .ops = ops, .verbs = verbs};
