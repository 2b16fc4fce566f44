/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parts of the registry: registry.c (finding a session), registry_write.c (changes),
 * registry_read.c (pages), registry_context.c. */
#ifndef HOLDFAST_SESSION_REGISTRY_IMPL_H
#define HOLDFAST_SESSION_REGISTRY_IMPL_H

#include "session/registry.h"

struct registry {
    struct registry_config config;
    struct read_your_writes *writes;
    struct map names; /* "h" or "i", tenant, NUL, name → struct cached_row */
    struct list rows; /* struct cached_row, longest unused first */
    unsigned n_rows;
    struct map keys; /* of requests under way that must have one effect */
};

/* Ends the call, from the loop. */
void registry_finish(struct registry_call *c, enum registry_result result);
void registry_fail(struct registry_call *c, const char *text); /* ERR_UNAVAILABLE, later */
/* true: c->row stands (borrowed until the loop goes on).  false: c->next comes from the loop once
 * it does, or the call ends.  `whole`: every column is wanted as it is now; else only what never
 * changes: id, names, tenant, owner. */
must_check bool registry_find(struct registry *r, struct registry_call *c, bool whole);
/* The row, all of it, in c->found and c->mem. */
void registry_hold_row(struct registry_call *c);
/* The session's names are touched. */
void registry_touch(struct registry_call *c, const struct session_row *row, bool by_event);
/* A row that was just written, and is known whole. */
void registry_remember(struct registry_call *c, const struct session_row *row);
/* Waits for the fold, if one is due, then calls c->next from the loop, or at once. */
void registry_after_fold(struct registry_call *c, struct str name);
/* Hands the ops to the write lane; then `written` with the verdicts' meaning in c->result. */
void registry_write(struct registry_call *c, size_t n, void (*written)(struct registry_call *c));

#endif
