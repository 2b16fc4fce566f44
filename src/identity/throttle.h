/* SPDX-License-Identifier: Apache-2.0 */
/* Limits failed credentials per address.  256 random bits cannot be guessed, but each attempt costs
 * a lookup and a log line.  Past the limit the address is throttled: its credentials are proved at
 * a bounded rate (identity_impl.h), and invalid ones get 429 without a log line.  Valid credentials
 * pass, because several clients may share the address.  IPv6 addresses count per /64, the usual
 * network of one customer.  Bounded; loop thread only. */
#ifndef HOLDFAST_IDENTITY_THROTTLE_H
#define HOLDFAST_IDENTITY_THROTTLE_H

#include "base/str.h"

#define THROTTLE_PER_S 10 /* sustained rate */
/* Burst; a client that starts with an old key sends several requests. */
#define THROTTLE_AT_ONCE 100
#define THROTTLE_ADDRESSES 4096 /* in memory; the least recently used is evicted first */

struct throttle;
struct throttle *throttle_new(void) must_check;
void throttle_free(struct throttle *t); /* NULL is fine */
/* Whether a failure from this address is still allowed. */
bool throttle_allows(struct throttle *t, struct str address, int64_t now_ms);
/* Counts one failure. */
void throttle_failed(struct throttle *t, struct str address, int64_t now_ms);

#endif
