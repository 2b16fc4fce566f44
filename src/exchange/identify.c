/* SPDX-License-Identifier: Apache-2.0 */
/* The identify step: finds the principal or replies 401, perhaps after a wait.  If the
 * configuration requires a client id, clients without one are refused here. */
#include "exchange/exchange.h"

#include "identity/proxy.h"
#include "identity/scopes.h"

const char *exchange_client_refusal(bool is_required, const struct http_head *head)
{
    struct str client = http_header_get(head, STR("mcp-client-id"));

    if (!is_required || client.n)
        return NULL;
    return client.p ? "mcp-client-id header must not be empty"
                    : "Missing required mcp-client-id header";
}

static void on_identified(struct identify *q)
{
    exchange_resume(container_of(q, struct exchange, identify));
}

enum step_result exchange_check_role(struct exchange *x)
{
    if (x->who.role != ROLE_AUDITOR)
        return STEP_NEXT;
    return exchange_refuse(x, 403, -32000,
                           "The role auditor may list tools but not call them; use another key");
}

enum step_result exchange_check_scopes(struct exchange *x)
{
    if (x->method->service != SERVE_CALL)
        return STEP_NEXT;
    if (exchange_check_role(x) != STEP_NEXT)
        return STEP_REPLY;
    const struct server_config *server = upstream_config(x->up);
    if (!principal_may_use_tool(&x->who, upstream_name(x->up), x->tool) ||
        (unlikely(config_limits_tools(server)) && !config_shows_tool(server, x->tool)))
        return exchange_refuse(x, 200, -32602,
                               "Unknown tool: there is none of this name; tools/list names them");
    if (x->profile && !exchange_profile_shows(x, upstream_name(x->up), x->tool))
        return exchange_refuse_tool(x);
    return STEP_NEXT;
}

/* NEXT: the result is in x->identify. */
static enum step_result ask(struct exchange *x)
{
    struct identify *q = &x->identify;

    /* Member by member: zeroing the error text for every request would cost too much. */
    q->config = x->config;
    q->head = x->head;
    q->path_key = x->path_key;
    q->from = x->http;
    q->is_unix = x->http->is_unix;
    q->is_elsewhere = !x->config->auth_required && client_is_elsewhere(x->config, x->http);
    q->peer_uid = x->http->peer_uid;
    q->mem = x->mem;
    q->done = on_identified;
    x->is_asked = true;
    return identify(x->sv->identity, q) ? STEP_NEXT : STEP_WAIT;
}

static enum step_result refuse(struct exchange *x)
{
    const struct error *err = &x->identify.err;
    /* This limit belongs to the client's address, not to an upstream, so it is an HTTP status. */
    enum step_result result = err->code == ERR_LIMIT
                                  ? exchange_refuse(x, 429, -32000, "%s", err->text)
                                  : exchange_fail(x, err);

    if (err->code == ERR_UNAUTHENTICATED)
        x->headers = identity_challenge(x->config, x->http, x->identify.had_credential);
    else if (err->code == ERR_LIMIT)
        x->headers = STR("Retry-After: 1\r\n");
    return result;
}

static enum step_result find_out(struct exchange *x)
{
    bool strict = x->config->client_id_required || (x->profile && x->profile->client_id_required);
    const char *refusal = exchange_client_refusal(strict, x->head);

    if (!x->is_known && !x->is_asked && ask(x) == STEP_WAIT)
        return STEP_WAIT;
    if (!x->is_known && !x->identify.ok)
        return refuse(x);
    if (!x->is_known)
        x->who = x->identify.who;
    x->is_known = true;
    if (x->profile_name.p && !x->profile)
        return exchange_refuse(
            x, 404, -32000,
            "No profile of this name is configured; see \"profiles\" in the configuration");
    if (!x->http)
        /* pipes have no headers; batches and streams of 2024 were checked before */
        return STEP_NEXT;
    return refusal ? exchange_refuse(x, 400, -32600, "%s", refusal) : STEP_NEXT;
}

enum step_result exchange_identify(struct exchange *x)
{
    enum step_result result = find_out(x);
    return result == STEP_NEXT ? exchange_read_context(x) : result;
}
