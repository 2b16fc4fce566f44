/* SPDX-License-Identifier: Apache-2.0 */
/* GET streams of legacy servers, reopened when they end or break.
 *
 *   POST_LISTEN   the standalone stream of a link: requests and notifications that belong to no
 *                 request of ours.  Lives as long as its link; a refusal is accepted.
 *   POST_RESUME   was a POST whose stream ended before its answer; continues after the last event,
 *                 as long as its pending waits.
 *
 * Each stream keeps its own last event id.  The wait before the next GET is the server's `retry`,
 * else a second; it doubles with every failure, up to a minute. */
#include "upstream/remote_impl.h"

#include "base/log.h"

/* Timeout for the head of a standalone stream; then calls go on without the stream. */
#define LISTEN_WAIT_MS 200
#define RETRY_LEAST_MS 100 /* after a connection without any event */
#define RETRY_MOST_MS (60 * 1000)
#define BRIEF_MS 1000
/* Brief connections in a row that may follow each other without a longer wait. */
#define BRIEF_FREE 3
#define RETRY_ASKED_MS (10 * 60 * 1000) /* limit on a server's `retry` */

static bool is_fit_for_a_header(struct str id)
{
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] < 0x20 || id.p[i] > 0x7e)
            return false;
    return str_trim(id).n == id.n;
}

void stream_note(struct post *post, const struct sse_event *e)
{
    post->got_event = true;
    post->tries = 0;
    if (e->has_retry)
        post->retry_ms = e->retry_ms < RETRY_ASKED_MS ? (int64_t)e->retry_ms : RETRY_ASKED_MS;
    if (!e->id.p)
        return;
    buf_reset(&post->last_id);
    if (is_fit_for_a_header(e->id) && !buf_try_add(&post->last_id, e->id.p, e->id.n))
        log_debug("an event id is too long to go on from",
                  LS("server", post->link->up->config->name));
}

bool stream_may_resume(const struct post *post)
{
    return post->is_stream && mcp_era(post->link->era)->resumes_streams && post->last_id.n;
}

static bool on_head(void *arg, const struct http_head *head)
{
    struct post *post = arg;
    post_begin_stream(post, head);
    if (post->role == POST_LISTEN)
        remote_listen_done(post->link);
    return post->is_stream;
}

/* True for failures that may be temporary. */
static bool may_pass(int status)
{
    return status >= 500 || status == 429 || status == 408 || status == 409;
}

static void refused(struct post *post)
{
    struct link *l = post->link;

    post->busy = true;
    if (post->role == POST_LISTEN) {
        log_debug("a server has no standalone stream", LS("server", l->up->config->name),
                  LI("status", post->status));
        watch_is_deaf(l);
    } else if (post->status == 404 && l->remote_id.p) {
        post_fail_by_status(post);
    } else {
        post_fail_ended(post);
    }
    post_free(post);
}

static void on_done(void *arg, struct str body unused_arg, const struct error *err,
                    bool sent unused_arg)
{
    struct post *post = arg;
    bool failed = err || may_pass(post->status);

    post->call = NULL;
    if (post->role == POST_LISTEN)
        remote_listen_done(post->link);
    if (post->role == POST_RESUME && !post_is_open(post))
        post_free(post);
    else if (failed || post->is_stream)
        stream_again(post, failed);
    else
        refused(post);
}

static const struct http_call_events stream_events = {
    .on_head = on_head,
    .on_body = post_on_body,
    .on_done = on_done,
};

static void connect_stream(struct post *post)
{
    struct link *l = post->link;
    struct remote *r = l->up->wire; /* exists since the POST before */
    struct buf lines;

    buf_init_secret(&lines, REMOTE_MAX_LINES);
    buf_addz(&lines, "Accept: text/event-stream\r\n");
    remote_add_own_lines(&lines, l, r->own);
    remote_add_session_lines(&lines, l);
    if (post->last_id.n) {
        buf_addz(&lines, "Last-Event-ID: ");
        buf_addstr(&lines, buf_str(&post->last_id));
        buf_addz(&lines, "\r\n");
    }
    post->status = 0;
    post->since_ms = loop_now_ms(l->up->set->loop);
    /* A resumed stream uses the connection limit of its POST. */
    struct http_pool *pool = post->role == POST_RESUME ? r->pool : remote_streams(l->up, r);
    post->call = http_call_start(pool, "GET", r->url.target, buf_str(&lines), NULL, 0, 0,
                                 &stream_events, post);
    buf_release(&lines);
}

static void on_due(void *arg)
{
    connect_stream(arg);
}

/* A server may ask for an immediate reconnect again and again.  In the long run the limit is one
 * connection per second. */
static int64_t least_wait(const struct post *post)
{
    unsigned many = post->brief > BRIEF_FREE ? post->brief - BRIEF_FREE : 0;
    int64_t ms = many ? (int64_t)RETRY_LEAST_MS << (many < 5 ? many - 1 : 4) : 0;
    return ms < REMOTE_RETRY_MS ? ms : REMOTE_RETRY_MS;
}

static int64_t next_wait(const struct post *post)
{
    int64_t ms = post->retry_ms;

    if (post->tries) {
        int64_t base = ms > RETRY_LEAST_MS ? ms : RETRY_LEAST_MS;
        int64_t grown = base << (post->tries < 10 ? post->tries - 1 : 10);
        int64_t most = ms > RETRY_MOST_MS ? ms : RETRY_MOST_MS;
        return grown < most ? grown : most;
    }
    return post->got_event || ms > RETRY_LEAST_MS ? ms : RETRY_LEAST_MS;
}

void stream_again(struct post *post, bool failed)
{
    if (post->role == POST_MESSAGE)
        post->role = POST_RESUME;
    if (post->is_stream)
        sse_reader_release(&post->sse);
    post->is_stream = false;
    if (failed)
        post->tries++;
    if (!post->timer)
        post->timer = loop_timer_new(post->link->up->set->loop, on_due, post);
    bool brief = loop_now_ms(post->link->up->set->loop) - post->since_ms < BRIEF_MS;
    post->brief = brief ? post->brief + 1 : 0;
    int64_t asked = next_wait(post), least = least_wait(post);
    loop_timer_start(post->timer, asked > least ? asked : least, 0);
}

static bool will_listen(const struct link *l)
{
    bool wanted = l->initialize_params.p || str_eq(l->key, STR(LINK_KEY_WATCH));
    return !mcp_era(l->era)->has_listen && wanted && !((struct remote_link *)l->wire)->endpoint.p;
}

static void on_listen_wait_over(void *arg)
{
    struct link *l = arg;
    if (l->state == LINK_OPENING)
        link_opened(l);
}

bool remote_prepare(struct link *l)
{
    struct remote_link *r = l->wire;

    if (!will_listen(l))
        return false;
    r->listen_wait = loop_timer_new(l->up->set->loop, on_listen_wait_over, l);
    loop_timer_start(r->listen_wait, LISTEN_WAIT_MS, 0);
    if (l->is_resumed) /* otherwise after notifications/initialized */
        stream_listen(l);
    return true;
}

void remote_listen_done(struct link *l)
{
    struct remote_link *r = l->wire;
    if (r->listen_wait && l->state == LINK_OPENING)
        loop_timer_start(r->listen_wait, 0, 0);
}

void stream_listen(struct link *l)
{
    if (!will_listen(l))
        return;
    struct post *post = post_new(l, NULL);
    post->role = POST_LISTEN;
    connect_stream(post);
}
