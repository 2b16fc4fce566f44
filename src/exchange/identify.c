/* SPDX-License-Identifier: Apache-2.0 */
/* The identify step: a principal or 401; and where the configuration wants every client to name
 * itself, the two refusals for one that does not. */
#include "exchange/exchange.h"

#include "identity/identity.h"

enum step_result exchange_identify(struct exchange *x)
{
    struct error err;
    struct str client = http_header_get(x->head, STR("mcp-client-id"));

    if (!x->is_known && !identify(x->config, x->http, &x->who, &err))
        return exchange_fail(x, &err);
    if (!x->http)
        return STEP_NEXT; /* a pipe has one client, and no headers */
    if (x->config->client_id_required && !client.p)
        return exchange_refuse(x, 400, -32600, "Missing required mcp-client-id header");
    if (x->config->client_id_required && !client.n)
        return exchange_refuse(x, 400, -32600, "mcp-client-id header must not be empty");
    return STEP_NEXT;
}
