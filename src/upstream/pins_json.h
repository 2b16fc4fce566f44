/* SPDX-License-Identifier: Apache-2.0 */
/* Tools as the API shows them. */
#ifndef HOLDFAST_UPSTREAM_PINS_JSON_H
#define HOLDFAST_UPSTREAM_PINS_JSON_H

#include "json/write.h"
#include "store/store.h"

/* "approved", "changed", "new" (never approved), "gone". */
const char *tool_state(const struct tool_row *row);
/* {"server":…,"name":…,"state":…}, with the definition if the row has it. */
void tool_write(struct js_writer *w, const struct tool_row *row);
/* {"server":…,"name":…,"state":…,"diff":"…"}: the diff from the approved to the last definition. */
void tool_diff_write(struct buf *out, const struct tool_row *row);
#define TOOL_SHOWN_DIFF (256u * 1024)
/* In place of a diff. */
#define TOOL_TOO_LONG                                                                              \
    "(one of the two definitions has more than 64 KiB and is not stored; read it at the server "   \
    "itself before you approve it)\n"

#endif
