/* SPDX-License-Identifier: Apache-2.0 */
/* Channels: clients behind one connection that stays, over which all their messages are answered: a
 * pipe, or an event stream of 2024.  A channel knows what is under way on it and which transport
 * `initialize` has made; how bytes come and go is its owner's business.
 *
 * Embedded in its owner, who may go when the channel is closed and `n` is 0. */
#ifndef HOLDFAST_EXCHANGE_CLIENT_CHANNEL_H
#define HOLDFAST_EXCHANGE_CLIENT_CHANNEL_H

#include "exchange/exchange.h"

struct client_message;

struct client_channel {
    /* The owner's to fill. */
    struct services *sv;
    struct principal who;                 /* borrowed, like the names below */
    struct str server, profile, endpoint; /* both absent: all servers */
    struct str name;                      /* of its session, when no message names another */
    bool resumes; /* the client may come back with this name: its first transport's session has it
                     too */
    bool is_2024; /* an event stream of 2024 */
    const char *transport_id; /* what its first initialize gets; NULL: an id nobody is told */
    /* One message to the client, never dropped. */
    void (*write)(struct client_channel *c, struct str json);
    bool (*is_slow)(const struct client_channel *c); /* what may be dropped is dropped */
    /* Something under way has ended; from inside its callbacks, so nothing is freed here. */
    void (*on_done)(struct client_channel *c);
    /* The channel's. */
    struct transport *transport; /* what initialize made last; NULL before */
    unsigned n_transports;       /* that initialize has made */
    struct listener listener;
    struct str attended; /* the link key of its own session, once it has one; its own */
    struct list messages;
    unsigned n;         /* under way */
    unsigned n_listens; /* … of which subscriptions, which have no end of their own */
    size_t n_bytes;
    struct client_message *starting;
    struct client_message *initializing; /* those behind it should wait: they would miss it */
    bool closed;
};

/* Requests that will be answered without more from the client. */
static inline unsigned client_channel_busy(const struct client_channel *c)
{
    return c->n - c->n_listens;
}
void client_channel_open(struct client_channel *c); /* after its fields were filled */
/* A client's message; body and head (NULL: there is none) are copied. */
void client_channel_take(struct client_channel *c, struct str body, const struct http_head *head);
/* What has no end of its own is ended: subscriptions. */
void client_channel_end_listening(struct client_channel *c);
/* Whatever is under way is cancelled, and still answered. */
void client_channel_cancel_all(struct client_channel *c);
/* The client is gone: nothing more is written. */
void client_channel_close(struct client_channel *c);

#endif
