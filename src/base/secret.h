/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in memory: kept in pages of their own that are left out of core images, are empty in a
 * forked process, are not swapped out where that is allowed, and are wiped when they are let go.
 * There is no way to print one; whoever copies what secret_view() shows wipes the copy. */
#ifndef HOLDFAST_BASE_SECRET_H
#define HOLDFAST_BASE_SECRET_H

#include "base/str.h"

struct secret {
    char *p; /* private; NULL: there is none */
    size_t n;
};
void secret_set(struct secret *s, struct str value); /* a copy; absent: none */
void secret_release(struct secret *s);               /* also fine on a zeroed one, and twice */
/* Absent when there is none; ends with a NUL that is not counted; good until it changes. */
struct str secret_view(const struct secret *s);

/* The memory itself, aligned to 16 and zeroed: for arenas that hold nothing else.  Any thread. */
void *secret_alloc(size_t n) must_check;
void secret_free(void *p, size_t n); /* of n bytes as they were asked for; NULL is fine */

#endif
