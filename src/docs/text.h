/* SPDX-License-Identifier: Apache-2.0 */
/* What tools show of a document's accepted view: numbered lines, matching lines, names that fit a
 * pattern.  Pure functions over text; the limits on patterns are here, the files are not. */
#ifndef HOLDFAST_DOCS_TEXT_H
#define HOLDFAST_DOCS_TEXT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* Lines end with LF or CRLF, which is not part of them, nor is a byte order mark of the first; a
 * last line without one is a line, "" has none.  *ret in mem. */
size_t text_lines(struct str text, struct arena *mem, struct str **ret);
/* The same one by one: the line at *at, which moves on to the next; false: there is none. */
bool text_line_next(struct str text, size_t *at, struct str *ret_line);

/* cat -n: "%6zu\t%s", lines joined by '\n', from `offset` (1-based; 0 is 1), at most `limit`. */
void text_number(struct buf *out, const struct str *lines, size_t n, size_t offset, size_t limit);

/* Names.  `**` stands for any number of parts, `*` and `?` stay within one, [a-z] and {a,b} as
 * usual, \ before a character takes it as it is; matched against the whole path.  Case matters.  No
 * pattern is worse than linear in pattern × name.  ERR_BAD_INPUT: empty, unbalanced, longer than
 * 1,024 bytes, or too many alternatives (128 of them, 8 KiB when written out). */
struct glob;
must_check bool glob_compile(struct str pattern, struct arena *mem, struct glob **ret,
                             struct error *err);
bool glob_matches(const struct glob *g, struct str path);

/* Lines.  PCRE2 (UTF, JIT, limits on matching, heap and depth); a pattern that runs into its limit
 * on one document, or takes 500 ms for it, ends that document's search with ERR_TIMEOUT. */
struct grep;
struct grep_options {
    bool ignore_case;
    unsigned before, after; /* context lines, at most 50 each */
    enum { GREP_FILES, GREP_CONTENT, GREP_COUNT } mode;
    size_t head_limit; /* entries, lines or counts shown in all; 0: 250 */
};
/* ERR_BAD_INPUT with "Invalid regex pattern: …".  A pattern has at most 4,096 bytes. */
must_check bool grep_compile(struct str pattern, const struct grep_options *options,
                             struct grep **ret, struct error *err);
void grep_free(struct grep *g); /* NULL is fine */
/* Adds what `path` has, in ripgrep's layout: PATH | PATH:N:TEXT, PATH-N-TEXT, and where context is
 * asked for "--" between groups that do not touch (also between documents) | PATH:COUNT.  Entries
 * are joined by '\n', also those of several calls; the last has none.  Lines longer than 2,000
 * bytes are shown in part and say so.  An `out` at its ceiling is as good as head_limit.
 * ERR_BAD_INPUT: not UTF-8.  On failure what was found before stays in `out`. */
must_check bool grep_document(struct grep *g, struct str path, struct str text, struct buf *out,
                              struct error *err);
/* head_limit is reached: nothing more will be added.  *ret_more: something was left out; going on
 * with further documents finds out whether there is, at the price of searching them. */
bool grep_is_full(const struct grep *g, bool *ret_more);
/* Matching lines so far, shown or not (GREP_FILES: documents, for each is left at its first). */
size_t grep_matches(const struct grep *g);

#endif
