/* SPDX-License-Identifier: Apache-2.0 */
/* A person's decision about suggestions, as a change of a document.  It finds the suggestions again
 * in the document's present text, and accepts, rejects or answers them.  Pure over text, so it may
 * run on a worker, and again on a text that a person saved meanwhile. */
#ifndef HOLDFAST_DOCS_DECIDE_H
#define HOLDFAST_DOCS_DECIDE_H

#include "docs/critic/critic.h"
#include "docs/docs.h"

#define DECIDE_ITEMS_MAX 500 /* per batch */

enum decide_action { DECIDE_ACCEPT, DECIDE_REJECT, DECIDE_REPLY };

/* A suggestion as it was shown.  It matches the suggestion at `from` with these bytes; if that has
 * moved, the only one with these bytes and this context, or the only one with these bytes. */
struct decide_item {
    struct str raw;
    int64_t from;             /* < 0: not given */
    struct str before, after; /* absent: not given */
};
struct decide_request {
    enum decide_action action;
    const struct decide_item *items;
    size_t n;
    /* DECIDE_ACCEPT of one change: replaces the suggested text; absent: the suggested text is used.
     * DECIDE_REPLY to one suggestion: the comment. */
    struct str text;
    struct critic_author author; /* of a comment */
};

/* DECIDE_TOGETHER: nothing was decided, because remaining marks would become code, or code would
 * become marks. */
enum decide_result { DECIDE_DONE, DECIDE_GONE, DECIDE_TWICE, DECIDE_TOGETHER };
/* "suggestion no longer found in document" … */
const char *decide_reason(enum decide_result result);

/* ERR_BAD_INPUT: the request is invalid for every document. */
must_check bool decide_check(const struct decide_request *r, struct error *err);
/* Returns the new text, in mem (the source itself when nothing was decided); results[n] has the
 * result of each item. */
struct str suggestions_decide(const struct decide_request *r, struct str source, struct arena *mem,
                              enum decide_result *results);

/* The same as a change, with copies of all arguments. */
struct docs_change *decide_change_new(const struct decide_request *r) must_check;
/* The n results of its last run; owned by the change. */
const enum decide_result *decide_change_results(const struct docs_change *c);

#endif
