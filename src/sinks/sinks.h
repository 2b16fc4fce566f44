/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks: receivers outside that get the committed events of the audit.  docs/sinks.md is for users.
 *
 *   reader (feeds/reader.h) ──▶ batch ──▶ way out (out.h) ──taken──▶ position in the store
 *
 * - At least once: the position is saved after the receiver has the events.  What a sink could not
 *   send yet stays in the store alone; a dead receiver costs one batch of memory and never delays a
 *   call.
 * - The events of one writer come in their order.
 * - Of all processes on one store, one sends: the one with the lease of the sink (store/rows.h).
 *
 * Loop thread only. */
#ifndef HOLDFAST_SINKS_SINKS_H
#define HOLDFAST_SINKS_SINKS_H

#include "config/sinks.h"
#include "feeds/feed.h"

struct sinks;
struct sinks_config {
    struct loop *loop;
    struct lanes *lanes;
    struct feed *feed;
    int64_t writer; /* of this process */
    bool is_shared; /* other processes use the store */
    struct str node;
};
/* What needs more than the file of the configuration: the words of filters, authorities. */
must_check bool sinks_check(const struct config *c, struct error *err);

struct sinks *sinks_new(const struct sinks_config *config) must_check;
/* Starts, ends and changes sinks, so that they are those of the configuration.  A sink that is the
 * same as before goes on. */
void sinks_apply(struct sinks *s, const struct config *c);
/* For a stop: what waits is sent without delay.  Sinks that fail are not waited for. */
void sinks_flush(struct sinks *s);
bool sinks_are_flushed(const struct sinks *s);
/* Releases all sinks for other processes.  Before lanes_free(). */
void sinks_stop(struct sinks *s);
void sinks_free(struct sinks *s); /* after lanes_free(); NULL is fine */

enum sink_state {
    SINK_STARTING, /* the store was not asked yet */
    SINK_STANDBY,  /* another process sends */
    SINK_SENDING,
    SINK_FAILING, /* the receiver did not take the last batch, or cannot be asked at all */
};
const char *sink_state_name(enum sink_state state); /* "sending" */
struct sink_status {
    struct str name;
    enum sink_type type;
    enum sink_state state;
    const char *why;              /* FAILING: a sentence without bytes of the receiver */
    uint64_t delivered, failures; /* of this process */
    int64_t last_delivery_ms;     /* wall clock; 0: none by this process */
    int64_t lag_ms;               /* age of the oldest event that was read and is not delivered */
};
void sinks_each(const struct sinks *s, void (*fn)(void *arg, const struct sink_status *status),
                void *arg);

#endif
