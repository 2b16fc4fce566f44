/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions for a terminal.  What documents hold never reaches it as control sequences. */
#ifndef HOLDFAST_CLI_DOCS_VIEW_H
#define HOLDFAST_CLI_DOCS_VIEW_H

#include "cli/docs_client.h"

/* Text with every character that cannot be seen (base/invisible.h) but tab and line end made
 * visible as \x1b or \u202e; each line but the first begins with `indent`.  Whatever a command
 * prints of documents, names and authors goes through here. */
void docs_view_text(struct buf *out, struct str text, const char *indent);
/* JSON that says the same, with those characters as \u escapes. */
void docs_view_json(struct buf *out, struct str json);
/* "3 min ago"; nothing for 0. */
void docs_view_ago(struct buf *out, int64_t time_ms, int64_t now_ms);
/* "substitution by Ada's AI, 3 min ago" */
void docs_view_about(struct buf *out, const struct docs_item *i, int64_t now_ms);
/* The change in its surroundings: what goes struck out and red, what comes underlined and green;
 * without colour [-so-] and {+so+}. */
void docs_view_change(struct buf *out, const struct docs_item *i, const char *indent, bool colour);

#endif
