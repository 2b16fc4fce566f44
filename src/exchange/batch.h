/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: a JSON array of messages.  Only protocol version 2025-03-26 has them. */
#ifndef HOLDFAST_EXCHANGE_BATCH_H
#define HOLDFAST_EXCHANGE_BATCH_H

#include "exchange/exchange.h"

#define BATCH_MAX_ITEMS 32

/* The call step of an exchange with an array as its body: starts an exchange for each item and
 * waits for all of them. */
enum step_result exchange_answer_batch(struct exchange *x);
/* True when the exchange is an item of a batch. */
bool batch_is_item(const struct exchange *x);
/* The client of the batch, and so of every item, disconnected.  May free the batch's exchange. */
void batch_on_disconnect(struct batch *b);

#endif
