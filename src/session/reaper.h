/* SPDX-License-Identifier: Apache-2.0 */
/* Ends what is over: expired sessions get their status written down, so do idle ones, what was used
 * in the future is pulled back, dead transports and links are deleted, and memory lets go of what
 * ended.
 * Readers never depend on it: what is over reads as over at once. */
#ifndef HOLDFAST_SESSION_REAPER_H
#define HOLDFAST_SESSION_REAPER_H

#include "session/session.h"

struct reaper;
/* The first run comes soon after the start, the others by session.cleanup.interval.  Where several
 * processes share a store, the one that holds the lease does it. */
struct reaper *reaper_new(struct loop *loop, struct lanes *lanes, struct sessions *sessions,
                          const struct config *c) must_check;
void reaper_apply(struct reaper *r, const struct config *c); /* interval, batch and idle time */
/* Links of sessions that are over are deleted from the store from now on, and each is told once.
 * After 200 of earlier processes that had a session at an HTTP server, the rest waits for the next
 * run: each of those is a request to a server. */
void reaper_tell_links(struct reaper *r, void (*on_link)(void *arg, const struct link_row *row),
                       void *arg);
void reaper_free(struct reaper *r); /* after lanes_free */

#endif
