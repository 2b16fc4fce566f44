/* SPDX-License-Identifier: Apache-2.0 */
/* What is answered here: the handshakes and lists from the catalog, ping, cancellation, the end of
 * a transport.  None of these starts a child. */
#include "exchange/exchange.h"

#include "base/clock.h"
#include "base/log.h"
#include "crypto/hash.h"
#include "exchange/batch.h"

#define LIST_TTL_MS 30000
#define MAX_INITIALIZE (64 * 1024) /* kept with every transport, in memory too */

static void write_server_info(const struct exchange *x, struct buf *out)
{
    if (x->catalog->server_info.p)
        buf_addstr(out, x->catalog->server_info);
    else
        buf_addz(out, "{\"name\":\"holdfast\",\"version\":\"" HOLDFAST_VERSION "\"}");
}

static void write_common(const struct exchange *x, struct buf *out)
{
    buf_addf(out, "\"capabilities\":{%s}",
             catalog_offers(x->catalog, "tools") ? "\"tools\":{}" : "");
    if (x->catalog->instructions.p)
        buf_addf(out, ",\"instructions\":%.*s", STR_ARG(x->catalog->instructions));
}

/* What every modern result of a list or a discover ends with. */
static void write_modern_tail(const struct exchange *x, struct buf *out)
{
    buf_addf(out,
             ",\"ttlMs\":%d,\"cacheScope\":\"private\",\"resultType\":\"complete\",\"_meta\":{"
             "\"" MCP_KEY_SERVER_INFO "\":",
             LIST_TTL_MS);
    write_server_info(x, out);
    buf_addz(out, "}}");
}

static enum step_result answer_discover(struct exchange *x)
{
    struct buf *out = exchange_begin_result(x);
    buf_addz(out, "{\"supportedVersions\":" MCP_SUPPORTED_MODERN ",");
    write_common(x, out);
    write_modern_tail(x, out);
    return exchange_end_result(x);
}

static enum step_result answer_tools(struct exchange *x)
{
    if (mcp_param(&x->msg, STR("cursor")))
        return exchange_refuse(x, 200, -32602,
                               "Invalid cursor: this list has one page; leave the cursor out");
    struct buf *out = exchange_begin_result(x);
    buf_addz(out, "{\"tools\":");
    catalog_write_tools(x->catalog, exchange_injects_handles(x), out);
    if (x->era == MCP_MODERN)
        write_modern_tail(x, out);
    else
        buf_addc(out, '}');
    return exchange_end_result(x);
}

static enum step_result answer_ping(struct exchange *x)
{
    buf_addz(exchange_begin_result(x), "{}");
    return exchange_end_result(x);
}

static enum step_result answer_cancelled(struct exchange *x)
{
    const struct js_node *id = mcp_param(&x->msg, STR("requestId"));
    if (id && x->outlet->cancel) {
        x->outlet->cancel(x, js_raw(&x->msg.doc, id));
    } else if (id && x->transport) {
        struct call *c = calls_find(x->sv->calls, x->transport, js_raw(&x->msg.doc, id), x->mem);
        if (c)
            call_cancel(c, STR("client cancelled"));
    }
    return exchange_accept(x);
}

static void on_stored(struct write_job *job)
{
    exchange_resume(container_of(job, struct exchange, job));
}

/* Commits x->op; NEXT when it is durable. */
static enum step_result store_first(struct exchange *x)
{
    if (!x->job.done) {
        x->job = (struct write_job){.ops = &x->op, .n = 1, .done = on_stored};
        x->op.who = &x->who;
        x->op.transport = &x->transport_row;
        if (lane_write(x->sv->lanes, &x->job))
            return STEP_WAIT;
        x->job.ok = error_set(&x->job.err, ERR_UNAVAILABLE, "too much is waiting for the store");
    }
    if (x->job.ok)
        return STEP_NEXT;
    struct error err;
    log_warn("the store refused a write", LZ("why", x->job.err.text));
    error_set(&err, ERR_UNAVAILABLE, "the store cannot write right now; try again shortly");
    return exchange_fail(x, &err);
}

/* The transport's row is committed before its id is given out, so the id holds after any crash. */
static enum step_result answer_initialize(struct exchange *x)
{
    const struct js_node *params = x->msg.params;
    struct transport_row *row = &x->transport_row;

    if (!x->job.done) {
        struct str asked = mcp_param_text(&x->msg, STR("protocolVersion"), x->mem);
        if (!asked.p || !js_type_is(params, JS_OBJECT))
            return exchange_refuse(x, 200, -32602, "initialize needs params.protocolVersion");
        if (js_raw(&x->msg.doc, params).n > MAX_INITIALIZE)
            return exchange_refuse(x, 200, -32602, "params of initialize have at most %d bytes",
                                   MAX_INITIALIZE);
        x->version = mcp_version_negotiate(asked);
        token_transport_id(x->transport_id);
        *row = (struct transport_row){
            .tenant = x->who.tenant,
            .owner = x->who.owner,
            .endpoint = x->endpoint,
            .protocol_version = x->version->name,
            .initialize_params = js_raw(&x->msg.doc, params),
            .created_ms = clock_wall_ms(),
            .last_used_ms = clock_wall_ms(),
        };
        sha256(str_of(x->transport_id), row->id_hash);
        x->op.kind = OP_TRANSPORT_CREATE;
    }
    enum step_result stored = store_first(x);
    if (stored != STEP_NEXT)
        return stored;
    struct transport *t = transport_new(x->sv->sessions, row);
    if (x->outlet->initialized)
        x->outlet->initialized(x, t);
    transport_unref(t);
    x->headers = arena_printf(x->mem, "Mcp-Session-Id: %s\r\n", x->transport_id);
    struct buf *out = exchange_begin_result(x);
    buf_addf(out, "{\"protocolVersion\":\"%.*s\",", STR_ARG(x->version->name));
    write_common(x, out);
    buf_addz(out, ",\"serverInfo\":");
    write_server_info(x, out);
    buf_addc(out, '}');
    return exchange_end_result(x);
}

static enum step_result answer_delete(struct exchange *x)
{
    if (!x->transport)
        return exchange_refuse(x, 400, -32600,
                               "DELETE takes an Mcp-Session-Id; a handle is ended over REST");
    if (!x->job.done) {
        transport_fill_row(x->transport, &x->transport_row);
        x->transport_row.ended_ms = clock_wall_ms();
        x->op.kind = OP_TRANSPORT_END;
    }
    enum step_result stored = store_first(x);
    if (stored != STEP_NEXT)
        return stored;
    transport_forget(x->transport);
    x->status = 204;
    return STEP_REPLY;
}

enum step_result exchange_answer(struct exchange *x)
{
    if (!x->has_message)
        return answer_delete(x);
    switch (x->method->service) {
    case SERVE_INITIALIZE:
        return answer_initialize(x);
    case SERVE_PING:
        return answer_ping(x);
    case SERVE_DISCOVER:
        return answer_discover(x);
    case SERVE_TOOLS_LIST:
        return answer_tools(x);
    case SERVE_CANCELLED:
        return answer_cancelled(x);
    case SERVE_BATCH:
        return exchange_answer_batch(x);
    case SERVE_ACCEPTED:
    case SERVE_CALL:
        break;
    }
    return exchange_accept(x);
}
