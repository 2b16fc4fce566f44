/* SPDX-License-Identifier: Apache-2.0 */
/* Listens on one Redis channel, on a thread of its own, and calls back on the loop.  A message
 * only says what to ask the store for; the changes and events themselves are there.  So a lost message costs only time,
 * and a forged one only a query. */
#ifndef HOLDFAST_STORE_REDIS_LISTEN_H
#define HOLDFAST_STORE_REDIS_LISTEN_H

#include "io/loop.h"
#include "store/redis_conn.h"

/* The messages: "ask", and "events" with the name of the process.  Any other text means changes. */
#define REDIS_SAYS_CHANGES "ask"
#define REDIS_SAYS_EVENTS "events"
enum redis_news { REDIS_CHANGES = 1, REDIS_EVENTS = 2 };
/* Messages within this time are reported once. */
#define REDIS_LISTEN_GATHER_MS 5
/* A connection that is quiet for this long gets a PING. */
#define REDIS_LISTEN_QUIET_MS 10000

struct redis_listen_config {
    struct loop *loop;
    const struct redis_target *target; /* must outlive the listener */
    const char *ca_file;
    struct str channel; /* copied */
    struct str own;     /* copied: the message of this process, which is passed over; or absent */
    /* Called on the loop with what the messages said, 1 or more of enum redis_news; with all of it
     * when the subscription was renewed and messages may have been missed. */
    void (*on_message)(void *arg, unsigned news);
    void *arg;
};
struct redis_listen;
must_check bool redis_listen_new(const struct redis_listen_config *config,
                                 struct redis_listen **ret, struct error *err);
/* Call on the loop; `on_message` is not called any more.  Waits for the thread, at most as long as
 * one connect takes.  NULL is fine. */
void redis_listen_free(struct redis_listen *l);

#endif
