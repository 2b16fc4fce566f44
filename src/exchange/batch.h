/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: a JSON array of messages, which protocol version 2025-03-26 had and no other has. */
#ifndef HOLDFAST_EXCHANGE_BATCH_H
#define HOLDFAST_EXCHANGE_BATCH_H

#include "exchange/exchange.h"

#define BATCH_MAX_ITEMS 32

/* The call step of an exchange whose body is an array: starts an exchange for each item and waits
 * for all of them. */
enum step_result exchange_answer_batch(struct exchange *x);
/* The exchange is one item of a batch. */
bool batch_is_item(const struct exchange *x);
/* The client of the batch went away, and so did that of every item. */
void batch_gone(struct batch *b);

#endif
