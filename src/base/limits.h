/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody may use: so much in a time, and so many at once.  Lives in base because credentials
 * carry limits of their own beside those of the configuration; identity/quota.h keeps count. */
#ifndef HOLDFAST_BASE_LIMITS_H
#define HOLDFAST_BASE_LIMITS_H

#include "base/base.h"

/* The first two are rates, the others counts of what goes on at once. */
enum limit_kind { LIMIT_REQUESTS, LIMIT_BYTES, LIMIT_CALLS, LIMIT_CHILDREN };
#define LIMIT_RATES 2
#define LIMIT_KINDS 4

#define LIMIT_UNSAID 0
#define LIMIT_NONE (-1)

struct limit {
    int64_t amount; /* or LIMIT_UNSAID: whoever stands behind decides; or LIMIT_NONE */
    int64_t per_ms; /* of rates: amount in this time … */
    int64_t burst;  /* … and this much at once, after a rest */
};
struct limits {
    struct limit of[LIMIT_KINDS];
};

static inline bool limit_is_set(const struct limit *l)
{
    return l->amount > 0;
}

#endif
