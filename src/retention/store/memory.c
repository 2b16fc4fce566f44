/* SPDX-License-Identifier: Apache-2.0 */
/* Retention in the memory store, for tests.  Each event is a segment of its own.  A removed event
 * stays as a mark, from which the ends of the chains are read. */
#include "retention/store/family.h"
#include "retention/store/impl.h"

#include "store/memory_impl.h"
#include "store/segment.h"

#include <stdlib.h>

struct arrays {
    struct removed_row *removed;
    size_t n_removed, cap_removed;
    struct tally_row *tallies;
    size_t n_tallies, cap_tallies;
    struct retention_state *state; /* one row, after the first removal */
    size_t n_state, cap_state;
};

static struct arrays *arrays_of(struct memory_store *s)
{
    return mem_family_arrays(s, &retention_memory);
}

static int64_t version_of(struct memory_store *s)
{
    const struct arrays *a = arrays_of(s);
    return s->holds_made + (a->n_state ? a->state[0].version : 0);
}

static enum verdict begin(struct memory_store *s, const struct store_op *op,
                          int64_t now_ms unused_arg)
{
    struct arrays *a = arrays_of(s);
    if (((const struct retention_state *)op->row)->version != version_of(s))
        return VERDICT_STALE;
    if (a->n_state == 0) {
        a->state = mem_grow(a->state, 0, &a->cap_state, sizeof(*a->state));
        a->state[a->n_state++] = (struct retention_state){0};
    }
    a->state[0].version++;
    return VERDICT_OK;
}

static struct mem_event *event_of(struct memory_store *s, int64_t id)
{
    for (size_t i = 0; i < s->n_events; i++)
        if (s->events[i].row.id == id)
            return &s->events[i];
    return NULL;
}

static enum verdict segment_drop(struct memory_store *s, const struct store_op *op,
                                 int64_t now_ms unused_arg)
{
    struct mem_event *e = event_of(s, ((const struct segment_row *)op->row)->id);
    if (e) {
        e->removed = true;
        e->row.body = STR_NONE;
    }
    return VERDICT_OK;
}

static enum verdict segment_put(struct memory_store *s, const struct store_op *op,
                                int64_t now_ms unused_arg)
{
    const struct segment_row *row = op->row;
    struct segment_walk walk = {.id = row->id, .records = row->records, .bodies = row->bodies};
    struct event_row stored;
    while (segment_next(&walk, &stored)) {
        struct mem_event *e = event_of(s, stored.id);
        if (!e)
            continue;
        e->removed = false;
        e->row.body = stored.body.p ? arena_dup(s->mem, stored.body) : STR_NONE;
    }
    return VERDICT_OK;
}

static bool same_chain(const struct removed_row *a, const struct removed_row *b)
{
    return a->writer == b->writer && str_eq(a->tenant, b->tenant);
}

static int by_place(const void *a, const void *b)
{
    const struct removed_row *x = a, *y = b;
    if (x->writer != y->writer)
        return x->writer < y->writer ? -1 : 1;
    int order = str_cmp(x->tenant, y->tenant);
    return order ? order : (x->first_seq > y->first_seq) - (x->first_seq < y->first_seq);
}

static enum verdict removed_put(struct memory_store *s, const struct store_op *op,
                                int64_t now_ms unused_arg)
{
    struct arrays *a = arrays_of(s);
    const struct removed_row *row = op->row;
    size_t n = 0;
    for (size_t i = 0; i < a->n_removed; i++) {
        const struct removed_row *r = &a->removed[i];
        if (!same_chain(r, row) || r->first_seq < row->first_seq || r->last_seq > row->last_seq)
            a->removed[n++] = *r;
    }
    a->n_removed = n;
    a->removed = mem_grow(a->removed, a->n_removed, &a->cap_removed, sizeof(*a->removed));
    struct removed_row *added = &a->removed[a->n_removed++];
    *added = *row;
    added->tenant = arena_dup(s->mem, row->tenant);
    added->rule = arena_dup(s->mem, row->rule);
    qsort(a->removed, a->n_removed, sizeof(*a->removed), by_place);
    return VERDICT_OK;
}

static int by_key(const void *a, const void *b)
{
    const struct tally_row *x = a, *y = b;
    int order = str_cmp(x->tenant, y->tenant);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

static enum verdict tally_add(struct memory_store *s, const struct store_op *op,
                              int64_t now_ms unused_arg)
{
    struct arrays *a = arrays_of(s);
    const struct tally_row *row = op->row;
    size_t i = 0;
    while (i < a->n_tallies && (a->tallies[i].kind != row->kind || a->tallies[i].at != row->at ||
                                !str_eq(a->tallies[i].tenant, row->tenant)))
        i++;
    if (i == a->n_tallies) {
        a->tallies = mem_grow(a->tallies, a->n_tallies++, &a->cap_tallies, sizeof(*a->tallies));
        a->tallies[i] = (struct tally_row){
            .kind = row->kind, .tenant = arena_dup(s->mem, row->tenant), .at = row->at};
    }
    struct tally_row *t = &a->tallies[i];
    t->events += row->events;
    t->bytes += row->bytes;
    t->body_bytes += row->body_bytes;
    if (!t->events && !t->bytes && !t->body_bytes)
        *t = a->tallies[--a->n_tallies];
    qsort(a->tallies, a->n_tallies, sizeof(*a->tallies), by_key);
    return VERDICT_OK;
}

static enum verdict executions_gone(struct memory_store *s unused_arg,
                                    const struct store_op *op unused_arg, int64_t now_ms unused_arg)
{
    return VERDICT_OK; /* executions are read from the events */
}

static const struct mem_op ops[] = {
    {OP_RETENTION_BEGIN, begin},
    {OP_SEGMENT_DROP, segment_drop},
    {OP_SEGMENT_PUT, segment_put},
    {OP_REMOVED_PUT, removed_put},
    {OP_TALLY_ADD, tally_add},
    {OP_EXECUTIONS_GONE, executions_gone},
    {0},
};

static bool state(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct retention_state *row = arena_zalloc(c->mem, sizeof(*row));
    pthread_mutex_lock(&s->lock);
    row->version = version_of(s);
    pthread_mutex_unlock(&s->lock);
    c->rows = row;
    c->n = 1;
    return true;
}

static void as_segment(const struct event_row *e, bool with_body, struct arena *mem,
                       struct segment_row *ret)
{
    struct segment seg;
    segment_init(&seg);
    segment_add(&seg, e);
    ret->id = e->id;
    ret->n = 1;
    ret->records = arena_dup(mem, buf_str(&seg.records));
    ret->bodies = with_body && e->body.p ? arena_dup(mem, e->body) : STR_NONE;
    segment_release(&seg);
}

static bool segments(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    const struct segment_page *page = c->filter;
    struct memory_store *s = mem_of(store);
    struct segment_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_events && n < c->limit && (!page->events || n < page->events);
         i++) {
        const struct mem_event *e = &s->events[i];
        if (!e->removed && e->row.id >= page->from && e->row.id <= page->upto &&
            (!page->only_bodies || e->row.body.p))
            as_segment(&e->row, page->with_bodies, c->mem, &rows[n++]);
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static bool removed(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    struct removed_row *rows = arena_zalloc(c->mem, (a->n_removed + 1) * sizeof(*rows));
    for (size_t i = 0; i < a->n_removed; i++) {
        if (c->number && a->removed[i].writer != c->number)
            continue;
        rows[n] = a->removed[i];
        rows[n].tenant = arena_dup(c->mem, rows[n].tenant);
        rows[n].rule = arena_dup(c->mem, rows[n].rule);
        n++;
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static bool tallies(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    struct tally_row *rows = arena_zalloc(c->mem, (a->n_tallies + 1) * sizeof(*rows));
    for (size_t i = 0; i < a->n_tallies; i++) {
        if (a->tallies[i].kind != c->number)
            continue;
        rows[n] = a->tallies[i];
        rows[n].tenant = arena_dup(c->mem, rows[n].tenant);
        n++;
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static bool folded(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    struct folded_row *rows = arena_zalloc(c->mem, (s->n_events + 1) * sizeof(*rows));
    for (size_t i = 0; i < s->n_events; i++) {
        int64_t id = s->events[i].row.id;
        if (!s->events[i].folded)
            continue;
        if (!n || rows[n - 1].writer != id >> EVENT_WRITER_SHIFT)
            rows[n++].writer = id >> EVENT_WRITER_SHIFT;
        rows[n - 1].last_id = id;
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static bool sizes_by_day(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct sizes sizes = {0};
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_events; i++)
        if (s->events[i].folded && !s->events[i].removed)
            sizes_add(&sizes, s->events[i].row.tenant, s->events[i].row.at_ms,
                      event_size_of(&s->events[i].row));
    pthread_mutex_unlock(&s->lock);
    sizes_sort(&sizes);
    struct size_row *rows = arena_zalloc(c->mem, (sizes.n + 1) * sizeof(*rows));
    for (size_t i = 0; i < sizes.n; i++) {
        rows[i] = *sizes.rows[i];
        rows[i].tenant = arena_dup(c->mem, rows[i].tenant);
    }
    c->rows = rows;
    c->n = sizes.n;
    sizes_release(&sizes);
    return true;
}

static bool no_file(struct store *store unused_arg, struct store_call *c,
                    struct error *err unused_arg)
{
    if (c->ret)
        *(struct file_space *)c->ret = (struct file_space){0};
    return true;
}

static const struct verb_handler verbs[] = {
    {VERB_RETENTION_STATE, state}, {VERB_SEGMENTS, segments},   {VERB_REMOVED, removed},
    {VERB_TALLIES, tallies},       {VERB_FOLDED, folded},       {VERB_SIZES_BY_DAY, sizes_by_day},
    {VERB_FILE_SPACE, no_file},    {VERB_FILE_SHRINK, no_file}, {0},
};

static size_t tables(void *arrays, struct mem_table *ret)
{
    struct arrays *a = arrays;
    ret[0] = (struct mem_table){(void **)&a->removed, &a->n_removed, sizeof(*a->removed)};
    ret[1] = (struct mem_table){(void **)&a->tallies, &a->n_tallies, sizeof(*a->tallies)};
    ret[2] = (struct mem_table){(void **)&a->state, &a->n_state, sizeof(*a->state)};
    return 3;
}

const struct memory_family retention_memory = {
    .size = sizeof(struct arrays),
    .tables = tables,
    .ops = ops,
    .verbs = verbs,
};
