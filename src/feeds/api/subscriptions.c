/* SPDX-License-Identifier: Apache-2.0 */
/* The subscriptions of a WebSocket: each is a reader with an id that the client chose. */
#include "feeds/api/socket.h"

#include "audit/event_json.h"

#include <stdlib.h>

#define MESSAGE_MEM (256u << 10)

struct subscription {
    struct list node;
    struct socket *socket;
    struct reader reader;
    bool has_started;
    struct str id; /* stored behind this struct */
};

/* A message in watchers_text(): begin, members, end. */

static struct js_writer begin(struct socket *s, const char *type, struct str id)
{
    struct buf *text = watchers_text(s->watcher.home);
    struct js_writer w;

    buf_reset(text);
    js_begin(&w, text);
    js_object(&w);
    js_kv_string(&w, "type", str_of(type));
    js_kv_string(&w, "id", id);
    return w;
}

static void end(struct socket *s, struct js_writer *w)
{
    js_object_end(w);
    socket_queue(s);
}

static void add_position(struct js_writer *w, const struct position *at)
{
    char text[POSITION_TEXT];

    if (at)
        js_kv_string(w, "position", str_of(position_format(at, text)));
}

static void tell_error(struct socket *s, struct str id, const struct error *err)
{
    struct js_writer w = begin(s, "error", id);

    js_kv_string(&w, "code", str_of(error_info(err->code)->name));
    js_kv_string(&w, "detail", str_of(err->text));
    end(s, &w);
}

static void subscription_free(struct subscription *sub)
{
    reader_stop(&sub->reader);
    list_remove(&sub->node);
    sub->socket->n_subscriptions--;
    free(sub);
}

static void tell_gap(struct subscription *sub, enum watch_gap gap, const struct error *err)
{
    struct js_writer w = begin(sub->socket, "resync", sub->id);

    watch_gap_write(gap, reader_position(&sub->reader), err, &w);
    end(sub->socket, &w);
}

/* Of the reader. */

static void on_started(struct reader *r)
{
    struct subscription *sub = container_of(r, struct subscription, reader);
    struct js_writer w = begin(sub->socket, "subscribed", sub->id);

    sub->has_started = true;
    add_position(&w, reader_position(r));
    end(sub->socket, &w);
    socket_send(sub->socket);
}

static bool take(struct reader *r, const struct event_row *e, const struct position *at)
{
    struct subscription *sub = container_of(r, struct subscription, reader);

    if (socket_is_full(sub->socket))
        return false;
    struct js_writer w = begin(sub->socket, "event", sub->id);
    add_position(&w, at);
    js_key(&w, STR("event"));
    event_to_json(e, &w);
    end(sub->socket, &w);
    return true;
}

static bool flush(struct reader *r)
{
    struct subscription *sub = container_of(r, struct subscription, reader);

    socket_send(sub->socket);
    return !socket_is_full(sub->socket);
}

static void on_removed(struct reader *r)
{
    struct subscription *sub = container_of(r, struct subscription, reader);

    tell_gap(sub, WATCH_REMOVED, NULL);
    socket_send(sub->socket);
}

static void on_lost(struct reader *r, const struct error *err)
{
    struct subscription *sub = container_of(r, struct subscription, reader);
    struct socket *s = sub->socket;

    if (sub->has_started)
        tell_gap(sub, WATCH_LOST, err);
    else
        tell_error(s, sub->id, err);
    subscription_free(sub);
    socket_send(s);
}

static const struct reader_events events = {
    .started = on_started, .take = take, .flush = flush, .removed = on_removed, .lost = on_lost};

/* Of the connection. */

static struct subscription *find(struct socket *s, struct str id)
{
    list_each(&s->subscriptions, it)
    {
        struct subscription *sub = list_entry(it, struct subscription, node);
        if (str_eq(sub->id, id))
            return sub;
    }
    return NULL;
}

struct asked {
    struct str type, id;
    struct selection selection;
    bool has_after;
    struct position after;
};

static bool read_after(const struct js_doc *doc, const struct js_node *v, struct arena *mem,
                       struct asked *ret, struct error *err)
{
    if (!js_type_is(v, JS_STRING))
        return error_set(err, ERR_BAD_INPUT, "after is a text such as \"7.120\"");
    ret->has_after = true;
    return watch_position_parse(js_text(doc, v, mem), &ret->after, err);
}

static bool read_member(const struct js_doc *doc, struct str name, const struct js_node *v,
                        struct arena *mem, struct asked *ret, struct error *err)
{
    if (str_eq(name, STR("type")) || str_eq(name, STR("id")))
        return true;
    if (!str_eq(ret->type, STR("subscribe")))
        return error_set(err, ERR_BAD_INPUT, "unsubscribe has the members type and id alone");
    if (str_eq(name, STR("after")))
        return read_after(doc, v, mem, ret, err);
    return selection_set_json(&ret->selection, name, doc, v, mem, err);
}

static bool read_id(const struct js_doc *doc, const struct js_node *object, struct arena *mem,
                    struct asked *ret, struct error *err)
{
    struct str id = js_text(doc, js_get(doc, object, STR("id")), mem);

    if (!id.n || id.n > SOCKET_ID_MAX)
        return error_set(err, ERR_BAD_INPUT,
                         "id is a text of 1 to %d bytes that names the subscription",
                         SOCKET_ID_MAX);
    ret->id = id;
    return true;
}

static bool read_message(struct str text, struct arena *mem, struct asked *ret, struct error *err)
{
    struct js_doc doc;
    struct js_fault fault;

    if (!js_parse(text, &js_limits_request, mem, &doc, &fault) ||
        !js_type_is(js_root(&doc), JS_OBJECT))
        return error_set(err, ERR_PARSE, "a message is one JSON object without duplicate members");
    const struct js_node *object = js_root(&doc);
    ret->type = js_text(&doc, js_get(&doc, object, STR("type")), mem);
    if (!str_eq(ret->type, STR("subscribe")) && !str_eq(ret->type, STR("unsubscribe")))
        return error_set(err, ERR_BAD_INPUT, "the type of a message is subscribe or unsubscribe");
    if (!read_id(&doc, object, mem, ret, err))
        return false;
    for (const struct js_node *key = js_first(&doc, object); key;
         key = js_next(&doc, object, js_value_of(key)))
        if (!read_member(&doc, js_text(&doc, key, mem), js_value_of(key), mem, ret, err))
            return false;
    return true;
}

static bool subscribe(struct socket *s, const struct asked *ask, struct error *err)
{
    if (find(s, ask->id))
        return error_set(err, ERR_CONFLICT,
                         "there is a subscription with this id; unsubscribe it, or choose another");
    if (s->n_subscriptions >= SOCKET_SUBSCRIPTIONS_MAX)
        return error_set(err, ERR_LIMIT,
                         "a connection has at most %d subscriptions; unsubscribe one, or open "
                         "another connection",
                         SOCKET_SUBSCRIPTIONS_MAX);
    struct subscription *sub = xcalloc(1, sizeof(*sub) + ask->id.n);
    sub->socket = s;
    memcpy(sub + 1, ask->id.p, ask->id.n);
    sub->id = str_n((const char *)(sub + 1), ask->id.n);
    list_push(&s->subscriptions, &sub->node);
    s->n_subscriptions++;
    const struct reader_config config = {
        .events = &events, .visibility = s->visibility, .selection = ask->selection};
    reader_start(&sub->reader, watchers_config(s->watcher.home)->feed, &config,
                 ask->has_after ? &ask->after : NULL);
    return true;
}

static bool unsubscribe(struct socket *s, const struct asked *ask, struct error *err)
{
    struct subscription *sub = find(s, ask->id);

    if (!sub)
        return error_set(err, ERR_NOT_FOUND, "there is no subscription with this id");
    struct js_writer w = begin(s, "unsubscribed", sub->id);
    add_position(&w, reader_position(&sub->reader));
    end(s, &w);
    subscription_free(sub);
    return true;
}

void subscriptions_take(struct socket *s, struct str message)
{
    struct arena *mem = arena_new(MESSAGE_MEM);
    struct asked *ask = arena_new_of(mem, struct asked);
    struct error err;
    bool ok = read_message(message, mem, ask, &err);

    if (ok)
        ok = str_eq(ask->type, STR("subscribe")) ? subscribe(s, ask, &err)
                                                 : unsubscribe(s, ask, &err);
    if (!ok)
        tell_error(s, ask->id, &err);
    arena_free(mem);
}

void subscriptions_resume(struct socket *s, bool is_late)
{
    struct list *first = list_empty(&s->subscriptions) ? NULL : list_first(&s->subscriptions);

    if (first) { /* another one is the first to take what there is room for */
        list_remove(first);
        list_push(&s->subscriptions, first);
    }
    list_each(&s->subscriptions, it)
    {
        struct subscription *sub = list_entry(it, struct subscription, node);
        if (!is_late || reader_state(&sub->reader) != READER_WAITING) {
            reader_resume(&sub->reader);
            continue;
        }
        tell_gap(sub, WATCH_SLOW, NULL);
        subscription_free(sub);
    }
    socket_send(s);
}

void subscriptions_tell_positions(struct socket *s)
{
    list_each(&s->subscriptions, it)
    {
        const struct subscription *sub = list_entry(it, struct subscription, node);
        if (!sub->has_started)
            continue;
        struct js_writer w = begin(s, "position", sub->id);
        add_position(&w, reader_position(&sub->reader));
        end(s, &w);
    }
}

void subscriptions_release(struct socket *s)
{
    while (!list_empty(&s->subscriptions))
        subscription_free(list_entry(list_first(&s->subscriptions), struct subscription, node));
}
