/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the CriticMarkup library; included nowhere else. */
#ifndef HOLDFAST_DOCS_CRITIC_CRITIC_IMPL_H
#define HOLDFAST_DOCS_CRITIC_CRITIC_IMPL_H

#include "docs/critic/critic.h"

enum critic_form { FORM_INSERT, FORM_DELETE, FORM_SUBSTITUTE, FORM_COMMENT, FORM_HIGHLIGHT };

/* The delimiters of every form, such as "{++" and "++}". */
extern const struct critic_marks {
    struct str open, close;
    bool is_change;
} critic_marks[5];

/* One result of a scan: code, in which there is no markup, or one closed mark. */
struct critic_piece {
    bool is_code;
    bool is_fence, is_closed; /* of code; an unclosed fence ends with the text */
    enum critic_form form;
    size_t from, to;       /* all its bytes */
    size_t body, body_end; /* after the metadata, before the closing mark */
    struct critic_meta meta;
};

/* Backtick runs this long or longer are text. */
#define CRITIC_RUN_MAX 64

/* scan.c: reads a text once, from piece to piece; the text between pieces is plain. */
struct critic_scan {
    struct str text;
    struct arena *mem;
    size_t at;
    bool ignores_code;               /* set after critic_scan_begin(): marks in code count as
                                      * marks */
    bool line_start;                 /* at the start of a line of the accepted view */
    size_t para_end;                 /* end of the paragraph that last_run is for */
    uint64_t runs;                   /* bit n: last_run[n] is valid for this paragraph */
    size_t last_run[CRITIC_RUN_MAX]; /* end of the paragraph's last backtick run, by length */
    size_t steps;                    /* bytes examined */
};
void critic_scan_begin(struct critic_scan *s, struct str text, struct arena *mem);
bool critic_scan_next(struct critic_scan *s, struct critic_piece *ret);
/* `what` is not empty.  Its last byte is compared first: at most places only the first byte, which
 * all opening marks share, matches. */
static inline bool critic_has_at(struct str text, size_t at, struct str what)
{
    return what.n <= text.n && at <= text.n - what.n &&
           text.p[at + what.n - 1] == what.p[what.n - 1] &&
           memcmp(text.p + at, what.p, what.n) == 0;
}
static inline struct str critic_cut(struct str text, size_t from, size_t to)
{
    return text.p ? str_n(text.p + from, to - from) : STR("");
}

/* meta.c: length of the metadata at the start of `text`, with "@@"; 0 when there is none. */
#define CRITIC_META_MAX 512
size_t critic_meta_read(struct str text, struct arena *mem, struct critic_meta *ret, size_t *steps);
void critic_meta_write(struct buf *out, const struct critic_author *author);
/* Whether an agent is the author: the name is "AI" or ends in "'s AI". */
bool critic_meta_is_agent(const struct critic_meta *meta);
void critic_comment_write(struct buf *out, struct str text, const struct critic_author *author);

/* view.c: the text of a span in the accepted view. */
struct str critic_span_accepted(const struct critic_span *span);
/* The base view without comments.  A suggestion never changes it. */
struct str critic_bare_base(const struct critic *c, struct arena *mem);

struct critic_range {
    size_t from, to;
};

/* A difference: [from, to) of one text became [new_from, new_to) of the other.  The texts between
 * hunks are equal. */
struct critic_hunk {
    size_t from, to, new_from, new_to;
};
struct critic_hunks {
    struct critic_hunk *p; /* heap */
    size_t n, cap;
};
void critic_hunks_add(struct critic_hunks *h, struct critic_hunk hunk);
void critic_hunks_release(struct critic_hunks *h);

/* words.c: adds the differences of two texts to `out`, word by word, in order.  `marks` are ranges
 * of the whole text that are one token each, sorted. */
struct critic_side {
    struct str text;
    size_t from, to;
    const struct critic_range *marks;
    size_t n_marks;
};
void critic_words_diff(const struct critic_side *old, const struct critic_side *fresh,
                       struct critic_hunks *out);

/* remark.c: the comments of the replaced text and of the new text. */
struct critic_remark {
    struct critic_range range;
    struct str raw;
    struct critic_meta meta;
    size_t match; /* index in the other list; SIZE_MAX: no match */
};
struct critic_remarks {
    struct critic_remark *p; /* in mem */
    size_t n;
};
/* The comments in [from, to) of the accepted view. */
void critic_remarks_of(const struct critic *c, size_t from, size_t to, struct arena *mem,
                       struct critic_remarks *ret);
void critic_remarks_in(struct str text, struct arena *mem, struct critic_remarks *ret);
/* The comments in a part, as the whole text shows them; ranges count from the part's beginning. */
void critic_remarks_within(struct str text, struct critic_range within, struct arena *mem,
                           struct critic_remarks *ret);
must_check bool critic_remarks_match(struct critic_remarks *old, struct critic_remarks *fresh,
                                     struct error *err);
/* The text of the comment, after all metadata. */
struct str critic_remark_text(const struct critic_remark *r, struct arena *mem);
/* `text` with all unmatched remarks stamped; updates the ranges. */
struct str critic_remarks_stamp(struct str text, struct critic_remarks *fresh,
                                const struct critic_author *author, struct arena *mem);

/* suggest.c: checks CRITIC_MARKS_MAX and CRITIC_SIZE_MAX. */
must_check bool critic_limits_hold(struct str source, struct error *err);

/* comment.c: refuses new text that has a mark's delimiter, or forms one with the text around it.
 * Agents may write only the delimiters of comments listed in `added`, and those inside comments
 * that existed before, in code or outside. */
struct critic_input {
    struct str after;                   /* the accepted view with the new text, not stamped */
    struct critic_range region;         /* in `after`: the new text, widened to whole comments */
    const struct critic_remarks *added; /* the region's comments; ranges count from its start */
};
must_check bool critic_input_check(const struct critic_input *in, struct arena *mem,
                                   struct error *err);
/* Refuses edits that turn text into marks.  One way is to take marks shown as code out of the code.
 * The other is to change the text of a mark in code that names its author: some programs that read
 * CriticMarkup ignore code.  Both texts are accepted views. */
must_check bool critic_brings_no_marks(struct str before, struct str after, struct arena *mem,
                                       struct error *err);
/* Whether `after` has a mark signed by a person that `before` does not have, for a program that
 * ignores code.  Both texts are sources. */
bool critic_brings_signature(struct str before, struct str after, struct arena *mem);

/* emit.c: the source with each hunk (accepted view to `target`) written as suggestions, or, without
 * an author, as plain text.  Hunks contain changes and code whole or not at all.  With
 * `plain_again` a hunk whose new text equals its base becomes plain text. */
struct critic_emission {
    const struct critic_hunks *hunks;
    struct str target;
    const struct critic_author *author;
    bool plain_again;
};
/* One written change or plain text: its place in the new source, and its hunk. */
struct critic_unit {
    struct critic_range range;
    size_t hunk;
    bool is_plain;
};
struct critic_emitted {
    struct str source;
    size_t n_marks;                /* unused */
    struct str accepted, rejected; /* the source with only the units accepted or rejected */
    struct critic_unit *units;     /* in mem */
    size_t n_units;
    struct critic_range *kept; /* in mem: places of unchanged old marks in the new source */
    size_t n_kept;
    const struct critic_span *overwritten; /* a person's pending change inside a hunk */
    bool moves_comment;                    /* a person's comment is inside a hunk */
};
void critic_emit(const struct critic *c, const struct critic_emission *how, struct arena *mem,
                 struct critic_emitted *ret);

/* seam.c: whether some order of decisions could join the halves of a delimiter across spans, if a
 * span with is_new[span] separated the halves or supplies one of them. */
bool critic_seams_meet(const struct critic *c, const bool *is_new);

/* code.c: sets is_bound[span] for each change with is_new[span] that could make or break code
 * together with text outside it, so that code elsewhere depends on the decision. */
void critic_code_bound(const struct critic *c, const bool *is_new, bool *is_bound,
                       struct arena *mem);

/* verify.c: whether an emission keeps every promise of critic.h, for any decisions in any order.
 * *ret_from and *ret_to: the hunks that must be joined for it; to < from: none. */
struct critic_wanted {
    const struct critic *before;
    struct str after; /* the accepted view */
    const struct critic_author *author;
    bool is_suggestion;
};
bool critic_verify(const struct critic_wanted *want, const struct critic_emitted *out,
                   struct arena *mem, size_t *ret_from, size_t *ret_to);
/* The same for a single comment added at `at`. */
bool critic_verify_comment(const struct critic *before, struct str result, size_t at,
                           const struct critic_author *author, struct arena *mem);

#endif
