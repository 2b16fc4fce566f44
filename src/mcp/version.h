/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol revisions: what differs between them is said here and nowhere else. */
#ifndef HOLDFAST_MCP_VERSION_H
#define HOLDFAST_MCP_VERSION_H

#include "base/str.h"

enum mcp_era { MCP_LEGACY, MCP_MODERN };

struct mcp_version {
    struct str name; /* "2025-11-25" */
    enum mcp_era era;
    bool batches;        /* JSON-RPC arrays are part of it */
    bool version_header; /* MCP-Protocol-Version on requests after initialize */
    bool priming_event;  /* streams open with an empty event */
};

extern const struct mcp_version mcp_versions[]; /* oldest first, ends with an absent name */
/* 2025-03-26: what a request speaks that does not say, as the revision after it ruled. */
extern const struct mcp_version *const mcp_version_unsaid;
const struct mcp_version *mcp_version_find(struct str name); /* NULL when unknown */
const struct mcp_version *mcp_version_latest(enum mcp_era era);
/* What we answer an initialize asking for `asked`: the same when we speak it, else our newest
 * legacy. */
const struct mcp_version *mcp_version_negotiate(struct str asked);
const char *mcp_era_name(enum mcp_era era);

/* JSON array of the modern versions we serve, for discover and -32022. */
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
