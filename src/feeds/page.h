/* SPDX-License-Identifier: Apache-2.0 */
/* One page of events for a reader, read from the store on the query lane: the events after a position,
 * of all writers.
 *
 * Writers that ended come first, in the order of their numbers, each to its end; so a position names
 * few writers.  Those that may still append follow, another one first with each page. */
#ifndef HOLDFAST_FEEDS_PAGE_H
#define HOLDFAST_FEEDS_PAGE_H

#include "audit/position.h"
#include "audit/selection.h"
#include "feeds/feed.h"
#include "feeds/visibility.h"

/* The reader has read the events of this writer up to `id`. */
struct page_item {
    int64_t id;
    const struct event_row *row; /* to hand over; NULL: nothing */
    bool ends;                   /* the writer has ended, and this is its end */
};

struct page {
    /* In. */
    const struct feed_config *config;
    const struct selection *selection;
    const struct visibility *visibility;
    bool with_bodies;
    bool finds_now; /* only sets `at` to the newest events */
    unsigned turn;  /* increases with each page */
    struct position at;
    /* In and out: removed events up to this id are known to the reader, 0 at the beginning. */
    int64_t removed_upto;
    /* Out; in mem. */
    struct arena *mem;
    struct page_item *items;
    size_t n;
    bool is_last; /* when the read began, no further event was committed */
    bool
        removed; /* retention removed unread events of the tenant, or of any, beyond removed_upto */
};

/* ERR_BAD_INPUT: the position is not one of this store.  Any other error is of the store. */
must_check bool page_read(struct page *p, struct store *store, struct error *err);

#endif
