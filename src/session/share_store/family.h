/* SPDX-License-Identifier: Apache-2.0 */
/* The ops and verbs of sharing as a family of the store. */
#ifndef HOLDFAST_SESSION_SHARE_STORE_FAMILY_H
#define HOLDFAST_SESSION_SHARE_STORE_FAMILY_H

#include "store/family.h"

extern const struct store_family sharing_store; /* for store_family_add() */

/* memory.c, for tests: the same for the memory store. */
struct memory_family;
extern const struct memory_family sharing_memory; /* for memory_family_add() */

#endif
