/* SPDX-License-Identifier: Apache-2.0 */
/* The method table: which methods exist in which era, and how each is served. */
#ifndef HOLDFAST_MCP_METHOD_H
#define HOLDFAST_MCP_METHOD_H

#include "mcp/message.h"
#include "mcp/version.h"

enum mcp_service {
    SERVE_INITIALIZE, /* answered here, and makes a transport */
    SERVE_PING,       /* answered here */
    SERVE_DISCOVER,   /* answered from the catalog */
    SERVE_TOOLS_LIST, /* likewise */
    SERVE_CALL,       /* by the upstream, with a durable exec */
    SERVE_CANCELLED,  /* stops one of the caller's own calls */
    SERVE_ACCEPTED,   /* a notification that needs nothing done */
    SERVE_BATCH,      /* an array of messages, each served by its own */
};

struct mcp_method {
    struct str name;
    enum mcp_service service;
    bool legacy, modern;
    struct str name_param;  /* what Mcp-Name mirrors: "name", "uri"; absent for none */
    const char *capability; /* server capability it needs, NULL for none */
};

const struct mcp_method *mcp_method_find(struct str name, enum mcp_era era); /* NULL: none such */
extern const struct mcp_method mcp_methods[]; /* ends with an absent name */

#endif
