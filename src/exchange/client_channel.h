/* SPDX-License-Identifier: Apache-2.0 */
/* Channels: a client behind one connection that stays open and carries the answers to all its
 * messages: a pipe, or an event stream of 2024.  A channel knows its messages under way and the
 * transport that `initialize` made.  Its owner reads and writes the bytes.
 *
 * Embedded in its owner, which may be freed when the channel is closed and `n` is 0. */
#ifndef HOLDFAST_EXCHANGE_CLIENT_CHANNEL_H
#define HOLDFAST_EXCHANGE_CLIENT_CHANNEL_H

#include "exchange/exchange.h"

struct client_message;

struct client_channel {
    /* Filled by the owner. */
    struct services *sv;
    struct principal who;                 /* borrowed, like the names below */
    struct str server, profile, endpoint; /* both absent: all servers */
    struct str name;                      /* names its session, when a message names no other */
    /* The client may come back with this name: the session of its first transport is found by
     * it too. */
    bool resumes;
    bool is_2024; /* the channel is an event stream of 2024 */
    /* For its first initialize; NULL: a new id, which the client is not told. */
    const char *transport_id;
    /* Writes one message to the client; never drops it. */
    void (*write)(struct client_channel *c, struct str json);
    bool (*is_slow)(const struct client_channel *c); /* true: droppable messages are dropped */
    /* A message has ended.  Called from inside of the channel's callbacks: must not free the
     * channel. */
    void (*on_done)(struct client_channel *c);
    /* Filled by the channel. */
    struct transport *transport; /* made by the last initialize; NULL before */
    unsigned n_transports;       /* number of transports that initialize has made */
    struct listener listener;
    struct str attended; /* the link key of its own session, once it has one; owned */
    struct list messages;
    unsigned n;         /* messages under way */
    unsigned n_listens; /* … of which subscriptions, which do not end by themselves */
    size_t n_bytes;
    struct client_message *starting;
    /* The owner should hold back later messages until it ends. */
    struct client_message *initializing;
    bool closed;
};

/* Requests that will end without further input from the client. */
static inline unsigned client_channel_busy(const struct client_channel *c)
{
    return c->n - c->n_listens;
}
void client_channel_open(struct client_channel *c); /* after the owner has filled its fields */
/* Takes a client's message; body and head (NULL: no headers) are copied. */
void client_channel_take(struct client_channel *c, struct str body, const struct http_head *head);
/* Ends subscriptions, which do not end by themselves. */
void client_channel_end_listening(struct client_channel *c);
/* Cancels everything under way; each request is still answered. */
void client_channel_cancel_all(struct client_channel *c);
/* The client is gone: the channel writes nothing more. */
void client_channel_close(struct client_channel *c);

#endif
