/* SPDX-License-Identifier: Apache-2.0 */
/* Counters, gauges and histograms in Prometheus text form.  Label sets are bounded: beyond the
 * bound, a new combination is counted under `_other`.  Cells are relaxed atomics, so any thread may
 * add to them.  Hot paths look up a cell once and keep it.  Cells are never freed. */
#ifndef HOLDFAST_BASE_METRIC_H
#define HOLDFAST_BASE_METRIC_H

#include "base/buf.h"

/* METRIC_LIFETIMES is a histogram too, from a second to thirty days. */
enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_LIFETIMES };
struct metric;
struct metric_cell;

/* `labels` is "server,outcome" or ""; every pointer must be a literal.  Histograms observe
 * microseconds and are exposed in seconds.  Registering a name again returns the first metric. */
struct metric *metric_register(enum metric_kind kind, const char *name, const char *help,
                               const char *labels, unsigned max_cells);
/* Values in label order.  Takes a lock: on hot paths, keep the result. */
struct metric_cell *metric_cell(struct metric *m, const struct str *values, size_t n);
void metric_add(struct metric_cell *c, int64_t n);
void metric_set(struct metric_cell *c, int64_t value);
void metric_observe_us(struct metric_cell *c, int64_t us);
int64_t metric_value(const struct metric_cell *c);
void metric_write(struct buf *out); /* every metric, in order of registration */
/* The same, without cells that have another value for this label. */
void metric_write_of(struct buf *out, struct str label, struct str value);

#endif
