/* SPDX-License-Identifier: Apache-2.0 */
/* How tools show a document's accepted view: numbered lines, matching lines, names that match a
 * pattern.  Pure functions over text with limits on patterns; they open no files. */
#ifndef HOLDFAST_DOCS_TEXT_H
#define HOLDFAST_DOCS_TEXT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* Lines end with LF or CRLF.  A line includes neither its end nor, if it is the first, a byte order
 * mark.  A last line without an end counts; "" has no lines.  *ret in mem. */
size_t text_lines(struct str text, struct arena *mem, struct str **ret);
/* Returns the line at *at and moves *at to the next line; false at the end of the text. */
bool text_line_next(struct str text, size_t *at, struct str *ret_line);

/* cat -n: "%6zu\t%s", lines joined by '\n', from `offset` (1-based; 0 is 1), at most `limit`. */
void text_number(struct buf *out, const struct str *lines, size_t n, size_t offset, size_t limit);

/* Name patterns.  `**` stands for any number of parts, `*` and `?` stay within one part, [a-z] and
 * {a,b} work as usual, \ quotes the next character.  The pattern is matched against the whole path.
 * Case matters.  Matching is never worse than linear in pattern × name.  ERR_BAD_INPUT: empty,
 * unbalanced, longer than 1,024 bytes, or too many alternatives (more than 128, or 8 KiB when
 * written out). */
struct glob;
must_check bool glob_compile(struct str pattern, struct arena *mem, struct glob **ret,
                             struct error *err);
bool glob_matches(const struct glob *g, struct str path);

/* Line patterns.  PCRE2 (UTF, JIT, limits on matching, heap and depth).  If a pattern hits a limit
 * on one document, or takes 500 ms for it, the search of that document ends with ERR_TIMEOUT. */
struct grep;
struct grep_options {
    bool ignore_case;
    unsigned before, after; /* context lines, at most 50 each */
    enum { GREP_FILES, GREP_CONTENT, GREP_COUNT } mode;
    size_t head_limit; /* entries, lines or counts shown over all documents; 0: 250 */
};
/* ERR_BAD_INPUT with "Invalid regex pattern: …".  A pattern has at most 4,096 bytes. */
must_check bool grep_compile(struct str pattern, const struct grep_options *options,
                             struct grep **ret, struct error *err);
void grep_free(struct grep *g); /* NULL is fine */
/* Adds the matches in `path`, in ripgrep's layout: PATH | PATH:N:TEXT, PATH-N-TEXT, and with
 * context "--" between groups that do not touch (also between documents) | PATH:COUNT.  Entries are
 * joined by '\n', also those of several calls; the last has none.  Lines longer than 2,000 bytes
 * are shown in part and say so.  An `out` at its ceiling counts as head_limit reached.
 * ERR_BAD_INPUT: not UTF-8.  On failure the entries found before stay in `out`. */
must_check bool grep_document(struct grep *g, struct str path, struct str text, struct buf *out,
                              struct error *err);
/* head_limit is reached: nothing more will be added.  *ret_more: entries were left out.  To learn
 * whether further documents have more, the caller must search them too. */
bool grep_is_full(const struct grep *g, bool *ret_more);
/* Matching lines so far, shown or not (GREP_FILES: documents; a search ends at its first match). */
size_t grep_matches(const struct grep *g);

#endif
