/* SPDX-License-Identifier: Apache-2.0 */
/* A session, an execution, totals as JSON: the members of seed 004 by their column names, optional
 * ones left out when there is nothing to say, nothing secret ever. */
#ifndef HOLDFAST_SESSION_SESSION_JSON_H
#define HOLDFAST_SESSION_SESSION_JSON_H

#include "json/write.h"
#include "store/store.h"

/* As the row reads now.  session_age is not among its members: it changes every second, and an
 * entity tag is a digest of this text. */
void session_to_json(const struct session_row *row, struct js_writer *w);
/* That text with session_age, the whole seconds since the session was made. */
void session_add_age(struct buf *out, struct str json, int64_t created_ms);
/* From when on its client should refresh it: four fifths of its life are over. */
int64_t session_refresh_due_ms(const struct session_row *row);
void execution_row_to_json(const struct execution_row *row, struct js_writer *w);
void session_totals_to_json(const struct session_totals *totals, struct js_writer *w);
/* RFC 3339 with milliseconds; 0 writes nothing. */
void json_kv_time(struct js_writer *w, const char *key, int64_t wall_ms);

#define SESSION_TAG_TEXT 40
/* An entity tag with its quotes: the row's version, which If-Match is about, and a digest of what
 * is shown, which moves with counters and the clock too. */
void session_tag(int64_t version, struct str json, char ret[SESSION_TAG_TEXT]);
/* The version in a tag of ours, with or without its digest; false when it is none. */
must_check bool session_tag_version(struct str tag, int64_t *ret);

#endif
