/* SPDX-License-Identifier: Apache-2.0 */
/* The limit step: answers a request of a tenant or key that has used up its quota, before any
 * lookup.  A tool call gets a result that the model can read; any other request gets an error.
 * Nothing is executed, and the audit does not record each refusal.
 *
 * Requests that end something or answer a question are counted and never refused: a client at its
 * limit must be able to cancel, and a call that waits for an answer must get it. */
#include "exchange/exchange.h"

#include "json/write.h"
#include "session/setup.h"

/* A batch takes nothing: its items do. */
static const unsigned takes[] = {
    [SERVE_INITIALIZE] = QUOTA_REQUEST,
    [SERVE_PING] = QUOTA_REQUEST,
    [SERVE_DISCOVER] = QUOTA_REQUEST,
    [SERVE_LIST] = QUOTA_REQUEST,
    [SERVE_CALL] = QUOTA_CALL,
    [SERVE_READ] = QUOTA_CALL,
    [SERVE_SUBSCRIBE] = QUOTA_CALL,
    [SERVE_SET_LEVEL] = QUOTA_REQUEST,
    [SERVE_LISTEN] = QUOTA_REQUEST,
    [SERVE_CANCELLED] = QUOTA_REQUEST | QUOTA_ALWAYS,
    [SERVE_RELAYED] = QUOTA_REQUEST | QUOTA_ALWAYS,
    [SERVE_ANSWERED] = QUOTA_REQUEST | QUOTA_ALWAYS,
    [SERVE_ACCEPTED] = QUOTA_REQUEST | QUOTA_ALWAYS,
    [SERVE_STREAM] = QUOTA_REQUEST,
    [SERVE_END] = QUOTA_REQUEST | QUOTA_ALWAYS,
    [SERVE_BATCH] = 0,
};

enum step_result exchange_over_quota(struct exchange *x, const char *text, int64_t retry_s,
                                     struct str headers)
{
    struct buf *out;

    if (x->method->service != SERVE_CALL || x->msg.kind != MCP_REQUEST) {
        x->headers = headers;
        return exchange_refuse_data(x, 429, error_info(ERR_QUOTA)->jsonrpc,
                                    arena_printf(x->mem, "{\"code\":\"%s\",\"retry_after\":%lld}",
                                                 error_info(ERR_QUOTA)->name, (long long)retry_s),
                                    "%s", text);
    }
    out = exchange_begin_result(x);
    buf_addz(out, "{\"content\":[{\"type\":\"text\",\"text\":");
    js_quote(out, str_of(text));
    buf_addf(out, "}],\"isError\":true,\"_meta\":{\"holdfast/retry-after\":%lld}",
             (long long)retry_s);
    x->is_error = !x->call; /* metrics count it as a refusal */
    buf_addstr(out, mcp_era(x->era)->result_end);
    return exchange_end_result(x);
}

enum step_result exchange_limit(struct exchange *x)
{
    struct refusal why;

    if (likely(admit_limit(x->sv->front, &x->caller, takes[x->method->service], x->body.n, x->mem,
                           &why)))
        return STEP_NEXT;
    return exchange_over_quota(x, why.text, why.retry_s, why.headers);
}

enum step_result exchange_limit_session(struct exchange *x)
{
    const struct session_setup *rules = x->session->rules;
    struct quota_session session = {.tenant = x->session->tenant,
                                    .id = x->session->id,
                                    .from = rules->from,
                                    .limits = &rules->limits};
    struct refusal why;

    if (!session_setup_has_limits(rules) ||
        admit_session_limit(x->sv->front, &x->caller, &session, takes[x->method->service],
                            x->body.n, x->mem, &why))
        return STEP_NEXT;
    return exchange_over_quota(x, why.text, why.retry_s, why.headers);
}

bool exchange_send_message(struct exchange *x, struct str json, enum outlet_weight weight)
{
    caller_spend(&x->caller, json.n);
    return x->outlet->send(x, json, weight);
}
