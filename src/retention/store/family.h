/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of retention that a program registers with the store. */
#ifndef HOLDFAST_RETENTION_STORE_FAMILY_H
#define HOLDFAST_RETENTION_STORE_FAMILY_H

#include "store/family.h"

struct memory_family;
extern const struct store_family retention_store;
extern const struct memory_family retention_memory; /* tests */

#endif
