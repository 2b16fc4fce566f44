/* SPDX-License-Identifier: Apache-2.0 */
/* A change of sessions as one value: the rows it writes, and what memory takes over once they are
 * durable.  Calls, toolsets, initialize, REST and built-in tools all change sessions through a plan,
 * so a session is created, counted, logged and measured in one way.
 *
 * The caller fills a plan, puts its operations into a batch of the write lane (alone, or beside an
 * intent or another row) and hands the verdicts of the batch to session_plan_committed().  A plan is
 * small and may be copied until then; a zeroed one changes nothing. */
#ifndef HOLDFAST_SESSION_PLAN_H
#define HOLDFAST_SESSION_PLAN_H

#include "session/session.h"

struct session_plan {
    const struct principal *who; /* borrowed until it is committed */

    /* A session that memory holds, borrowed.  Its row is created if it has none yet. */
    struct session *session;
    bool promotes; /* a provisional or uncounted session becomes durable and counted */
    struct session
        *replaces; /* ends because its idle gap has passed; this reference is the plan's */
    struct transport *binds; /* belongs to `session` from now on; borrowed */
    struct str connection;   /* JSON for the row that is created; absent: not known */
    int64_t life_ms;         /* of a promoted session, after its last use */

    /* A session known by its row alone; the rows are the caller's until it is committed. */
    const struct session_row *creates;
    const struct session_row *patches; /* the columns that `fields` names */
    unsigned fields;                   /* enum session_field */
    const struct session_row *ends; /* id, status, reason, terminated_ms; tenant and created_ms are
                                        * those of the session */
    struct sessions *home;          /* with `ends` */

    int64_t max_counted; /* counted sessions that the tenant may have; < 0 for no limit */
};

#define SESSION_PLAN_OPS 5

/* Writes the operations to `ops`, which has room for SESSION_PLAN_OPS, and returns how many they
 * are.  The rows they point to are in `mem`, which must live until the batch is committed. */
size_t session_plan_ops(const struct session_plan *p, struct arena *mem, struct store_op *ops);

/* The batch is decided: `ops` are the plan's own with their verdicts; without `ok` the store failed,
 * and they are not looked at.
 * Counts, logs, and brings memory in step; the plan changes nothing any more afterwards.
 * Returns the first verdict that refuses something, VERDICT_FAILED when the store failed. */
enum verdict session_plan_committed(struct session_plan *p, const struct store_op *ops, size_t n,
                                    bool ok);

/* A plan that was not committed: drops its reference. */
void session_plan_release(struct session_plan *p);

#endif
