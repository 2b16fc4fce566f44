/* SPDX-License-Identifier: Apache-2.0 */
/* The read verb of feeds: the writers of a store, and how far each has come. */
#ifndef HOLDFAST_FEEDS_STORE_VERBS_H
#define HOLDFAST_FEEDS_STORE_VERBS_H

#include "store/store.h"

struct event_writer {
    int64_t number;
    /* Id of its last event; 0: it has none.  EVENT_WRITER_UNREAD: the store would have to read the
     * events to tell. */
    int64_t last_id;
    int64_t started_ms, lease_until_ms, ended_ms; /* as in writer_row */
};
#define EVENT_WRITER_UNREAD (-1)

#define FEED_VERBS(X) X(EVENT_WRITERS, event_writers, PAGE)

enum feed_verb {
    FEED_VERBS_BEFORE = VERB_FAMILY + 48 - 1,
    FEED_VERBS(VERB_ENUM) FEED_VERBS_END,
};
_Static_assert(FEED_VERBS_END <= VERB_COUNT, "raise VERB_COUNT");

/* Writers with a number greater than `after`, by number.  With since_ms only those that may still
 * append: their end and the end of their lease are not before since_ms. */
must_check bool store_event_writers(struct store *s, int64_t after, int64_t since_ms,
                                    unsigned limit, struct arena *mem,
                                    struct event_writer **ret_rows, size_t *ret_n,
                                    struct error *err);

#endif
