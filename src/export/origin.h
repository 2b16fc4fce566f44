/* SPDX-License-Identifier: Apache-2.0 */
/* The times and counts of a session at the Holdfast where its calls ran.  The row of an imported
 * session has the times of the import, by which this Holdfast ends and deletes it, and counts only
 * what was called here; its lineage keeps those of the origin. */
#ifndef HOLDFAST_EXPORT_ORIGIN_H
#define HOLDFAST_EXPORT_ORIGIN_H

#include "base/arena.h"
#include "store/rows.h"

struct export_origin {
    enum session_status status; /* never idle: that depends on the time of the reading */
    struct str origin, carrier;
    int64_t created_ms, last_activity_ms, terminated_ms;
    int64_t calls, tokens;
};
/* Texts are the row's, or in mem. */
struct export_origin export_origin_of(const struct session_row *row, struct arena *mem);
/* The servers of an imported session at its origin, as far as they are known; in mem. */
struct str *export_origin_servers(const struct session_row *row, struct arena *mem, size_t *ret_n);

#endif
