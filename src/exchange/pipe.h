/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes: clients that speak JSON-RPC in lines over one connection that stays, as `holdfast stdio`
 * does for its own client.  Every line is an exchange of its own; both eras go through the same
 * pipe, message by message. */
#ifndef HOLDFAST_EXCHANGE_PIPE_H
#define HOLDFAST_EXCHANGE_PIPE_H

#include "exchange/exchange.h"

#define PIPES_MAX 256                    /* open at once */
#define PIPE_MAX_LINES 1024              /* requests under way on one pipe; then no more is read */
#define PIPE_MAX_BYTES (32u << 20)       /* of those lines; likewise */
#define PIPE_MAX_QUEUE (1u << 20)        /* not read by the client; likewise */
#define PIPE_MAX_DROPPABLE (256u * 1024) /* not read by the client; above it logs are dropped */
#define PIPE_GRACE_MS 5000               /* for what is under way when the client has finished */

struct pipes;

struct pipes *pipes_new(struct services *sv) must_check;
void pipes_free(struct pipes *pipes); /* NULL is fine; closes what is left */
unsigned pipes_count(const struct pipes *pipes);
/* Called from the loop whenever the last one has gone. */
void pipes_on_empty(struct pipes *pipes, void (*fn)(void *arg), void *arg);
/* No more lines are read; what is under way is answered, and cancelled after PIPE_GRACE_MS. */
void pipes_stop(struct pipes *pipes);

/* What a pipe is for: a server, a profile, or all servers. */
struct pipe_target {
    struct str server, profile;
    struct str name; /* the client's own for this pipe, a UUID; absent: it has none */
};
/* Takes a connected stream socket on which `greeting` is said first.  `who` and `to` are copied. */
void pipe_open(struct pipes *pipes, int fd, const struct principal *who,
               const struct pipe_target *to, struct str greeting);

#endif
