/* SPDX-License-Identifier: Apache-2.0 */
/* The second spine: one message from an upstream, on its way back.
 *
 *   decode ──> owner ──> hand over
 *
 * decode: one validating scan; what is not JSON-RPC is counted and dropped.
 * owner:  a response belongs to the pending whose id it carries, and takes it out of the ledger, so
 * a second answer finds nobody; progress belongs to the pending whose token it carries; other
 *         notifications belong to the upstream itself; requests to a client are answered by us.
 * hand over: to the pending's callbacks: a call, a probe, or a handshake. */
#include "delivery/delivery.h"

#include "base/log.h"
#include "base/metric.h"

#define MAX_MESSAGE (64u * 1024 * 1024)

struct delivery {
    struct link *link;
    struct pending *about; /* whose own stream carried it, or NULL */
    struct str text;
    struct arena *mem; /* NULL once somebody has taken it */
    struct mcp_message m;
};

static void drop(const struct delivery *d, const char *why)
{
    static struct metric *dropped;
    struct str labels[] = {upstream_name(link_upstream(d->link)), str_of(why)};
    if (!dropped)
        dropped =
            metric_register(METRIC_COUNTER, "holdfast_upstream_dropped_total",
                            "Messages from upstreams that belong to nobody.", "server,reason", 256);
    metric_add(metric_cell(dropped, labels, countof(labels)), 1);
    log_debug("dropped a message from a server", LS("server", labels[0]), LZ("why", why));
}

static bool step_decode(struct delivery *d)
{
    struct error err;
    /* The copy lives as long as the answer does; its reader's text is gone when we return. */
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

/* True when the answer has a shape that no client could read: the asker hears of it instead. */
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
    pending_take(d->link, id);
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

static void deliver_notification(struct delivery *d)
{
    if (str_eq(d->m.method, STR("notifications/progress")))
        deliver_progress(d);
    else if (str_eq(d->m.method, STR("notifications/tools/list_changed")))
        upstream_changed(link_upstream(d->link), CATALOG_TOOLS);
    else
        drop(d, "notification");
}

/* Pings are ours to answer.  What asks the client for something is refused in words until it can be
 * passed on. */
static void answer_request(struct delivery *d)
{
    struct exec token = exec_housekeeping(EXEC_CLIENT_RESPONSE);
    bool ping = str_eq(d->m.method, STR("ping"));
    struct error err;
    struct buf text;

    buf_init(&text, MAX_MESSAGE);
    buf_addz(&text, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_addstr(&text, d->m.id.p ? d->m.id : STR("null"));
    buf_addz(&text,
             ping ? ",\"result\":{}}"
                  : ",\"error\":{\"code\":-32601,\"message\":\"Holdfast does not pass requests to "
                    "clients on yet; answer the call without asking\"}}");
    struct outgoing m = {.method = STR("response"), .text = buf_str(&text)};
    if (!upstream_send(d->link, &token, NULL, &m, &err))
        drop(d, "unanswerable");
    buf_release(&text);
}

static void on_message(void *arg unused_arg, struct link *l, struct pending *about, struct str text)
{
    struct delivery d = {.link = l, .about = about, .text = text, .mem = arena_new(MAX_MESSAGE)};

    if (step_decode(&d)) {
        if (d.m.kind == MCP_RESPONSE)
            deliver_response(&d);
        else if (d.m.kind == MCP_NOTIFICATION)
            deliver_notification(&d);
        else
            answer_request(&d);
    }
    arena_free(d.mem);
}

struct upstream_sink delivery_sink(void)
{
    return (struct upstream_sink){.on_message = on_message};
}
