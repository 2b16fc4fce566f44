/* SPDX-License-Identifier: Apache-2.0 */
#include "analytics/store/durations.h"

#include <stdlib.h>

#define PER_OCTAVE_BITS 3
#define PER_OCTAVE (1 << PER_OCTAVE_BITS)

void durations_release(struct durations *d)
{
    free(d->items);
    *d = (struct durations){0};
}

/* Below eight microseconds each has a bucket of its own. */
uint16_t duration_bucket(int64_t us)
{
    if (us < PER_OCTAVE)
        return us > 0 ? (uint16_t)us : 0;
    int octave = 63 - __builtin_clzll((uint64_t)us);
    int64_t part = (us >> (octave - PER_OCTAVE_BITS)) - PER_OCTAVE;
    int bucket = (octave - PER_OCTAVE_BITS + 1) * PER_OCTAVE + (int)part;
    return (uint16_t)(bucket < DURATION_BUCKETS ? bucket : DURATION_BUCKETS - 1);
}

int64_t duration_middle(uint16_t bucket)
{
    if (bucket < PER_OCTAVE)
        return bucket;
    int shift = bucket / PER_OCTAVE - 1;
    int64_t first = (int64_t)(PER_OCTAVE + bucket % PER_OCTAVE) << shift;
    return first + (((int64_t)1 << shift) >> 1);
}

static size_t place_of(const struct durations *d, uint16_t bucket)
{
    size_t low = 0, high = d->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (d->items[mid].bucket < bucket)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void durations_add(struct durations *d, uint16_t bucket, int64_t n)
{
    size_t at = place_of(d, bucket);
    if (at < d->n && d->items[at].bucket == bucket) {
        d->items[at].n += n;
        return;
    }
    if (d->n == d->cap) {
        d->cap = d->cap ? 2 * d->cap : 8;
        d->items = xrealloc(d->items, d->cap * sizeof(*d->items));
    }
    memmove(&d->items[at + 1], &d->items[at], (d->n - at) * sizeof(*d->items));
    d->items[at] = (struct duration_count){bucket, n};
    d->n++;
}

void durations_merge(struct durations *d, const struct durations *more)
{
    for (size_t i = 0; i < more->n; i++)
        durations_add(d, more->items[i].bucket, more->items[i].n);
}

int64_t durations_total(const struct durations *d)
{
    int64_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        n += d->items[i].n > 0 ? d->items[i].n : 0;
    return n;
}

int64_t durations_quantile(const struct durations *d, unsigned percent)
{
    int64_t total = durations_total(d);
    int64_t rank = total / 100 * percent + (total % 100 * percent + 99) / 100;
    for (size_t i = 0; i < d->n; i++) {
        rank -= d->items[i].n > 0 ? d->items[i].n : 0;
        if (rank <= 0 && d->items[i].n > 0)
            return duration_middle(d->items[i].bucket);
    }
    return -1;
}
