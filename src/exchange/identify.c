/* SPDX-License-Identifier: Apache-2.0 */
/* The identify step: asks the front who calls, or replies 401, perhaps after a wait.  If the
 * configuration requires a client id, clients without one are refused here. */
#include "exchange/exchange.h"

#include "identity/scopes.h"

const char *exchange_client_refusal(bool is_required, const struct http_head *head)
{
    struct str client = http_header_get(head, STR("mcp-client-id"));

    if (!is_required || client.n)
        return NULL;
    return client.p ? "mcp-client-id header must not be empty"
                    : "Missing required mcp-client-id header";
}

static void on_asked(struct admission *a)
{
    exchange_resume(container_of(a, struct exchange, admission));
}

enum step_result exchange_check_role(struct exchange *x)
{
    if (caller_may(&x->caller, ACCESS_WRITE))
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
    if (!principal_may_use_tool(&x->caller.who, upstream_name(x->up), x->tool) ||
        (unlikely(config_limits_tools(server)) && !config_shows_tool(server, x->tool)))
        return exchange_unknown_tool(x);
    if (x->profile && !exchange_profile_shows(x, upstream_name(x->up), x->tool))
        return exchange_refuse_tool(x);
    return STEP_NEXT;
}

static enum step_result refuse(struct exchange *x, const struct refusal *why)
{
    const struct error_info *info = error_info(why->code);
    enum step_result result = exchange_refuse(x, info->http_status, info->jsonrpc, "%s", why->text);

    x->headers = why->headers;
    return result;
}

/* NEXT: the caller is known. */
static enum step_result find_caller(struct exchange *x)
{
    struct refusal why;

    if (x->caller.is_known)
        return STEP_NEXT;
    if (x->refused)
        return refuse(x, x->refused);
    if (!x->is_asked) {
        x->is_asked = true;
        x->admission.done = on_asked;
        if (!admit_ask(x->sv->front, &x->admission, x->caller.config, x->http, x->path_key, x->mem))
            return STEP_WAIT;
    }
    return admit_identified(&x->admission, x->http, &x->caller, &why) ? STEP_NEXT : refuse(x, &why);
}

static enum step_result find_out(struct exchange *x)
{
    const struct config *c = x->caller.config;
    bool strict = c->client_id_required || (x->profile && x->profile->client_id_required);
    const char *refusal = exchange_client_refusal(strict, x->head);
    enum step_result result = find_caller(x);

    if (result != STEP_NEXT)
        return result;
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
