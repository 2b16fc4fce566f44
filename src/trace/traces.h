/* SPDX-License-Identifier: Apache-2.0 */
/* Sends spans to a collector by OTLP over HTTP (protobuf).  Spans are encoded at once, gathered to
 * batches and sent one batch at a time.  The queue is bounded: while the collector does not take
 * spans, the oldest batch is dropped and counted, so a dead or slow collector costs a fixed amount
 * of memory and never delays a call.  Loop thread only. */
#ifndef HOLDFAST_TRACE_TRACES_H
#define HOLDFAST_TRACE_TRACES_H

#include "io/loop.h"
#include "trace/span.h"

#define TRACES_BATCH_SPANS 512
#define TRACES_BATCH_BYTES (512u * 1024)
#define TRACES_BATCHES 16 /* in the queue, with the one being sent */
#define TRACES_DELAY_MS 1000

struct server_config;
struct traces;

struct traces *traces_new(struct loop *loop, struct str instance) must_check;
void traces_free(struct traces *t); /* NULL is fine */
/* The collector of a configuration; NULL turns traces off.  Spans that wait go to the new one. */
void traces_apply(struct traces *t, const struct server_config *to);
/* False: nothing needs to be recorded. */
bool traces_are_on(const struct traces *t);
/* The wall clock's time of a monotonic time. */
int64_t traces_wall_us(struct traces *t, int64_t mono_us);
void traces_add(struct traces *t, const struct span *s);
/* Sends what waits without delay, for a stop.  traces_are_flushed(): nothing is left to send, or the
 * collector does not take it. */
void traces_flush(struct traces *t);
bool traces_are_flushed(const struct traces *t);

#endif
