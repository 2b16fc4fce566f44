/* SPDX-License-Identifier: Apache-2.0 */
/* subscriptions/listen: a modern client's stream of changes, until it leaves.
 *
 * Changed lists come from the hub, which watches each server once for everybody.  Resource
 * subscriptions, and everything of a server on a pipe, are asked of the server itself by a listen
 * of our own for each of ours; its notifications carry our id and go out with the client's.  The
 * acknowledgement goes first and says what is honoured; nothing at all is refused in words. */
#include "exchange/exchange.h"

#include "base/log.h"
#include "json/splice.h"
#include "json/write.h"

#define MAX_LISTENS 1024
#define MAX_URIS 256
#define MAX_MESSAGE (64u * 1024 * 1024)

static const struct {
    const char *filter;
    enum catalog_kind kind;
} list_filters[] = {
    {"toolsListChanged", CATALOG_TOOLS},
    {"promptsListChanged", CATALOG_PROMPTS},
    {"resourcesListChanged", CATALOG_RESOURCES},
};

struct listen_part { /* a listen of our own at one server */
    struct listen *listen;
    struct upstream *up; /* a reference */
    struct link_wait wait;
    struct link_identity who;
    struct pending pending;
    struct str uris; /* raw elements, comma separated; empty: none */
    bool linking, asking, acked;
};

struct listen {
    struct exchange *x;
    struct subscriber subscriber;
    struct listen_part *parts;
    size_t n;
    unsigned waiting; /* for acknowledgements */
    bool open, over;
    struct str uris; /* honoured, raw elements */
};

static unsigned listens;

static void send_tagged(struct listen *l, const char *method, struct str params)
{
    struct exchange *x = l->x;
    struct buf text;

    buf_init(&text, MAX_MESSAGE);
    buf_addf(&text,
             "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":{%.*s%s\"_meta\":{"
             "\"" MCP_KEY_SUBSCRIPTION "\":%.*s}}}",
             method, STR_ARG(params), params.n ? "," : "", STR_ARG(x->id));
    (void)x->outlet->send(x, buf_str(&text), OUTLET_MUST);
    buf_release(&text);
}

static void on_changed(struct subscriber *s, enum catalog_kind kind)
{
    struct listen *l = container_of(s, struct listen, subscriber);
    if (l->open && !l->over)
        send_tagged(l, catalog_kinds[kind].changed.p, STR_NONE);
}

static void acknowledge(struct listen *l)
{
    struct buf b;
    const char *comma = "";

    buf_init(&b, MAX_MESSAGE);
    buf_addz(&b, "\"notifications\":{");
    for (size_t i = 0; i < countof(list_filters); i++)
        if (l->subscriber.kinds[list_filters[i].kind]) {
            buf_addf(&b, "%s\"%s\":true", comma, list_filters[i].filter);
            comma = ",";
        }
    if (l->uris.n)
        buf_addf(&b, "%s\"resourceSubscriptions\":[%.*s]", comma, STR_ARG(l->uris));
    buf_addc(&b, '}');
    l->open = true;
    send_tagged(l, "notifications/subscriptions/acknowledged", buf_str(&b));
    buf_release(&b);
}

/* Over for whatever reason: the exchange goes on to its reply. */
static void listen_end(struct listen *l)
{
    if (l->over)
        return;
    l->over = true;
    hub_unsubscribe(l->x->sv->hub, &l->subscriber);
    listens--;
    for (size_t i = 0; i < l->n; i++) {
        struct listen_part *p = &l->parts[i];
        if (p->linking)
            link_wait_cancel(&p->wait);
        if (p->asking)
            pending_cancel(&p->pending, STR("client left"));
        upstream_unref(p->up);
    }
    exchange_resume(l->x);
}

static void on_end(struct subscriber *s)
{
    listen_end(container_of(s, struct listen, subscriber));
}

static void part_ready(struct listen_part *p)
{
    struct listen *l = p->listen;
    if (p->acked)
        return;
    p->acked = true;
    if (!--l->waiting && !l->over)
        acknowledge(l);
}

static void on_reply(struct pending *pending, struct mcp_message *m, struct arena *mem)
{
    struct listen_part *p = container_of(pending, struct listen_part, pending);
    log_debug("a server ended a subscription", LS("server", upstream_name(p->up)),
              LI("error", m->error != NULL));
    arena_free(mem);
    p->asking = false;
    listen_end(p->listen);
}

static void on_fail(struct pending *pending, const struct error *err, bool left unused_arg)
{
    struct listen_part *p = container_of(pending, struct listen_part, pending);
    log_debug("a subscription broke off", LS("server", upstream_name(p->up)), LZ("why", err->text));
    p->asking = false;
    listen_end(p->listen);
}

/* Our id in the notification becomes the client's; every other byte stays. */
static bool on_message(struct pending *pending, const struct mcp_message *m)
{
    struct listen_part *p = container_of(pending, struct listen_part, pending);
    struct exchange *x = p->listen->x;
    const struct js_node *tag = js_get(&m->doc, m->meta, STR(MCP_KEY_SUBSCRIPTION));
    struct js_splice s;
    struct buf text;

    if (str_eq(m->method, STR("notifications/subscriptions/acknowledged"))) {
        part_ready(p);
        return true;
    }
    if (m->kind != MCP_NOTIFICATION || !p->listen->open || p->listen->over)
        return false;
    buf_init(&text, MAX_MESSAGE);
    js_splice_init(&s, &m->doc);
    if (tag)
        js_splice_replace(&s, tag, x->id);
    js_splice_write(&s, js_root(&m->doc), &text);
    (void)x->outlet->send(x, buf_str(&text), OUTLET_MUST);
    buf_release(&text);
    return true;
}

static void part_ask(struct listen_part *p, struct link *link)
{
    struct exchange *x = p->listen->x;
    struct exec token = exec_housekeeping(EXEC_SUBSCRIBE);
    const bool *kinds = p->listen->subscriber.kinds;
    const char *comma = "";
    struct error err;
    struct buf text;

    p->pending = (struct pending){.id = upstream_next_id_for(p->up),
                                  .patient = true,
                                  .on_reply = on_reply,
                                  .on_fail = on_fail,
                                  .on_message = on_message};
    buf_init(&text, MAX_MESSAGE);
    buf_addf(&text,
             "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"subscriptions/listen\",\"params\":{"
             "\"notifications\":{",
             (unsigned long long)p->pending.id);
    for (size_t i = 0; i < countof(list_filters); i++)
        if (kinds[list_filters[i].kind]) {
            buf_addf(&text, "%s\"%s\":true", comma, list_filters[i].filter);
            comma = ",";
        }
    if (p->uris.n)
        buf_addf(&text, "%s\"resourceSubscriptions\":[%.*s]", comma, STR_ARG(p->uris));
    buf_addz(&text, "},\"_meta\":");
    buf_addstr(&text, js_raw(&x->msg.doc, x->msg.meta));
    buf_addz(&text, "}}");
    struct outgoing m = {.method = STR("subscriptions/listen"), .text = buf_str(&text)};
    p->asking = upstream_send(link, &token, &p->pending, &m, &err);
    buf_release(&text);
    if (!p->asking)
        listen_end(p->listen);
}

static void on_link(struct link_wait *w, struct link *link, const struct error *err)
{
    struct listen_part *p = container_of(w, struct listen_part, wait);
    p->linking = false;
    if (err) {
        log_debug("a subscription found no server", LZ("why", err->text));
        listen_end(p->listen);
    } else {
        part_ask(p, link);
    }
}

static void part_start(struct listen_part *p)
{
    struct exchange *x = p->listen->x;
    bool is_pipe = upstream_config(p->up)->kind == SERVER_STDIO;
    struct link *link = NULL;
    struct error err;

    struct str owner =
        arena_printf(x->mem, "o:%.*s/%.*s", STR_ARG(x->who.tenant), STR_ARG(x->who.owner));

    p->who = (struct link_identity){
        .key = !is_pipe     ? STR("all")
               : x->session ? x->session->link_key
                            : owner,
        .owner = owner,
    };
    p->wait.done = on_link;
    if (!upstream_link(p->up, &p->who, &p->wait, &link, &err))
        listen_end(p->listen);
    else if (link)
        part_ask(p, link);
    else
        p->linking = true;
}

/* What it wants of one server goes to that server where the hub cannot see it. */
static void add_part(struct listen *l, struct upstream *up, const struct catalog *c,
                     struct str uris)
{
    bool wants_lists = false;
    for (size_t i = 0; i < countof(list_filters); i++)
        wants_lists = wants_lists || (l->subscriber.kinds[list_filters[i].kind] &&
                                      catalog_announces(c, list_filters[i].kind));
    if (c->era != MCP_MODERN ||
        (!uris.n && !(wants_lists && upstream_config(up)->kind == SERVER_STDIO)))
        return;
    upstream_ref(up);
    l->parts[l->n++] = (struct listen_part){.listen = l, .up = up, .uris = uris};
    l->waiting++;
}

static bool may_subscribe(struct exchange *x, struct upstream *up, const struct catalog *c,
                          struct str uri)
{
    struct plan_part *owner = x->has_plan ? plan_find_uri(&x->plan, uri) : NULL;
    return c && c->era == MCP_MODERN && catalog_subscribes(c) &&
           (!x->has_plan || (owner && owner->up == up));
}

/* The uris among the wanted ones that are this server's, as raw elements. */
static struct str uris_for(struct exchange *x, const struct js_node *wanted, struct upstream *up,
                           const struct catalog *c)
{
    struct buf b;
    size_t n = 0;

    buf_init(&b, MAX_MESSAGE);
    for (const struct js_node *v = js_type_is(wanted, JS_ARRAY) ? js_first(&x->msg.doc, wanted)
                                                                : NULL;
         v && n < MAX_URIS; v = js_next(&x->msg.doc, wanted, v)) {
        struct str uri = js_text(&x->msg.doc, v, x->mem);
        if (!uri.n || !may_subscribe(x, up, c, uri))
            continue;
        if (n++)
            buf_addc(&b, ',');
        buf_addstr(&b, js_raw(&x->msg.doc, v));
    }
    struct str all = arena_dup(x->mem, buf_str(&b));
    buf_release(&b);
    return all;
}

static bool announces(const struct exchange *x, enum catalog_kind kind)
{
    if (!x->has_plan)
        return exchange_can_watch(x, x->up, x->catalog, kind);
    for (size_t i = 0; i < x->plan.n; i++)
        if (x->plan.parts[i].catalog &&
            exchange_can_watch(x, x->plan.parts[i].up, x->plan.parts[i].catalog, kind))
            return true;
    return false;
}

static enum step_result listen_begin(struct exchange *x, const struct js_node *wanted)
{
    const struct js_node *uris = js_get(&x->msg.doc, wanted, STR("resourceSubscriptions"));
    struct listen *l = arena_new_of(x->mem, struct listen);
    bool anything = false;

    l->x = x;
    l->subscriber =
        (struct subscriber){.endpoint = x->endpoint, .on_changed = on_changed, .on_end = on_end};
    for (size_t i = 0; i < countof(list_filters); i++) {
        enum catalog_kind kind = list_filters[i].kind;
        l->subscriber.kinds[kind] =
            js_type_is(js_get(&x->msg.doc, wanted, str_of(list_filters[i].filter)), JS_TRUE) &&
            announces(x, kind);
        anything = anything || l->subscriber.kinds[kind];
    }
    l->parts = arena_zalloc(x->mem, (x->has_plan ? x->plan.n : 1) * sizeof(*l->parts));
    for (size_t i = 0; i < (x->has_plan ? x->plan.n : 1); i++) {
        struct upstream *up = x->has_plan ? x->plan.parts[i].up : x->up;
        struct catalog *c = x->has_plan ? x->plan.parts[i].catalog : x->catalog;
        struct str own = c ? uris_for(x, uris, up, c) : STR_NONE;
        if (own.n)
            l->uris =
                l->uris.n ? arena_printf(x->mem, "%.*s,%.*s", STR_ARG(l->uris), STR_ARG(own)) : own;
        if (c)
            add_part(l, up, c, own);
    }
    if (!anything && !l->uris.n && js_first(&x->msg.doc, wanted))
        return exchange_refuse(
            x, 200, -32602,
            "Nothing of this can be listened to here: the server announces no such "
            "changes, or speaks an older protocol version whose subscriptions "
            "Holdfast does not translate yet");
    x->listen = l;
    listens++;
    hub_subscribe(x->sv->hub, &l->subscriber);
    if (!l->n)
        acknowledge(l);
    for (size_t i = 0, n = l->n; i < n && !l->over; i++)
        part_start(&l->parts[i]);
    return STEP_WAIT;
}

enum step_result exchange_answer_listen(struct exchange *x)
{
    const struct js_node *wanted = mcp_param(&x->msg, STR("notifications"));

    if (x->listen) { /* resumed: it is over */
        struct buf *out = exchange_begin_result(x);
        buf_addf(out, "{\"resultType\":\"complete\",\"_meta\":{\"" MCP_KEY_SUBSCRIPTION "\":%.*s}}",
                 STR_ARG(x->id));
        return x->listen->over ? exchange_end_result(x) : STEP_WAIT;
    }
    if (!js_type_is(wanted, JS_OBJECT))
        return exchange_refuse(x, 200, -32602,
                               "subscriptions/listen needs the object params.notifications");
    if (listens >= MAX_LISTENS)
        return exchange_refuse(x, 200, -32603, "%d subscriptions are open already; try again later",
                               MAX_LISTENS);
    enum step_result chosen = exchange_choose_channel_session(x);
    return chosen == STEP_NEXT ? listen_begin(x, wanted) : chosen;
}

void exchange_listen_gone(struct exchange *x)
{
    listen_end(x->listen);
}
