/* SPDX-License-Identifier: Apache-2.0 */
/* The table of protocol revisions. */
#include "mcp/version.h"

#define NAME(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

const struct mcp_version mcp_versions[] = {
    {.name = NAME("2024-10-07"), .era = MCP_LEGACY},
    {.name = NAME("2024-11-05"), .era = MCP_LEGACY},
    {.name = NAME("2025-03-26"), .era = MCP_LEGACY, .batches = true},
    {.name = NAME("2025-06-18"), .era = MCP_LEGACY, .version_header = true},
    {.name = NAME("2025-11-25"), .era = MCP_LEGACY, .version_header = true, .priming_event = true},
    {.name = NAME("2026-07-28"), .era = MCP_MODERN, .version_header = true},
    {.name = {NULL, 0}},
};

const struct mcp_version *const mcp_version_default = &mcp_versions[2];

/* Newest first: most clients and servers speak it. */
const struct mcp_version *mcp_version_find(struct str name)
{
    for (size_t i = countof(mcp_versions) - 1; i-- > 0;)
        if (str_eq(mcp_versions[i].name, name))
            return &mcp_versions[i];
    return NULL;
}

const struct mcp_version *mcp_version_latest(enum mcp_era era)
{
    const struct mcp_version *latest = NULL;
    for (const struct mcp_version *v = mcp_versions; v->name.p; v++)
        if (v->era == era)
            latest = v;
    return latest;
}

const struct mcp_version *mcp_version_negotiate(struct str asked)
{
    const struct mcp_version *v = mcp_version_find(asked);
    return v && v->era == MCP_LEGACY ? v : mcp_version_latest(MCP_LEGACY);
}
