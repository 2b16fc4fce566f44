/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes: clients that speak JSON-RPC in lines over one connection that stays open, as `holdfast
 * stdio` does for its own client.  Every line is an exchange of its own.  Both eras may use the
 * same pipe, message by message. */
#ifndef HOLDFAST_EXCHANGE_PIPE_H
#define HOLDFAST_EXCHANGE_PIPE_H

#include "exchange/exchange.h"

#define PIPES_MAX 256              /* open at once */
#define PIPE_MAX_LINES 1024        /* requests under way on one pipe; beyond it no more is read */
#define PIPE_MAX_BYTES (32u << 20) /* bytes of those lines; likewise */
#define PIPE_MAX_QUEUE (1u << 20)  /* bytes that the client has not read; likewise */
/* Bytes that the client has not read; beyond it logs are dropped. */
#define PIPE_MAX_DROPPABLE (256u * 1024)
#define PIPE_GRACE_MS 5000 /* for requests under way after the client has closed its side */

struct pipes;

struct pipes *pipes_new(struct services *sv) must_check;
void pipes_free(struct pipes *pipes); /* accepts NULL; closes open pipes */
unsigned pipes_count(const struct pipes *pipes);
/* fn is called from the loop whenever the last pipe has closed. */
void pipes_on_empty(struct pipes *pipes, void (*fn)(void *arg), void *arg);
/* Reads no more lines.  Requests under way are answered; after PIPE_GRACE_MS they are cancelled. */
void pipes_stop(struct pipes *pipes);

/* The target of a pipe: a server, a profile, or all servers. */
struct pipe_target {
    struct str server, profile;
    struct str name; /* the client's name for this pipe, a UUID; or absent */
};
/* Takes over a connected stream socket and writes `greeting` first.  `who` and `to` are copied. */
void pipe_open(struct pipes *pipes, int fd, const struct principal *who,
               const struct pipe_target *to, struct str greeting);

#endif
