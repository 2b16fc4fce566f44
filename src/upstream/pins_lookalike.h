/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a person or a model confuses: they differ only in case, in letters of other scripts
 * that look the same, in width, or in the encoding of accents.  Case, width and accents of all
 * scripts count.  Of letters that look the same there is a small table; docs/tool-definitions.md
 * says what is in it. */
#ifndef HOLDFAST_UPSTREAM_PINS_LOOKALIKE_H
#define HOLDFAST_UPSTREAM_PINS_LOOKALIKE_H

#include "base/buf.h"

#define LOOKALIKE_MAX 2048 /* bytes of a name; no call may name more */
/* Bytes of a fold: a character of three bytes may become six letters of three (U+3307). */
#define LOOKALIKE_FOLD_MAX (8 * LOOKALIKE_MAX)

/* Adds the fold of `name` to `out`, whose limit must allow LOOKALIKE_FOLD_MAX more: two names are look-alikes if their folds are equal.  False: the name is
 * not readable (control and invisible characters, odd blanks, blanks at an end or side by side,
 * more than eight marks on one letter, or not UTF-8), or too long; then *ret_why is a literal that
 * completes "its name …". */
must_check bool lookalike_fold(struct str name, struct buf *out, const char **ret_why);
/* A looser fold, for a name that lookalike_fold() accepted: 1, I and | look like l, 0 looks like o.
 * Too loose for names in the same first list (page_1, page_l), but not for a name that comes
 * later. */
void lookalike_fold_loosely(struct str name, struct buf *out);
/* Whether the character is invisible or looks like a blank. */
bool lookalike_is_unseen(uint32_t code);

#endif
