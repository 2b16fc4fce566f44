/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, between the exchange, which sends messages, and the connection, which may be slow, gone,
 * or already replaced by another.
 *
 * A stream is alive while it has one of these: an owner, a connection, a kept event, or, for a
 * standalone stream, time left for its client to come back.  stream_free_if_unused() is called
 * whenever one of them goes.  A forgotten stream (its transport ended) is a shell: it has no home,
 * and sending on it does nothing. */
#include "delivery/stream_impl.h"

#include "base/metric.h"

#include <assert.h>
#include <stdlib.h>

struct streams *streams_new(const struct streams_config *config)
{
    struct streams *s = xcalloc(1, sizeof(*s));

    s->loop = config->loop;
    s->key = hmac_key_new(config->key, sizeof(config->key));
    s->writer = (uint64_t)config->writer;
    s->identity = config->identity;
    map_init(&s->homes);
    list_init(&s->all_homes);
    list_init(&s->standing);
    list_init(&s->behind);
    s->pump = loop_timer_new(s->loop, stream_conn_pump, s);
    deadline_class_init(&s->keep, s->loop, STREAM_KEEP_MS);
    deadline_class_init(&s->away, s->loop, STREAM_KEEP_MS);
    deadline_class_init(&s->quiet, s->loop, STREAM_QUIET_MS);
    buf_init(&s->out, SIZE_MAX);
    return s;
}

void streams_on_standing(struct streams *s,
                         void (*fn)(void *arg, struct transport *t, bool is_there), void *arg)
{
    s->on_standing = fn;
    s->on_standing_arg = arg;
}

static void report_standing(struct stream *st, bool is_there)
{
    if (st->is_standalone && st->all->on_standing)
        st->all->on_standing(st->all->on_standing_arg, st->transport, is_there);
}

static struct str home_key(const struct stream_home *home)
{
    return str_n((const char *)home->id_hash, sizeof(home->id_hash));
}

struct stream_home *stream_home_of(struct streams *s, const struct transport *t)
{
    return map_get(&s->homes, str_n((const char *)t->id_hash, sizeof(t->id_hash)));
}

static struct stream_home *home_make(struct streams *s, const struct transport *t)
{
    struct stream_home *home = stream_home_of(s, t);

    if (home)
        return home;
    home = xcalloc(1, sizeof(*home));
    memcpy(home->id_hash, t->id_hash, sizeof(home->id_hash));
    list_push(&s->all_homes, &home->link);
    list_init(&home->streams);
    list_init(&home->minor);
    list_init(&home->major);
    map_put(&s->homes, home_key(home), home);
    return home;
}

static void drop_events(struct stream *st)
{
    list_each(&st->events, it)
    {
        stream_event_drop(list_entry(it, struct stream_event, in_stream), true);
    }
}

/* The client did not come back. */
static void on_away(struct deadline *d)
{
    struct stream *st = container_of(d, struct stream, away);

    drop_events(st);
    stream_free_if_unused(st);
}

struct stream *stream_make(struct streams *s, struct transport *t, struct str request_id)
{
    struct stream *st = xcalloc(1, sizeof(*st) + request_id.n);

    st->all = s;
    st->loop = s->loop;
    st->home = home_make(s, t);
    st->transport = t;
    transport_ref(t);
    st->number = ++s->last_number;
    st->is_standalone = !request_id.p;
    if (request_id.p) {
        memcpy(st->request_id_bytes, request_id.p, request_id.n);
        st->request_id = str_n(st->request_id_bytes, request_id.n);
    }
    list_init(&st->standing);
    list_init(&st->events);
    deadline_init(&st->away, on_away);
    list_push(&st->home->streams, &st->link);
    if (st->is_standalone) {
        st->home->standalone = st;
        list_push(&s->standing, &st->standing);
    }
    report_standing(st, true);
    return st;
}

/* Leaves its home, which is freed with its last stream. */
static void leave_home(struct stream *st)
{
    struct stream_home *home = st->home;

    report_standing(st, false);
    if (home->standalone == st)
        home->standalone = NULL;
    list_remove(&st->link);
    list_remove(&st->standing);
    if (list_empty(&home->streams)) {
        map_remove(&st->all->homes, home_key(home));
        list_remove(&home->link);
        free(home);
    }
    st->home = NULL;
    st->all = NULL;
}

void stream_free_if_unused(struct stream *st)
{
    if (st->refs || st->conn || !list_empty(&st->events) || deadline_is_set(&st->away))
        return;
    if (st->all)
        leave_home(st);
    transport_unref(st->transport);
    st->transport = NULL;
    if (st->n_conns == 0) /* else when their end has been reported */
        free(st);
}

static void forget_stream(struct stream *st)
{
    if (st->conn)
        stream_conn_close(st->conn, false);
    drop_events(st);
    deadline_clear(&st->away);
    leave_home(st);
    stream_free_if_unused(st);
}

static void forget_home(struct stream_home *home)
{
    struct list *first;
    bool is_last;

    do {
        first = list_first(&home->streams);
        is_last = first->next == &home->streams;
        forget_stream(list_entry(first, struct stream, link));
    } while (!is_last);
}

void streams_forget(struct streams *s, const struct transport *t)
{
    struct stream_home *home = stream_home_of(s, t);

    if (home)
        forget_home(home);
}

void streams_free(struct streams *s)
{
    struct list *first;

    if (!s)
        return;
    while ((first = list_first(&s->all_homes)))
        forget_home(list_entry(first, struct stream_home, link));
    map_release(&s->homes);
    deadline_class_release(&s->keep);
    deadline_class_release(&s->away);
    deadline_class_release(&s->quiet);
    loop_timer_free(s->pump);
    hmac_key_free(s->key);
    buf_release(&s->out);
    free(s);
}

void streams_drain(struct streams *s)
{
    s->is_draining = true;
    list_each(&s->standing, it)
    {
        struct stream *st = list_entry(it, struct stream, standing);
        if (st->conn)
            stream_conn_close(st->conn, false);
    }
}

unsigned streams_connected(const struct streams *s)
{
    return s->n_connected;
}

struct stream *stream_new(struct streams *s, struct transport *t, struct str request_id)
{
    struct stream *st = stream_make(s, t, request_id.p ? request_id : STR("null"));

    st->refs = 1;
    return st;
}

void stream_unref(struct stream *st)
{
    if (!st || --st->refs)
        return;
    if (st->all && !st->is_standalone && !st->is_finished) {
        st->is_finished = true;
        st->lost = st->last + 1; /* the result, which will not be sent */
        if (st->conn)
            stream_conn_close(st->conn, false);
    }
    stream_free_if_unused(st);
}

void stream_attach(struct stream *st, struct http_request *r)
{
    struct stream_conn *c =
        st->all ? stream_conn_open(st, r, st->written) : stream_conn_open_shut(st, r);

    c->is_reported = true;
}

void stream_on_gone(struct stream *st, void (*fn)(void *arg, bool aborted), void *arg)
{
    st->on_gone = fn;
    st->on_gone_arg = arg;
}

static void count_dropped(void)
{
    static struct metric_cell *dropped;

    if (!dropped)
        dropped = metric_cell(metric_register(METRIC_COUNTER, "holdfast_stream_dropped_total",
                                              "Log messages dropped because the client reads too "
                                              "slowly.",
                                              "", 1),
                              NULL, 0);
    metric_add(dropped, 1);
}

/* Handles an event that the connection has no room for, or that has no connection. */
static void hold_back(struct stream *st, struct stream_event *e)
{
    if (e->weight == STREAM_PROGRESS) {
        st->unsent = e;
    } else if (st->conn && e->weight == STREAM_MAY) {
        stream_event_drop(e, false);
        count_dropped();
    } else if (st->conn) {
        stream_conn_close(st->conn, true);
    }
}

static void publish(struct stream *st, struct stream_text *text, enum stream_weight weight)
{
    if (weight == STREAM_PROGRESS && st->unsent)
        stream_event_drop(st->unsent, false);
    struct stream_event *e = stream_keep(st, text, weight);
    if (!st->conn || !stream_conn_write(st->conn, e))
        hold_back(st, e);
    stream_keep_trim(st);
}

void stream_send(struct stream *st, struct str json, enum stream_weight weight)
{
    struct stream_text *text;

    if (!st->all || st->is_finished)
        return;
    text = stream_text_new(st->all, json);
    publish(st, text, weight);
    stream_text_unref(text);
}

void stream_finish(struct stream *st, struct str json, bool is_error)
{
    struct stream_text *text;
    struct stream_event *e;

    if (!st->all || st->is_finished)
        return;
    text = stream_text_new(st->all, json);
    e = stream_keep(st, text, STREAM_MUST);
    stream_text_unref(text);
    e->has_id = !is_error;
    st->home->newest_result = e;
    st->is_finished = true;
    bool fits = st->conn && stream_conn_write(st->conn, e);
    if (st->conn)
        stream_conn_close(st->conn, !fits);
    stream_keep_trim(st);
}

void stream_on_connected(struct stream *st, void (*fn)(void *arg, bool is_connected), void *arg)
{
    st->on_connected = fn;
    st->on_connected_arg = arg;
}

void streams_on_undelivered_sent(struct streams *s, void (*fn)(void *arg, int64_t id), void *arg)
{
    s->on_undelivered_sent = fn;
    s->on_undelivered_sent_arg = arg;
}

void stream_set_undelivered(struct stream *st, int64_t id)
{
    st->undelivered_id = id;
}

bool stream_is_connected(const struct stream *st)
{
    return st->conn != NULL;
}

struct transport *stream_transport(const struct stream *st)
{
    return st->transport;
}

struct stream *streams_standalone(struct streams *s, const struct transport *t)
{
    struct stream_home *home = stream_home_of(s, t);

    return home ? home->standalone : NULL;
}

bool streams_open(struct streams *s, struct transport *t, struct http_request *r, struct error *err)
{
    struct stream *st = streams_standalone(s, t);

    if (s->is_draining)
        return error_set(err, ERR_UNAVAILABLE,
                         "Holdfast is stopping; open the stream again in a moment");
    if (st && st->conn)
        return error_set(err, ERR_CONFLICT,
                         "this session's stream is open already; close it first, or resume it "
                         "with Last-Event-ID");
    if (!st)
        st = stream_make(s, t, STR_NONE);
    stream_conn_slim(stream_conn_open(st, r, st->written));
    return true;
}

size_t streams_broadcast(struct streams *s, bool (*wants)(void *arg, const struct transport *t),
                         void *arg, struct str json)
{
    struct stream_text *text = stream_text_new(s, json);
    size_t n = 0;

    list_each(&s->standing, it)
    {
        struct stream *st = list_entry(it, struct stream, standing);
        if (wants && !wants(arg, st->transport))
            continue;
        stream_keep(st, text, STREAM_MUST);
        if (st->conn)
            stream_conn_write_later(st->conn);
        stream_keep_trim(st);
        n++;
    }
    stream_text_unref(text);
    return n;
}
