/* SPDX-License-Identifier: Apache-2.0 */
/* Cleans up: writes the status of expired and idle sessions, corrects times in the future, deletes
 * dead transports and links, and frees ended sessions in memory.  Reads do not depend on the
 * reaper: an expired session reads as expired at once. */
#ifndef HOLDFAST_SESSION_REAPER_H
#define HOLDFAST_SESSION_REAPER_H

#include "session/session.h"

struct reaper;
/* The first run follows soon after the start, later ones every session.cleanup.interval.  If
 * several processes share a store, the holder of the lease runs it. */
struct reaper *reaper_new(struct loop *loop, struct lanes *lanes, struct sessions *sessions,
                          const struct config *c) must_check;
/* Sets interval, batch and idle time. */
void reaper_apply(struct reaper *r, const struct config *c);
/* From now on, links of ended sessions are deleted from the store, and on_link is called once for
 * each.  After 200 links of earlier processes with a session at an HTTP server, the rest wait for
 * the next run, because each of them causes a request to a server. */
void reaper_on_links(struct reaper *r, void (*on_link)(void *arg, const struct link_row *row),
                     void *arg);
void reaper_free(struct reaper *r); /* after lanes_free */

#endif
