/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of resident sessions for REST and for the built-in session server, beside the MCP lookups of
 * session.h.  Both use the same cache: a session is resident once, whichever of them loaded it.
 *
 * REST reads need no links, so a session that REST loaded has `links_known` false.  An MCP lookup
 * loads such a session again.  When the cache is full, such sessions are dropped first, so a client
 * that reads many sessions does not displace those that MCP clients use.
 *
 * A resident session may hold a snapshot: its row as the store had it, with all columns, and its
 * JSON.  The caller decides whether the snapshot is current (read_your_writes.h).  All snapshots
 * together are bounded in bytes; above that the least recently used is dropped. */
#ifndef HOLDFAST_SESSION_RESIDENT_H
#define HOLDFAST_SESSION_RESIDENT_H

#include "base/buf.h"
#include "session/session.h"
#include "session/session_json.h"

#define SNAPSHOT_BYTES_MAX ((size_t)8 << 20) /* about 3000 rows without large metadata */

struct session_snapshot {
    struct list node; /* in the list of all snapshots, least recently used first */
    struct session *of;
    struct arena *mem;
    struct session_row row; /* as read */
    uint64_t stamp;         /* of the session's id, when the row was current */
    int64_t read_ms;        /* monotonic */
    /* JSON of the row with its status, valid until valid_ms for this idle_ms; empty: not written
     * yet. */
    struct buf json;
    int64_t valid_ms, idle_ms;
    char tag[SESSION_TAG_TEXT];
    size_t bytes; /* counted for this snapshot */
};

/* The resident session of this name that `who` may see, borrowed; NULL: ask the store.  Never a
 * session that is over or that has no row yet.  Makes it the most recently used. */
struct session *sessions_known(struct sessions *s, const struct principal *who, struct str name,
                               bool by_id);
/* The resident session of a row that was just read or written, borrowed; loads it if needed.
 * `since`: sessions_changes() before the read.  NULL: the session is over or was changed since, or
 * the cache is full of sessions in use. */
struct session *sessions_know_row(struct sessions *s, const struct session_row *row,
                                  uint64_t since);
/* A new resident session of the row, with its columns but without links, and with one reference. */
struct session *session_of_row(struct sessions *s, const struct session_row *row) must_check;
/* Sets the columns of a session without links to those of a newer row. */
void session_take_row(struct session *s, const struct session_row *row);

/* Replaces the snapshot; copies the row. */
struct session_snapshot *session_keep_snapshot(struct session *s, const struct session_row *row,
                                               uint64_t stamp);
/* Call it after `json` was written, or the snapshot was used. */
void snapshot_used(struct session_snapshot *snapshot);
void session_drop_snapshot(struct session *s);
size_t sessions_snapshot_bytes(const struct sessions *s);

/* A copy of the row with all its texts in `mem`. */
struct session_row session_row_dup(const struct session_row *row, struct arena *mem);

#endif
