/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol revisions: this table alone says how they differ. */
#ifndef HOLDFAST_MCP_VERSION_H
#define HOLDFAST_MCP_VERSION_H

#include "mcp/era.h"

struct mcp_version {
    struct str name; /* "2025-11-25" */
    enum mcp_era era;
    bool batches;        /* has JSON-RPC batches */
    bool version_header; /* MCP-Protocol-Version on requests after initialize */
    bool priming_event;  /* streams open with an empty event */
};

extern const struct mcp_version mcp_versions[]; /* oldest first, ends with an absent name */
/* 2025-03-26: assumed for a request without a version, as the next revision demands. */
extern const struct mcp_version *const mcp_version_default;
const struct mcp_version *mcp_version_find(struct str name); /* NULL when unknown */
const struct mcp_version *mcp_version_latest(enum mcp_era era);
/* Our answer to an initialize that asks for `asked`: the same version if we speak it, else our
 * newest legacy version. */
const struct mcp_version *mcp_version_negotiate(struct str asked);

/* JSON array of the modern versions that we serve, for discover and -32022. */
#define MCP_SUPPORTED_MODERN "[\"2026-07-28\"]"

/* Keys of the modern envelope in params._meta and result._meta. */
#define MCP_KEY_PREFIX "io.modelcontextprotocol/"
#define MCP_KEY_VERSION MCP_KEY_PREFIX "protocolVersion"
#define MCP_KEY_CAPABILITIES MCP_KEY_PREFIX "clientCapabilities"
#define MCP_KEY_CLIENT_INFO MCP_KEY_PREFIX "clientInfo"
#define MCP_KEY_LOG_LEVEL MCP_KEY_PREFIX "logLevel"
#define MCP_KEY_SUBSCRIPTION MCP_KEY_PREFIX "subscriptionId"
#define MCP_KEY_SERVER_INFO MCP_KEY_PREFIX "serverInfo"

#endif
