/* SPDX-License-Identifier: Apache-2.0 */
#include "analytics/store/distinct.h"

#include <math.h>
#include <stdlib.h>

#define HASH_BITS (8 * DISTINCT_HASH_BYTES)
#define INDEX_BITS 7
_Static_assert(1 << INDEX_BITS == DISTINCT_REGISTERS, "one register for each index");

void distinct_release(struct distinct *d)
{
    free(d->hashes);
    free(d->registers);
    *d = (struct distinct){0};
}

/* FNV-1a, then the finish of MurmurHash3.  It is stored, so it is the same in every process; ids of
 * sessions are not chosen by clients. */
uint64_t distinct_hash(struct str text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < text.n; i++)
        h = (h ^ (uint8_t)text.p[i]) * UINT64_C(0x100000001b3);
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (h ^ h >> 33) >> (64 - HASH_BITS);
}

static void enter(uint8_t *registers, uint64_t hash)
{
    size_t at = hash >> (HASH_BITS - INDEX_BITS);
    uint64_t rest = hash << (64 - HASH_BITS + INDEX_BITS);
    int rank = rest ? __builtin_clzll(rest) + 1 : HASH_BITS - INDEX_BITS + 1;
    if (rank > registers[at])
        registers[at] = (uint8_t)rank;
}

static void begin_sketch(struct distinct *d)
{
    if (!d->registers)
        d->registers = xcalloc(1, DISTINCT_REGISTERS);
    for (size_t i = 0; i < d->n; i++)
        enter(d->registers, d->hashes[i]);
    free(d->hashes);
    d->hashes = NULL;
    d->n = d->cap = 0;
}

void distinct_limit(struct distinct *d, size_t most)
{
    if (d->n > most)
        begin_sketch(d);
}

static void insert(struct distinct *d, uint64_t hash)
{
    size_t low = 0, high = d->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (d->hashes[mid] < hash)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < d->n && d->hashes[low] == hash)
        return;
    if (d->n == d->cap) {
        d->cap = d->cap ? 2 * d->cap : 4;
        d->hashes = xrealloc(d->hashes, d->cap * sizeof(*d->hashes));
    }
    memmove(&d->hashes[low + 1], &d->hashes[low], (d->n - low) * sizeof(*d->hashes));
    d->hashes[low] = hash;
    d->n++;
}

void distinct_add(struct distinct *d, uint64_t hash, size_t most)
{
    if (d->registers) {
        enter(d->registers, hash);
        return;
    }
    insert(d, hash);
    distinct_limit(d, most);
}

void distinct_add_register(struct distinct *d, size_t at, uint8_t rank)
{
    if (!d->registers)
        begin_sketch(d);
    if (at < DISTINCT_REGISTERS && rank > d->registers[at])
        d->registers[at] = rank;
}

void distinct_merge(struct distinct *d, const struct distinct *more, size_t most)
{
    for (size_t i = 0; more->registers && i < DISTINCT_REGISTERS; i++)
        distinct_add_register(d, i, more->registers[i]);
    for (size_t i = 0; i < more->n; i++)
        distinct_add(d, more->hashes[i], most);
}

int64_t distinct_count(const struct distinct *d)
{
    const double m = DISTINCT_REGISTERS, bias = 0.7213 / (1 + 1.079 / DISTINCT_REGISTERS);
    double sum = 0;
    int zeros = 0;
    if (!d->registers)
        return (int64_t)d->n;
    for (size_t i = 0; i < DISTINCT_REGISTERS; i++) {
        sum += ldexp(1, -d->registers[i]);
        zeros += d->registers[i] == 0;
    }
    double estimate = bias * m * m / sum;
    if (estimate <= 2.5 * m && zeros)
        estimate = m * log(m / zeros);
    return (int64_t)(estimate + 0.5);
}
