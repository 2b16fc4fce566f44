/* SPDX-License-Identifier: Apache-2.0 */
/* The free space of the file system that holds the data directory.
 *
 * Below a reserve the write lane refuses jobs that begin something new (write_job.grows).  The
 * reserve then serves what has begun: outcomes of calls under way, the fold, the checkpoint.  So a
 * disk that fills refuses calls before SQLite fails, and calls are accepted again by themselves
 * once there is space. */
#ifndef HOLDFAST_STORE_ROOM_H
#define HOLDFAST_STORE_ROOM_H

#include "base/error.h"
#include "base/str.h"

#include <stdatomic.h>

/* How often the write lane asks the file system, while it works or while space is low. */
#define ROOM_EVERY_US (250 * 1000)

struct room {
    struct str dir;                /* borrowed; absent: not watched */
    _Atomic int64_t reserve, free; /* bytes; reserve 0: nothing is refused */
    atomic_bool is_low;
    int64_t due_us; /* time of the next look */
};

/* When a look is due: asks the file system.  Blocking; on the write lane.  Once space is low, a
 * quarter more than the reserve must be free before it is not. */
void room_review(struct room *r, int64_t now_us);
/* Any thread. */
static inline bool room_is_low(const struct room *r)
{
    return atomic_load_explicit(&r->is_low, memory_order_relaxed);
}
/* Sets *err to ERR_UNAVAILABLE: how much is free, how much is kept free, and what to do. */
void room_explain(const struct room *r, struct error *err);

#endif
