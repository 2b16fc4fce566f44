/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical form of a tool definition, independent of its spelling: the members name, title,
 * description, inputSchema, outputSchema and annotations as one JSON object, keys in bytewise order
 * at every depth, no blanks, strings unescaped and quoted again.  Numbers stay as they were
 * written.  Duplicate members are kept: parsers differ in which one counts.  The SHA-256 of this
 * form is the definition's digest. */
#ifndef HOLDFAST_UPSTREAM_PINS_CANON_H
#define HOLDFAST_UPSTREAM_PINS_CANON_H

#include "base/buf.h"

/* Writes the form of `definition`, a JSON object.  False: it cannot be parsed; `out` is
 * unchanged. */
must_check bool tool_canon(struct str definition, struct buf *out);
/* The same JSON for people: two blanks of indent, one member per line.  A long string continues on
 * further lines, broken after sentences and line ends, so that a diff shows the place of a change.
 * Invisible characters are escaped. */
must_check bool tool_canon_pretty(struct str canon, struct buf *out);

#endif
