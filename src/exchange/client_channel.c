/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of pipes and event streams of 2024: each message is an exchange with its own
 * memory, and its outlet is the channel.
 *
 * This file does not look at eras.  A legacy message belongs to the transport that the last
 * `initialize` made.  Any other message, and one before the handshake, belongs to the channel's
 * session unless it names another session. */
#include "exchange/client_channel.h"

#include <stdlib.h>

#define MESSAGE_MEMORY (64u * 1024 * 1024)

struct client_message {
    struct list node;
    struct client_channel *channel;
    struct arena *mem; /* holds this struct too */
    struct exchange *x;
    size_t size;
    bool cancelled; /* the client does not wait for the answer */
    bool listens;
};

static const struct http_head no_head;

static void on_notify(struct listener *l, struct str json, bool droppable)
{
    struct client_channel *c = container_of(l, struct client_channel, listener);
    if (!c->closed && (!droppable || !c->is_slow(c)))
        c->write(c, json);
}

static void channel_begin(struct exchange *x)
{
    ((struct client_message *)x->outlet_data)->x = x;
}

static bool channel_send(struct exchange *x, struct str json, enum outlet_weight weight)
{
    struct client_message *m = x->outlet_data;
    struct client_channel *c = m->channel;

    if (c->closed || x->aborted)
        return false;
    if (!m->cancelled && (weight == OUTLET_MUST || !c->is_slow(c)))
        c->write(c, json);
    return true;
}

static void channel_finish(struct exchange *x)
{
    struct client_message *m = x->outlet_data;
    struct client_channel *c = m->channel;

    if (x->out.n && x->msg.kind == MCP_REQUEST && !m->cancelled && !c->closed)
        c->write(c, buf_str(&x->out));
    buf_release(&x->out);
    list_remove(&m->node);
    c->n--;
    c->n_bytes -= m->size;
    c->n_listens -= m->listens;
    if (c->initializing == m)
        c->initializing = NULL;
    if (c->starting == m)
        c->starting = NULL;
    arena_free(m->mem); /* frees m and x too */
    c->on_done(c);
}

static void leave_transport(struct client_channel *c)
{
    if (!c->transport)
        return;
    hub_unlisten(c->sv->hub, &c->listener);
    transport_unref(c->transport);
    c->transport = NULL;
}

static void channel_initialized(struct exchange *x, struct transport *t)
{
    struct client_channel *c = ((struct client_message *)x->outlet_data)->channel;

    leave_transport(c);
    if (c->closed)
        return;
    transport_ref(t);
    c->transport = t;
    c->n_transports++;
    c->transport_id = NULL;
    c->listener.transport = t;
    hub_listen(c->sv->hub, &c->listener);
    struct listener_scope scope = exchange_listener_scope(x);
    hub_set_listener_scope(c->sv->hub, t, &scope);
}

static void unattend(struct client_channel *c)
{
    if (c->attended.p)
        hub_unattend(c->sv->hub, c->attended);
    free((char *)c->attended.p);
    c->attended = STR_NONE;
}

static void channel_attends(struct exchange *x, struct str key)
{
    struct client_channel *c = ((struct client_message *)x->outlet_data)->channel;

    if (c->closed || str_eq(c->attended, key))
        return;
    unattend(c);
    c->attended = str_n(strndup(key.p, key.n), key.n);
    hub_attend(c->sv->hub, key);
}

static void quit(struct client_message *m, struct str why)
{
    if (m->x->listen)
        exchange_listen_gone(m->x);
    else if (m->x->call)
        call_abandon(&m->x->listener, why);
    else
        m->x->cancelled_early = true;
}

/* initialize cannot be cancelled. */
static void channel_cancel(struct exchange *x, struct str id)
{
    struct client_channel *c = ((struct client_message *)x->outlet_data)->channel;

    list_each(&c->messages, it)
    {
        struct client_message *m = list_entry(it, struct client_message, node);
        if (m == c->initializing || !m->x || m->x == x || !m->x->id.p || !str_eq(m->x->id, id))
            continue;
        m->cancelled = true;
        quit(m, exchange_cancel_reason(x));
        return;
    }
    if (x->transport) { /* the request may be an item of a batch */
        struct call *call = calls_find(c->sv->calls, x->transport, id, x->mem);
        if (call)
            call_cancel(call, exchange_cancel_reason(x));
    }
}

static const struct outlet outlet_channel = {
    .name = "channel",
    .begin = channel_begin,
    .send = channel_send,
    .finish = channel_finish,
    .initialized = channel_initialized,
    .cancel = channel_cancel,
    .attends = channel_attends,
};

static const struct http_head *copy_head(const struct http_head *head, struct arena *mem)
{
    struct http_head *copy;

    if (!head)
        return &no_head;
    copy = arena_new_of(mem, struct http_head);
    copy->n_headers = head->n_headers;
    copy->marks = head->marks;
    for (unsigned i = 0; i < head->n_headers; i++) {
        copy->headers[i] = head->headers[i];
        copy->headers[i].name = arena_dup(mem, head->headers[i].name);
        copy->headers[i].value = arena_dup(mem, head->headers[i].value);
    }
    return copy;
}

void client_channel_take(struct client_channel *c, struct str body, const struct http_head *head)
{
    struct arena *mem = arena_new(MESSAGE_MEMORY);
    if (head) /* the copied headers hold a credential */
        arena_wipe_later(mem);
    struct client_message *m = arena_new_of(mem, struct client_message);

    *m = (struct client_message){.channel = c, .mem = mem, .size = body.n};
    list_push(&c->messages, &m->node);
    c->n++;
    c->n_bytes += body.n;
    c->starting = m;
    struct arrival a = {
        .outlet = &outlet_channel,
        .outlet_data = m,
        .head = copy_head(head, mem),
        .mem = mem,
        .verb = STR("POST"),
        .body = arena_dup(mem, body),
        .server = c->server,
        .profile = c->profile,
        .endpoint = c->endpoint,
        .who = &c->who,
        .transport = c->transport,
        .channel = c->name,
        .channel_resumes = c->resumes && c->n_transports <= 1,
        .transport_id = c->transport_id,
        .is_2024 = c->is_2024,
    };
    exchange_start(c->sv, &a);
    if (c->starting && m->x->method) {
        m->listens = m->x->method->service == SERVE_LISTEN;
        c->n_listens += m->listens;
        if (m->x->method->service == SERVE_INITIALIZE)
            c->initializing = m;
    }
    c->starting = NULL;
}

void client_channel_open(struct client_channel *c)
{
    c->listener.notify = on_notify;
    list_init(&c->messages);
}

void client_channel_end_listening(struct client_channel *c)
{
    list_each(&c->messages, it)
    {
        struct client_message *m = list_entry(it, struct client_message, node);
        if (m->x && m->x->listen)
            exchange_listen_gone(m->x);
        else if (m->x && m->listens)
            m->x->cancelled_early = true; /* not begun yet */
    }
}

void client_channel_cancel_all(struct client_channel *c)
{
    list_each(&c->messages, it)
    {
        struct client_message *m = list_entry(it, struct client_message, node);
        if (m->x)
            quit(m, STR("client disconnected"));
    }
}

void client_channel_close(struct client_channel *c)
{
    c->closed = true;
    leave_transport(c);
    unattend(c);
    list_each(&c->messages, it)
    {
        struct client_message *m = list_entry(it, struct client_message, node);
        if (m->x)
            exchange_on_disconnect(m->x);
    }
}
