/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics and log lines about sessions, for all callers that create or end them: REST, MCP traffic,
 * the reaper.  Loop thread only. */
#ifndef HOLDFAST_SESSION_SESSION_METRICS_H
#define HOLDFAST_SESSION_SESSION_METRICS_H

#include "store/rows.h"

void session_metrics_start(void); /* registers all metrics, so that they are shown at zero */

/* client_type absent: not known, shown as "". */
void session_metric_created(struct str tenant, struct str client_type);
/* Why a session could not be created.  Errors of the caller (400, 409) do not count. */
enum session_create_failure { CREATE_OVER_LIMIT, CREATE_STORE_FAILED };
void session_metric_create_failed(enum session_create_failure why);
/* status: SESSION_EXPIRED or SESSION_TERMINATED; lived_ms: from creation to end. */
void session_metric_ended(enum session_status status, int64_t lived_ms);
/* tokens <= 0: not reported. */
void session_metric_executed(struct str tenant, struct str tool, int64_t tokens);
/* Sealing or opening failed. */
enum crypt_failure { CRYPT_SEAL, CRYPT_OPEN };
void session_metric_crypt_failed(enum crypt_failure what);

/* After the commit of a new row: logs "Session created" and counts it. */
void session_report_created(const struct session_row *row);
/* After the commit of an end: logs "Session terminated" with its reason and counts it; an expired
 * session is only counted. */
void session_report_ended(struct str id, struct str tenant, enum session_status status,
                          struct str reason, int64_t lived_ms);

#endif
