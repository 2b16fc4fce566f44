/* SPDX-License-Identifier: Apache-2.0 */
/* The number of different sessions: a set of short hashes while it is small, then a sketch
 * (HyperLogLog with 128 registers).  Sets and sketches can be joined in any order: the sketch of a
 * set depends only on its members. */
#ifndef HOLDFAST_ANALYTICS_STORE_DISTINCT_H
#define HOLDFAST_ANALYTICS_STORE_DISTINCT_H

#include "base/str.h"

#define DISTINCT_REGISTERS 128
#define DISTINCT_ERROR 0.092 /* standard error of the sketch, relative */
#define DISTINCT_HASH_BYTES 5

struct distinct {
    uint64_t *hashes; /* sorted; on the heap */
    size_t n, cap;
    uint8_t *registers; /* on the heap; NULL: the set is exact */
};

void distinct_release(struct distinct *d);
uint64_t distinct_hash(struct str text);
/* A set with more members than `most` becomes a sketch. */
void distinct_add(struct distinct *d, uint64_t hash, size_t most);
void distinct_merge(struct distinct *d, const struct distinct *more, size_t most);
/* Makes the set a sketch if it has more than `most` members. */
void distinct_limit(struct distinct *d, size_t most);
void distinct_add_register(struct distinct *d, size_t at, uint8_t rank);
int64_t distinct_count(const struct distinct *d);

#endif
