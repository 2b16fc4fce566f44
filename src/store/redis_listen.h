/* SPDX-License-Identifier: Apache-2.0 */
/* Listens on one Redis channel, on a thread of its own, and calls back on the loop.  A message
 * carries only "ask"; the changes themselves are in the store.  So a lost message costs only time,
 * and a forged one only a query. */
#ifndef HOLDFAST_STORE_REDIS_LISTEN_H
#define HOLDFAST_STORE_REDIS_LISTEN_H

#include "io/loop.h"
#include "store/redis_conn.h"

/* Messages within this time are reported once. */
#define REDIS_LISTEN_GATHER_MS 5
/* A connection that is quiet for this long gets a PING. */
#define REDIS_LISTEN_QUIET_MS 10000

struct redis_listen_config {
    struct loop *loop;
    const struct redis_target *target; /* must outlive the listener */
    const char *ca_file;
    struct str channel; /* copied */
    /* Called on the loop: a message came, or the subscription was renewed and messages may have
     * been missed. */
    void (*on_message)(void *arg);
    void *arg;
};
struct redis_listen;
must_check bool redis_listen_new(const struct redis_listen_config *config,
                                 struct redis_listen **ret, struct error *err);
/* Call on the loop; `on_message` is not called any more.  Waits for the thread, at most as long as
 * one connect takes.  NULL is fine. */
void redis_listen_free(struct redis_listen *l);

#endif
