/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of committed events: every event of every writer that it selects and may see, from a
 * position on, and from then on as they commit.  Streams, followers and sinks are readers.
 *
 *   static bool take(struct reader *r, const struct event_row *e, const struct position *at)
 *   {
 *       struct sink *s = container_of(r, struct sink, reader);
 *       if (s->sending)
 *           return false;                       // not now: comes again after reader_resume()
 *       add_to_batch(s, e, at);                 // both are copied
 *       return true;
 *   }
 *   static bool flush(struct reader *r)         // no more events for the moment
 *   {
 *       send_batch(s);                          // sets s->sending; later: store the position of the
 *       return false;                           // batch, s->sending = false, reader_resume(r)
 *   }
 *
 *   reader_start(&s->reader, feed, &config, &stored_position);
 *
 * Promises:
 * - The events of one writer come in the order of their ids, each exactly once.  Between writers (nodes
 *   on one store) there is no order.
 * - `at` is the position after this event.  A reader that starts there gets the next events and not
 *   this one, also after a restart and on another node.
 * - If take() or flush() returns false, nothing is lost: the reader holds no events in memory.  After reader_resume() it reads on from its position, by pages from the store, and becomes
 *   live again when it has caught up.  So a slow consumer costs no memory.
 * - Hidden and unselected events move the position and are not handed over: reader_position().
 * - If the store cannot be read, the reader tries again every second.
 *
 * All functions and callbacks are on the loop thread.  A callback may call every function here, also
 * reader_stop(). */
#ifndef HOLDFAST_FEEDS_READER_H
#define HOLDFAST_FEEDS_READER_H

#include "audit/position.h"
#include "audit/selection.h"
#include "feeds/feed.h"
#include "feeds/visibility.h"

struct reader;
struct reader_events {
    /* The next event.  The row lives until the function returns; without `with_bodies` it has no
     * body.  False: not taken; no more events until reader_resume(). */
    bool (*take)(struct reader *r, const struct event_row *e, const struct position *at);
    /* After one or more take() that returned true: the end of a page or of a commit, or take() has
     * refused an event.  The next events may come at once or in a day.  False: no more events until
     * reader_resume().  May be NULL. */
    bool (*flush)(struct reader *r);
    /* Retention removed events after the reader's position before it read them; the next event is the
     * first of that writer that exists.  May be NULL. */
    void (*removed)(struct reader *r);
    /* The reader cannot go on: the position is not one of this store.  Stop it.  May be NULL. */
    void (*lost)(struct reader *r, const struct error *err);
    /* Once, before everything else: the position is one of this store, and reader_position() is known.
     * May be NULL. */
    void (*started)(struct reader *r);
};
struct reader_config {
    const struct reader_events *events;
    struct visibility visibility; /* deep copies are made of this and of the selection */
    struct selection selection;   /* zero: all */
    bool with_bodies;
};

enum reader_state {
    READER_STOPPED,
    READER_STARTING, /* waits until the feed is ready, or for its turn to read a page */
    READER_READING,
    READER_WAITING, /* for reader_resume() */
    READER_LIVE,
};

/* The members are private; only reader.c uses them.  Embedded in the consumer, zeroed.  After
 * reader_stop() the consumer may free it. */
struct reader {
    struct reader_work *work; /* NULL: stopped */
};

/* `from` NULL: begins with the events that commit from now on.  Visibility and selection are copied.
 * The consumer must be able to take events at once; the first come from the loop. */
void reader_start(struct reader *r, struct feed *feed, const struct reader_config *config,
                  const struct position *from);
/* No callback comes any more.  A stopped reader stays stopped, and may be started anew. */
void reader_stop(struct reader *r);
/* After take() or flush() returned false: the consumer has room again.  Else it does nothing. */
void reader_resume(struct reader *r);
/* Everything up to here was handed over, was hidden or was not selected.  NULL while the reader does
 * not know yet where "now" is. */
const struct position *reader_position(const struct reader *r);
enum reader_state reader_state(const struct reader *r);

#endif
