/* SPDX-License-Identifier: Apache-2.0 */
/* requestState of a request, bound to its caller (call/request_state.h). */
#include "exchange/exchange.h"

#include "call/request_state.h"

static struct state_binding binding(const struct exchange *x, struct str server, struct str name)
{
    return (struct state_binding){.tenant = x->caller.who.tenant,
                                  .owner = x->caller.who.owner,
                                  .server = server,
                                  .method = x->method->name,
                                  .name = name};
}

struct str exchange_bind_state(struct exchange *x, struct str server, struct str name,
                               struct str state)
{
    struct state_binding to = binding(x, server, name);

    return request_state_bind(x->sv->state_key, &to, state, x->mem);
}

enum step_result exchange_check_state(struct exchange *x)
{
    const struct js_node *node = mcp_param(&x->msg, STR("requestState"));

    if (!node || mcp_era(x->era)->asks_by_requests || mcp_era(x->catalog->era)->asks_by_requests)
        return STEP_NEXT;
    struct state_binding to = binding(x, upstream_name(x->up), x->tool);
    if (!js_type_is(node, JS_STRING) ||
        !request_state_open(x->sv->state_key, &to, js_text(&x->msg.doc, node, x->mem),
                            &x->state_text))
        return exchange_refuse(x, 200, -32602,
                               "params.requestState is not what this server gave this caller for "
                               "this request; send the request again without it");
    x->state_node = node;
    return STEP_NEXT;
}
