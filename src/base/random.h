/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes from getrandom(2) through a small pool that is dropped on fork.  Tests make them
 * repeatable with random_set_fake().  Callable from any thread. */
#ifndef HOLDFAST_BASE_RANDOM_H
#define HOLDFAST_BASE_RANDOM_H

#include "base/base.h"

void random_bytes(void *p, size_t n);
uint64_t random_u64(void);
uint64_t random_below(uint64_t limit); /* uniform in [0, limit) */
void random_set_fake(uint64_t seed);   /* tests: a repeatable stream */
void random_set_real(void);
#define UUID_TEXT 37
void random_uuid4(char ret_text[UUID_TEXT]);
void random_uuid7(char ret_text[UUID_TEXT]); /* time-ordered */

#endif
