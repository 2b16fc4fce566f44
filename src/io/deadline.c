/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines: one timer of the loop for all of them.  It runs while any deadline is set, and removes
 * due deadlines from the front of every class. */
#include "io/deadline.h"

#include <stdlib.h>

#define SWEEP_MS 50
#define RING_SMALLEST 16 /* places; a power of two */

struct deadlines {
    struct loop *loop;
    struct loop_timer *timer;
    bool is_sweeping;
    struct list classes;
    struct deadline_class due; /* deadlines found due by this sweep; not in `classes` */
};

static struct deadline **place(const struct deadline_class *c, size_t at)
{
    return &c->ring[at & (c->cap - 1)];
}

/* The first entry of a ring that is not empty is never a cleared one. */
struct deadline *deadline_first(const struct deadline_class *c)
{
    return c->n_set ? *place(c, c->first) : NULL;
}

/* Makes room in a full ring: drops cleared entries if they are at least half of it, else doubles
 * the ring.  So deadlines that are cleared soon, as most are, cost no memory, and each is moved
 * seldom. */
static void ring_make_room(struct deadline_class *c)
{
    size_t cap = c->cap ? c->cap : RING_SMALLEST, end = 0;
    struct deadline **ring;

    if (c->n_set > cap / 2)
        cap *= 2;
    ring = xmalloc(cap * sizeof(*ring));
    for (size_t at = c->first; at != c->end; at++) {
        struct deadline *d = *place(c, at);
        if (!d)
            continue;
        ring[end] = d;
        d->at = end++;
    }
    free(c->ring);
    c->ring = ring;
    c->cap = cap;
    c->first = 0;
    c->end = end;
}

static void ring_add(struct deadline_class *c, struct deadline *d)
{
    if (unlikely(c->end - c->first == c->cap))
        ring_make_room(c);
    d->class = c;
    d->at = c->end;
    *place(c, c->end++) = d;
    c->n_set++;
}

static void ring_remove(struct deadline *d)
{
    struct deadline_class *c = d->class;

    *place(c, d->at) = NULL;
    d->class = NULL;
    c->n_set--;
    while (c->first != c->end && !*place(c, c->first))
        c->first++;
}

/* Moves the due deadlines to a separate ring first.  So a callback may set, clear or release any
 * deadline, including other due ones. */
static void sweep(void *arg)
{
    struct deadlines *all = arg;
    int64_t now = loop_now_ms(all->loop);
    bool waiting = false;
    struct deadline *d;

    list_each(&all->classes, it)
    {
        struct deadline_class *c = list_entry(it, struct deadline_class, link);
        while ((d = deadline_first(c)) && d->due_ms <= now) {
            ring_remove(d);
            ring_add(&all->due, d);
        }
        waiting |= d != NULL;
    }
    all->is_sweeping = waiting;
    if (!waiting)
        loop_timer_stop(all->timer);
    while ((d = deadline_first(&all->due))) {
        ring_remove(d);
        d->fn(d);
    }
}

void deadline_class_init(struct deadline_class *c, struct loop *loop, int64_t ms)
{
    struct deadlines *all = loop_deadlines(loop);

    *c = (struct deadline_class){.home = all, .ms = ms};
    list_push(&all->classes, &c->link);
}

void deadline_class_release(struct deadline_class *c)
{
    struct deadline *d;

    if (!c->home)
        return;
    while ((d = deadline_first(c)))
        ring_remove(d);
    free(c->ring);
    c->ring = NULL;
    list_remove(&c->link);
    c->home = NULL;
}

void deadline_init(struct deadline *d, void (*fn)(struct deadline *d))
{
    *d = (struct deadline){.fn = fn};
}

void deadline_set(struct deadline_class *c, struct deadline *d)
{
    struct deadlines *all = c->home;

    deadline_clear(d);
    d->due_ms = loop_now_ms(all->loop) + c->ms;
    ring_add(c, d);
    if (!all->is_sweeping) {
        all->is_sweeping = true;
        loop_timer_start(all->timer, SWEEP_MS, SWEEP_MS);
    }
}

void deadline_clear(struct deadline *d)
{
    if (d->class)
        ring_remove(d);
}

bool deadline_is_set(const struct deadline *d)
{
    return d->class != NULL;
}

struct deadlines *deadlines_new(struct loop *loop)
{
    struct deadlines *all = xcalloc(1, sizeof(*all));

    all->loop = loop;
    all->timer = loop_timer_new(loop, sweep, all);
    list_init(&all->classes);
    return all;
}

void deadlines_free(struct deadlines *all)
{
    loop_timer_free(all->timer);
    free(all->due.ring);
    free(all);
}
