/* SPDX-License-Identifier: Apache-2.0 */
/* The identify step: a principal or 401; and where the configuration wants every client to name
 * itself, the two refusals for one that does not. */
#include "exchange/exchange.h"

#include "identity/identity.h"

const char *exchange_client_refusal(const struct config *config, const struct http_head *head)
{
    struct str client = http_header_get(head, STR("mcp-client-id"));

    if (!config->client_id_required || client.n)
        return NULL;
    return client.p ? "mcp-client-id header must not be empty"
                    : "Missing required mcp-client-id header";
}

enum step_result exchange_identify(struct exchange *x)
{
    const char *refusal = exchange_client_refusal(x->config, x->head);
    struct error err;

    if (!x->is_known && !identify(x->config, x->http, &x->who, &err))
        return exchange_fail(x, &err);
    if (!x->http)
        return STEP_NEXT; /* a pipe has one client, and no headers */
    return refusal ? exchange_refuse(x, 400, -32600, "%s", refusal) : STEP_NEXT;
}
