/* SPDX-License-Identifier: Apache-2.0 */
/* How threads begin: signals stay the loop thread's business, and a new thread may run on every
 * processor that the process was given, also when the thread that begins it keeps to one
 * (store/lanes_place.c) and would hand that down. */
#ifndef HOLDFAST_BASE_THREAD_H
#define HOLDFAST_BASE_THREAD_H

#include "base/base.h"

#include <pthread.h>

/* `name` (static, at most 15 bytes) is what ps and top show.  false: the system has no room. */
must_check bool thread_start(pthread_t *ret, const char *name, void *(*main)(void *), void *arg);
/* The second half of it, for threads that a library began: called on that thread, as often as one
 * likes. */
void thread_roam(void);

#endif
