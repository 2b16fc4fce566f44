/* SPDX-License-Identifier: Apache-2.0 */
/* Shared between the files of the CriticMarkup library; nobody else includes it. */
#ifndef HOLDFAST_CRITIC_CRITIC_IMPL_H
#define HOLDFAST_CRITIC_CRITIC_IMPL_H

#include "critic/critic.h"

enum critic_form { FORM_INSERT, FORM_DELETE, FORM_SUBSTITUTE, FORM_COMMENT, FORM_HIGHLIGHT };

/* Of every form: "{++" and "++}". */
extern const struct critic_marks {
    struct str open, close;
    bool is_change;
} critic_marks[5];

/* One thing a scan finds: code, in which nothing is markup, or one closed mark. */
struct critic_piece {
    bool is_code;
    bool is_fence, is_closed; /* of code; a fence that is not closed ends with the text */
    enum critic_form form;
    size_t from, to;       /* all its bytes */
    size_t body, body_end; /* past the metadata, before the closing mark */
    struct critic_meta meta;
};

/* Backtick runs this long or longer are text. */
#define CRITIC_RUN_MAX 64

/* scan.c: walks a text once, from piece to piece; what lies between them is plain. */
struct critic_scan {
    struct str text;
    struct arena *mem;
    size_t at;
    bool ignores_code;               /* set after critic_scan_begin(): marks in code are marks */
    bool line_start;                 /* in the accepted view */
    size_t para_end;                 /* what last_run was counted up to */
    uint64_t runs;                   /* bit n: last_run[n] is of this paragraph */
    size_t last_run[CRITIC_RUN_MAX]; /* where the paragraph's last backtick run of a length ends */
    size_t steps;                    /* bytes looked at */
};
void critic_scan_begin(struct critic_scan *s, struct str text, struct arena *mem);
bool critic_scan_next(struct critic_scan *s, struct critic_piece *ret);
/* `what` is not empty.  Its last byte is compared first: most of the places that are asked about
 * hold the first byte of every mark, and nothing else of one. */
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

/* meta.c: bytes of the metadata `text` begins with, "@@" included; 0 when there is none. */
#define CRITIC_META_MAX 512
size_t critic_meta_read(struct str text, struct arena *mem, struct critic_meta *ret, size_t *steps);
void critic_meta_write(struct buf *out, const struct critic_author *author);
/* Written by an agent: its author is "AI" or ends in "'s AI". */
bool critic_meta_is_agent(const struct critic_meta *meta);
void critic_comment_write(struct buf *out, struct str text, const struct critic_author *author);

/* view.c: what a span is in the accepted view. */
struct str critic_span_accepted(const struct critic_span *span);
/* The base view without comments: what a suggestion may never change. */
struct str critic_bare_base(const struct critic *c, struct arena *mem);

struct critic_range {
    size_t from, to;
};

/* A difference: [from, to) of the one text is [new_from, new_to) of the other; what lies between
 * hunks is equal. */
struct critic_hunk {
    size_t from, to, new_from, new_to;
};
struct critic_hunks {
    struct critic_hunk *p; /* heap */
    size_t n, cap;
};
void critic_hunks_add(struct critic_hunks *h, struct critic_hunk hunk);
void critic_hunks_release(struct critic_hunks *h);

/* words.c: the differences of two pieces, word by word, in order; added to `out`.  `marks` are
 * ranges of the whole text that are one token each, sorted. */
struct critic_side {
    struct str text;
    size_t from, to;
    const struct critic_range *marks;
    size_t n_marks;
};
void critic_words_diff(const struct critic_side *old, const struct critic_side *fresh,
                       struct critic_hunks *out);

/* remark.c: the comments of what is replaced and of what comes instead. */
struct critic_remark {
    struct critic_range range;
    struct str raw;
    struct critic_meta meta;
    size_t match; /* index in the other list, SIZE_MAX: none */
};
struct critic_remarks {
    struct critic_remark *p; /* in mem */
    size_t n;
};
/* Of the accepted view's [from, to). */
void critic_remarks_of(const struct critic *c, size_t from, size_t to, struct arena *mem,
                       struct critic_remarks *ret);
void critic_remarks_in(struct str text, struct arena *mem, struct critic_remarks *ret);
/* Of a part, as the whole text shows them; ranges count from its beginning. */
void critic_remarks_within(struct str text, struct critic_range within, struct arena *mem,
                           struct critic_remarks *ret);
must_check bool critic_remarks_match(struct critic_remarks *old, struct critic_remarks *fresh,
                                     struct error *err);
/* The comment's own text, behind all metadata. */
struct str critic_remark_text(const struct critic_remark *r, struct arena *mem);
/* `text` with its remarks that match none stamped; their ranges are moved along. */
struct str critic_remarks_stamp(struct str text, struct critic_remarks *fresh,
                                const struct critic_author *author, struct arena *mem);

/* suggest.c: CRITIC_MARKS_MAX and CRITIC_SIZE_MAX. */
must_check bool critic_limits_hold(struct str source, struct error *err);

/* comment.c: refuses new text that holds a mark's delimiter, or forms one with the text around it.
 * Agents write none, in code or outside it, other than the delimiters of comments that `added`
 * lists, and those inside comments that were there before. */
struct critic_input {
    struct str after;           /* the accepted view with the new text in it, not stamped */
    struct critic_range region; /* of `after`: the new text with comments it cuts taken whole */
    const struct critic_remarks *added; /* the region's comments; ranges count from its beginning */
};
must_check bool critic_input_check(const struct critic_input *in, struct arena *mem,
                                   struct error *err);
/* Refuses edits that make marks of text: of code that shows some, by taking it out of the code;
 * and, as not every program that reads CriticMarkup knows code, of marks in code that name their
 * author, by changing what they say.  Both texts are accepted views. */
must_check bool critic_brings_no_marks(struct str before, struct str after, struct arena *mem,
                                       struct error *err);
/* `after` shows a mark that names a person as its author where `before` shows none, to a program
 * that knows no code.  Both texts are sources. */
bool critic_brings_signature(struct str before, struct str after, struct arena *mem);

/* emit.c: the source with each hunk (accepted view to `target`) written as suggestions, or, with
 * no author, as plain text.  Hunks hold whole changes and whole code, or none of them.  With
 * `plain_again` a hunk whose new text is its base becomes plain. */
struct critic_emission {
    const struct critic_hunks *hunks;
    struct str target;
    const struct critic_author *author;
    bool plain_again;
};
/* One change, or plain text, that was written: where it stands in the new source, and of which hunk
 * it is. */
struct critic_unit {
    struct critic_range range;
    size_t hunk;
    bool is_plain;
};
struct critic_emitted {
    struct str source;
    size_t n_marks;                /* each as it is written: a change may need several */
    struct str accepted, rejected; /* the source with the units accepted or rejected, no others */
    struct critic_unit *units;     /* in mem */
    size_t n_units;
    struct critic_range *kept; /* in mem: where old marks stand in the new source, as they were */
    size_t n_kept;
    const struct critic_span *overwritten; /* a person's pending change inside a hunk */
    bool moves_comment;                    /* a person's comment stands inside a hunk */
};
void critic_emit(const struct critic *c, const struct critic_emission *how, struct arena *mem,
                 struct critic_emitted *ret);

/* seam.c: whether some order of decisions puts the halves of a delimiter side by side that a span
 * for which is_new[span] holds was to keep apart, or brings one half of. */
bool critic_seams_meet(const struct critic *c, const bool *is_new);

/* code.c: which of the changes for which is_new[span] holds could make or break code together with
 * text outside of them, so that code elsewhere depends on the decision.  Sets is_bound[span]. */
void critic_code_bound(const struct critic *c, const bool *is_new, bool *is_bound,
                       struct arena *mem);

/* verify.c: whether an emission keeps every promise of critic.h, whatever is decided in whatever
 * order.  *ret_from and *ret_to: hunks that must become one for it; to < from: none. */
struct critic_wanted {
    const struct critic *before;
    struct str after; /* the accepted view */
    const struct critic_author *author;
    bool is_suggestion;
};
bool critic_verify(const struct critic_wanted *want, const struct critic_emitted *out,
                   struct arena *mem, size_t *ret_from, size_t *ret_to);
/* The same for a comment that was added at `at`, and nothing else. */
bool critic_verify_comment(const struct critic *before, struct str result, size_t at,
                           const struct critic_author *author, struct arena *mem);

#endif
