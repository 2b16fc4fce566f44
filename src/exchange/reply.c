/* SPDX-License-Identifier: Apache-2.0 */
/* Replies: JSON objects, or the events of a stream once a message came before the result.  Failures
 * of an upstream are answered in band (200); our own refusals carry an HTTP status. */
#include "exchange/exchange.h"

#include "base/clock.h"
#include "base/log.h"
#include "json/write.h"

#include <stdarg.h>
#include <stdio.h>

static void write_id(struct exchange *x, bool null_when_absent)
{
    if (x->id.p || null_when_absent)
        buf_addstr(&x->out, STR(",\"id\":"));
    buf_addstr(&x->out, x->id.p ? x->id : null_when_absent ? STR("null") : STR(""));
}

static enum step_result refuse(struct exchange *x, int status, int code, struct str data,
                               struct str message)
{
    x->status = status;
    x->is_error = true;
    x->error_code = code;
    x->refusal = arena_dup(x->mem, message);
    if (x->has_message && x->msg.kind != MCP_REQUEST && status == 200)
        return exchange_accept(x); /* a notification gets no answer */
    buf_reset(&x->out);
    buf_addz(&x->out, "{\"jsonrpc\":\"2.0\"");
    write_id(x, !x->has_message || !x->http);
    buf_addf(&x->out, ",\"error\":{\"code\":%d,\"message\":", code);
    js_quote(&x->out, message);
    if (data.p)
        buf_addf(&x->out, ",\"data\":%.*s", STR_ARG(data));
    buf_addz(&x->out, "}}");
    return STEP_REPLY;
}

enum step_result exchange_refuse(struct exchange *x, int status, int code, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return refuse(x, status, code, STR_NONE, str_of(text));
}

enum step_result exchange_refuse_data(struct exchange *x, int status, int code, struct str data,
                                      const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return refuse(x, status, code, data, str_of(text));
}

static bool is_upstream_trouble(enum err_code code)
{
    return code == ERR_UNREACHABLE || code == ERR_UPSTREAM || code == ERR_TIMEOUT ||
           code == ERR_CANCELLED || code == ERR_LIMIT || code == ERR_QUOTA;
}

enum step_result exchange_fail(struct exchange *x, const struct error *err)
{
    const struct error_info *info = error_info(err->code);
    /* A legacy client reads 404 as the end of its session. */
    bool is_200 = is_upstream_trouble(err->code) ||
                  (err->code == ERR_NO_METHOD && mcp_era(x->era)->no_method_status == 200);
    if (err->code == ERR_UNAVAILABLE)
        x->headers = STR("Retry-After: 1\r\n");
    return refuse(x, is_200 ? 200 : info->http_status, info->jsonrpc, STR_NONE, str_of(err->text));
}

enum step_result exchange_accept(struct exchange *x)
{
    x->status = 202;
    buf_reset(&x->out);
    return STEP_REPLY;
}

struct buf *exchange_begin_result(struct exchange *x)
{
    x->status = 200;
    x->is_error = false;
    buf_reset(&x->out);
    buf_addz(&x->out, "{\"jsonrpc\":\"2.0\"");
    write_id(x, true);
    buf_addz(&x->out, ",\"result\":");
    return &x->out;
}

enum step_result exchange_end_result(struct exchange *x)
{
    buf_addc(&x->out, '}');
    return STEP_REPLY;
}

static int status_of_answer(const struct exchange *x, const struct mcp_message *m)
{
    int64_t code = 0;

    if (!m->error || !js_to_i64(&m->doc, js_get(&m->doc, m->error, STR("code")), &code))
        return 200;
    return mcp_era(x->era)->error_status(code);
}

/* The requestState of a server that asks for input, bound to its owner; absent: no such state. */
static struct str bound_state(struct exchange *x)
{
    const struct call *c = x->call;
    const struct js_node *state = mcp_request_state(c->server_era, &c->answer);

    if (!state)
        return STR_NONE;
    return exchange_bind_state(x, upstream_name(c->up), c->tool,
                               js_text(&c->answer.doc, state, x->mem));
}

static void write_answer(struct exchange *x)
{
    struct call *c = x->call;

    if (call_asks_beyond_era(c)) {
        exchange_refuse(
            x, 200, -32603,
            "this tool asks for input in the way of 2026-07-28, which Holdfast does not "
            "translate for older clients yet; use a 2026-07-28 client");
        return;
    }
    struct call_reply reply = {
        .id = x->id, .state = bound_state(x), .is_seen = !x->aborted, .mem = x->mem};
    if (unlikely(c->session->rules != NULL))
        reply.recording = exchange_tell_recording(x);
    x->status = status_of_answer(x, &c->answer);
    x->is_error = c->answer.error != NULL;
    call_write_reply(c, &reply, &x->out);
}

static enum step_result tool_error(struct exchange *x, const char *text, const char *way_out)
{
    struct buf *out = exchange_begin_result(x);

    x->refusal = str_of(text); /* the caller keeps it as long as x lives */
    buf_addz(out, "{\"content\":[{\"type\":\"text\",\"text\":");
    js_quote(out, str_of(text));
    if (way_out) {
        buf_addz(out, "},{\"type\":\"text\",\"text\":");
        js_quote(out, str_of(way_out));
    }
    buf_addz(out, "}],\"isError\":true");
    buf_addstr(out, mcp_era(x->era)->result_end);
    return exchange_end_result(x);
}

enum step_result exchange_tool_error(struct exchange *x, const char *text)
{
    return tool_error(x, text, NULL);
}

enum step_result exchange_over_session_limit(struct exchange *x)
{
    return tool_error(x, SESSION_LIMIT_TEXT, SESSION_LIMIT_WAY_OUT);
}

void exchange_write_call_reply(struct exchange *x)
{
    struct call *c = x->call;

    if (c->audit_err.code != ERR_NONE)
        exchange_refuse(x, 503, -32000,
                        "The call ran, but its outcome could not be recorded yet, so it is not "
                        "acknowledged; look it up with `holdfast audit list` before repeating it");
    else if (c->session_over_limit)
        exchange_over_session_limit(x);
    else if (c->err.code == ERR_QUOTA)
        exchange_over_quota(x, c->err.text, QUOTA_CHILD_RETRY_S, STR_NONE);
    else if (c->has_answer)
        write_answer(x);
    else
        exchange_fail(x, &c->err);
}

/* Sends progress with the client's own token, if the client gave one. */
void exchange_send_progress(struct exchange *x, const struct mcp_message *m)
{
    const struct js_node *token = js_get(&x->msg.doc, x->msg.meta, STR("progressToken"));
    struct buf text;

    if (x->aborted || !token)
        return;
    buf_init(&text, 64u * 1024 * 1024);
    mcp_write_progress(m, js_raw(&x->msg.doc, token), &text);
    (void)!exchange_send_message(x, buf_str(&text), OUTLET_PROGRESS);
    buf_release(&text);
}
