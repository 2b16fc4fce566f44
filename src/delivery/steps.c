/* SPDX-License-Identifier: Apache-2.0 */
/* The second spine: one message from an upstream, on its way back.
 *
 *   decode ──> owner ──> hand over
 *
 * decode:    one validating scan.  A message that is not JSON-RPC is counted and dropped.
 * owner:     a response belongs to the pending with its id and removes it from the ledger, so a
 *            second answer finds no owner.  Progress belongs to the pending with its token.  A
 *            changed list concerns every listener to that server.  Other notifications and requests
 *            belong to the pending on whose stream they came; else to the newest call of a link
 *            that only one session uses; else to the listener for that session.
 * hand over: to the pending's callbacks (a call, a probe, a handshake), or to the hub.  A request
 *            without a receiver is answered with an error that says so. */
#include "delivery/delivery.h"

#include "base/log.h"
#include "base/metric.h"

#include <stdio.h>

#define MAX_MESSAGE (64u * 1024 * 1024)
#define MAX_ID 1024 /* bytes of a server's request id or progress token */

struct delivery {
    struct hub *hub;
    struct link *link;
    struct pending *about; /* the pending on whose own stream it came, or NULL */
    struct str text;
    struct arena *mem; /* NULL once a callee has taken it over */
    struct mcp_message m;
};

static void drop(const struct delivery *d, const char *why)
{
    static struct metric *dropped;
    struct str labels[] = {upstream_name(link_upstream(d->link)), str_of(why)};
    if (!dropped)
        dropped = metric_register(METRIC_COUNTER, "holdfast_upstream_dropped_total",
                                  "Messages from upstreams that no client could get.",
                                  "server,reason", 256);
    metric_add(metric_cell(dropped, labels, countof(labels)), 1);
    log_debug("dropped a message from a server", LS("server", labels[0]), LZ("why", why));
}

static bool step_decode(struct delivery *d)
{
    struct error err;
    /* The copy lives as long as the answer; the reader's text is gone when this returns. */
    char *copy = arena_try_alloc(d->mem, d->text.n + 1);
    if (!copy) {
        link_note_odd(d->link, "it sent a message that is too large");
        drop(d, "too_large");
        return false;
    }
    memcpy(copy, d->text.p, d->text.n);
    if (mcp_parse_upstream(str_n(copy, d->text.n), d->mem, &d->m, &err))
        return true;
    link_note_odd(d->link, err.text);
    drop(d, "not_json_rpc");
    return false;
}

/* True when no client could read the answer's shape; the pending then fails. */
static bool refuse_shape(const struct delivery *d, struct pending *p)
{
    const char *fault = mcp_response_fault(&d->m);
    struct error err;

    if (!fault)
        return false;
    error_set(&err, ERR_UPSTREAM, "%.*s answered with %s; report that to its authors",
              STR_ARG(upstream_name(link_upstream(d->link))), fault);
    p->on_fail(p, &err, true);
    return true;
}

static void deliver_response(struct delivery *d)
{
    uint64_t id;
    struct pending *p = mcp_id_ours(d->m.id, &id) ? pending_find(d->link, id) : NULL;

    if (!p || (d->about && d->about != p)) {
        link_note_odd(d->link, "it sent an answer to no open request");
        drop(d, "unknown_id");
        return;
    }
    pending_take(p);
    if (refuse_shape(d, p))
        return;
    struct arena *mem = d->mem;
    d->mem = NULL;
    p->on_reply(p, &d->m, mem);
}

static void deliver_progress(struct delivery *d)
{
    uint64_t token;
    const struct js_node *node = mcp_param(&d->m, STR("progressToken"));
    struct pending *p = js_type_is(node, JS_NUMBER) && mcp_id_ours(js_raw(&d->m.doc, node), &token)
                            ? pending_find(d->link, token)
                            : NULL;
    if (p && p->on_progress && (!d->about || d->about == p))
        p->on_progress(p, &d->m);
    else
        drop(d, "unknown_progress");
}

/* The owner of a message that did not come on a stream of its own: on a pipe, the newest call; on a
 * link of several sessions, its only call. */
static struct pending *owner_of(const struct delivery *d)
{
    const struct js_node *tag = js_get(&d->m.doc, d->m.meta, STR(MCP_KEY_SUBSCRIPTION));
    uint64_t id;

    if (d->about)
        return d->about;
    if (tag && mcp_id_ours(js_raw(&d->m.doc, tag), &id))
        return pending_find(d->link, id);
    return link_is_shared(d->link) ? link_only(d->link) : link_newest(d->link);
}

static bool notify_pending(struct delivery *d)
{
    struct pending *p = owner_of(d);
    return p && p->on_message && p->on_message(p, &d->m);
}

/* In the form of the client's era, which has no subscription ids. */
static bool notify_change(struct delivery *d, enum catalog_kind kind)
{
    char text[128];
    int n = snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"method\":\"%.*s\"}",
                     STR_ARG(catalog_kinds[kind].changed));
    return hub_notify_change(d->hub, d->link, kind,
                             mcp_era(link_era(d->link))->has_listen ? str_n(text, (size_t)n)
                                                                    : d->text);
}

/* A change of the server's list is sent to all listeners; a change of a session's own list to that
 * session. */
static bool deliver_change(struct delivery *d)
{
    enum catalog_kind kind = catalog_kind_changed(d->m.method);

    if (kind == CATALOG_KINDS)
        return false;
    link_changed(d->link, kind);
    if (!link_is_shared(d->link) && !notify_change(d, kind))
        (void)notify_pending(d);
    return true;
}

/* Sent for a listen of our own: its content has already been handled above. */
static bool is_subscription(const struct delivery *d)
{
    return js_get(&d->m.doc, d->m.meta, STR(MCP_KEY_SUBSCRIPTION)) != NULL;
}

static void deliver_notification(struct delivery *d)
{
    bool is_log = str_eq(d->m.method, STR("notifications/message"));

    if (str_eq(d->m.method, STR("notifications/progress")))
        deliver_progress(d);
    else if (str_eq(d->m.method, STR("notifications/cancelled")))
        hub_ask_cancelled(d->hub, d->link, &d->m);
    else if (deliver_change(d))
        return;
    else if ((is_log || d->about || !mcp_era(link_era(d->link))->is_stateful) && notify_pending(d))
        return;
    else if (is_subscription(d) ||
             (!hub_notify(d->hub, d->link, d->text, mcp_is_droppable(&d->m)) && !notify_pending(d)))
        drop(d, "notification");
}

static void answer(struct delivery *d, struct str rest)
{
    struct exec token = exec_housekeeping(EXEC_CLIENT_RESPONSE);
    struct error err;
    struct buf text;

    buf_init(&text, MAX_MESSAGE);
    buf_addz(&text, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_addstr(&text, d->m.id);
    buf_addc(&text, ',');
    buf_addstr(&text, rest);
    buf_addc(&text, '}');
    struct outgoing m = {.method = STR("response"), .text = buf_str(&text)};
    if (!upstream_send(d->link, &token, NULL, &m, &err))
        drop(d, "unanswerable");
    buf_release(&text);
}

/* Holdfast answers pings; other requests go to the client.  Only legacy servers may send them. */
static void deliver_request(struct delivery *d)
{
    const struct js_node *token = js_get(&d->m.doc, d->m.meta, STR("progressToken"));

    if (!d->m.id.p || d->m.id.n > MAX_ID || (token && js_raw(&d->m.doc, token).n > MAX_ID))
        /* Without an id it cannot be answered; a long one would cost too much memory. */
        drop(d, "bad_id");
    else if (str_eq(d->m.method, STR("ping")))
        answer(d, STR("\"result\":{}"));
    else if (!mcp_era(link_era(d->link))->asks_by_requests)
        answer(d, STR("\"error\":{\"code\":-32601,\"message\":\"A 2026-07-28 server asks by "
                      "input_required, not by requests\"}"));
    else if (!notify_pending(d) && !hub_ask_session(d->hub, d->link, &d->m))
        answer(d,
               STR("\"error\":{\"code\":-32601,\"message\":\"The client behind this session cannot "
                   "be asked: it has no stream open here, or speaks 2026-07-28, for which Holdfast "
                   "does not translate requests yet\"}"));
}

static void on_message(void *arg, struct link *l, struct pending *about, struct str text)
{
    struct delivery d = {
        .hub = arg, .link = l, .about = about, .text = text, .mem = arena_new(MAX_MESSAGE)};

    if (step_decode(&d)) {
        if (d.m.kind == MCP_RESPONSE)
            deliver_response(&d);
        else if (d.m.kind == MCP_NOTIFICATION)
            deliver_notification(&d);
        else
            deliver_request(&d);
    }
    arena_free(d.mem);
}

static void on_changed(void *arg, struct upstream *u, enum catalog_kind kind)
{
    hub_changed(arg, u, kind);
}

/* Writes the list_changed that the server did not send. */
static void on_session_catalog(void *arg, struct link *l, enum catalog_kind kind)
{
    char text[128];
    int n = snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"method\":\"%.*s\"}",
                     STR_ARG(catalog_kinds[kind].changed));
    struct delivery d = {
        .hub = arg, .link = l, .text = str_n(text, (size_t)n), .mem = arena_new(MAX_MESSAGE)};

    if (step_decode(&d) && !notify_change(&d, kind))
        (void)notify_pending(&d);
    arena_free(d.mem);
}

static bool is_attended(void *arg, struct str key, bool or_expected)
{
    return hub_is_attended(arg, key, or_expected);
}

struct upstream_sink delivery_sink(struct hub *hub)
{
    return (struct upstream_sink){.on_message = on_message,
                                  .on_changed = on_changed,
                                  .on_session_catalog = on_session_catalog,
                                  .is_attended = is_attended,
                                  .arg = hub};
}
