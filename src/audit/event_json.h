/* SPDX-License-Identifier: Apache-2.0 */
/* Events as JSON, for the API and `--json`.  The conversion is exact in both directions
 * (absent and empty differ, bytes that are not UTF-8 become {"hex":"…"}), so that a client of the
 * socket can verify a chain. */
#ifndef HOLDFAST_AUDIT_EVENT_JSON_H
#define HOLDFAST_AUDIT_EVENT_JSON_H

#include "json/read.h"
#include "json/write.h"
#include "store/rows.h"

void event_to_json(const struct event_row *e, struct js_writer *w);
/* Texts are views into the document or copies in `mem`.  *ret is untouched on failure. */
must_check bool event_from_json(const struct js_doc *doc, const struct js_node *v,
                                struct arena *mem, struct event_row *ret, struct error *err);

/* A page of GET /api/v1/audit/events: members of an open object, {"events":[…]}; `scanned` as in
 * event_filter. */
void events_write(struct js_writer *w, const struct event_row *rows, size_t n, int64_t scanned);
must_check bool events_from_json(struct str text, struct arena *mem, struct event_row **ret_rows,
                                 size_t *ret_n, int64_t *ret_scanned, struct error *err);

/* "intent", "outcome" …; NULL for an unknown number. */
const char *event_kind_name(int kind);
must_check bool event_kind_parse(struct str name, int *ret_kind);

#endif
