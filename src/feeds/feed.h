/* SPDX-License-Identifier: Apache-2.0 */
/* Live events: the committed events of every writer, on the loop, as they become known to this node.
 *
 *   publish point (own writer) ──┐
 *                                ├─▶ subscribers (feeds/reader.h)
 *   tail (writers of other nodes)┘
 *
 * With a store that other nodes share, one tail per node reads the new events of their writers from
 * the store, on the query lane, and hands each to every subscriber.  It polls every FEED_POLL_MS, and
 * at once after feed_nudge().  Without subscribers there is no tail, and nothing is copied.
 *
 * Promises to a subscriber:
 * - The events of one writer come in the order of their ids, and each once while it is subscribed.
 * - After the feed is ready, a page that is read from the store holds every event that was handed out
 *   before the read began.  Every event that is not in the page is handed out later, or while the
 *   page is read.  An event may come both ways: the subscriber compares positions.
 *
 * Most code wants a reader, not this. */
#ifndef HOLDFAST_FEEDS_FEED_H
#define HOLDFAST_FEEDS_FEED_H

#include "audit/publish.h"
#include "io/loop.h"
#include "store/lanes.h"

#define FEED_POLL_MS 500
/* A writer that ended this long ago appends nothing more: a commit of its last moments has arrived. */
#define FEED_ENDED_MS (INT64_C(60) * 1000)
/* Numbers of writers are given before their rows become visible: a writer may appear after one with
 * a higher number, within this time of its start. */
#define FEED_APPEARS_MS (INT64_C(60) * 1000)
/* A writer whose lease lapsed this long ago is taken for ended.  A node that was stopped for a while,
 * or cut off from the database, may append until then. */
#define FEED_LAPSED_MS (INT64_C(24) * 60 * 60 * 1000)

struct feed_config {
    struct loop *loop;
    struct lanes *lanes;
    struct audit *audit;
    int64_t writer; /* of this process */
    bool is_shared; /* other nodes append to the store too */
};
struct feed;
struct feed_subscriber {
    /* Rows as they are stored; bodies only if a subscriber wants them.  They live until the function
     * returns.  The functions may add and remove subscribers, also this one. */
    void (*on_events)(struct feed_subscriber *s, const struct event_row *rows, size_t n);
    /* Pages may be read from now on.  Called once, from the loop, also if the feed was ready at the
     * subscription. */
    void (*on_ready)(struct feed_subscriber *s);
    /* The writer has ended, and all of its events were handed out.  May be NULL. */
    void (*on_writer_over)(struct feed_subscriber *s, int64_t writer);
    bool with_bodies;
    struct list link; /* this and what follows belong to the feed */
    bool is_told;
};

struct feed *feed_new(const struct feed_config *config) must_check;
/* After lanes_free(); there are no subscribers any more.  NULL is fine. */
void feed_free(struct feed *l);
void feed_subscribe(struct feed *l, struct feed_subscriber *s);
void feed_unsubscribe(struct feed *l, struct feed_subscriber *s);
/* Another node may have appended events: the tail reads now. */
void feed_nudge(struct feed *l);
const struct feed_config *feed_config(const struct feed *l);
/* Writers whose end or lapse is before this are over (struct event_writer). */
int64_t feed_over_before_ms(void);
/* Whether this writer can still append. */
struct event_writer;
bool feed_writer_is_over(const struct feed_config *c, const struct event_writer *w);
/* On the query lane: the id of the last event of a writer, or that before its first. */
must_check bool feed_newest_of(struct store *store, const struct event_writer *w, struct arena *mem,
                               int64_t *ret, struct error *err);

/* Reads of pages by readers, a few at a time, so that they leave room on the query lane for the tail
 * and for other reads. */
struct feed_turn {
    void (*begin)(
        struct feed_turn *t); /* from the loop; call feed_turn_end() when the read is done */
    struct list link;         /* belongs to the feed */
};
#define FEED_TURNS_MAX 4
void feed_turn_ask(struct feed *l, struct feed_turn *t);
void feed_turn_cancel(struct feed_turn *t); /* before it began */
/* `failed`: the store could not be read; nobody begins for the next second. */
void feed_turn_end(struct feed *l, bool failed);

/* For tests and metrics. */
struct feed_counts {
    size_t subscribers, writers;
    uint64_t polls, events; /* of the tail */
};
struct feed_counts feed_counts(const struct feed *l);

#endif
