/* SPDX-License-Identifier: Apache-2.0 */
/* How long calls took, as counts in fixed buckets.  Each power of two of microseconds has eight
 * buckets of equal width, so a quantile is off by at most DURATIONS_ERROR of its value, and counts
 * of any spans and groups can be added. */
#ifndef HOLDFAST_ANALYTICS_STORE_DURATIONS_H
#define HOLDFAST_ANALYTICS_STORE_DURATIONS_H

#include "base/str.h"

#define DURATIONS_ERROR 0.0625

struct durations {
    struct duration_count {
        uint16_t bucket;
        int64_t n;
    } * items; /* sorted by bucket; on the heap */
    size_t n, cap;
};

void durations_release(struct durations *d);
uint16_t duration_bucket(int64_t us);
/* The middle of a bucket, in microseconds. */
int64_t duration_middle(uint16_t bucket);
#define DURATION_BUCKETS 320
void durations_add(struct durations *d, uint16_t bucket, int64_t n);
void durations_merge(struct durations *d, const struct durations *more);
int64_t durations_total(const struct durations *d);
/* The duration that the given part of the calls (per cent, 1 to 100) did not exceed, by the nearest
 * rank; -1: there are none. */
int64_t durations_quantile(const struct durations *d, unsigned percent);

#endif
