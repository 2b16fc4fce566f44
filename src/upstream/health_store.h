/* SPDX-License-Identifier: Apache-2.0 */
/* Persists the counts of requests to servers across restarts.  They are read at the start and
 * written every 30 s if they changed, and at a clean stop.  A crash loses at most the last 30 s. */
#ifndef HOLDFAST_UPSTREAM_HEALTH_STORE_H
#define HOLDFAST_UPSTREAM_HEALTH_STORE_H

#include "json/write.h"
#include "store/lanes.h"
#include "upstream/upstream.h"

struct health;
#define HEALTH_SAVE_MS 30000

/* Adds `rows`, read from the store before the lanes ran, to the tallies of `upstreams`. */
struct health *health_new(struct loop *loop, struct lanes *lanes, struct upstreams *upstreams,
                          const struct server_row *rows, size_t n) must_check;
/* Blocking; call it before the lanes run. */
must_check bool health_load(struct store *store, struct arena *mem, struct server_row **ret_rows,
                            size_t *ret_n, struct error *err);
void health_stop(struct health *h); /* saves; before upstreams_free() */
void health_free(struct health *h); /* after lanes_free() */
/* Writes the members of one server's object: state, reason, last_error, counts and times. */
void health_write(struct js_writer *w, const struct upstream_health *h);

#endif
