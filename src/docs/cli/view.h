/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions on a terminal.  Text of documents never reaches it as control sequences. */
#ifndef HOLDFAST_DOCS_CLI_VIEW_H
#define HOLDFAST_DOCS_CLI_VIEW_H

#include "docs/cli/client.h"

/* Adds the text with invisible characters (base/unicode.h) written as \x1b or \u202e, except
 * tabs, line ends and parts of emoji.  Each line but the first begins with `indent`.  Commands
 * print the texts, names and authors of documents through this function. */
void docs_view_text(struct buf *out, struct str text, const char *indent);
/* The same JSON value, with invisible characters as \u escapes. */
void docs_view_json(struct buf *out, struct str json);
/* "3 min ago"; nothing for 0. */
void docs_view_ago(struct buf *out, int64_t time_ms, int64_t now_ms);
/* "substitution by Ada's AI, 3 min ago" */
void docs_view_about(struct buf *out, const struct docs_item *i, int64_t now_ms);
/* The change in its surroundings: old text struck out in red, new text underlined in green; without
 * colour [-old-] and {+new+}. */
void docs_view_change(struct buf *out, const struct docs_item *i, const char *indent, bool colour);

#endif
