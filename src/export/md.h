/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of Markdown (CommonMark, GitHub) that show any text without an effect of it: no link, no
 * image, no HTML, no mention. */
#ifndef HOLDFAST_EXPORT_MD_H
#define HOLDFAST_EXPORT_MD_H

#include "base/arena.h"
#include "base/buf.h"

/* `text` as code within a line, in as many backticks as it needs.  Line breaks and other invisible
 * characters are shown by their numbers.  At most `max` bytes of the text. */
void md_code(struct buf *out, struct str text, size_t max);
/* `text` as a block of code, between fences longer than any run of backticks in it.  `language` is
 * ours; NULL: none. */
void md_block(struct buf *out, struct str text, const char *language);
/* A JSON value with line breaks and indentation; its tokens keep their bytes. */
void md_json(struct buf *out, struct str json);
/* The same as a block. */
void md_json_block(struct buf *out, struct str json);

#endif
