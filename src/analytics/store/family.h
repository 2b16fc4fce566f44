/* SPDX-License-Identifier: Apache-2.0 */
/* The ops and verbs of analytics as a family of the store. */
#ifndef HOLDFAST_ANALYTICS_STORE_FAMILY_H
#define HOLDFAST_ANALYTICS_STORE_FAMILY_H

#include "store/family.h"

extern const struct store_family analytics_store; /* for store_family_add() */

/* memory.c, for tests: the same for the memory store. */
struct memory_family;
extern const struct memory_family analytics_memory; /* for memory_family_add() */

#endif
