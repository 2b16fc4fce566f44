/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of MCP.  The steps of the spine admit the callers of most of them (ACCESS_SPINE). */
#include "exchange/routes.h"

#include "exchange/sse2024.h"

static void handle_mcp(void *arg, struct http_request *r, struct caller *c)
{
    exchange_start_http(arg, r, c, r->route->match.params[0], STR_NONE, STR_NONE);
}

static void handle_profile(void *arg, struct http_request *r, struct caller *c)
{
    exchange_start_http(arg, r, c, STR_NONE, r->route->match.params[0], STR_NONE);
}

static void handle_all(void *arg, struct http_request *r, struct caller *c)
{
    exchange_start_http(arg, r, c, STR_NONE, STR_NONE, STR_NONE);
}

static const char *path_keys_are_off(const struct caller *c)
{
    return c->config->path_keys ? NULL : FRONT_NOTHING_HERE;
}

/* The parameters are the key, and a server where the path names one. */
static void handle_path_key(void *arg, struct http_request *r, struct caller *c)
{
    const struct route_match *m = &r->route->match;

    exchange_start_http(arg, r, c, m->n > 1 ? m->params[1] : STR_NONE, STR_NONE, m->params[0]);
}

/* The parameters are the key and the profile. */
static void handle_path_key_profile(void *arg, struct http_request *r, struct caller *c)
{
    const struct route_match *m = &r->route->match;

    exchange_start_http(arg, r, c, STR_NONE, m->params[1], m->params[0]);
}

static void handle_metadata(void *arg unused_arg, struct http_request *r, struct caller *c)
{
    http_reply(r, 200, "application/json", STR_NONE, identity_metadata(c->config, r));
}

static const struct need path_key = {.access = ACCESS_SPINE, .off = path_keys_are_off};
/* Opening a stream counts as a request. */
static const struct need counted = {.access = ACCESS_ANY, .quota = QUOTA_REQUEST};

static const struct front_route routes[] = {
    {"POST", "/mcp", handle_all, "All MCP servers, names as server__name.", ROUTE_JSON_BODY,
     &need_spine},
    {"GET", "/mcp", handle_all, "A legacy session's stream.", 0, &need_spine},
    {"DELETE", "/mcp", handle_all, "Ends a legacy transport session.", 0, &need_spine},
    {"GET", "/sse", sse2024_open, "The 2024 transport's stream; it names where to post.", 0,
     &counted, sse2024_refuse},
    {"POST", "/mcp/messages", sse2024_post, "Messages of the 2024 transport.", ROUTE_JSON_BODY,
     &need_any, sse2024_post_unknown},
    {"POST", "/mcp/{server}", handle_mcp, "One MCP server, its own names.", ROUTE_JSON_BODY,
     &need_spine},
    {"GET", "/mcp/{server}", handle_mcp, "A legacy session's stream.", 0, &need_spine},
    {"DELETE", "/mcp/{server}", handle_mcp, "Ends a legacy transport session.", 0, &need_spine},
    {"POST", "/mcp/p/{profile}", handle_profile, "A profile, names as server__name.",
     ROUTE_JSON_BODY, &need_spine},
    {"GET", "/mcp/p/{profile}", handle_profile, "A legacy session's stream.", 0, &need_spine},
    {"DELETE", "/mcp/p/{profile}", handle_profile, "Ends a legacy transport session.", 0,
     &need_spine},
    {"POST", "/mcp/k/{key}", handle_path_key, "/mcp, the key in the path (\"path_keys\").",
     ROUTE_JSON_BODY, &path_key},
    {"GET", "/mcp/k/{key}", handle_path_key, "A legacy session's stream.", 0, &path_key},
    {"DELETE", "/mcp/k/{key}", handle_path_key, "Ends a legacy transport session.", 0, &path_key},
    {"POST", "/mcp/k/{key}/{server}", handle_path_key, "/mcp/{server}, the key in the path.",
     ROUTE_JSON_BODY, &path_key},
    {"GET", "/mcp/k/{key}/{server}", handle_path_key, "A legacy session's stream.", 0, &path_key},
    {"DELETE", "/mcp/k/{key}/{server}", handle_path_key, "Ends a legacy transport session.", 0,
     &path_key},
    {"POST", "/mcp/k/{key}/p/{profile}", handle_path_key_profile,
     "/mcp/p/{profile}, the key in the path.", ROUTE_JSON_BODY, &path_key},
    {"GET", "/mcp/k/{key}/p/{profile}", handle_path_key_profile, "A legacy session's stream.", 0,
     &path_key},
    {"DELETE", "/mcp/k/{key}/p/{profile}", handle_path_key_profile,
     "Ends a legacy transport session.", 0, &path_key},
    {"GET", "/.well-known/oauth-protected-resource", handle_metadata,
     "Where tokens for /mcp come from (RFC 9728).", 0, &need_open},
    {"GET", "/.well-known/oauth-protected-resource/mcp", handle_metadata, "The same.", 0,
     &need_open},
    {"GET", "/.well-known/oauth-protected-resource/mcp/{server}", handle_metadata,
     "The same for /mcp/{server}.", 0, &need_open},
    {"GET", "/.well-known/oauth-protected-resource/mcp/p/{profile}", handle_metadata,
     "The same for /mcp/p/{profile}.", 0, &need_open},
    {"POST", "/control/pipe", control_pipe, "Lines both ways, for stdio.", ROUTE_SOCKET_ONLY,
     &need_any},
};

void exchange_add_routes(struct services *sv)
{
    front_add(sv->front, NULL, routes, countof(routes), sv);
}
