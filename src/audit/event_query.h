/* SPDX-License-Identifier: Apache-2.0 */
/* The query string of GET /api/v1/audit/events, both ways:
 *   after= before= exec= ("3.17")  since= (ms since 1970)  session= server= tool= outcome= tenant=
 *   session_prefix= (how the id begins)  open=0|1 (only intents without an outcome)
 *   kind= (intent …)  order=oldest|newest  bodies=0|1  limit= (1 to 200) */
#ifndef HOLDFAST_AUDIT_EVENT_QUERY_H
#define HOLDFAST_AUDIT_EVENT_QUERY_H

#include "base/buf.h"
#include "store/store.h"

#define EVENTS_PAGE_MAX 200
#define EVENTS_PAGE_DEFAULT 100

/* Decoded texts are allocated in `mem`.  An unknown parameter is an error. */
must_check bool audit_events_query_parse(struct str query, struct event_filter *ret,
                                         unsigned *ret_limit, struct arena *mem, struct error *err);
/* Appends the query that audit_events_query_parse() reads back as `filter` and `limit`. */
void audit_events_query_format(const struct event_filter *filter, unsigned limit, struct buf *out);

/* Percent-encodes one value of a query. */
void audit_query_encode(struct str value, struct buf *out);

#endif
