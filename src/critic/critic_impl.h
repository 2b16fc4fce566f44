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
    bool line_start;                 /* in the accepted view */
    size_t para_end;                 /* what last_run was counted up to */
    size_t last_run[CRITIC_RUN_MAX]; /* where the paragraph's last backtick run of a length ends */
};
void critic_scan_begin(struct critic_scan *s, struct str text, struct arena *mem);
bool critic_scan_next(struct critic_scan *s, struct critic_piece *ret);
static inline bool critic_has_at(struct str text, size_t at, struct str what)
{
    return at < text.n && str_starts(str_n(text.p + at, text.n - at), what);
}
static inline struct str critic_cut(struct str text, size_t from, size_t to)
{
    return text.p ? str_n(text.p + from, to - from) : STR("");
}

/* meta.c: bytes of the metadata `text` begins with, "@@" included; 0 when there is none. */
#define CRITIC_META_MAX 512
size_t critic_meta_read(struct str text, struct arena *mem, struct critic_meta *ret);
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
must_check bool critic_remarks_match(struct critic_remarks *old, struct critic_remarks *fresh,
                                     struct error *err);
/* `text` with its remarks that match none stamped; their ranges are moved along. */
struct str critic_remarks_stamp(struct str text, struct critic_remarks *fresh,
                                const struct critic_author *author, struct arena *mem);

/* emit.c: the source with each hunk (accepted view to `target`) written as suggestions, or, with
 * no author, as plain text.  Hunks hold whole changes and whole code, or none of them.  With
 * `plain_again` a hunk whose new text is its base becomes plain. */
struct critic_emission {
    const struct critic_hunks *hunks;
    struct str target;
    const struct critic_author *author;
    bool plain_again;
};
struct str critic_emit(const struct critic *c, const struct critic_emission *how,
                       struct arena *mem);

#endif
