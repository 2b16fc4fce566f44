/* SPDX-License-Identifier: Apache-2.0 */
/* How often credentials from one address may fail to hold.  256 random bits are not guessed, but
 * every attempt costs a lookup and a line in the log.  Past the limit the address is held up: its
 * credentials are proved at a bounded rate (identity_impl.h), and those that do not hold are
 * answered with 429 and not logged.  Those that hold pass, because others may use the same address.
 * IPv6 goes by networks of 64 bits, which is what one customer gets.  Bounded; loop thread only. */
#ifndef HOLDFAST_IDENTITY_THROTTLE_H
#define HOLDFAST_IDENTITY_THROTTLE_H

#include "base/str.h"

#define THROTTLE_PER_S 10       /* in the long run */
#define THROTTLE_AT_ONCE 100    /* a client that starts with an old key has several requests */
#define THROTTLE_ADDRESSES 4096 /* remembered; the one not heard of for longest goes first */

struct throttle;
struct throttle *throttle_new(void) must_check;
void throttle_free(struct throttle *t); /* NULL is fine */
/* May one from there fail now? */
bool throttle_allows(struct throttle *t, struct str address, int64_t now_ms);
/* One did not hold. */
void throttle_failed(struct throttle *t, struct str address, int64_t now_ms);

#endif
