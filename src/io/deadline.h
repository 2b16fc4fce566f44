/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines by class: all of one class last equally long, so the order in which they were set is
 * the order in which they fall due, and one timer sweeps them all.  A class keeps pointers to what
 * waits in a ring, in that order: setting and clearing one touches the ring and the deadline
 * itself, never its neighbours, which are other requests' and cold.  Resolution about 50 ms. */
#ifndef HOLDFAST_IO_DEADLINE_H
#define HOLDFAST_IO_DEADLINE_H

#include "io/loop.h"

struct deadline_class {
    struct deadlines *home; /* NULL when it was released */
    int64_t ms;
    struct deadline **ring; /* NULL where one was cleared; a power of two of places */
    size_t cap;
    size_t first, end; /* counted on for ever; the place is the remainder by cap */
    size_t n_set;
    struct list link; /* in home->classes */
};
struct deadline {
    struct deadline_class *class; /* NULL when it is not set */
    size_t at;                    /* in the ring */
    int64_t due_ms;
    void (*fn)(struct deadline *d); /* called once, after which it is unset */
};
void deadline_class_init(struct deadline_class *c, struct loop *loop, int64_t ms);
void deadline_class_release(struct deadline_class *c);
void deadline_init(struct deadline *d, void (*fn)(struct deadline *d));
void deadline_set(struct deadline_class *c, struct deadline *d); /* sets again when set */
void deadline_clear(struct deadline *d);
bool deadline_is_set(const struct deadline *d);
/* The one that was set longest ago and falls due next; NULL when none waits. */
struct deadline *deadline_first(const struct deadline_class *c);

/* All classes of a loop, and the timer that sweeps them; the loop's own. */
struct deadlines *deadlines_new(struct loop *loop) must_check;
void deadlines_free(struct deadlines *all); /* before the loop closes what is left of it */

#endif
