/* SPDX-License-Identifier: Apache-2.0 */
/* One WebSocket: its connection (socket.c) and its subscriptions (subscriptions.c).  Private to both.
 *
 * Every message is a text with one JSON object and the member `type`.
 *
 *   client: subscribe {id, types …, after}, unsubscribe {id}
 *   server: subscribed, event, position, resync, unsubscribed, error; each with the id */
#ifndef HOLDFAST_FEEDS_API_SOCKET_H
#define HOLDFAST_FEEDS_API_SOCKET_H

#include "feeds/api/watch.h"
#include "feeds/api/watchers.h"

#include <wslay/wslay.h>

#define SOCKET_MESSAGE_MAX (16 << 10)    /* bytes of a message of the client; beyond it: 1009 */
#define SOCKET_FRAMES_MAX 200            /* of the client, of all kinds, within … */
#define SOCKET_FRAMES_MS 10000           /* … this time; beyond it: 1008 */
#define SOCKET_SUBSCRIPTIONS_MAX 16      /* beyond it: an error */
#define SOCKET_ID_MAX 64                 /* bytes of the id of a subscription */
#define SOCKET_WINDOW ((size_t)32 << 10) /* bytes of messages that are written at once */

struct socket {
    struct watcher watcher;
    struct http_request *http;
    struct wslay_event_context *frames;
    struct arena *mem; /* of `visibility` */
    struct visibility visibility;
    struct list subscriptions;
    unsigned n_subscriptions;
    struct deadline quiet;
    unsigned n_pings; /* without an answer */
    int64_t patience_ms;
    int64_t full_since_ms; /* bytes are queued since then; 0: none are */
    int64_t frames_from_ms;
    unsigned n_frames;
    bool is_flooding;
    struct str input; /* while bytes are read */
};

/* socket.c */
/* Queues the text in watchers_text() as a message. */
void socket_queue(struct socket *s);
/* Sends what is queued. */
void socket_send(struct socket *s);
/* Bytes wait for the client: no event is taken. */
static inline bool socket_is_full(const struct socket *s)
{
    return s->full_since_ms != 0;
}

/* subscriptions.c */
void subscriptions_take(struct socket *s, struct str message);
void subscriptions_resume(struct socket *s, bool is_late);
void subscriptions_tell_positions(struct socket *s);
void subscriptions_release(struct socket *s);

#endif
