/* SPDX-License-Identifier: Apache-2.0 */
/* What a tool tells a model, in one form whatever way it was written: the members name, title,
 * description, inputSchema, outputSchema and annotations as one JSON object, keys in bytewise order
 * at every depth, no blanks, strings unescaped and quoted anew.  Numbers stay as they were written.
 * A member that is there twice is so here too: readers differ about which of them counts.  Its
 * SHA-256 is the definition's digest. */
#ifndef HOLDFAST_PINS_CANON_H
#define HOLDFAST_PINS_CANON_H

#include "base/buf.h"

/* Of a tool's definition, a JSON object.  false: it cannot be read; `out` is as it was. */
must_check bool tool_canon(struct str definition, struct buf *out);
/* The same JSON for people: two blanks of indent, one member a line; a long string goes on over
 * further lines, broken behind its sentences and line ends, so that a difference shows where it is,
 * and what nobody would see of it is escaped. */
must_check bool tool_canon_pretty(struct str canon, struct buf *out);

#endif
