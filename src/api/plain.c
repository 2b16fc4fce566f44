/* SPDX-License-Identifier: Apache-2.0 */
/* The routes outside of /api/v1. */
#include "api/plain.h"

static const char *metrics_are_off(const struct caller *c)
{
    return c->config->metrics ? NULL : "metrics are switched off; set \"metrics\": true";
}

static const struct need metrics = {
    .access = ACCESS_WATCH,
    .off = metrics_are_off,
    .denied = "metrics are for the roles admin and auditor; make a key with --role auditor",
};

static const struct front_route routes[] = {
    {"GET", "/healthz", operate_healthz, "The process is alive.", ROUTE_HEAD, &need_open},
    {"GET", "/readyz", operate_readyz, "The store writes and no stop is under way.", ROUTE_HEAD,
     &need_open},
    {"GET", "/metrics", operate_metrics, "Prometheus text.", ROUTE_HEAD, &metrics},
    {"GET", "/control/events", control_events, "Audit events, for commands.", ROUTE_SOCKET_ONLY,
     &need_local_admin},
    {"GET", "/control/status", control_status, "Servers and counts, for commands.",
     ROUTE_SOCKET_ONLY, &need_local_admin},
    {"GET", "/control/tools", control_tools, "Tools of servers, as last seen.", ROUTE_SOCKET_ONLY,
     &need_local_admin},
    {"GET", "/control/tools/diff", control_tool_diff, "How a tool differs from the approved.",
     ROUTE_SOCKET_ONLY, &need_local_admin},
    {"POST", "/control/tools/approve", control_approve, "Approves what tools are now.",
     ROUTE_JSON_BODY | ROUTE_SOCKET_ONLY, &need_local_admin},
    {"POST", "/control/keys", control_key_create, "A new key, shown once.",
     ROUTE_JSON_BODY | ROUTE_SOCKET_ONLY, &need_local_admin},
    {"GET", "/control/keys", control_key_list, "Keys, by id.", ROUTE_SOCKET_ONLY,
     &need_local_admin},
    {"POST", "/control/users", control_user_change, "Makes or changes a user.",
     ROUTE_JSON_BODY | ROUTE_SOCKET_ONLY, &need_local_admin},
    {"GET", "/control/users/sessions", control_user_sessions, "Where a user is signed in.",
     ROUTE_SOCKET_ONLY, &need_local_admin},
    {"DELETE", "/control/keys/{id}", control_key_revoke, "Revokes a key.", ROUTE_SOCKET_ONLY,
     &need_local_admin},
};

void plain_add_routes(struct api_services *sv)
{
    front_add(sv->front, NULL, routes, countof(routes), sv);
}
