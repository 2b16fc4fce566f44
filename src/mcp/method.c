/* SPDX-License-Identifier: Apache-2.0 */
/* The methods that Holdfast serves.  The spine answers any other with -32601. */
#include "mcp/method.h"

/* clang-format off */
#define NAME(text) {text, sizeof(text) - 1}
#define BOTH .legacy = true, .modern = true
#define LEGACY .legacy = true
#define MODERN .modern = true

const struct mcp_method mcp_methods[] = {
    {NAME("initialize"), SERVE_INITIALIZE, LEGACY},
    {NAME("ping"), SERVE_PING, LEGACY},
    {NAME("server/discover"), SERVE_DISCOVER, MODERN},
    {NAME("tools/list"), SERVE_LIST, BOTH, .capability = "tools"},
    {NAME("tools/call"), SERVE_CALL, TARGET_NAME, BOTH, NAME("name"), "tools"},
    {NAME("prompts/list"), SERVE_LIST, BOTH, .capability = "prompts"},
    {NAME("prompts/get"), SERVE_READ, TARGET_NAME, BOTH, NAME("name"), "prompts"},
    {NAME("resources/list"), SERVE_LIST, BOTH, .capability = "resources"},
    {NAME("resources/templates/list"), SERVE_LIST, BOTH, .capability = "resources"},
    {NAME("resources/read"), SERVE_READ, TARGET_URI, BOTH, NAME("uri"), "resources"},
    {NAME("resources/subscribe"), SERVE_SUBSCRIBE, TARGET_URI, LEGACY, .capability = "resources"},
    {NAME("resources/unsubscribe"), SERVE_SUBSCRIBE, TARGET_URI, LEGACY, .capability = "resources"},
    {NAME("completion/complete"), SERVE_READ, TARGET_REF, BOTH, .capability = "completions"},
    {NAME("logging/setLevel"), SERVE_SET_LEVEL, LEGACY, .capability = "logging"},
    {NAME("subscriptions/listen"), SERVE_LISTEN, MODERN},
    {NAME("notifications/cancelled"), SERVE_CANCELLED, BOTH},
    {NAME("notifications/roots/list_changed"), SERVE_RELAYED, LEGACY},
    {NAME("notifications/progress"), SERVE_RELAYED, LEGACY},
    {.name = {NULL, 0}},
};

const struct mcp_method mcp_method_get = {NAME("GET"), SERVE_STREAM, LEGACY};
const struct mcp_method mcp_method_delete = {NAME("DELETE"), SERVE_END, LEGACY};
const struct mcp_method mcp_method_notification = {NAME("notification"), SERVE_ACCEPTED, BOTH};
const struct mcp_method mcp_method_response = {NAME("response"), SERVE_ANSWERED, LEGACY};
const struct mcp_method mcp_method_batch = {NAME("batch"), SERVE_BATCH, LEGACY};
/* clang-format on */

const struct mcp_method *mcp_method_find(struct str name, enum mcp_era era)
{
    for (const struct mcp_method *m = mcp_methods; m->name.p; m++)
        if (str_eq(m->name, name) && (era == MCP_MODERN ? m->modern : m->legacy))
            return m;
    return NULL;
}

bool mcp_method_forwards(const struct mcp_method *m)
{
    return m->service == SERVE_CALL || m->service == SERVE_READ || m->service == SERVE_SUBSCRIBE;
}

static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                     "error", "critical", "alert",  "emergency"};

const char *mcp_level(struct str name)
{
    for (size_t i = 0; i < countof(levels); i++)
        if (name.p && str_eq(name, str_of(levels[i])))
            return levels[i];
    return NULL;
}

bool mcp_level_reaches(const char *name, const char *wanted)
{
    for (size_t i = 0; i < countof(levels); i++) {
        if (levels[i] == wanted)
            return true;
        if (levels[i] == name)
            return false;
    }
    return true;
}
