/* SPDX-License-Identifier: Apache-2.0 */
/* One spelling of a JSON value: keys in bytewise order, no blanks, strings unescaped and quoted again,
 * numbers by their value.  So two values are equal if and only if their bytes here are.  Members with
 * the same key are all kept, in their order. */
#ifndef HOLDFAST_REPLAY_CANON_H
#define HOLDFAST_REPLAY_CANON_H

#include "base/buf.h"
#include "json/read.h"

/* `without`: a key of `value`, an object, whose member is left out; NULL: none. */
void canon_write(const struct js_doc *doc, const struct js_node *value,
                 const struct js_node *without, struct buf *out);

#endif
