/* SPDX-License-Identifier: Apache-2.0 */
/* One of several processes that share a store does something, and the others can see who, or what
 * was decided.  A claim is a name that stands until its end and a value of 32 bytes; it is kept
 * among the rows of Idempotency-Keys, which give just this: the first who puts one has it. */
#ifndef HOLDFAST_STORE_CLAIM_H
#define HOLDFAST_STORE_CLAIM_H

#include "store/store.h"

#define CLAIM_FOR_EVER INT64_MAX

/* *ret_ours: nobody else's claim of that name stands. */
must_check bool claim_make(struct store *s, struct str name, const uint8_t value[32],
                           int64_t for_ms, bool *ret_ours, struct error *err);
/* *ret_found false: there is none. */
must_check bool claim_value(struct store *s, struct str name, uint8_t ret_value[32],
                            bool *ret_found, struct error *err);

#endif
