/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines by class.  All deadlines of one class have the same duration, so they fall due in the
 * order in which they were set, and one timer sweeps them all.  A class keeps pointers to its
 * deadlines in a ring, in that order.  Setting and clearing a deadline touches the ring and the
 * deadline itself, but not its neighbours, which belong to other requests and are cold.  The
 * resolution is about 50 ms. */
#ifndef HOLDFAST_IO_DEADLINE_H
#define HOLDFAST_IO_DEADLINE_H

#include "io/loop.h"

struct deadline_class {
    struct deadlines *home; /* NULL after release */
    int64_t ms;
    struct deadline **ring; /* NULL entries were cleared; cap is a power of two */
    size_t cap;
    size_t first, end; /* increase for ever; the index is the remainder by cap */
    size_t n_set;
    struct list link; /* in home->classes */
};
struct deadline {
    struct deadline_class *class; /* NULL when not set */
    size_t at;                    /* position in the ring */
    int64_t due_ms;
    void (*fn)(struct deadline *d); /* called once; the deadline is unset before the call */
};
void deadline_class_init(struct deadline_class *c, struct loop *loop, int64_t ms);
void deadline_class_release(struct deadline_class *c);
void deadline_init(struct deadline *d, void (*fn)(struct deadline *d));
void deadline_set(struct deadline_class *c, struct deadline *d); /* also restarts a set deadline */
void deadline_clear(struct deadline *d);
bool deadline_is_set(const struct deadline *d);
/* Returns the deadline that falls due next; NULL when none is set. */
struct deadline *deadline_first(const struct deadline_class *c);

/* All classes of a loop, and the timer that sweeps them.  Owned by the loop. */
struct deadlines *deadlines_new(struct loop *loop) must_check;
void deadlines_free(struct deadlines *all); /* before the loop closes its remaining handles */

#endif
