/* SPDX-License-Identifier: Apache-2.0 */
/* The process's processors are read when its first thread starts, before any thread is pinned.  An
 * operator who moves the process later moves the threads that run then. */
#include "base/thread.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>

struct beginning {
    const char *name;
    void *(*main)(void *);
    void *arg;
};

static cpu_set_t given;
static bool given_is_known;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Fails if the machine has more processors than the set holds, or without the system call; then no
 * thread is pinned either. */
static void read_given(void)
{
    given_is_known = sched_getaffinity(0, sizeof(given), &given) == 0;
}

/* Undoes the pinning that a new thread inherits. */
static void roam(void)
{
    if (given_is_known)
        (void)sched_setaffinity(0, sizeof(given), &given); /* fails: the thread stays pinned */
}

static void *begin(void *arg)
{
    struct beginning b = *(struct beginning *)arg;
    free(arg);
    pthread_setname_np(pthread_self(), b.name);
    roam();
    return b.main(b.arg);
}

bool thread_start(pthread_t *ret, const char *name, void *(*main)(void *), void *arg)
{
    struct beginning *b = xcalloc(1, sizeof(*b));
    sigset_t all, before;

    *b = (struct beginning){name, main, arg};
    pthread_once(&once, read_given);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(ret, NULL, begin, b) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!ok)
        free(b);
    return ok;
}
