/* SPDX-License-Identifier: Apache-2.0 */
/* What a person decides about suggestions, as a change of a document: found again in whatever the
 * document holds by then, accepted, rejected or answered.  Pure over text, so it may be run on a
 * worker, and again on what somebody saved meanwhile. */
#ifndef HOLDFAST_DOCS_SETTLE_H
#define HOLDFAST_DOCS_SETTLE_H

#include "critic/critic.h"
#include "docs/docs.h"

#define SETTLE_ITEMS_MAX 500 /* of one batch */

enum settle_action { SETTLE_ACCEPT, SETTLE_REJECT, SETTLE_REPLY };

/* A suggestion as it was shown.  It is the one that stands at `from` with these bytes; when it has
 * moved, the one with these bytes and this context, or the only one with these bytes. */
struct settle_item {
    struct str raw;
    int64_t from;             /* < 0: not said */
    struct str before, after; /* absent: not said */
};
struct settle_request {
    enum settle_action action;
    const struct settle_item *items;
    size_t n;
    /* SETTLE_ACCEPT of one change: written instead of what was suggested; absent: that.
     * SETTLE_REPLY to one: the comment. */
    struct str text;
    struct critic_author author; /* of a comment */
};

/* SETTLE_TOGETHER: nothing was decided, as marks that are left would become code, or code marks. */
enum settle_result { SETTLE_DONE, SETTLE_GONE, SETTLE_TWICE, SETTLE_TOGETHER };
/* "suggestion no longer found in document" … */
const char *settle_reason(enum settle_result result);

/* A request that no document could be changed by: ERR_BAD_INPUT. */
must_check bool settle_check(const struct settle_request *r, struct error *err);
/* The new text, in mem (the source itself where nothing was found); results[n] tells of each. */
struct str settle(const struct settle_request *r, struct str source, struct arena *mem,
                  enum settle_result *results);

/* The same as a change, with copies of everything. */
struct docs_change *settle_change_new(const struct settle_request *r) must_check;
/* How it went the last time it ran: n results, the change's own. */
const enum settle_result *settle_change_results(const struct docs_change *c);

#endif
