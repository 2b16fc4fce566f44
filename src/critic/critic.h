/* SPDX-License-Identifier: Apache-2.0 */
/* CriticMarkup: suggestions and comments inside a text, as a pure library.  Text in, text out; no
 * files, no clock, no global state.  What is not well-formed markup is text: nothing here fails on
 * a document.
 *
 *   {++new++}  {--old--}  {~~old~>new~~}  {>>comment<<}  {==highlight==}
 *
 * Markup inside code fences and code spans is text; so is what is never closed.  A deletion
 * followed at once by an insertion is one change, as is {~~…~>…~~}.  Each may begin with metadata
 * in one of two dialects, {"author":"A","time":SECONDS}@@ or {"author":"A","timestamp":MILLIS}@@.
 *
 * Whatever opens first wins: code hides the marks in it, a mark takes in the code in it.  A change
 * is never nested: one that meets another change's opening mark before its end is text.  Changes
 * side by side are one only when both name the same author or neither names one.
 *
 * Two readings of a document: the accepted view, in which every change has happened, and the base
 * view, in which none has.  In both a highlight is its text and a comment stands as written; a
 * highlight that a deletion takes in stands as written in the base.
 * Agents see and edit the accepted view; people decide each change. */
#ifndef HOLDFAST_CRITIC_CRITIC_H
#define HOLDFAST_CRITIC_CRITIC_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum critic_kind { CRITIC_PLAIN, CRITIC_CHANGE, CRITIC_COMMENT, CRITIC_HIGHLIGHT };

struct critic_meta {
    struct str author; /* absent: not said */
    int64_t time_s;    /* 0: not said */
};

/* One piece of the source; pieces follow each other without gap.  Views point into the source,
 * but for the sides of a change that was written in several marks. */
struct critic_span {
    enum critic_kind kind;
    struct str raw;      /* all its bytes */
    struct str deleted;  /* of a change; absent: it only adds */
    struct str inserted; /* of a change; absent: it only takes away */
    struct str text;     /* of a plain piece, comment or highlight */
    struct critic_meta meta;
};

struct critic {
    struct str source;
    struct critic_span *spans;
    size_t n;
    size_t steps; /* bytes that the parser looked at, each as often as it did */
};

/* Linear in the source, whatever it holds. */
void critic_parse(struct str source, struct arena *mem, struct critic *ret);
/* Whether it holds any markup at all; for most documents the whole answer. */
bool critic_is_plain(struct str source);

/* The accepted and base views, in mem (the source itself where it is plain). */
struct str critic_accepted(const struct critic *c, struct arena *mem);
struct str critic_base(const struct critic *c, struct arena *mem);
/* Where a byte of the accepted view comes from: the index of its span; past the end, the last. */
size_t critic_span_at(const struct critic *c, size_t accepted_at);
/* The accepted view's offset at which a span begins. */
size_t critic_accepted_offset(const struct critic *c, size_t span);

/* What agents may make of a document: so many openings of marks ("{--a--}{++b++}" has two, and one
 * that is never closed counts), so many bytes.  Every edit reads the document some dozens of times,
 * so these bound what one costs. */
#define CRITIC_MARKS_MAX 20000
#define CRITIC_SIZE_MAX (4u * 1024 * 1024)

/* Who suggests. */
struct critic_author {
    struct str name; /* "Chris's AI"; see critic_author_name() */
    int64_t time_s;
};
/* The author of what an agent of `person` writes: quotes, backslashes, control bytes and markup
 * dropped, then "'s AI"; "AI" for a blank or absent one.  In mem, at most 80 bytes, valid UTF-8. */
struct str critic_author_name(struct str person, struct arena *mem);

/* One replacement in the accepted view as suggestions: the smart merge.  Word by word, several
 * small changes; what overlaps a pending change of an agent supersedes it and carries its base
 * forward; what is not touched keeps its bytes.  Promised, for every document, old and new:
 *   accepted(after) = accepted(before) with that one replacement;  base(after) = base(before);
 *   nothing nested;  spans not touched are byte-identical;
 *   every mark, in the file, in the accepted view, and after whatever is decided in whatever order,
 *   is an old one or this author's, and no mark of a person is lost.
 * Comments are no suggestions: base is compared without them, an agent's may be removed at once,
 * and those that `fresh` adds are stamped with the author (do not critic_stamp() it before:
 * comments it leaves as they were must stay byte for byte).  A change inside code takes in the
 * whole code span or fence.  A highlight that is replaced stands in the deletion as it was written.
 * `at` is where old stands in the accepted view. */
struct critic_edit {
    size_t at, n; /* of the accepted view: what is replaced */
    struct str fresh;
    struct critic_author author;
};
/* The new source, in mem.  ERR_BAD_INPUT: the new text holds a delimiter of a mark, or forms one
 * with the text around it, in code or outside; it would change or remove a comment, or replace a
 * pending change, of a person (one whose author is not an agent's, or that does not say); the
 * document would hold too much; or, rarely, the new text makes or breaks code together with text
 * that cannot be taken into the change. */
must_check bool critic_suggest(const struct critic *c, const struct critic_edit *edit,
                               struct arena *mem, struct str *ret, struct error *err);
/* The same replacement without review (agent: write): the accepted view of the touched region is
 * written as plain text; pending changes it touches are thereby accepted. */
must_check bool critic_apply(const struct critic *c, const struct critic_edit *edit,
                             struct arena *mem, struct str *ret, struct error *err);

/* Where `needle` stands in the accepted view: exactly, else with curly quotes taken for straight
 * ones and line ends for each other.  *ret_count counts exact places (or, when there are none, the
 * others), overlapping ones too; *ret_at and *ret_n are the first one's. */
void critic_find(struct str accepted, struct str needle, size_t *ret_at, size_t *ret_n,
                 size_t *ret_count);

/* What agents may not put into their input: the first "{++", "{--", "{~~", "{==", or closing form,
 * of `input`; absent when there is none.  {>>comments<<} are allowed. */
struct str critic_forbidden(struct str input);
/* `input` with every {>>comment<<} stamped with the author, in mem. */
struct str critic_stamp(struct str input, const struct critic_author *author, struct arena *mem);
/* A new comment, or a reply that follows the thread (adjacent comments) standing at `at`, which is
 * an offset into the accepted view.  ERR_BAD_INPUT: the text holds markup, or is blank. */
must_check bool critic_comment(const struct critic *c, size_t at, struct str text,
                               const struct critic_author *author, struct arena *mem,
                               struct str *ret, struct error *err);

/* Review.  A suggestion is named by where its markup begins in the source and its raw bytes; one
 * that is not there any more is not found. */
enum critic_verdict { CRITIC_ACCEPT, CRITIC_REJECT };
struct critic_suggestion {
    size_t span;
    size_t from, to;  /* in the source */
    const char *type; /* "addition", "deletion", "substitution", "comment", "highlight" */
    /* Absent where there is none; a comment's text is new_content, a highlight's old_content.  The
     * contexts are of the accepted view, at most 60 bytes. */
    struct str raw, old_content, new_content, context_before, context_after;
    struct critic_meta meta;
    size_t line; /* of the accepted view, from 1 */
};
/* Every change, comment and highlight, in order; in mem. */
size_t critic_suggestions(const struct critic *c, struct arena *mem,
                          struct critic_suggestion **ret);
/* Decides the spans named (each at most once), all others keep their bytes.  For a comment either
 * verdict removes it; for a highlight either leaves its text. */
struct str critic_decide(const struct critic *c, const size_t *spans,
                         const enum critic_verdict *verdicts, size_t n, struct arena *mem);
/* Whether the result of critic_decide(), or with `text` of critic_decide_as(), reads as its parts
 * do: the marks not named are all there, as they were, and no text has become a mark.  It does not
 * where a change makes or breaks code together with text outside of it, such as one backtick of two
 * that are suggested apart. */
bool critic_decides_cleanly(const struct critic *c, const size_t *spans,
                            const enum critic_verdict *verdicts, size_t n, struct str text);
/* One change's new text replaced by a person, who decides it at once: as critic_decide() with
 * CRITIC_ACCEPT, but with `text`. */
struct str critic_decide_as(const struct critic *c, size_t span, struct str text,
                            struct arena *mem);

#endif
