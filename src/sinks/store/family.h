/* SPDX-License-Identifier: Apache-2.0 */
/* The ops and verbs of sinks as a family of the store. */
#ifndef HOLDFAST_SINKS_STORE_FAMILY_H
#define HOLDFAST_SINKS_STORE_FAMILY_H

#include "store/family.h"

extern const struct store_family sinks_store; /* for store_family_add() */

/* memory.c, for tests: the same for the memory store. */
struct memory_family;
extern const struct memory_family sinks_memory; /* for memory_family_add() */

#endif
