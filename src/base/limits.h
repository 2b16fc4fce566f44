/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas: an amount per time, and a number at once.  In base, because credentials carry limits of
 * their own in addition to the limits in the configuration; identity/quota.h counts the use. */
#ifndef HOLDFAST_BASE_LIMITS_H
#define HOLDFAST_BASE_LIMITS_H

#include "base/base.h"

/* The first two are rates; the others limit how many exist at once. */
enum limit_kind { LIMIT_REQUESTS, LIMIT_BYTES, LIMIT_CALLS, LIMIT_CHILDREN };
#define LIMIT_RATES 2
#define LIMIT_KINDS 4

#define LIMIT_UNSAID 0
#define LIMIT_NONE (-1)

struct limit {
    int64_t amount; /* or LIMIT_UNSAID: the next, more general limits decide; or LIMIT_NONE */
    int64_t per_ms; /* rates only: `amount` per this time … */
    int64_t burst;  /* … and this much at once, after a pause */
};
struct limits {
    struct limit of[LIMIT_KINDS];
};

static inline bool limit_is_set(const struct limit *l)
{
    return l->amount > 0;
}

#endif
