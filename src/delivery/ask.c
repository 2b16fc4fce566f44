/* SPDX-License-Identifier: Apache-2.0 */
/* Questions: requests of legacy servers to their clients (sampling, elicitation, roots).  Towards
 * the client each has an id of ours, which also replaces the server's progress token.  A question
 * is single-use: the first answer removes it, and only the transport it was sent to can answer it.
 * Other bytes of params and of answers stay as they are. */
#include "delivery/hub_impl.h"

#include "base/log.h"
#include "base/random.h"
#include "io/deadline.h"
#include "json/splice.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_MESSAGE (64u * 1024 * 1024)
#define MAX_OPEN 64             /* questions open per client */
#define ASK_MS (10 * 60 * 1000) /* people need time to answer */

#define STOPPING                                                                                   \
    "\"error\":{\"code\":-32000,\"message\":\"Holdfast is stopping, so the client cannot answer "  \
    "any "                                                                                         \
    "more\"}"

struct ask {
    struct list node; /* in hub.ask_list */
    uint64_t id;      /* ours, towards the client */
    struct hub *hub;
    struct transport *transport; /* a reference */
    struct upstream *up;         /* a reference */
    struct str link_key; /* names the link, with `generation`; looked up again for the answer */
    uint64_t generation;
    uint64_t about; /* id of the call with a stopped timeout; 0: none */
    struct str upstream_id, token;
    struct deadline deadline;
    char bytes[]; /* link_key, upstream_id, token */
};

static struct str ask_key(const struct ask *a)
{
    return str_n((const char *)&a->id, sizeof(a->id));
}

static void ask_free(struct ask *a)
{
    map_remove(&a->hub->asks, ask_key(a));
    list_remove(&a->node);
    deadline_clear(&a->deadline);
    a->transport->questions--;
    transport_unref(a->transport);
    upstream_unref(a->up);
    free(a);
}

static struct link *link_of(const struct ask *a)
{
    return upstream_find_link(a->up, a->link_key, a->generation);
}

/* The call's timeout runs again when its last question is over. */
static void release_clock(const struct ask *a, struct link *l)
{
    struct pending *p = l && a->about ? pending_find(l, a->about) : NULL;

    if (!p)
        return;
    list_each(&a->hub->ask_list, n)
    {
        const struct ask *other = list_entry(n, struct ask, node);
        if (other != a && other->about == a->about)
            return;
    }
    pending_hold(p, false);
}

/* `rest` is `"result":…` or `"error":…`; the server's own id goes before it. */
static void reply_on(struct link *l, struct str upstream_id, struct str rest)
{
    struct exec token = exec_housekeeping(EXEC_CLIENT_RESPONSE);
    struct error err;
    struct buf text;

    buf_init(&text, MAX_MESSAGE);
    buf_addz(&text, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_addstr(&text, upstream_id);
    buf_addc(&text, ',');
    buf_addstr(&text, rest);
    buf_addc(&text, '}');
    struct outgoing m = {.method = STR("response"), .text = buf_str(&text)};
    if (!upstream_send(l, &token, NULL, &m, &err))
        log_warn("the answer of a client could not be sent to its server",
                 LS("server", upstream_name(link_upstream(l))), LZ("why", err.text));
    buf_release(&text);
}

static void reply_upstream(struct ask *a, struct str rest)
{
    struct link *l = link_of(a);

    release_clock(a, l);
    if (l)
        reply_on(l, a->upstream_id, rest);
    else
        log_debug("an answer came too late: its server has ended",
                  LS("server", upstream_name(a->up)));
}

static void on_deadline(struct deadline *d)
{
    struct ask *a = container_of(d, struct ask, deadline);
    reply_upstream(a, STR("\"error\":{\"code\":-32000,\"message\":\"The client did not answer "
                          "within 10 minutes\"}"));
    ask_free(a);
}

void asks_init(struct hub *h)
{
    uint32_t from;

    map_init(&h->asks);
    list_init(&h->ask_list);
    random_bytes(&from, sizeof(from));
    h->next_ask = from >> 2; /* random, so that answers to an earlier process match no question */
    deadline_class_init(&h->ask_deadlines, h->loop, ASK_MS);
}

void asks_release(struct hub *h)
{
    for (struct list *n = list_first(&h->ask_list); n; n = list_first(&h->ask_list))
        ask_free(list_entry(n, struct ask, node));
    map_release(&h->asks);
    deadline_class_release(&h->ask_deadlines);
}

static struct str keep(char **at, struct str s)
{
    char *p = *at;
    if (!s.p)
        return s;
    memcpy(p, s.p, s.n);
    *at += s.n;
    return str_n(p, s.n);
}

static struct ask *ask_new(struct hub *h, struct link *l, struct pending *about,
                           const struct mcp_message *m, struct transport *t)
{
    const struct js_node *token = js_get(&m->doc, m->meta, STR("progressToken"));
    struct str raw_token = token ? js_raw(&m->doc, token) : STR_NONE;
    struct str key = link_key(l);
    struct ask *a = xcalloc(1, sizeof(*a) + key.n + m->id.n + raw_token.n);
    char *at = a->bytes;

    a->hub = h;
    a->id = ++h->next_ask;
    a->transport = t;
    transport_ref(t);
    t->questions++;
    a->up = link_upstream(l);
    upstream_ref(a->up);
    a->link_key = keep(&at, key);
    a->upstream_id = keep(&at, m->id);
    a->token = keep(&at, raw_token);
    a->generation = link_generation(l);
    deadline_init(&a->deadline, on_deadline);
    deadline_set(&h->ask_deadlines, &a->deadline);
    map_put(&h->asks, ask_key(a), a);
    list_push(&h->ask_list, &a->node);
    if (about) {
        a->about = about->id;
        pending_hold(about, true);
    }
    return a;
}

/* Drops questions of links that have ended: their answers are not awaited. */
static void forget_dead(struct hub *h, const struct transport *t)
{
    list_each(&h->ask_list, n)
    {
        struct ask *a = list_entry(n, struct ask, node);
        if (a->transport == t && !link_of(a))
            ask_free(a);
    }
}

struct ask *hub_ask(struct hub *h, struct link *l, struct pending *about,
                    const struct mcp_message *m, struct transport *t, struct buf *out)
{
    const struct js_node *token = js_get(&m->doc, m->meta, STR("progressToken"));
    struct js_splice s;
    char id[24];

    if (h->is_stopping) {
        reply_on(l, m->id, STR(STOPPING));
        return NULL;
    }
    if (t->questions >= MAX_OPEN)
        forget_dead(h, t);
    if (t->questions >= MAX_OPEN) {
        reply_on(
            l, m->id,
            STR("\"error\":{\"code\":-32000,\"message\":\"64 questions to this client are open "
                "already; wait for its answers\"}"));
        return NULL;
    }
    struct ask *a = ask_new(h, l, about, m, t);
    int n = snprintf(id, sizeof(id), "%llu", (unsigned long long)a->id);
    js_splice_init(&s, &m->doc);
    js_splice_replace(&s, m->id_node, str_n(id, (size_t)n));
    if (token)
        js_splice_replace(&s, token, str_n(id, (size_t)n));
    js_splice_write(&s, js_root(&m->doc), out);
    return a;
}

void hub_ask_drop(struct ask *a)
{
    release_clock(a, link_of(a));
    ask_free(a);
}

bool hub_ask_session(struct hub *h, struct link *l, const struct mcp_message *m)
{
    struct transport *t = hub_seat_for(h, l);
    struct buf text;

    if (!t)
        return false;
    buf_init(&text, MAX_MESSAGE);
    if (hub_ask(h, l, NULL, m, t, &text))
        hub_notify_transport(h, t, buf_str(&text), false);
    buf_release(&text);
    return true;
}

static struct ask *find(struct hub *h, const struct transport *t, struct str raw_id)
{
    uint64_t id;
    struct ask *a =
        mcp_id_ours(raw_id, &id) ? map_get(&h->asks, str_n((const char *)&id, sizeof(id))) : NULL;
    return a && t && memcmp(a->transport->id_hash, t->id_hash, sizeof(t->id_hash)) == 0 ? a : NULL;
}

void hub_answer(struct hub *h, const struct transport *t, const struct mcp_message *m)
{
    struct ask *a = find(h, t, m->id);
    const struct js_node *body = m->error ? m->error : m->result;
    struct buf rest;

    if (!a || !body) {
        log_debug("an answer to no question was dropped");
        return;
    }
    buf_init(&rest, MAX_MESSAGE);
    buf_addz(&rest, m->error ? "\"error\":" : "\"result\":");
    buf_addstr(&rest, js_raw(&m->doc, body));
    reply_upstream(a, buf_str(&rest));
    buf_release(&rest);
    ask_free(a);
}

/* The question that this link asked under that id. */
static struct ask *find_by_server(struct hub *h, const struct link *l, struct str upstream_id)
{
    list_each(&h->ask_list, n)
    {
        struct ask *a = list_entry(n, struct ask, node);
        if (a->generation == link_generation(l) && str_eq(a->upstream_id, upstream_id))
            return a;
    }
    return NULL;
}

/* t NULL: the questions to all clients. */
static void end_asks(struct hub *h, const struct transport *t, struct str rest)
{
    list_each(&h->ask_list, n)
    {
        struct ask *a = list_entry(n, struct ask, node);
        if (t && a->transport != t)
            continue;
        reply_upstream(a, rest);
        ask_free(a);
    }
}

void hub_transport_ended(struct hub *h, const struct transport *t)
{
    end_asks(h, t,
             STR("\"error\":{\"code\":-32000,\"message\":\"The client ended its session without an "
                 "answer\"}"));
}

void hub_end_asks(struct hub *h)
{
    h->is_stopping = true;
    end_asks(h, NULL, STR(STOPPING));
}

/* Sends a notification the way its question went: on the stream of its call while that runs. */
static void notify_asked(struct ask *a, struct link *l, struct str json)
{
    struct pending *p = a->about ? pending_find(l, a->about) : NULL;
    struct arena *mem = arena_new(MAX_MESSAGE);
    struct mcp_message m;
    struct error ignored;

    if (!p || !p->on_message || !mcp_parse_upstream(json, mem, &m, &ignored) ||
        !p->on_message(p, &m))
        hub_notify_transport(a->hub, a->transport, json, false);
    arena_free(mem);
}

void hub_ask_cancelled(struct hub *h, struct link *l, const struct mcp_message *m)
{
    const struct js_node *id = mcp_param(m, STR("requestId"));
    struct ask *a = id ? find_by_server(h, l, js_raw(&m->doc, id)) : NULL;
    struct js_splice splice;
    struct buf text;
    char ours[24];

    if (!a)
        return;
    int n = snprintf(ours, sizeof(ours), "%llu", (unsigned long long)a->id);
    buf_init(&text, MAX_MESSAGE);
    js_splice_init(&splice, &m->doc);
    js_splice_replace(&splice, id, str_n(ours, (size_t)n));
    js_splice_write(&splice, js_root(&m->doc), &text);
    notify_asked(a, l, buf_str(&text));
    buf_release(&text);
    release_clock(a, l);
    ask_free(a);
}

void hub_progress(struct hub *h, const struct transport *t, const struct mcp_message *m)
{
    struct exec token = exec_housekeeping(EXEC_CLIENT_RESPONSE);
    const struct js_node *node = mcp_param(m, STR("progressToken"));
    struct ask *a = node ? find(h, t, js_raw(&m->doc, node)) : NULL;
    struct link *l = a && a->token.p ? link_of(a) : NULL;
    struct js_splice splice;
    struct error ignored;
    struct buf text;

    if (!l)
        return;
    buf_init(&text, MAX_MESSAGE);
    js_splice_init(&splice, &m->doc);
    js_splice_replace(&splice, node, a->token);
    js_splice_write(&splice, js_root(&m->doc), &text);
    struct outgoing out = {.method = m->method, .text = buf_str(&text)};
    if (!upstream_send(l, &token, NULL, &out, &ignored))
        log_debug("progress on a question could not be handed on");
    buf_release(&text);
}
