/* SPDX-License-Identifier: Apache-2.0 */
/* Hears what is published on one channel of Redis, on a thread of its own, and says so on the loop.
 * A message carries nothing but "ask": what has changed stands in the store, so one that is lost
 * costs time, and one that is forged a question. */
#ifndef HOLDFAST_STORE_REDIS_LISTEN_H
#define HOLDFAST_STORE_REDIS_LISTEN_H

#include "io/loop.h"
#include "store/redis_conn.h"

/* Messages closer together than this are heard as one. */
#define REDIS_LISTEN_GATHER_MS 5
/* A connection that says nothing for this long is asked whether it is there. */
#define REDIS_LISTEN_QUIET_MS 10000

struct redis_listen_config {
    struct loop *loop;
    const struct redis_target *target; /* lasts as long */
    const char *ca_file;
    struct str channel; /* copied */
    /* On the loop: a message came, or the channel is heard again and some may have been missed. */
    void (*heard)(void *arg);
    void *arg;
};
struct redis_listen;
must_check bool redis_listen_new(const struct redis_listen_config *config,
                                 struct redis_listen **ret, struct error *err);
/* On the loop; `heard` is not called any more.  Waits for the thread, at most as long as one
 * connect takes.  NULL is fine. */
void redis_listen_free(struct redis_listen *l);

#endif
