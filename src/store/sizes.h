/* SPDX-License-Identifier: Apache-2.0 */
/* How much the audit holds, by tenant and day of its events, in logical bytes: those of events and
 * stored bodies before a database packs them.  Backends keep these sums in the table audit_sizes,
 * in the transaction that folds or removes the events, so nobody has to read events to know sizes.
 *
 * One struct sizes gathers the events of one transaction. */
#ifndef HOLDFAST_STORE_SIZES_H
#define HOLDFAST_STORE_SIZES_H

#include "base/arena.h"
#include "base/map.h"
#include "store/rows.h"

#define SIZES_DAY_MS (INT64_C(24) * 3600 * 1000)

/* Bytes of an event without its body, and of its stored body (-1: none is stored). */
struct event_size {
    int64_t event, body;
};
struct event_size event_size_of(const struct event_row *e);

struct size_row {
    struct str tenant;
    int64_t day; /* days since 1970, by the wall clock */
    int64_t events, event_bytes, bodies, body_bytes;
    int64_t first_ms, last_ms;
};
struct sizes {
    struct size_row **rows;
    size_t n, cap;
    struct size_row *last; /* most events are of the row of the event before */
    struct map by_key;
    struct arena *mem;
};
int64_t sizes_day(int64_t at_ms);
void sizes_release(struct sizes *s); /* a zeroed struct sizes is empty */
/* An event that was appended. */
void sizes_add(struct sizes *s, struct str tenant, int64_t at_ms, struct event_size size);
/* What a removal takes of one event: its body, or with `whole` the event itself. */
struct size_gone {
    int64_t id;
    struct str tenant;
    int64_t at_ms;
    struct event_size size;
    bool whole;
};
struct sizes_gone {
    const struct size_gone *rows;
    size_t n;
    struct arena *mem; /* for the writing of the op */
};
void sizes_subtract(struct sizes *s, const struct size_gone *gone);
/* By tenant and day; backends write them in this order. */
void sizes_sort(struct sizes *s);

#endif
