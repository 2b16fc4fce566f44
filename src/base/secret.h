/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in memory: kept in separate pages that core dumps omit, that are empty in a forked
 * process, that are not swapped out where the system allows it, and that are wiped when freed.
 * There is no way to print a secret.  A caller that copies the bytes of secret_view() must wipe the
 * copy. */
#ifndef HOLDFAST_BASE_SECRET_H
#define HOLDFAST_BASE_SECRET_H

#include "base/str.h"

struct secret {
    char *p; /* private; NULL: no secret */
    size_t n;
};
void secret_set(struct secret *s, struct str value); /* copies the value; absent: no secret */
void secret_release(struct secret *s);               /* also fine on a zeroed struct, and twice */
/* Absent when no secret is set; ends with a NUL that is not counted; valid until the secret
 * changes. */
struct str secret_view(const struct secret *s);

/* The memory itself, aligned to 16 and zeroed: for arenas that hold only secrets.  Any thread. */
void *secret_alloc(size_t n) must_check;
void secret_free(void *p, size_t n); /* n as passed to secret_alloc(); NULL is fine */

/* Zeroes the stack below the caller's frame, where calls that have returned left copies of a
 * secret: vsnprintf() of the C library leaves up to 64 bytes of its output there. */
void secret_wipe_stack(void);

#endif
