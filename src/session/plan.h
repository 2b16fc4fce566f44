/* SPDX-License-Identifier: Apache-2.0 */
/* A change of sessions as one value: the rows to write, and the changes in memory once the rows are
 * durable.  Calls, toolsets, initialize, REST and built-in tools all change sessions through a
 * plan, so every session is created, counted, logged and measured in the same way.
 *
 * The caller fills a plan, adds its operations to a batch of the write lane (alone, or beside an
 * intent or another row) and passes the verdicts of the batch to session_plan_committed().  A plan
 * may be copied until then.  A zeroed plan changes nothing. */
#ifndef HOLDFAST_SESSION_PLAN_H
#define HOLDFAST_SESSION_PLAN_H

#include "session/session.h"

struct session_plan {
    const struct principal *who; /* borrowed until the commit */

    /* A session in memory, borrowed.  Its row is created if it has none yet. */
    struct session *session;
    bool promotes; /* a provisional or uncounted session becomes durable and counted */
    /* Ends because its idle gap has passed; the plan owns this reference. */
    struct session *replaces;
    struct transport *binds; /* linked to `session` from now on; borrowed */
    struct str connection;   /* JSON for the created row; absent: not known */
    int64_t life_ms;         /* lifetime of a promoted session after its last use */

    /* A session given by its row alone.  The caller owns the rows until the commit. */
    const struct session_row *creates;
    const struct session_row *patches; /* writes the columns in `fields` */
    unsigned fields;                   /* enum session_field */
    /* Id, status, reason, terminated_ms; tenant and created_ms of the session. */
    const struct session_row *ends;
    struct sessions *home; /* required with `ends` */

    int64_t max_counted; /* maximum of counted sessions of the tenant; < 0: no limit */
};

#define SESSION_PLAN_OPS 6

/* Writes the operations to `ops`, which has room for SESSION_PLAN_OPS, and returns their number.
 * Their rows are in `mem`, which must live until the commit. */
size_t session_plan_ops(const struct session_plan *p, struct arena *mem, struct store_op *ops);

/* Call it when the batch is done: `ops` are the plan's operations with their verdicts.  `ok` false:
 * the store failed; `ops` are ignored, and the plan stays as it is.  Counts, logs, and updates
 * memory.  The plan is then empty.  Returns the first refusing verdict, or VERDICT_FAILED when the
 * store failed. */
enum verdict session_plan_committed(struct session_plan *p, const struct store_op *ops, size_t n,
                                    bool ok);

/* Releases the reference of a plan that was not committed. */
void session_plan_release(struct session_plan *p);

#endif
