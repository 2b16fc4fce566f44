/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: what retention removed of each chain, sealed with a key that is derived from the audit
 * key.  A checkpoint gives the seals of the events before and after the gap, so the rest of the chain
 * stays verifiable; nobody without the key can make one, or change what it says. */
#ifndef HOLDFAST_AUDIT_CHECKPOINT_H
#define HOLDFAST_AUDIT_CHECKPOINT_H

#include "base/error.h"
#include "retention/store/verbs.h"

struct chain;
void checkpoint_seal(struct chain *c, const struct removed_row *row, uint8_t ret[32]);
bool checkpoint_is_sealed(struct chain *c, const struct removed_row *row);

struct checkpoints;
struct checkpoints *checkpoints_new(void) must_check;
void checkpoints_free(struct checkpoints *cs);
/* Replaces all, copied.  ERR_CHAIN_BROKEN when one is not sealed with our key, or two of a chain
 * overlap.  `rows` are in the order of store_removed(). */
must_check bool checkpoints_set(struct checkpoints *cs, struct chain *c,
                                const struct removed_row *rows, size_t n, struct error *err);
/* The one of the chain that covers this seq; NULL: none. */
const struct removed_row *checkpoints_at(const struct checkpoints *cs, int64_t writer,
                                         struct str tenant, int64_t seq);
/* Whether the id lies between the first and the last event of one of the writer's. */
bool checkpoints_reach(const struct checkpoints *cs, int64_t writer, int64_t id);
/* The last removed event of the writer; 0: none. */
int64_t checkpoints_last(const struct checkpoints *cs, int64_t writer);
struct js_writer;
/* {"tenant","writer","first","last","events","by_keep","by_max_size","oldest","newest","removed_at",
 * "rule"} */
void checkpoint_write(struct js_writer *w, const struct removed_row *row);
const struct removed_row *checkpoints_all(const struct checkpoints *cs, size_t *ret_n);

#endif
