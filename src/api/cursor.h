/* SPDX-License-Identifier: Apache-2.0 */
/* Where a page ended, as an opaque text.  It names a row and a digest of it, the asker and what was
 * asked, so that a changed cursor, another's, or one of another list is refused.  It gives no
 * authority: the store filters by the principal whatever the cursor says. */
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
