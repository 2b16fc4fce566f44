/* SPDX-License-Identifier: Apache-2.0 */
/* CriticMarkup: suggestions and comments inside a text, as a pure library.  Text in, text out; no
 * files, no clock, no global state.  Malformed markup is text: no document makes the parser fail.
 *
 *   {++new++}  {--old--}  {~~old~>new~~}  {>>comment<<}  {==highlight==}
 *
 * Markup inside code fences and code spans is text, and so is unclosed markup.  A deletion directly
 * followed by an insertion is one change, as is {~~…~>…~~}.  Each mark may begin with metadata in
 * one of two dialects, {"author":"A","time":SECONDS}@@ or {"author":"A","timestamp":MILLIS}@@.
 *
 * The construct that opens first wins: code hides the marks in it, a mark takes in the code in it.
 * A change is never nested: if another change opens before its end, the first opening is text.
 * Adjacent changes are one only if both name the same author or neither names one.
 *
 * A document has two views: in the accepted view every change has happened, in the base view none
 * has.  In both a highlight is its text and a comment stays as written.  A highlight inside a
 * deletion stays as written in the base.  Agents see and edit the accepted view; people decide each
 * change. */
#ifndef HOLDFAST_DOCS_CRITIC_CRITIC_H
#define HOLDFAST_DOCS_CRITIC_CRITIC_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum critic_kind { CRITIC_PLAIN, CRITIC_CHANGE, CRITIC_COMMENT, CRITIC_HIGHLIGHT };

struct critic_meta {
    struct str author; /* absent when not given */
    int64_t time_s;    /* 0 when not given */
};

/* One piece of the source; pieces follow each other without gaps.  The strings point into the
 * source, except the sides of a change that was written in several marks. */
struct critic_span {
    enum critic_kind kind;
    struct str raw;      /* all its bytes */
    struct str deleted;  /* of a change; absent for a pure insertion */
    struct str inserted; /* of a change; absent for a pure deletion */
    struct str text;     /* of a plain piece, comment or highlight */
    struct critic_meta meta;
};

struct critic {
    struct str source;
    struct critic_span *spans;
    size_t n;
    size_t steps; /* bytes that the parser examined, counting repetitions */
};

/* Linear in the length of every source. */
void critic_parse(struct str source, struct arena *mem, struct critic *ret);
/* Whether the source has no markup; true for most documents. */
bool critic_is_plain(struct str source);

/* The accepted and base views, in mem (the source itself if it is plain). */
struct str critic_accepted(const struct critic *c, struct arena *mem);
struct str critic_base(const struct critic *c, struct arena *mem);
/* The index of the span that a byte of the accepted view comes from; past the end, the last
 * span. */
size_t critic_span_at(const struct critic *c, size_t accepted_at);
/* The offset in the accepted view at which a span begins. */
size_t critic_accepted_offset(const struct critic *c, size_t span);

/* Limits on documents that agents edit: the number of mark openings ("{--a--}{++b++}" has two, and
 * an unclosed opening counts) and of bytes.  Every edit reads the document some dozens of times, so
 * the limits bound the cost of an edit. */
#define CRITIC_MARKS_MAX 20000
#define CRITIC_SIZE_MAX (4u * 1024 * 1024)

/* The author of a suggestion. */
struct critic_author {
    struct str name; /* "Chris's AI"; see critic_author_name() */
    int64_t time_s;
};
/* The author name for an agent of `person`: without quotes, backslashes, control characters and
 * markup, then "'s AI"; "AI" if `person` is blank or absent.  In mem, at most 80 bytes, valid
 * UTF-8. */
struct str critic_author_name(struct str person, struct arena *mem);

/* Writes one replacement in the accepted view as suggestions: the smart merge.  It compares word by
 * word and writes several small changes.  A difference that overlaps a pending change of an agent
 * supersedes that change and carries its base forward.  Text outside the differences keeps its
 * bytes.  Promised, for every document, old and new:
 *   accepted(after) = accepted(before) with that one replacement;  base(after) = base(before);
 *   nothing nested;  spans not touched are byte-identical;
 *   every mark, in the file, in the accepted view, and after any decisions in any order, is an old
 *   one or this author's, and no mark of a person is lost.
 * Comments are not suggestions: base is compared without them, an agent's comment may be removed at
 * once, and comments that `fresh` adds are stamped with the author.  (Do not critic_stamp() `fresh`
 * before: its unchanged comments must stay byte for byte.)  A change inside code takes in the whole
 * code span or fence.  A replaced highlight stays in the deletion as it was written. */
struct critic_edit {
    size_t at, n; /* the replaced range of the accepted view */
    struct str fresh;
    struct critic_author author;
};
/* Returns the new source, in mem.  ERR_BAD_INPUT: the new text has a delimiter of a mark, or forms
 * one with the text around it, in code or outside; the edit would change or remove a comment, or
 * replace a pending change, of a person (any author that is not an agent, or no author); the
 * document would exceed a limit; or, rarely, the new text makes or breaks code together with text
 * that cannot be taken into the change. */
must_check bool critic_suggest(const struct critic *c, const struct critic_edit *edit,
                               struct arena *mem, struct str *ret, struct error *err);
/* Makes the same replacement without review (agent: write).  The accepted view of the touched
 * region is written as plain text, so pending changes in it are accepted. */
must_check bool critic_apply(const struct critic *c, const struct critic_edit *edit,
                             struct arena *mem, struct str *ret, struct error *err);

/* Finds `needle` in the accepted view: exactly, else with curly quotes equal to straight ones and
 * CR LF equal to LF.  *ret_count counts the exact matches (or, if there are none, the others),
 * overlapping ones too; *ret_at and *ret_n give the first match. */
void critic_find(struct str accepted, struct str needle, size_t *ret_at, size_t *ret_n,
                 size_t *ret_count);

/* The first delimiter that agents may not use in their input: "{++", "{--", "{~~", "{==", or a
 * closing form; absent when there is none.  {>>comments<<} are allowed. */
struct str critic_forbidden(struct str input);
/* `input` with every {>>comment<<} stamped with the author, in mem. */
struct str critic_stamp(struct str input, const struct critic_author *author, struct arena *mem);
/* Adds a comment, or a reply at the end of the thread (adjacent comments) at `at`, an offset into
 * the accepted view.  ERR_BAD_INPUT: the text is blank or has markup, a comment cannot be
 * placed there, or the document would exceed a limit. */
must_check bool critic_comment(const struct critic *c, size_t at, struct str text,
                               const struct critic_author *author, struct arena *mem,
                               struct str *ret, struct error *err);

/* Review.  A suggestion is identified by the start of its markup in the source and its raw bytes.
 * If the bytes are no longer there, it is not found. */
enum critic_verdict { CRITIC_ACCEPT, CRITIC_REJECT };
struct critic_suggestion {
    size_t span;
    size_t from, to;  /* in the source */
    const char *type; /* "addition", "deletion", "substitution", "comment", "highlight" */
    /* Absent when the type does not have it; a comment's text is new_content, a highlight's
     * old_content.  The contexts are from the accepted view, at most 60 bytes. */
    struct str raw, old_content, new_content, context_before, context_after;
    struct critic_meta meta;
    size_t line; /* in the accepted view, from 1 */
};
/* Every change, comment and highlight, in order; in mem. */
size_t critic_suggestions(const struct critic *c, struct arena *mem,
                          struct critic_suggestion **ret);
/* Decides the named spans (each at most once); all others keep their bytes.  Either verdict removes
 * a comment; either verdict leaves a highlight's text. */
struct str critic_decide(const struct critic *c, const size_t *spans,
                         const enum critic_verdict *verdicts, size_t n, struct arena *mem);
/* Whether the result of critic_decide(), or with `text` of critic_decide_as(), reads like its
 * parts: all other marks are unchanged, and no text has become a mark.  False if a change makes or
 * breaks code together with text outside it, for example one of two backticks that are suggested
 * separately. */
bool critic_decides_cleanly(const struct critic *c, const size_t *spans,
                            const enum critic_verdict *verdicts, size_t n, struct str text);
/* Like critic_decide() with CRITIC_ACCEPT for one change, but with the person's `text` in place of
 * the suggested text. */
struct str critic_decide_as(const struct critic *c, size_t span, struct str text,
                            struct arena *mem);

#endif
