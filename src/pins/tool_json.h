/* SPDX-License-Identifier: Apache-2.0 */
/* Tools as commands show them: the same JSON from a running Holdfast and from the store alone. */
#ifndef HOLDFAST_PINS_TOOL_JSON_H
#define HOLDFAST_PINS_TOOL_JSON_H

#include "json/write.h"
#include "store/store.h"

/* "approved", "changed", "new" (never approved), "gone". */
const char *tool_state(const struct tool_row *row);
/* {"tools":[…],"next":{"server":…,"name":…}}; next only when the page is full. */
void tools_write(struct buf *out, const struct tool_row *rows, size_t n, size_t full);
/* {"server":…,"name":…,"state":…,"diff":"…"}: the diff from the approved to the last definition. */
void tool_diff_write(struct buf *out, const struct tool_row *row);
#define TOOL_SHOWN_DIFF (256u * 1024)
/* In place of a diff. */
#define TOOL_TOO_LONG                                                                              \
    "(one of the two definitions has more than 64 KiB and is not kept; read it at the server "     \
    "itself before you approve it)\n"

#endif
