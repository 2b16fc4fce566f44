/* SPDX-License-Identifier: Apache-2.0 */
/* Gauges that come from the store: sessions_active, and the sessions that count against the limit
 * of each tenant.  A scrape queries them on the query lane and waits briefly for the result, else
 * it shows the last values.  Loop thread only. */
#ifndef HOLDFAST_SESSION_SESSION_GAUGES_H
#define HOLDFAST_SESSION_SESSION_GAUGES_H

#include "config/config.h"
#include "io/deadline.h"
#include "store/lanes.h"

/* Maximum wait of a scrape. */
#define SESSION_GAUGES_MS 250

struct session_gauges;
struct session_gauges *session_gauges_new(struct loop *loop, struct lanes *lanes) must_check;
void session_gauges_free(struct session_gauges *g); /* after lanes_free; NULL is fine */

struct gauges_wait {
    struct list node;
    struct deadline late;
    void (*done)(struct gauges_wait *w);
};
/* Returns false when `done` will be called from the loop, after the gauges are filled or a timeout.
 * Returns true when they cannot be filled now. */
must_check bool session_gauges_refresh(struct session_gauges *g, struct config *c,
                                       struct gauges_wait *w);
void gauges_wait_cancel(struct gauges_wait *w);

#endif
