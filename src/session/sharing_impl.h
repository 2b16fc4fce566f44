/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by sharing.c, sharing_join.c and sharing_fork.c. */
#ifndef HOLDFAST_SESSION_SHARING_IMPL_H
#define HOLDFAST_SESSION_SHARING_IMPL_H

#include "identity/throttle.h"
#include "io/loop.h"
#include "session/session.h"
#include "session/share_store/ops.h"
#include "session/share_store/verbs.h"
#include "session/sharing.h"

struct sharing {
    struct sharing_config config;
    struct throttle *wrong; /* wrong codes, by tenant and owner */
    struct list waiting;    /* joins that wait for other nodes */
};

/* Ends the call, from the loop. */
void sharing_finish(struct sharing_call *c);
void sharing_finish_soon(struct sharing_call *c);
/* On the lookup lane; ends the call when that is full. */
void sharing_read(struct sharing_call *c, bool (*run)(struct read_job *job, struct store *store),
                  void (*done)(struct read_job *job));
/* Writes c->ops, or ends the call. */
void sharing_write(struct sharing_call *c, size_t n, void (*done)(struct write_job *job));
/* Fills c->event. */
void sharing_note(struct sharing_call *c, const char *method, const char *outcome, struct str text);

#endif
