/* SPDX-License-Identifier: Apache-2.0 */
/* The ops and verbs of erasures as a family of the store. */
#ifndef HOLDFAST_ERASURE_STORE_FAMILY_H
#define HOLDFAST_ERASURE_STORE_FAMILY_H

#include "store/family.h"

extern const struct store_family erasure_store; /* for store_family_add() */

/* memory.c, for tests: the same for the memory store. */
struct memory_family;
extern const struct memory_family erasure_memory; /* for memory_family_add() */

#endif
