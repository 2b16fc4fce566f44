/* SPDX-License-Identifier: Apache-2.0 */
/* GET /events as a WebSocket: the connection.
 *
 *   bytes ─▶ wslay ─▶ subscriptions_take()     messages of the client
 *   readers ─▶ socket_queue() ─▶ wslay ─▶ socket_send() ─▶ the stream of the HTTP server
 *
 * wslay refuses frames that are not masked or not allowed, texts that are not UTF-8 and messages that
 * are too long, each with its close code, and answers pings.  Here is counted how many frames come.
 *
 * As for sse.c, while bytes are queued for a client that does not read, no event is taken. */
#include "feeds/api/impl.h"
#include "feeds/api/socket.h"

#include "config/config.h"

#include <stdlib.h>

#define QUEUE_MAX ((size_t)256 << 10)
#define PATIENCE 10 /* write deadlines without progress, as in sse.c */
#define FLOOD "too many frames in a short time"
#define MAX_UNANSWERED 2 /* pings; then the client is taken for gone */

static struct watchers *home_of(const struct socket *s)
{
    return s->watcher.home;
}

static struct loop *loop_of(const struct socket *s)
{
    return watchers_config(home_of(s))->loop;
}

static void socket_free(struct socket *s)
{
    subscriptions_release(s);
    deadline_clear(&s->quiet);
    watcher_close(&s->watcher);
    if (s->frames)
        wslay_event_context_free(s->frames);
    arena_free(s->mem);
    free(s);
}

/* Ends the connection after what is queued. */
static void end(struct socket *s)
{
    struct http_request *r = s->http;

    socket_free(s);
    r->on_abort = NULL;
    r->on_drained = NULL;
    r->on_bytes = NULL;
    http_stream_end(r);
}

static void close_with(struct socket *s, uint16_t code, const char *why)
{
    if (wslay_event_queue_close(s->frames, code, (const uint8_t *)why, strlen(why)) == 0)
        socket_send(s);
    end(s);
}

/* Of wslay. */

static ssize_t on_want_bytes(struct wslay_event_context *frames, uint8_t *to, size_t n,
                             int flags unused_arg, void *arg)
{
    struct socket *s = arg;
    size_t take = s->input.n < n ? s->input.n : n;

    if (take == 0 || s->is_flooding) {
        wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(to, s->input.p, take);
    s->input = str_n(s->input.p + take, s->input.n - take);
    return (ssize_t)take;
}

static ssize_t on_have_bytes(struct wslay_event_context *frames unused_arg, const uint8_t *bytes,
                             size_t n, int flags unused_arg, void *arg)
{
    struct socket *s = arg;

    buf_add(watchers_scratch(home_of(s)), bytes, n);
    return (ssize_t)n;
}

static void on_frame(struct wslay_event_context *frames unused_arg,
                     const struct wslay_event_on_frame_recv_start_arg *frame unused_arg, void *arg)
{
    struct socket *s = arg;
    int64_t now = loop_now_ms(loop_of(s));

    if (now - s->frames_from_ms >= SOCKET_FRAMES_MS) {
        s->frames_from_ms = now;
        s->n_frames = 0;
    }
    s->is_flooding |= ++s->n_frames > SOCKET_FRAMES_MAX;
    s->n_pings = 0;
}

static void on_message(struct wslay_event_context *frames,
                       const struct wslay_event_on_msg_recv_arg *m, void *arg)
{
    struct socket *s = arg;

    if (m->opcode == WSLAY_TEXT_FRAME && !s->is_flooding)
        subscriptions_take(s, str_n((const char *)m->msg, m->msg_length));
    else if (m->opcode == WSLAY_BINARY_FRAME)
        (void)wslay_event_queue_close(frames, WSLAY_CODE_UNSUPPORTED_DATA,
                                      (const uint8_t *)"messages are texts", 18);
}

static const struct wslay_event_callbacks callbacks = {
    .recv_callback = on_want_bytes,
    .send_callback = on_have_bytes,
    .on_frame_recv_start_callback = on_frame,
    .on_msg_recv_callback = on_message,
};

void socket_queue(struct socket *s)
{
    struct buf *text = watchers_text(home_of(s));
    const struct wslay_event_msg m = {
        .opcode = WSLAY_TEXT_FRAME, .msg = (const uint8_t *)text->p, .msg_length = text->n};

    /* It fails only after a close was queued; nothing more is sent then. */
    (void)wslay_event_queue_msg(s->frames, &m);
    if (wslay_event_get_queued_msg_length(s->frames) >= SOCKET_WINDOW)
        socket_send(s);
}

void socket_send(struct socket *s)
{
    struct buf *out = watchers_scratch(home_of(s));

    buf_reset(out);
    (void)wslay_event_send(s->frames);
    if (out->n == 0)
        return;
    /* It fails for a client that asks and does not read: only answers are lost, because no event is
     * taken while bytes are queued.  The connection ends when it is used again. */
    if (!http_stream_write(s->http, buf_str(out)))
        s->is_flooding = true;
    if (http_stream_queued(s->http) > 0 && !s->full_since_ms)
        s->full_since_ms = loop_now_ms(loop_of(s));
    buf_reset(out);
}

/* Of the connection. */

static void on_bytes(struct http_request *r, struct str bytes)
{
    struct socket *s = r->user;

    s->input = bytes;
    int failed = wslay_event_recv(s->frames);
    s->input = STR_NONE;
    if (s->is_flooding) {
        close_with(s, WSLAY_CODE_POLICY_VIOLATION, FLOOD);
        return;
    }
    socket_send(s);
    if (failed || !wslay_event_get_read_enabled(s->frames) ||
        wslay_event_get_close_received(s->frames) || wslay_event_get_close_sent(s->frames))
        end(s);
}

static void on_abort(struct http_request *r)
{
    socket_free(r->user);
    http_request_done(r);
}

static void on_drained(struct http_request *r)
{
    struct socket *s = r->user;
    bool is_late = s->full_since_ms && loop_now_ms(loop_of(s)) - s->full_since_ms > s->patience_ms;

    s->full_since_ms = 0;
    s->n_pings = 0; /* they were behind what was queued */
    if (s->is_flooding)
        close_with(s, WSLAY_CODE_POLICY_VIOLATION, FLOOD);
    else
        subscriptions_resume(s, is_late);
}

static void on_quiet(struct deadline *d)
{
    struct socket *s = container_of(d, struct socket, quiet);
    const struct wslay_event_msg ping = {.opcode = WSLAY_PING};

    deadline_set(watchers_config(home_of(s))->quiet, d);
    if (socket_is_full(s))
        return;
    if (s->n_pings++ >= MAX_UNANSWERED) {
        close_with(s, WSLAY_CODE_GOING_AWAY, "no answer to pings");
        return;
    }
    (void)wslay_event_queue_msg(s->frames, &ping);
    subscriptions_tell_positions(s);
    socket_send(s);
}

static void on_end(struct watcher *w, enum watcher_end why)
{
    struct socket *s = container_of(w, struct socket, watcher);

    if (why == WATCHER_REVOKED)
        close_with(s, WSLAY_CODE_POLICY_VIOLATION, "the credential was revoked or has expired");
    else
        close_with(s, WSLAY_CODE_GOING_AWAY, "Holdfast is stopping");
}

/* Filters belong to a subscription. */
static bool has_plain_query(struct api_call *c)
{
    static const char *const names[] = {"types", "session", "server", "tool", "outcome", "after"};
    struct str query = c->http->head->query.p ? c->http->head->query : STR("");

    for (size_t i = 0; i < countof(names); i++) {
        unsigned count = 0;
        (void)http_query_get(query, str_of(names[i]), &count);
        if (count == 0)
            continue;
        api_refuse(c, ERR_BAD_INPUT,
                   "with a WebSocket, send %s in the message subscribe, not in the URL", names[i]);
        return false;
    }
    return true;
}

static void begin(struct socket *s, struct http_request *r)
{
    s->http = r;
    s->frames_from_ms = loop_now_ms(loop_of(s));
    http_stream_patient(r, PATIENCE);
    http_stream_slim(r);
    deadline_set(watchers_config(home_of(s))->quiet, &s->quiet);
}

static struct socket *socket_new(struct api_call *c, const struct visibility *v)
{
    struct socket *s = xcalloc(1, sizeof(*s));

    s->mem = arena_new_for(SIZE_MAX / 4, 512, 8);
    s->visibility = visibility_dup(v, s->mem);
    s->patience_ms = c->config->events.patience_ms;
    s->watcher.on_end = on_end;
    list_init(&s->subscriptions);
    deadline_init(&s->quiet, on_quiet);
    return s;
}

void events_socket_open(struct api_call *c)
{
    struct visibility visibility;
    struct str lines;
    struct error err;

    if (!has_plain_query(c) || !watch_request_visibility(c, &visibility) ||
        !websocket_accept(c, &lines))
        return;
    struct socket *s = socket_new(c, &visibility);
    if (!watcher_open(c->sv->watchers, &s->watcher, WATCHER_WEBSOCKET, &c->caller, &err)) {
        socket_free(s);
        watch_refuse(c, &err);
        return;
    }
    if (wslay_event_context_server_init(&s->frames, &callbacks, s) != 0)
        abort(); /* there is no memory */
    wslay_event_config_set_max_recv_msg_length(s->frames, SOCKET_MESSAGE_MAX);
    c->http->user = s;
    c->http->on_abort = on_abort;
    c->http->on_drained = on_drained;
    c->http->on_bytes = on_bytes;
    begin(s, api_upgrade(c, lines, QUEUE_MAX));
}
