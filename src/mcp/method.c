/* SPDX-License-Identifier: Apache-2.0 */
/* The methods we serve.  What is not here is answered -32601 by the spine. */
#include "mcp/method.h"

#define NAME(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

const struct mcp_method mcp_methods[] = {
    {.name = NAME("initialize"), .service = SERVE_INITIALIZE, .legacy = true},
    {.name = NAME("ping"), .service = SERVE_PING, .legacy = true},
    {.name = NAME("server/discover"), .service = SERVE_DISCOVER, .modern = true},
    {.name = NAME("tools/list"),
     .service = SERVE_TOOLS_LIST,
     .legacy = true,
     .modern = true,
     .capability = "tools"},
    {.name = NAME("tools/call"),
     .service = SERVE_CALL,
     .legacy = true,
     .modern = true,
     .name_param = NAME("name"),
     .capability = "tools"},
    {.name = NAME("notifications/cancelled"),
     .service = SERVE_CANCELLED,
     .legacy = true,
     .modern = true},
    {.name = {NULL, 0}},
};

const struct mcp_method *mcp_method_find(struct str name, enum mcp_era era)
{
    for (const struct mcp_method *m = mcp_methods; m->name.p; m++)
        if (str_eq(m->name, name) && (era == MCP_MODERN ? m->modern : m->legacy))
            return m;
    return NULL;
}
