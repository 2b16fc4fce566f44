/* SPDX-License-Identifier: Apache-2.0 */
/* Ends what is over: expired sessions get their status written down, dead transports are deleted.
 * Readers never depend on it: what is over reads as over at once. */
#ifndef HOLDFAST_SESSION_REAPER_H
#define HOLDFAST_SESSION_REAPER_H

#include "config/config.h"
#include "io/loop.h"
#include "store/lanes.h"

struct reaper;
struct reaper *reaper_new(struct loop *loop, struct lanes *lanes,
                          const struct config *c) must_check;
void reaper_free(struct reaper *r); /* after lanes_free */

#endif
