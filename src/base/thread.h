/* SPDX-License-Identifier: Apache-2.0 */
/* Starting threads.  Signals stay with the loop thread.  A new thread may run on every processor of
 * the process, even if the thread that starts it is pinned to one processor (store/lanes_place.c);
 * without this it would inherit the pinning. */
#ifndef HOLDFAST_BASE_THREAD_H
#define HOLDFAST_BASE_THREAD_H

#include "base/base.h"

#include <pthread.h>

/* `name` (static, at most 15 bytes) is shown by ps and top.  Returns false when the system cannot
 * start a thread. */
must_check bool thread_start(pthread_t *ret, const char *name, void *(*main)(void *), void *arg);

#endif
