/* SPDX-License-Identifier: Apache-2.0 */
/* Log levels towards legacy servers.  Such a server has one level for its whole session.  It is
 * sent once, before the first call that wants it.  A pipe keeps the order by itself.  Over HTTP the
 * call waits for the answer, because two requests may overtake each other. */
#ifndef HOLDFAST_CALL_LEVEL_H
#define HOLDFAST_CALL_LEVEL_H

#include "upstream/upstream.h"

struct level_request; /* under way; frees itself when it is answered */

/* Sends the level if the link does not have it yet.  NULL: the call need not wait.  Otherwise go()
 * is called once from the loop, with err when the link ended meanwhile, unless level_drop() comes
 * first. */
struct level_request *level_send(struct link *l, const char *level,
                                 void (*go)(void *arg, struct link *l, const struct error *err),
                                 void *arg);
void level_drop(struct level_request *request);

#endif
