/* SPDX-License-Identifier: Apache-2.0 */
/* How one definition differs from another, for people: lines of both as tool_canon_pretty() writes
 * them, "-" before those that went, "+" before those that came, a line of what stayed around them.
 */
#ifndef HOLDFAST_PINS_DIFF_H
#define HOLDFAST_PINS_DIFF_H

#include "base/buf.h"

#define TOOL_DIFF_MORE " (there is more than is shown here)\n"
#define TOOL_DIFF_LINES 1000 /* of one side; more are shown as gone and come whole */
/* Both canonical; absent: there is none.  At most `max` bytes are added, and then TOOL_DIFF_MORE;
 * nothing when both are the same. */
void tool_diff(struct str was, struct str now, size_t max, struct buf *out);

#endif
