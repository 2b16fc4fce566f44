/* SPDX-License-Identifier: Apache-2.0 */
/* A cursor is an opaque text that says where a page ended.  It holds the last row, and a digest of
 * the row, the caller and the query.  A cursor that was changed, or that belongs to another caller
 * or another list, is refused.  A cursor grants no access: the store always filters by the
 * principal. */
#ifndef HOLDFAST_API_CURSOR_H
#define HOLDFAST_API_CURSOR_H

#include "base/arena.h"
#include "base/principal.h"

#define CURSOR_ROW_MAX 1200 /* a document's path with its folder */
struct str cursor_make(const struct principal *who, struct str about, struct str row,
                       struct arena *mem);
must_check bool cursor_read(struct str cursor, const struct principal *who, struct str about,
                            struct arena *mem, struct str *ret_row);

#endif
