/* SPDX-License-Identifier: Apache-2.0 */
/* Gauges that only the store can fill: sessions_active, and how many sessions count against the
 * limit of each tenant.  They are asked for on the query lane when somebody scrapes, who waits a
 * moment for the answer and otherwise shows the last one.  Loop thread only. */
#ifndef HOLDFAST_SESSION_SESSION_GAUGES_H
#define HOLDFAST_SESSION_SESSION_GAUGES_H

#include "config/config.h"
#include "io/deadline.h"
#include "store/lanes.h"

/* Nobody waits longer. */
#define SESSION_GAUGES_MS 250

struct session_gauges;
struct session_gauges *session_gauges_new(struct loop *loop, struct lanes *lanes) must_check;
void session_gauges_free(struct session_gauges *g); /* after lanes_free; NULL is fine */

struct gauges_wait {
    struct list node;
    struct deadline late;
    void (*done)(struct gauges_wait *w);
};
/* false: `done` comes from the loop when they are filled, or will not be in time.  true: they
 * cannot be filled now. */
must_check bool session_gauges_refresh(struct session_gauges *g, struct config *c,
                                       struct gauges_wait *w);
void gauges_wait_cancel(struct gauges_wait *w);

#endif
