/* SPDX-License-Identifier: Apache-2.0 */
#include "retention/removal.h"

#include "store/record.h"
#include "store/segment.h"

#include <stdlib.h>

static void *grown(struct arena *mem, void *rows, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return rows;
    *cap = *cap ? 2 * *cap : 64;
    void *more = arena_alloc(mem, *cap * size);
    if (n)
        memcpy(more, rows, n * size);
    return more;
}

void removal_add(struct removal *r, struct store_op op)
{
    r->ops = grown(r->mem, r->ops, r->n, &r->cap, sizeof(*r->ops));
    r->ops[r->n++] = op;
}

void removal_init(struct removal *r, struct arena *mem, int64_t version)
{
    *r = (struct removal){.mem = mem, .state = {.version = version}};
    removal_add(r, op_retention_begin(&r->state));
}

struct event_row *segment_events(const struct segment_row *segment, struct arena *mem)
{
    struct segment_walk walk = {
        .id = segment->id, .records = segment->records, .bodies = segment->bodies};
    struct event_row *events = arena_zalloc(mem, (segment->n + 1) * sizeof(*events));

    for (size_t i = 0; i < segment->n && segment_next(&walk, &events[i]); i++)
        ;
    return events;
}

/* The verification names the event. */
bool segment_is_sound(const struct segment_row *segment, const struct event_row *events)
{
    for (size_t i = 0; i < segment->n; i++)
        if (!events[i].tenant.n)
            return false;
    return segment->n > 0;
}

void removal_tally(struct removal *r, const struct tally_row *add)
{
    size_t i = 0;

    while (i < r->n_tallies && (r->tallies[i].kind != add->kind || r->tallies[i].at != add->at ||
                                !str_eq(r->tallies[i].tenant, add->tenant)))
        i++;
    if (i == r->n_tallies) {
        r->tallies = grown(r->mem, r->tallies, i, &r->cap_tallies, sizeof(*r->tallies));
        r->tallies[r->n_tallies++] = (struct tally_row){
            .kind = add->kind, .tenant = arena_dup(r->mem, add->tenant), .at = add->at};
    }
    r->tallies[i].events += add->events;
    r->tallies[i].bytes += add->bytes;
    r->tallies[i].body_bytes += add->body_bytes;
}

/* The execution to which the event belongs, if its projection has something of the event. */
static int64_t exec_of(const struct event_row *e)
{
    bool has = e->kind == EVENT_INTENT || e->kind == EVENT_RECORD || e->kind == EVENT_OUTCOME;

    return has ? e->exec ? e->exec : e->id : 0;
}

static void note_execution(struct removal *r, const struct event_row *e, enum fate fate)
{
    int64_t exec = exec_of(e);

    if (exec && fate == FATE_GOES && e->kind != EVENT_OUTCOME) {
        r->removed = grown(r->mem, r->removed, r->n_removed, &r->cap_removed, sizeof(*r->removed));
        r->removed[r->n_removed++] =
            (struct execution_gone){arena_dup(r->mem, e->session_id), exec};
    } else if (exec) {
        r->bodies = grown(r->mem, r->bodies, r->n_bodies, &r->cap_bodies, sizeof(int64_t));
        r->bodies[r->n_bodies++] = exec;
    }
}

static void sum_up(struct removal *r, const struct event_row *e, enum fate fate)
{
    struct size_gone gone = {.id = e->id,
                             .tenant = arena_dup(r->mem, e->tenant),
                             .at_ms = e->at_ms,
                             .size = event_size_of(e),
                             .whole = fate == FATE_GOES};

    r->freed_bytes += (gone.whole ? gone.size.event : 0) + (int64_t)e->body.n;
    r->changes++;
    r->whole += gone.whole;
    note_execution(r, e, fate);
    r->gone = grown(r->mem, r->gone, r->n_gone, &r->cap_gone, sizeof(*r->gone));
    r->gone[r->n_gone++] = gone;
}

static enum fate fate_of(const struct event_row *e, enum fate fate)
{
    return fate == FATE_LOSES_BODY && !e->body.p ? FATE_STAYS : fate;
}

static void put(struct removal *r, struct segment *seg, int64_t first)
{
    struct segment_row *row = arena_new_of(r->mem, struct segment_row);

    row->id = first;
    row->n = seg->n;
    row->records = arena_dup(r->mem, buf_str(&seg->records));
    row->bodies = seg->bodies.n ? arena_dup(r->mem, buf_str(&seg->bodies)) : STR_NONE;
    removal_add(r, op_segment_put(row));
    segment_reset(seg);
}

/* Writes what stays: a segment for each run of consecutive ids. */
static void write_rest(struct removal *r, const struct segment_row *segment,
                       const struct event_row *events, const enum fate *fates)
{
    struct segment rest;
    int64_t first = 0;

    segment_init(&rest);
    if (fates[0] == FATE_GOES) {
        struct segment_row *row = arena_new_of(r->mem, struct segment_row);
        row->id = segment->id;
        removal_add(r, op_segment_drop(row));
    }
    for (size_t i = 0; i < segment->n; i++) {
        struct event_row e = events[i];
        if (fates[i] == FATE_GOES) {
            if (rest.n)
                put(r, &rest, first);
            continue;
        }
        if (fates[i] == FATE_LOSES_BODY)
            e.body = STR_NONE;
        if (!rest.n)
            first = e.id;
        segment_add(&rest, &e);
    }
    if (rest.n)
        put(r, &rest, first);
    segment_release(&rest);
}

void removal_segment(struct removal *r, const struct segment_row *segment,
                     const struct event_row *events, const enum fate *fates)
{
    bool changes = false;

    if (!segment_is_sound(segment, events))
        return;
    for (size_t i = 0; i < segment->n; i++)
        if (fate_of(&events[i], fates[i]) != FATE_STAYS) {
            changes = true;
            sum_up(r, &events[i], fates[i]);
        }
    if (changes)
        write_rest(r, segment, events, fates);
}

static int by_session(const void *a, const void *b)
{
    const struct execution_gone *x = a, *y = b;
    int order = str_cmp(x->session, y->session);

    return order ? order : (x->exec > y->exec) - (x->exec < y->exec);
}

void removal_end(struct removal *r)
{
    for (size_t i = 0; i < r->n_tallies; i++)
        removal_add(r, op_tally_add(&r->tallies[i]));
    if (r->n_gone) {
        struct sizes_gone *sizes = arena_new_of(r->mem, struct sizes_gone);
        *sizes = (struct sizes_gone){r->gone, r->n_gone, r->mem};
        removal_add(r, (struct store_op){.kind = OP_SIZES_SUBTRACT, .sizes = sizes});
    }
    if (r->n_removed + r->n_bodies) {
        struct executions_gone *gone = arena_new_of(r->mem, struct executions_gone);
        if (r->n_removed)
            qsort(r->removed, r->n_removed, sizeof(*r->removed), by_session);
        *gone = (struct executions_gone){r->removed, r->bodies, r->n_removed, r->n_bodies, r->mem};
        removal_add(r, op_executions_gone(gone));
    }
}
