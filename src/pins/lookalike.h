/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a person, or a model, takes for one another: equal but for case, for letters of other
 * scripts that look the same, for width, or for the way accents are written.  A small table, not
 * all of Unicode; docs/tool-definitions.md says what is in it. */
#ifndef HOLDFAST_PINS_LOOKALIKE_H
#define HOLDFAST_PINS_LOOKALIKE_H

#include "base/buf.h"

#define LOOKALIKE_MAX 2048 /* bytes of a name; no call names more */

/* Adds what `name` looks like: two names are look-alikes when this is the same.  false: nobody can
 * see what it is (control and invisible characters, odd blanks, blanks at an end or side by side,
 * or no UTF-8), or it is too long; then *ret_why is a literal that completes "its name …". */
must_check bool lookalike_fold(struct str name, struct buf *out, const char **ret_why);
/* The same of a name that passed, more loosely: 1, I and | look like l, 0 looks like o.  Too loose
 * for names that came together (page_1, page_l), not for one that comes later. */
void lookalike_fold_loosely(struct str name, struct buf *out);
/* Nobody sees this character, or not what it is. */
bool lookalike_is_unseen(uint32_t code);
/* No other alphabet, no accents. */
bool lookalike_is_ascii(struct str name);

#endif
