/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of requests to servers, kept over restarts: read at a start, written every half minute
 * where something moved, and at a clean stop.  What a crash loses is the last half minute's. */
#ifndef HOLDFAST_HEALTH_HEALTH_H
#define HOLDFAST_HEALTH_HEALTH_H

#include "json/write.h"
#include "store/lanes.h"
#include "upstream/upstream.h"

struct health;
#define HEALTH_SAVE_MS 30000

/* `rows` of the store, read before the lanes ran, go into the tallies of `upstreams`. */
struct health *health_new(struct loop *loop, struct lanes *lanes, struct upstreams *upstreams,
                          const struct server_row *rows, size_t n) must_check;
/* Blocking, before the lanes run. */
must_check bool health_load(struct store *store, struct arena *mem, struct server_row **ret_rows,
                            size_t *ret_n, struct error *err);
void health_stop(struct health *h); /* saves; before upstreams_free() */
void health_free(struct health *h); /* after lanes_free() */
/* Members of one server's object: state, reason, last_error, counts and times. */
void health_write(struct js_writer *w, const struct upstream_health *h);

#endif
