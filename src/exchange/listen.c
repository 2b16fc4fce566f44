/* SPDX-License-Identifier: Apache-2.0 */
/* subscriptions/listen: a modern client's stream of changes, until the client leaves.
 *
 * The hub reports changed lists; it watches each server once for all clients.  For resource
 * subscriptions, and for everything of a server on a pipe, Holdfast sends the server a listen of
 * its own.  The server's notifications carry that listen's id.  They go out with the client's id,
 * and only those that the client asked for.  The acknowledgement goes first and says what Holdfast
 * and the servers honour.  If the servers honour nothing, the request is refused. */
#include "exchange/exchange.h"

#include "base/log.h"
#include "call/credential.h"
#include "json/splice.h"
#include "json/write.h"

#define MAX_LISTENS 1024
#define MAX_LISTENS_OF_OWNER (MAX_LISTENS / 4)
#define MAX_LISTENS_OF_TENANT (MAX_LISTENS / 4 * 3)
#define MAX_URIS 256
/* Timeout for a server's acknowledgement; the subscription then goes on without that server. */
#define ACK_MS 10000
#define MAX_MESSAGE (64u * 1024 * 1024)

static const struct {
    const char *filter;
    enum catalog_kind kind;
} list_filters[] = {
    {"toolsListChanged", CATALOG_TOOLS},
    {"promptsListChanged", CATALOG_PROMPTS},
    {"resourcesListChanged", CATALOG_RESOURCES},
};

struct listen_uri {
    struct str raw, text;
    bool missed; /* changed before the acknowledgement was sent */
};

struct listen_part { /* a listen of our own at one server */
    struct listen *listen;
    struct upstream *up; /* a reference */
    struct link_wait wait;
    struct link_identity who;
    struct credential_fetch *credential; /* for opening the session's own link */
    struct pending pending;
    struct listen_uri *uris; /* after the acknowledgement: those the server honours */
    size_t n_uris;
    bool asks_lists; /* for a server on a pipe: the hub does not see its changes */
    bool linking, asking, acked;
};

struct listen {
    struct list node; /* in open_listens */
    struct exchange *x;
    struct subscriber subscriber;
    struct identity_watch credential;
    struct listen_part *parts;
    size_t n;
    unsigned waiting;        /* number of acknowledgements awaited */
    struct watch_want watch; /* once the lists of the servers are watched, they can be promised */
    bool watching;
    struct loop_timer *patience;
    unsigned missed; /* bits by kind: changed before the acknowledgement was sent */
    bool open, over;
    bool refused; /* no server honoured any part of the request */
};

static struct list open_listens = {&open_listens, &open_listens};

static void listen_end(struct listen *l);

/* A reader that falls too far behind does not lose messages silently: its subscription ends.  After
 * false the caller must not touch `l` or its exchange. */
static bool listen_send(struct listen *l, struct str json)
{
    struct exchange *x = l->x;
    if (exchange_send_message(x, json, OUTLET_MUST))
        return true;
    if (!x->aborted)
        listen_end(l);
    return false;
}

static bool send_tagged(struct listen *l, const char *method, struct str params)
{
    struct exchange *x = l->x;
    struct buf text;

    buf_init(&text, MAX_MESSAGE);
    buf_addf(&text,
             "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":{%.*s%s\"_meta\":{"
             "\"" MCP_KEY_SUBSCRIPTION "\":%.*s}}}",
             method, STR_ARG(params), params.n ? "," : "", STR_ARG(x->id));
    bool sent = listen_send(l, buf_str(&text));
    buf_release(&text);
    return sent;
}

static void on_changed(struct subscriber *s, enum catalog_kind kind)
{
    struct listen *l = container_of(s, struct listen, subscriber);
    if (!l->open)
        l->missed |= 1u << kind;
    else if (!l->over)
        (void)send_tagged(l, catalog_kinds[kind].changed.p, STR_NONE);
}

static bool send_uri(struct listen *l, const struct listen_uri *uri)
{
    struct buf params;

    buf_init(&params, MAX_MESSAGE);
    buf_addf(&params, "\"uri\":%.*s", STR_ARG(uri->raw));
    bool sent = send_tagged(l, "notifications/resources/updated", buf_str(&params));
    buf_release(&params);
    return sent;
}

/* Sends the changes at one server that came while another server had not acknowledged yet. */
static void send_missed(struct listen *l)
{
    for (unsigned kind = 0; kind < CATALOG_KINDS; kind++)
        if (l->missed & 1u << kind && l->subscriber.kinds[kind] &&
            !send_tagged(l, catalog_kinds[kind].changed.p, STR_NONE))
            return;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < l->parts[i].n_uris; k++)
            if (l->parts[i].uris[k].missed && !send_uri(l, &l->parts[i].uris[k]))
                return;
}

/* Writes the honoured uris between brackets; returns how many. */
static size_t write_uris(const struct listen *l, struct buf *out)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < l->parts[i].n_uris; k++) {
            buf_addc(out, n++ ? ',' : '[');
            buf_addstr(out, l->parts[i].uris[k].raw);
        }
    if (n)
        buf_addc(out, ']');
    return n;
}

static size_t write_kinds(const bool kinds[CATALOG_KINDS], struct buf *out)
{
    size_t n = 0;

    for (size_t i = 0; i < countof(list_filters); i++)
        if (kinds[list_filters[i].kind])
            buf_addf(out, "%s\"%s\":true", n++ ? "," : "", list_filters[i].filter);
    return n;
}

static void acknowledge(struct listen *l)
{
    struct buf b, uris;

    loop_timer_stop(l->patience);
    buf_init(&b, MAX_MESSAGE);
    buf_init(&uris, MAX_MESSAGE);
    buf_addz(&b, "\"notifications\":{");
    size_t kinds = write_kinds(l->subscriber.kinds, &b);
    if (write_uris(l, &uris))
        buf_addf(&b, "%s\"resourceSubscriptions\":%.*s", kinds ? "," : "", STR_ARG(buf_str(&uris)));
    buf_addc(&b, '}');
    l->refused = l->n && !kinds && !uris.n;
    if (l->refused) {
        listen_end(l);
    } else {
        l->open = true;
        if (send_tagged(l, "notifications/subscriptions/acknowledged", buf_str(&b)))
            send_missed(l);
    }
    buf_release(&b);
    buf_release(&uris);
}

/* Stops everything that the part waits for. */
static void part_leave(struct listen_part *p, struct str why)
{
    credential_free(p->credential);
    p->credential = NULL;
    if (p->linking)
        link_wait_cancel(&p->wait);
    if (p->asking)
        pending_cancel(&p->pending, why);
    p->linking = p->asking = false;
}

/* Ends the subscription for any reason; the exchange goes on to its reply. */
static void listen_end(struct listen *l)
{
    if (l->over)
        return;
    l->over = true;
    hub_unsubscribe(l->x->sv->hub, &l->subscriber);
    identity_unwatch(&l->credential);
    list_remove(&l->node);
    for (size_t i = 0; i < l->n; i++) {
        part_leave(&l->parts[i], STR("client left"));
        upstream_unref(l->parts[i].up);
    }
    if (l->watching)
        watch_want_cancel(&l->watch);
    loop_timer_free(l->patience);
    exchange_resume(l->x);
}

static void on_revoked(struct identity_watch *w)
{
    listen_end(container_of(w, struct listen, credential));
}

static void on_end(struct subscriber *s)
{
    listen_end(container_of(s, struct listen, subscriber));
}

static void one_less(struct listen *l)
{
    if (!--l->waiting && !l->over)
        acknowledge(l);
}

static void on_watched(struct watch_want *w)
{
    struct listen *l = container_of(w, struct listen, watch);
    l->watching = false;
    one_less(l);
}

static void part_ready(struct listen_part *p)
{
    if (p->acked)
        return;
    p->acked = true;
    one_less(p->listen);
}

/* This server sends nothing more.  Before its acknowledgement its part is left out.  Afterwards the
 * whole subscription ends, and the client has to subscribe again. */
static void part_over(struct listen_part *p)
{
    if (p->acked) {
        listen_end(p->listen);
        return;
    }
    p->n_uris = 0;
    if (p->asks_lists && !p->listen->x->has_plan)
        memset(p->listen->subscriber.kinds, 0, sizeof(p->listen->subscriber.kinds));
    part_ready(p);
}

static void on_reply(struct pending *pending, struct mcp_message *m, struct arena *mem)
{
    struct listen_part *p = container_of(pending, struct listen_part, pending);
    log_debug("a server ended a subscription", LS("server", upstream_name(p->up)),
              LI("error", m->error != NULL));
    arena_free(mem);
    p->asking = false;
    part_over(p);
}

static void on_fail(struct pending *pending, const struct error *err, bool left unused_arg)
{
    struct listen_part *p = container_of(pending, struct listen_part, pending);
    log_debug("a subscription broke off", LS("server", upstream_name(p->up)), LZ("why", err->text));
    p->asking = false;
    part_over(p);
}

static void on_patience(void *arg)
{
    struct listen *l = arg;

    if (l->watching) {
        bool is_last = l->waiting == 1;
        watch_want_cancel(&l->watch);
        on_watched(&l->watch);
        if (is_last)
            return;
    }
    for (size_t i = 0; i < l->n; i++) {
        struct listen_part *p = &l->parts[i];
        bool is_last = l->waiting == 1; /* part_over() of the last part may free all of this */
        if (p->acked)
            continue;
        log_info("a server does not acknowledge a subscription",
                 LS("server", upstream_name(p->up)));
        part_leave(p, STR("timeout"));
        part_over(p);
        if (is_last)
            return;
    }
}

static bool has_uri(const struct js_doc *doc, const struct js_node *array, struct str uri,
                    struct arena *mem)
{
    for (const struct js_node *v = js_type_is(array, JS_ARRAY) ? js_first(doc, array) : NULL; v;
         v = js_next(doc, array, v))
        if (str_eq(js_text(doc, v, mem), uri))
            return true;
    return false;
}

/* Holdfast honours only what the server honours. */
static void take_honoured(struct listen_part *p, const struct mcp_message *m)
{
    const struct js_node *honoured = mcp_param(m, STR("notifications"));
    const struct js_node *uris = js_get(&m->doc, honoured, STR("resourceSubscriptions"));
    struct listen *l = p->listen;
    size_t n = 0;

    for (size_t i = 0; i < p->n_uris; i++)
        if (has_uri(&m->doc, uris, p->uris[i].text, l->x->mem))
            p->uris[n++] = p->uris[i];
    p->n_uris = n;
    for (size_t i = 0; p->asks_lists && !l->x->has_plan && i < countof(list_filters); i++)
        if (!js_type_is(js_get(&m->doc, honoured, str_of(list_filters[i].filter)), JS_TRUE))
            l->subscriber.kinds[list_filters[i].kind] = false;
}

static struct listen_uri *find_uri(struct listen_part *p, const struct mcp_message *m)
{
    struct arena *mem = arena_new(MAX_MESSAGE); /* not x->mem: a subscription lives long */
    struct str uri = mcp_param_text(m, STR("uri"), mem);
    struct listen_uri *found = NULL;

    for (size_t i = 0; i < p->n_uris && uri.p && !found; i++)
        if (str_eq(p->uris[i].text, uri))
            found = &p->uris[i];
    arena_free(mem);
    return found;
}

/* False for a notification that was not asked for.  Also false before the acknowledgement; then the
 * change is noted as missed. */
static bool may_be_sent(struct listen_part *p, const struct mcp_message *m)
{
    struct listen *l = p->listen;
    enum catalog_kind kind = catalog_kind_changed(m->method);

    if (kind != CATALOG_KINDS) {
        bool may_see = listener_may_see(l->x->sv, &l->subscriber.scope, NULL, p->up, kind);
        l->missed |= may_see && !l->open ? 1u << kind : 0;
        return may_see && l->open && l->subscriber.kinds[kind];
    }
    struct listen_uri *uri =
        str_eq(m->method, STR("notifications/resources/updated")) ? find_uri(p, m) : NULL;
    if (uri && !l->open)
        uri->missed = true;
    return uri && l->open;
}

/* Replaces our id in the notification by the client's; every other byte stays. */
static bool on_message(struct pending *pending, const struct mcp_message *m)
{
    struct listen_part *p = container_of(pending, struct listen_part, pending);
    struct exchange *x = p->listen->x;
    const struct js_node *tag = js_get(&m->doc, m->meta, STR(MCP_KEY_SUBSCRIPTION));
    struct js_splice s;
    struct buf text;

    if (m->kind != MCP_NOTIFICATION || p->listen->over)
        return false;
    if (str_eq(m->method, STR("notifications/subscriptions/acknowledged"))) {
        if (!p->acked)
            take_honoured(p, m);
        part_ready(p);
        return true;
    }
    if (!may_be_sent(p, m))
        return true; /* dropped, or noted for later */
    buf_init(&text, MAX_MESSAGE);
    js_splice_init(&s, &m->doc);
    if (tag)
        js_splice_replace(&s, tag, x->id);
    js_splice_write(&s, js_root(&m->doc), &text);
    (void)listen_send(p->listen, buf_str(&text));
    buf_release(&text);
    return true;
}

/* Writes `"notifications":{…}` of our own listen. */
static void write_wanted(const struct listen_part *p, struct buf *out)
{
    size_t kinds = 0;

    buf_addz(out, "\"notifications\":{");
    if (p->asks_lists)
        kinds = write_kinds(p->listen->subscriber.kinds, out);
    if (p->n_uris)
        buf_addf(out, "%s\"resourceSubscriptions\":[", kinds ? "," : "");
    for (size_t i = 0; i < p->n_uris; i++)
        buf_addf(out, "%s%.*s", i ? "," : "", STR_ARG(p->uris[i].raw));
    buf_addz(out, p->n_uris ? "]}" : "}");
}

static void part_ask(struct listen_part *p, struct link *link)
{
    struct exchange *x = p->listen->x;
    struct exec token = exec_housekeeping(EXEC_SUBSCRIBE);
    struct error err;
    struct buf text;

    credential_free(p->credential); /* the link has a copy */
    p->credential = NULL;
    p->pending = (struct pending){.id = upstream_next_id_for(p->up),
                                  .patient = true,
                                  .on_reply = on_reply,
                                  .on_fail = on_fail,
                                  .on_message = on_message};
    buf_init(&text, MAX_MESSAGE);
    buf_addf(&text,
             "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"subscriptions/listen\",\"params\":{",
             (unsigned long long)p->pending.id);
    write_wanted(p, &text);
    buf_addz(&text, ",\"_meta\":");
    buf_addstr(&text, js_raw(&x->msg.doc, x->msg.meta));
    buf_addz(&text, "}}");
    struct outgoing m = {.method = STR("subscriptions/listen"), .text = buf_str(&text)};
    p->asking = upstream_send(link, &token, &p->pending, &m, &err);
    buf_release(&text);
    if (!p->asking)
        part_over(p);
}

static void on_link(struct link_wait *w, struct link *link, const struct error *err)
{
    struct listen_part *p = container_of(w, struct listen_part, wait);
    p->linking = false;
    if (err) {
        log_debug("a subscription found no server", LZ("why", err->text));
        part_over(p);
    } else {
        part_ask(p, link);
    }
}

static void part_link(struct listen_part *p)
{
    struct link *link = NULL;
    struct error err;

    p->wait.done = on_link;
    if (!upstream_link(p->up, &p->who, &p->wait, &link, &err))
        part_over(p);
    else if (link)
        part_ask(p, link);
    else
        p->linking = true;
}

static void on_credential(void *arg, const struct error *err)
{
    struct listen_part *p = arg;

    p->who.credential = credential_found(p->credential);
    p->who.context_values = credential_context_values(p->credential, &p->who.n_context_values);
    if (err) {
        log_debug("a subscription goes without a server", LZ("why", err->text));
        part_over(p);
    } else {
        part_link(p);
    }
}

/* A session without stored context values has no own link at a server that needs them. */
static bool has_own_link(const struct session *s, const struct server_config *config)
{
    return s && (!config->takes_context || (s->context && s->context->sealed.p));
}

/* Later calls use the session's link that is opened here, so it gets the credential and context
 * values that a call would give it. */
static void part_start(struct listen_part *p)
{
    struct exchange *x = p->listen->x;
    const struct server_config *config = upstream_config(p->up);
    bool is_shared = config->kind != SERVER_STDIO || config->share == SHARE_ALL;
    bool is_own = !is_shared && has_own_link(x->session, config);
    struct credential_ask ask = {.loop = x->sv->loop,
                                 .lanes = x->sv->lanes,
                                 .keyring = x->sv->keyring,
                                 .who = &x->caller.who,
                                 .config = x->caller.config};
    struct str owner = arena_printf(x->mem, "o:%.*s/%.*s", STR_ARG(x->caller.who.tenant),
                                    STR_ARG(x->caller.who.owner));

    p->who = (struct link_identity){
        .key = is_shared ? STR("all")
               : is_own  ? x->session->link_key
                         : owner,
        .owner = owner,
        .principal = is_shared ? NULL : &x->caller.who,
        .session_secrets = is_own ? exchange_session_secrets(x) : NULL,
    };
    if (is_own && !upstream_has_link(p->up, p->who.key) &&
        credential_is_due(x->session, config, &ask))
        p->credential = credential_fetch(&ask, on_credential, p);
    else
        part_link(p);
}

static bool may_subscribe(struct exchange *x, struct upstream *up, const struct catalog *c,
                          struct str uri)
{
    struct plan_part *owner = x->has_plan ? plan_find_uri(&x->plan, uri) : NULL;
    return c && mcp_era(c->era)->has_listen && catalog_subscribes(c) &&
           (!x->has_plan || (owner && owner->up == up));
}

/* Adds the wanted uris that belong to this server. */
static void add_uris(struct listen_part *p, const struct js_node *wanted, const struct catalog *c)
{
    struct exchange *x = p->listen->x;

    p->uris = arena_zalloc(x->mem, MAX_URIS * sizeof(*p->uris));
    for (const struct js_node *v = js_type_is(wanted, JS_ARRAY) ? js_first(&x->msg.doc, wanted)
                                                                : NULL;
         v && p->n_uris < MAX_URIS; v = js_next(&x->msg.doc, wanted, v)) {
        struct str uri = js_text(&x->msg.doc, v, x->mem);
        if (uri.n && may_subscribe(x, p->up, c, uri))
            p->uris[p->n_uris++] = (struct listen_uri){.raw = js_raw(&x->msg.doc, v), .text = uri};
    }
}

/* Adds a listen at this server for changes that the hub cannot see. */
static void add_part(struct listen *l, struct upstream *up, const struct catalog *c,
                     const struct js_node *uris)
{
    struct listen_part *p = &l->parts[l->n];

    if (!mcp_era(c->era)->has_listen)
        return;
    *p = (struct listen_part){.listen = l, .up = up};
    for (size_t i = 0; i < countof(list_filters); i++)
        p->asks_lists = p->asks_lists || (upstream_config(up)->kind == SERVER_STDIO &&
                                          l->subscriber.kinds[list_filters[i].kind] &&
                                          catalog_announces(c, list_filters[i].kind));
    add_uris(p, uris, c);
    if (!p->n_uris && !p->asks_lists)
        return;
    upstream_ref(up);
    l->n++;
    l->waiting++;
}

static enum step_result listen_begin(struct exchange *x, const struct js_node *wanted)
{
    const struct js_node *uris = js_get(&x->msg.doc, wanted, STR("resourceSubscriptions"));
    struct listen *l = arena_new_of(x->mem, struct listen);
    bool anything = false;

    l->x = x;
    l->subscriber = (struct subscriber){
        .scope = exchange_listener_scope(x), .on_changed = on_changed, .on_end = on_end};
    for (size_t i = 0; i < countof(list_filters); i++) {
        enum catalog_kind kind = list_filters[i].kind;
        l->subscriber.kinds[kind] =
            js_type_is(js_get(&x->msg.doc, wanted, str_of(list_filters[i].filter)), JS_TRUE) &&
            exchange_announces_changes(x, kind);
        anything = anything || l->subscriber.kinds[kind];
    }
    l->parts = arena_zalloc(x->mem, (x->has_plan ? x->plan.n : 1) * sizeof(*l->parts));
    for (size_t i = 0; i < (x->has_plan ? x->plan.n : 1); i++) {
        struct upstream *up = x->has_plan ? x->plan.parts[i].up : x->up;
        struct catalog *c = x->has_plan ? x->plan.parts[i].catalog : x->catalog;
        if (c)
            add_part(l, up, c, uris);
    }
    if (!anything && !l->n && js_first(&x->msg.doc, wanted))
        return exchange_refuse(
            x, 200, -32602,
            "Nothing of this can be listened to here: the server announces no such "
            "changes, or speaks an older protocol version whose subscriptions "
            "Holdfast does not translate yet");
    x->listen = l;
    list_push(&open_listens, &l->node);
    hub_subscribe(x->sv->hub, &l->subscriber);
    l->credential.on_revoked = on_revoked;
    identity_watch(x->sv->front->identity, &l->credential, &x->caller.who);
    l->patience = loop_timer_new(x->sv->loop, on_patience, l);
    l->watch.done = on_watched;
    l->watching = anything && !upstreams_watched(x->sv->upstreams, x->server, &l->watch);
    l->waiting += l->watching;
    if (!l->waiting)
        acknowledge(l);
    else
        loop_timer_start(l->patience, ACK_MS, 0);
    for (size_t i = 0, n = l->n; i < n && !l->over; i++)
        part_start(&l->parts[i]);
    return STEP_WAIT;
}

/* Subscriptions are few and opened seldom, so they are counted whenever one is opened. */
static enum step_result check_share(struct exchange *x)
{
    unsigned n = 0, of_owner = 0, of_tenant = 0;

    list_each(&open_listens, it)
    {
        const struct principal *who = &list_entry(it, struct listen, node)->x->caller.who;
        n++;
        of_tenant += str_eq(who->tenant, x->caller.who.tenant);
        of_owner += principal_owns(&x->caller.who, who->tenant, who->owner);
    }
    if (n >= MAX_LISTENS)
        return exchange_refuse(x, 200, -32603, "%d subscriptions are open already; try again later",
                               MAX_LISTENS);
    if (of_owner < MAX_LISTENS_OF_OWNER && of_tenant < MAX_LISTENS_OF_TENANT)
        return STEP_NEXT;
    return exchange_refuse(x, 200, -32603,
                           "%u subscriptions are open for this %s, which is the most; close those "
                           "that are not used",
                           of_owner < MAX_LISTENS_OF_OWNER ? of_tenant : of_owner,
                           of_owner < MAX_LISTENS_OF_OWNER ? "tenant" : "key or user");
}

enum step_result exchange_answer_listen(struct exchange *x)
{
    const struct js_node *wanted = mcp_param(&x->msg, STR("notifications"));

    if (x->listen && x->listen->refused)
        return exchange_refuse(x, 200, -32603,
                               "The server acknowledged nothing of this subscription; try again "
                               "later, or look at its log");
    if (x->listen) { /* resumed: the subscription is over */
        struct buf *out = exchange_begin_result(x);
        buf_addf(out, "{\"resultType\":\"complete\",\"_meta\":{\"" MCP_KEY_SUBSCRIPTION "\":%.*s}}",
                 STR_ARG(x->id));
        return x->listen->over ? exchange_end_result(x) : STEP_WAIT;
    }
    if (x->cancelled_early || x->sv->front->draining)
        return exchange_refuse(x, 503, -32000, "Holdfast is stopping; try again in a moment");
    if (x->http && !http_takes_events(x->head, false))
        return exchange_refuse(x, 406, -32000,
                               "subscriptions/listen gives text/event-stream; accept that");
    if (!js_type_is(wanted, JS_OBJECT))
        return exchange_refuse(x, 200, -32602,
                               "subscriptions/listen needs the object params.notifications");
    if (check_share(x) != STEP_NEXT)
        return STEP_REPLY;
    enum step_result chosen = exchange_select_channel_session(x);
    return chosen == STEP_NEXT ? listen_begin(x, wanted) : chosen;
}

void exchange_listen_gone(struct exchange *x)
{
    listen_end(x->listen);
}
