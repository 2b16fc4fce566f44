/* SPDX-License-Identifier: Apache-2.0 */
/* DATA/spool.db: outcomes that the main store could not take, durable on the local disk until it
 * can.  Used where the main store is elsewhere (PostgreSQL), so that a call that ran may be
 * answered although that store is gone.
 *
 * One outcome per execution, known by the intent's id; the intent's seal is kept beside it, for ids
 * mean something in one database only.  Everything here blocks; one thread at a time. */
#ifndef HOLDFAST_STORE_SPOOL_H
#define HOLDFAST_STORE_SPOOL_H

#include "base/arena.h"
#include "base/error.h"
#include "store/rows.h"

struct spool;

struct spooled {
    struct event_row event; /* an outcome with its body sealed; id, seq and mac do not matter */
    uint8_t intent_mac[32];
    /* A result to be kept for its client along with the outcome: id, session_id, digest, times and
     * sealed bytes; whose it is and what it came from are the event's.  id 0: none. */
    struct undelivered_row undelivered;
};

/* Makes the file (0600) when there is none.  A file that is damaged or not ours is ERR_CONFIG. */
must_check bool spool_open(struct str path, struct spool **ret, struct error *err);
void spool_close(struct spool *s); /* NULL is fine */

/* What one transaction does: puts an outcome (one that is there already stays), or takes away what
 * the main store has by now. */
struct spool_change {
    const struct spooled *put; /* NULL: take away */
    int64_t exec;              /* to take away; unknown ones are fine */
};
/* All or nothing, on the disk when it returns true. */
must_check bool spool_write(struct spool *s, const struct spool_change *changes, size_t n,
                            struct error *err);
/* Up to `limit` by exec, after the one given; allocated in mem. */
must_check bool spool_page(struct spool *s, int64_t after, unsigned limit, struct arena *mem,
                           struct spooled **ret, size_t *ret_n, struct error *err);
must_check bool spool_count(struct spool *s, int64_t *ret, struct error *err);

#endif
