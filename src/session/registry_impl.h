/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the registry: registry.c (lookup), registry_write.c (changes),
 * registry_read.c (pages), registry_context.c. */
#ifndef HOLDFAST_SESSION_REGISTRY_IMPL_H
#define HOLDFAST_SESSION_REGISTRY_IMPL_H

#include "session/registry.h"

struct registry {
    struct registry_config config;
    struct read_your_writes *writes;
    struct map keys; /* idempotency keys of running requests */
};

/* Ends the call, from the loop. */
void registry_finish(struct registry_call *c, enum registry_result result);
/* ERR_UNAVAILABLE; `done` is called at the end of the turn. */
void registry_fail(struct registry_call *c, const char *text);
/* Returns true when c->row is set (borrowed until control returns to the loop).  Returns false when
 * c->next will be called from the loop with c->row set, or the call ends.  `whole`: all columns
 * must be current; else only these are set: id, handle, tenant, owner, created_ms and the sealed texts,
 * which a resident session has. */
must_check bool registry_find(struct registry *r, struct registry_call *c, bool whole);
/* On a lane: reads the row that the call names to c->read_row (NULL: it reaches none).  With
 * REACH_READ or REACH_USE, `who` becomes the owner of a session that is shared with it. */
must_check bool registry_read_row(struct registry_call *c, struct store *store, struct error *err);
/* Copies the whole row to c->found and c->mem. */
void registry_hold_row(struct registry_call *c);
/* Touches the session's names (read_your_writes.h). */
void registry_touch(struct registry_call *c, const struct session_row *row, bool by_event);
/* Keeps a row that was just written completely in memory. */
void registry_remember(struct registry_call *c, const struct session_row *row);
/* Waits for a pending fold, then calls c->next from the loop, or calls it at once. */
void registry_after_fold(struct registry_call *c, struct str name);
/* Queues the ops on the write lane, then calls `written` with the result of the verdicts in
 * c->result. */
void registry_write(struct registry_call *c, size_t n, void (*written)(struct registry_call *c));

#endif
