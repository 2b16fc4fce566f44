/* SPDX-License-Identifier: Apache-2.0 */
/* The difference of two definitions, for people: lines as tool_canon_pretty() writes them, "-"
 * before removed lines, "+" before added lines, and one unchanged line before and after. */
#ifndef HOLDFAST_UPSTREAM_PINS_DIFF_H
#define HOLDFAST_UPSTREAM_PINS_DIFF_H

#include "base/buf.h"

#define TOOL_DIFF_MORE " (there is more than is shown here)\n"
#define TOOL_DIFF_LINES 1000 /* per side; with more, all lines are shown as removed and added */
/* Both texts are canonical; absent when there is no such definition.  Adds at most `max` bytes, and
 * TOOL_DIFF_MORE if more was left out; adds nothing when both are equal. */
void tool_diff(struct str was, struct str now, size_t max, struct buf *out);

#endif
