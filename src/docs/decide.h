/* SPDX-License-Identifier: Apache-2.0 */
/* What a person decides about suggestions, as a change of a document: found again in whatever the
 * document holds by then, accepted, rejected or answered.  Pure over text, so it may be run on a
 * worker, and again on what somebody saved meanwhile. */
#ifndef HOLDFAST_DOCS_DECIDE_H
#define HOLDFAST_DOCS_DECIDE_H

#include "critic/critic.h"
#include "docs/docs.h"

#define DECIDE_ITEMS_MAX 500 /* of one batch */

enum decide_action { DECIDE_ACCEPT, DECIDE_REJECT, DECIDE_REPLY };

/* A suggestion as it was shown.  It is the one that stands at `from` with these bytes; when it has
 * moved, the one with these bytes and this context, or the only one with these bytes. */
struct decide_item {
    struct str raw;
    int64_t from;             /* < 0: not said */
    struct str before, after; /* absent: not said */
};
struct decide_request {
    enum decide_action action;
    const struct decide_item *items;
    size_t n;
    /* DECIDE_ACCEPT of one change: written instead of what was suggested; absent: that.
     * DECIDE_REPLY to one: the comment. */
    struct str text;
    struct critic_author author; /* of a comment */
};

/* DECIDE_TOGETHER: nothing was decided, as marks that are left would become code, or code marks. */
enum decide_result { DECIDE_DONE, DECIDE_GONE, DECIDE_TWICE, DECIDE_TOGETHER };
/* "suggestion no longer found in document" … */
const char *decide_reason(enum decide_result result);

/* A request that no document could be changed by: ERR_BAD_INPUT. */
must_check bool decide_check(const struct decide_request *r, struct error *err);
/* The new text, in mem (the source itself where nothing was found); results[n] tells of each. */
struct str suggestions_decide(const struct decide_request *r, struct str source, struct arena *mem,
                              enum decide_result *results);

/* The same as a change, with copies of everything. */
struct docs_change *decide_change_new(const struct decide_request *r) must_check;
/* How it went the last time it ran: n results, the change's own. */
const enum decide_result *decide_change_results(const struct docs_change *c);

#endif
