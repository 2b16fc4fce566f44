/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted and said of sessions, whoever makes or ends them: REST, MCP traffic, the reaper.
 * Names and labels are INTERFACE §6.  Loop thread only. */
#ifndef HOLDFAST_SESSION_SESSION_METRICS_H
#define HOLDFAST_SESSION_SESSION_METRICS_H

#include "store/rows.h"

void session_metrics_start(void); /* registers them all, so that they are shown at zero */

/* client_type absent: not known, shown as "". */
void session_metric_created(struct str tenant, struct str client_type);
/* Why none could be made; what a caller asked wrongly (400, 409) is no failure of ours. */
enum session_create_failure { CREATE_OVER_LIMIT, CREATE_STORE_FAILED };
void session_metric_create_failed(enum session_create_failure why);
/* status: SESSION_EXPIRED or SESSION_TERMINATED; from its creation to its end. */
void session_metric_ended(enum session_status status, int64_t lived_ms);
/* tokens <= 0: none were told. */
void session_metric_executed(struct str tenant, struct str tool, int64_t tokens);
/* Something could not be sealed, or what was sealed not opened. */
enum crypt_failure { CRYPT_SEAL, CRYPT_OPEN };
void session_metric_crypt_failed(enum crypt_failure what);

/* A new row was committed: "Session created", and counted. */
void session_tell_created(const struct session_row *row);
/* A session was ended and that is committed: "Session terminated" with its reason (or, expired,
 * nothing but the count). */
void session_tell_ended(struct str id, struct str tenant, enum session_status status,
                        struct str reason, int64_t lived_ms);

#endif
