/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of a stream: the answer to a POST or GET that stays open.
 *
 *     stream_conn_open ──▶ written to ──▶ stream_conn_close ──▶ end of the turn: reported, r freed
 *                              └──── the client leaves ──────────▶┘
 *
 * Invariants: a stream has at most one connection that is not closed; ids on a connection only
 * rise, so the client's last id tells which events it has; after close nothing is written.  The
 * memory of r is released only after on_gone has returned, because the owner of the stream may live
 * in it. */
#include "delivery/stream_impl.h"

#include "http/sse.h"

#include <stdlib.h>

#define PUMPED_PER_TURN 64           /* writes of a broadcast per turn */
#define KEEP_OUT ((size_t)64 * 1024) /* bytes of the shared buffer kept between writes */

void stream_http_begin(struct http_request *r)
{
    http_stream_begin(r, 200, "text/event-stream", HTTP_EVENT_STREAM_LINES, STREAM_MAX_QUEUE);
}

static void add_event(struct buf *out, const struct stream_event *e)
{
    char id[STREAM_ID_TEXT];

    if (e->has_id) {
        buf_addz(out, "id: ");
        buf_add(out, id, stream_id_format(e->stream, e->number, id));
        buf_addc(out, '\n');
    }
    buf_add(out, e->text->p, e->text->n);
}

static void add_after(struct buf *out, const struct stream *st, uint64_t number)
{
    list_each(&st->events, it)
    {
        struct stream_event *e = list_entry(it, struct stream_event, in_stream);
        if (e->number > number)
            add_event(out, e);
    }
}

/* Writes the shared buffer, filled by add_*(), in one piece. */
static bool write_out(struct stream_conn *c)
{
    struct streams *all = c->stream->all;
    bool is_taken = http_stream_write(c->r, buf_str(&all->out));

    if (all->out.cap > KEEP_OUT) {
        buf_release(&all->out);
        buf_init(&all->out, SIZE_MAX);
    }
    if (is_taken)
        deadline_set(&all->quiet, &c->quiet);
    return is_taken;
}

static bool write_one(struct stream_conn *c, struct stream_event *e)
{
    struct stream *st = c->stream;

    buf_reset(&st->all->out);
    add_event(&st->all->out, e);
    if (!write_out(c))
        return false;
    st->written = e->number;
    return true;
}

/* Writes the progress event that waited for an empty queue; without room it is dropped. */
static void write_unsent(struct stream_conn *c)
{
    struct stream *st = c->stream;
    struct stream_event *e = st->unsent;

    st->unsent = NULL;
    if (e && !write_one(c, e))
        stream_event_drop(e, false);
}

/* Writes up to the newest event.  Without room for all of them the connection ends: a broadcast
 * must arrive. */
static void catch_up(struct stream_conn *c)
{
    struct stream *st = c->stream;

    list_remove(&c->behind);
    buf_reset(&st->all->out);
    add_after(&st->all->out, st, st->written);
    if (!write_out(c)) {
        stream_conn_close(c, true);
        return;
    }
    st->unsent = NULL;
    st->written = st->last;
}

bool stream_conn_write(struct stream_conn *c, struct stream_event *e)
{
    if (!list_empty(&c->behind)) {
        catch_up(c);
        return true;
    }
    if (e->weight == STREAM_PROGRESS && http_stream_queued(c->r) > 0)
        return false;
    write_unsent(c);
    return write_one(c, e);
}

void stream_conn_write_later(struct stream_conn *c)
{
    struct streams *all = c->stream->all;

    if (list_empty(&all->behind))
        loop_timer_start(all->pump, 0, 0);
    if (list_empty(&c->behind))
        list_push(&all->behind, &c->behind);
}

void stream_conn_pump(void *streams)
{
    struct streams *all = streams;

    for (int i = 0; i < PUMPED_PER_TURN && !list_empty(&all->behind); i++)
        catch_up(list_entry(list_first(&all->behind), struct stream_conn, behind));
    if (!list_empty(&all->behind)) /* a timer due at once would run in this turn */
        loop_timer_start(all->pump, 1, 0);
}

static void on_drained(struct http_request *r)
{
    struct stream_conn *c = r->user;

    if (!c->is_closed && list_empty(&c->behind))
        write_unsent(c);
}

static void on_quiet(struct deadline *d)
{
    struct stream_conn *c = container_of(d, struct stream_conn, quiet);
    struct streams *all = c->stream->all;

    buf_reset(&all->out);
    sse_write_comment(&all->out, STR("keep-alive"));
    /* Queued bytes keep the connection alive as well as a comment would. */
    if (http_stream_queued(c->r) > 0 || !write_out(c))
        deadline_set(&all->quiet, &c->quiet);
}

/* Runs at the end of the turn in which the connection was lost. */
static void on_gone(struct loop_task *task)
{
    struct stream_conn *c = container_of(task, struct stream_conn, gone);
    struct stream *st = c->stream;
    bool is_aborted = http_request_aborted(c->r);
    bool is_theirs = c->is_reported && st->on_gone;

    if (is_theirs)
        st->on_gone(st->on_gone_arg, is_aborted);
    if (is_aborted && !is_theirs)
        http_request_done(c->r);
    else if (!is_aborted && c->breaks_off)
        http_stream_abort(c->r);
    else if (!is_aborted)
        http_stream_end(c->r);
    free(c);
    st->n_conns--;
    stream_free_if_unused(st);
}

static void report(struct stream *st, bool is_connected)
{
    if (st->on_connected)
        st->on_connected(st->on_connected_arg, is_connected);
}

void stream_conn_close(struct stream_conn *c, bool breaks_off)
{
    struct stream *st = c->stream;
    struct streams *all = st->all;

    if (c->is_closed)
        return;
    c->is_closed = true;
    c->breaks_off = breaks_off;
    st->conn = NULL;
    deadline_clear(&c->quiet);
    identity_unwatch(&c->watch);
    list_remove(&c->behind);
    all->n_connected--;
    if (st->is_standalone)
        deadline_set(&all->away, &st->away);
    loop_defer(st->loop, &c->gone);
    report(st, false);
}

static void on_abort(struct http_request *r)
{
    stream_conn_close(r->user, false);
}

static void on_revoked(struct identity_watch *w)
{
    stream_conn_close(container_of(w, struct stream_conn, watch), false);
}

/* Writes the priming event and everything after it at once: an empty queue takes any size, so a
 * replay is never cut short. */
static void replay(struct stream_conn *c, uint64_t after)
{
    struct stream *st = c->stream;
    struct buf *out = &st->all->out;
    char id[STREAM_ID_TEXT];

    buf_reset(out);
    if (st->transport->version->priming_event) {
        size_t n = stream_id_format(st, after, id);
        sse_write_retry(out, STREAM_RETRY_MS);
        sse_write(out, STR_NONE, str_n(id, n), STR(""));
    }
    add_after(out, st, after);
    st->unsent = NULL;
    st->written = st->last;
    if (!write_out(c))
        stream_conn_close(c, true);
}

static void on_slim(struct loop_task *task)
{
    http_stream_slim(container_of(task, struct stream_conn, slim)->r);
}

void stream_conn_slim(struct stream_conn *c)
{
    if (c->is_closed) /* r is freed earlier anyway */
        return;
    c->slim.fn = on_slim;
    loop_defer(c->stream->loop, &c->slim);
}

static struct stream_conn *conn_make(struct stream *st, struct http_request *r)
{
    struct stream_conn *c = xcalloc(1, sizeof(*c));

    c->stream = st;
    c->r = r;
    c->gone.fn = on_gone;
    list_init(&c->behind);
    deadline_init(&c->quiet, on_quiet);
    st->n_conns++;
    r->user = c;
    r->on_abort = on_abort;
    r->on_drained = on_drained;
    return c;
}

struct stream_conn *stream_conn_open(struct stream *st, struct http_request *r, uint64_t after)
{
    struct stream_conn *c = conn_make(st, r);

    if (st->conn)
        stream_conn_close(st->conn, true);
    deadline_clear(&st->away);
    st->all->n_connected++;
    st->conn = c;
    if (http_request_aborted(r)) {
        stream_conn_close(c, false);
        return c;
    }
    stream_http_begin(r);
    replay(c, after);
    if (!c->is_closed)
        report(st, true);
    if (st->is_finished && !c->is_closed && st->undelivered_id && st->all->on_undelivered_sent) {
        st->all->on_undelivered_sent(st->all->on_undelivered_sent_arg, st->undelivered_id);
        st->undelivered_id = 0;
    }
    if (st->is_finished)
        stream_conn_close(c, false);
    if (!c->is_closed && r->who && st->all->identity) {
        c->watch.on_revoked = on_revoked;
        identity_watch(st->all->identity, &c->watch, r->who);
    }
    return c;
}

struct stream_conn *stream_conn_open_shut(struct stream *st, struct http_request *r)
{
    struct stream_conn *c = conn_make(st, r);

    c->is_closed = true;
    stream_http_begin(r);
    loop_defer(st->loop, &c->gone);
    return c;
}
