/* SPDX-License-Identifier: Apache-2.0 */
/* DATA/spool.db: outcomes that the main store could not take, durable on the local disk until it
 * can.  Used with a remote main store (PostgreSQL), so that a call that ran can be answered even
 * while that store is unavailable.
 *
 * There is one outcome per execution, keyed by the id of the intent.  The seal of the intent is
 * stored with it, because ids are only valid within one database.  Calls block; one thread at a
 * time. */
#ifndef HOLDFAST_STORE_SPOOL_H
#define HOLDFAST_STORE_SPOOL_H

#include "base/arena.h"
#include "base/error.h"
#include "store/rows.h"

struct spool;

struct spooled {
    struct event_row event; /* an outcome with sealed body; id, seq, mac are unused */
    uint8_t intent_mac[32];
    /* An undelivered result to store with the outcome: id, session_id, digest, times and sealed
     * bytes.  Tenant, owner and exec are those of the event.  id 0: none. */
    struct undelivered_row undelivered;
};

/* Makes the file (0600) if it does not exist.  A file that is damaged or not ours is ERR_CONFIG. */
must_check bool spool_open(struct str path, struct spool **ret, struct error *err);
void spool_close(struct spool *s); /* NULL is fine */

/* One step of a transaction: puts an outcome (an existing one stays), or deletes an outcome that
 * the main store has taken. */
struct spool_change {
    const struct spooled *put; /* NULL: delete */
    int64_t exec;              /* to delete; unknown ids are fine */
};
/* All or nothing.  When it returns true, the changes are on the disk. */
must_check bool spool_write(struct spool *s, const struct spool_change *changes, size_t n,
                            struct error *err);
/* Up to `limit` outcomes sorted by exec, after `after`; allocated in `mem`. */
must_check bool spool_page(struct spool *s, int64_t after, unsigned limit, struct arena *mem,
                           struct spooled **ret, size_t *ret_n, struct error *err);
must_check bool spool_count(struct spool *s, int64_t *ret, struct error *err);

#endif
