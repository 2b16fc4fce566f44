/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the HTTP transport: remote.c (links and the messages they send),
 * remote_post.c (one message and its answer), remote_stream.c (GET streams that are reopened when
 * they break), remote_sse.c (the transport of 2024).  Private to them. */
#ifndef HOLDFAST_UPSTREAM_REMOTE_IMPL_H
#define HOLDFAST_UPSTREAM_REMOTE_IMPL_H

#include "http/client.h"
#include "http/sse.h"
#include "upstream/upstream_impl.h"

#define REMOTE_MAX_MESSAGE (16u * 1024 * 1024)
#define REMOTE_MAX_EVENT_ID 1024
/* Bytes of one request head.  More than the sum of the separate limits: configured headers (48
 * KiB), context values (32), the credential (64), 32 mirrored arguments (176), the session and the
 * name (8). */
#define REMOTE_MAX_LINES (512u * 1024)
/* Before a stream is reopened, unless the server asks for another time. */
#define REMOTE_RETRY_MS 1000
#define REMOTE_MAX_ENDPOINT 4096

struct remote { /* upstream.wire */
    struct http_pool *pool;
    /* Long-lived streams: they must not take the connections of requests. */
    struct http_pool *streams;
    struct tls_context *tls;
    struct http_url url;
    struct secret common; /* header lines of every POST */
    struct str own;       /* the configured ones among them */
    struct buf lines;     /* buffer for the header lines of the next POST */
};

struct remote_link { /* link.wire */
    struct list posts;
    unsigned unanswered; /* posts without an awaited answer: notifications and our responses */
    /* Set once: a request was sent again with the version that the server named. */
    bool version_refused;
    bool initialized_again; /* notifications/initialized was lost and sent again */
    struct str endpoint;    /* of 2024: the target of posts; in the link's memory */
    /* Opens the link when it fires; NULL: the link does not listen. */
    struct loop_timer *listen_wait;
};

enum post_role {
    POST_MESSAGE, /* a POST, or the DELETE that ends a session */
    POST_RESUME,  /* a GET that resumes the stream of a POST, for its pending */
    POST_LISTEN,  /* the GET for messages that belong to no request */
    POST_CHANNEL, /* the stream of a link of 2024 */
    POST_TRIAL,   /* a GET after a refused initialize: tests for a server of 2024 */
};

/* One message under way, or one stream.  A post that waits for its next GET has no call. */
struct post {
    struct list node;
    struct link *link; /* NULL once its answer is not wanted: a DELETE, or the link has ended */
    struct pending *pending;
    struct http_call *call;
    uint64_t id;
    enum post_role role;
    int status;
    bool waited; /* `pending` waits; it clears this when it ends, and may then be freed */
    uint8_t type_n;
    bool is_stream : 1;
    bool is_spare : 1; /* counted in unanswered */
    /* This is notifications/initialized: the standalone stream may be opened after it. */
    bool is_initialized : 1;
    bool ends_soon : 1; /* answered: waits only for the end of the stream, with a short timeout */
    bool busy : 1;      /* inside one of its callbacks, which frees it if it is dropped meanwhile */
    bool is_dropped : 1; /* dropped meanwhile */
    bool got_event : 1;  /* an event came on this connection */
    /* For the next GET, or the timeout of the first event; NULL: not used so far. */
    struct loop_timer *timer;
    /* Resuming after a break. */
    struct buf last_id; /* of the newest event; empty: cannot be resumed */
    int64_t retry_ms;   /* as the server asked, or the default */
    unsigned tries;     /* failures in a row */
    unsigned brief;     /* connections in a row that lasted less than a second */
    int64_t since_ms;   /* when the connection was begun */
    /* Not zeroed by post_new(). */
    /* The Content-Type as received, cut to type_n bytes; escape it before showing it. */
    char type[48];
    struct sse_reader sse; /* valid with is_stream */
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
/* True while the answer is awaited.  The pending may have been answered and freed. */
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
/* Reopens the stream after the due wait.  `failed`: after a failure, so the wait grows; otherwise
 * the server ended the stream in good order. */
void stream_again(struct post *post, bool failed);
/* A link that will listen opens together with its stream: servers also send requests that belong to
 * a call on the standalone stream, and drop them without one.  False: the link will not listen. */
bool remote_prepare(struct link *l);
void remote_listen_done(struct link *l); /* the stream is open, or will not be opened */
void stream_listen(struct link *l);

/* remote_sse.c */
void remote_channel_open(struct link *l);
bool remote_channel_is_worth_a_trial(const struct post *post);
void remote_channel_try(struct post *post); /* instead of failing the initialize */

#endif
