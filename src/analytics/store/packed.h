/* SPDX-License-Identifier: Apache-2.0 */
/* The hours of a past day in one row.  In PostgreSQL a row of its own has as much overhead as cells, and
 * every writer has rows of its own.  SQLite has neither, so it packs nothing.  A packed row begins with its day and has the
 * writer ROLLUP_PACKED; a reader gets each of its hours (packed_next). */
#ifndef HOLDFAST_ANALYTICS_STORE_PACKED_H
#define HOLDFAST_ANALYTICS_STORE_PACKED_H

#include "analytics/store/cells.h"
#include "analytics/store/rows.h"

/* Gathers rows of one day, in any order, and packs those of each label. */
struct packing;
struct packing *packing_new(struct arena *mem) must_check; /* in mem */
/* `cells` may be those of an hour or of a packed row, and must live as long as mem. */
void packing_add(struct packing *p, int64_t label, int64_t span, struct str cells);
/* The packed rows: span, label, writer and cells are set. */
size_t packing_end(struct packing *p, struct rollup_row **ret);

/* Iterates over a stored row, packed or not: struct packed r = packed_of(row); while (packed_next(&r,
 * &span, &cells)) … */
struct packed {
    struct str rest;
    int64_t span;
    bool is_single;
};
struct packed packed_of(int64_t span, struct str cells);
bool packed_next(struct packed *r, int64_t *ret_span, struct str *ret_cells);

#endif
