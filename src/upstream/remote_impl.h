/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the HTTP transport share: remote.c (links and the messages they send),
 * remote_post.c (one message and its answer), remote_stream.c (GET streams that are opened again
 * when they break), remote_sse.c (the transport of 2024).  Private to them. */
#ifndef HOLDFAST_UPSTREAM_REMOTE_IMPL_H
#define HOLDFAST_UPSTREAM_REMOTE_IMPL_H

#include "http/client.h"
#include "http/sse.h"
#include "upstream/upstream_impl.h"

#define REMOTE_MAX_MESSAGE (16u * 1024 * 1024)
#define REMOTE_MAX_EVENT_ID 1024
/* Of one head, more than all that has a limit of its own: what is configured (48 KiB), told (32)
 * and stored (64), 32 mirrored arguments (176), the session and the name (8). */
#define REMOTE_MAX_LINES (512u * 1024)
#define REMOTE_RETRY_MS 1000 /* before a stream is opened again, unless the server says */
#define REMOTE_MAX_ENDPOINT 4096

struct remote { /* upstream.wire */
    struct http_pool *pool;
    struct http_pool *streams; /* what stays open: it must never use up the places of requests */
    struct tls_context *tls;
    struct http_url url;
    struct secret common; /* header lines of every POST */
    struct str own;       /* the configured ones among them */
    struct buf lines;     /* room for the head lines of the next POST */
};

struct remote_link { /* link.wire */
    struct list posts;
    unsigned unanswered;  /* posts that nobody waits for: notifications and our responses */
    bool version_refused; /* once: a request was sent again with the version that was named */
    struct str endpoint;  /* of 2024: where messages are posted to; in the link's memory */
    struct loop_timer *listen_wait; /* opens the link; NULL: it does not listen */
};

enum post_role {
    POST_MESSAGE, /* a POST, or the DELETE that ends a session */
    POST_RESUME,  /* a GET that goes on with the stream of a POST, for its pending */
    POST_LISTEN,  /* the GET for what belongs to no request */
    POST_CHANNEL, /* the stream of a link of 2024 */
    POST_TRIAL,   /* a GET after a refused initialize: is this a server of 2024? */
};

/* One message on its way, or one stream.  A post that waits for its next GET has no call. */
struct post {
    struct list node;
    struct link *link; /* NULL once nobody waits: a DELETE, or the link has ended */
    struct pending *pending;
    struct http_call *call;
    uint64_t id;
    enum post_role role;
    int status;
    bool waited; /* by `pending`, which clears it when it is over and may be gone then */
    uint8_t type_n;
    bool is_stream : 1;
    bool is_spare : 1;       /* counted in unanswered */
    bool is_initialized : 1; /* notifications/initialized: the standalone stream may follow it */
    bool ends_soon : 1;      /* answered: only the end of the stream is awaited, and not for long */
    bool
        busy : 1; /* inside one of its callbacks: whoever drops it now leaves it to that callback */
    bool dead : 1;            /* dropped meanwhile */
    bool heard : 1;           /* an event came on this connection */
    struct loop_timer *timer; /* the next GET, or patience with the first event; NULL: never used */
    /* Going on after a break. */
    struct buf last_id; /* of the newest event; empty: cannot be resumed */
    int64_t retry_ms;   /* what the server asked for, or the default */
    unsigned tries;     /* that failed in a row */
    unsigned brief;     /* connections in a row that lasted less than a second */
    int64_t since_ms;   /* when it was begun */
    /* Not set up from the start. */
    char type[48]; /* type_n bytes: its Content-Type as it came, cut; escape it to show it */
    struct sse_reader sse; /* with is_stream */
};

/* remote.c */
must_check bool remote_of(struct upstream *u, struct remote **ret, struct error *err);
struct http_pool *remote_streams(struct upstream *u, struct remote *r);
void remote_add_own_lines(struct buf *lines, const struct link *l, struct str own);
void remote_add_session_lines(struct buf *lines, const struct link *l); /* and the version */

/* remote_post.c */
struct post *post_new(struct link *l, struct pending *p);
void post_free(struct post *post);
void post_drop(struct post *post); /* ends it without an answer */
/* Still waited for?  The pending may have been answered and be gone. */
bool post_is_open(const struct post *post);
void post_begin_stream(struct post *post, const struct http_head *head);
bool post_on_event(void *arg, const struct sse_event *e);
bool post_on_body(void *arg, struct str bytes);
bool post_is_visible(struct str s);
bool post_is_event_stream(const struct http_head *head);
void post_fail_by_status(struct post *post);
void post_fail_ended(struct post *post); /* the stream ended without a result */
extern const struct http_call_events post_events;

/* remote_stream.c */
void stream_note(struct post *post, const struct sse_event *e); /* its id and retry */
bool stream_may_resume(const struct post *post);
/* Opens the stream again after the wait that is due.  `failed`: something went wrong, so the wait
 * grows; else the server ended it in good order. */
void stream_again(struct post *post, bool failed);
/* A link that will listen opens with its stream: servers put what they ask in the midst of a call
 * on the standalone stream too, and drop it when there is none.  False: it will not listen. */
bool remote_prepare(struct link *l);
void remote_listen_done(struct link *l); /* there is a stream, or there will be none */
void stream_listen(struct link *l);

/* remote_sse.c */
void remote_channel_open(struct link *l);
bool remote_channel_is_worth_a_trial(const struct post *post);
void remote_channel_try(struct post *post); /* instead of failing the initialize */

#endif
