/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions, executions and totals as JSON.  Members have the names of their columns.  Optional
 * members are omitted when empty.  Secrets are never written. */
#ifndef HOLDFAST_SESSION_SESSION_JSON_H
#define HOLDFAST_SESSION_SESSION_JSON_H

#include "json/write.h"
#include "store/store.h"

/* Writes the row with its current status.  Omits session_age: it changes every second, and the
 * entity tag is a digest of this text. */
void session_to_json(const struct session_row *row, struct js_writer *w);
/* Adds session_age to that text: whole seconds since the session was created. */
void session_add_age(struct buf *out, struct str json, int64_t created_ms);
/* When the client should refresh: after four fifths of the lifetime. */
int64_t session_refresh_due_ms(const struct session_row *row);
void execution_row_to_json(const struct execution_row *row, struct js_writer *w);
void session_totals_to_json(const struct session_totals *totals, struct js_writer *w);
/* RFC 3339 with milliseconds; 0 writes nothing. */
void json_kv_time(struct js_writer *w, const char *key, int64_t wall_ms);

#define SESSION_TAG_TEXT 40
/* An entity tag with quotes: the row's version, for If-Match, and a digest of the JSON text, which
 * also changes with counters and time. */
void session_tag(int64_t version, struct str json, char ret[SESSION_TAG_TEXT]);
/* The version in such a tag, with or without the digest; false when the tag has another form. */
must_check bool session_tag_version(struct str tag, int64_t *ret);

#endif
