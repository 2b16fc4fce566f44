/* SPDX-License-Identifier: Apache-2.0 */
/* The route table, and the checks of a request's head before its body is read: Host, Origin, fetch
 * metadata, route, content type.  front_handle() calls the handler of one row, or answers 404 or
 * 405. */
#include "front/front.h"

#include "api/api.h"
#include "api/cors.h"
#include "api/plain.h"
#include "exchange/sse2024.h"
#include "identity/proxy.h"
#include "identity/identity.h"

enum {
    /* The request must have Content-Type: application/json. */
    ROUTE_JSON_BODY = 1,
    /* The route exists only on the unix socket. */
    ROUTE_SOCKET_ONLY = 2,
    /* The caller must be identified; the handler gets the principal in r->who. */
    ROUTE_AUTHENTICATED = 4,
    /* The caller must be the local admin, who has no credential. */
    ROUTE_LOCAL_ADMIN = 8 | ROUTE_AUTHENTICATED,
};

static void refuse_nothing_here(struct http_request *r, int status)
{
    plain_refuse(r, status, STR_NONE,
                 "there is nothing here; MCP servers are under /mcp and /mcp/{server}");
}

static void handle_mcp(void *arg, struct http_request *r, const struct route_match *m)
{
    exchange_start_http(arg, r, m->params[0], STR_NONE, STR_NONE);
}

static void handle_profile(void *arg, struct http_request *r, const struct route_match *m)
{
    exchange_start_http(arg, r, STR_NONE, m->params[0], STR_NONE);
}

static void handle_all(void *arg, struct http_request *r, const struct route_match *m unused_arg)
{
    exchange_start_http(arg, r, STR_NONE, STR_NONE, STR_NONE);
}

/* m->params: the key, and a server where the path names one. */
static void handle_path_key(void *arg, struct http_request *r, const struct route_match *m)
{
    struct services *sv = arg;

    if (sv->config->path_keys)
        exchange_start_http(sv, r, m->n > 1 ? m->params[1] : STR_NONE, STR_NONE, m->params[0]);
    else
        refuse_nothing_here(r, 404);
}

/* m->params: the key and the profile. */
static void handle_path_key_profile(void *arg, struct http_request *r, const struct route_match *m)
{
    struct services *sv = arg;

    if (sv->config->path_keys)
        exchange_start_http(sv, r, STR_NONE, m->params[1], m->params[0]);
    else
        refuse_nothing_here(r, 404);
}

static void handle_metadata(void *arg, struct http_request *r,
                            const struct route_match *m unused_arg)
{
    http_reply(r, 200, "application/json", STR_NONE,
               identity_metadata(((struct services *)arg)->config, r));
}

static void handle_sse(void *arg, struct http_request *r, const struct route_match *m unused_arg)
{
    sse2024_open(((struct services *)arg)->sse2024, r);
}

static void handle_messages(void *arg, struct http_request *r,
                            const struct route_match *m unused_arg)
{
    sse2024_post(((struct services *)arg)->sse2024, r);
}

static struct http_route routes[] = {
    /* only front_start() changes the rows */
    {"POST", "/mcp", handle_all, "All MCP servers, names as server__name.", ROUTE_JSON_BODY},
    {"GET", "/mcp", handle_all, "A legacy session's stream.", 0},
    {"DELETE", "/mcp", handle_all, "Ends a legacy transport session.", 0},
    {"GET", "/sse", handle_sse, "The 2024 transport's stream; it names where to post.", 0},
    {"POST", "/mcp/messages", handle_messages, "Messages of the 2024 transport.", ROUTE_JSON_BODY},
    {"POST", "/mcp/{server}", handle_mcp, "One MCP server, its own names.", ROUTE_JSON_BODY},
    {"GET", "/mcp/{server}", handle_mcp, "A legacy session's stream.", 0},
    {"DELETE", "/mcp/{server}", handle_mcp, "Ends a legacy transport session.", 0},
    {"POST", "/mcp/p/{profile}", handle_profile, "A profile, names as server__name.",
     ROUTE_JSON_BODY},
    {"GET", "/mcp/p/{profile}", handle_profile, "A legacy session's stream.", 0},
    {"DELETE", "/mcp/p/{profile}", handle_profile, "Ends a legacy transport session.", 0},
    {"POST", "/mcp/k/{key}", handle_path_key, "/mcp, the key in the path (\"path_keys\").",
     ROUTE_JSON_BODY},
    {"GET", "/mcp/k/{key}", handle_path_key, "A legacy session's stream.", 0},
    {"DELETE", "/mcp/k/{key}", handle_path_key, "Ends a legacy transport session.", 0},
    {"POST", "/mcp/k/{key}/{server}", handle_path_key, "/mcp/{server}, the key in the path.",
     ROUTE_JSON_BODY},
    {"GET", "/mcp/k/{key}/{server}", handle_path_key, "A legacy session's stream.", 0},
    {"DELETE", "/mcp/k/{key}/{server}", handle_path_key, "Ends a legacy transport session.", 0},
    {"POST", "/mcp/k/{key}/p/{profile}", handle_path_key_profile,
     "/mcp/p/{profile}, the key in the path.", ROUTE_JSON_BODY},
    {"GET", "/mcp/k/{key}/p/{profile}", handle_path_key_profile, "A legacy session's stream.", 0},
    {"DELETE", "/mcp/k/{key}/p/{profile}", handle_path_key_profile,
     "Ends a legacy transport session.", 0},
    {"GET", "/.well-known/oauth-protected-resource", handle_metadata,
     "Where tokens for /mcp come from (RFC 9728).", 0},
    {"GET", "/.well-known/oauth-protected-resource/mcp", handle_metadata, "The same.", 0},
    {"GET", "/.well-known/oauth-protected-resource/mcp/{server}", handle_metadata,
     "The same for /mcp/{server}.", 0},
    {"GET", "/.well-known/oauth-protected-resource/mcp/p/{profile}", handle_metadata,
     "The same for /mcp/p/{profile}.", 0},
    {"GET", "/healthz", operate_healthz, "The process is alive.", 0, true},
    {"GET", "/readyz", operate_readyz, "The store writes and no stop is under way.", 0, true},
    {"GET", "/metrics", operate_metrics, "Prometheus text.", ROUTE_AUTHENTICATED, true},
    {"POST", "/control/pipe", control_pipe, "Lines both ways, for stdio.",
     ROUTE_SOCKET_ONLY | ROUTE_AUTHENTICATED},
    {"GET", "/control/events", control_events, "Audit events, for commands.",
     ROUTE_SOCKET_ONLY | ROUTE_LOCAL_ADMIN},
    {"GET", "/control/status", control_status, "Servers and counts, for commands.",
     ROUTE_SOCKET_ONLY | ROUTE_LOCAL_ADMIN},
    {"GET", "/control/tools", control_tools, "Tools of servers, as last seen.",
     ROUTE_SOCKET_ONLY | ROUTE_LOCAL_ADMIN},
    {"GET", "/control/tools/diff", control_tool_diff, "How a tool differs from the approved.",
     ROUTE_SOCKET_ONLY | ROUTE_LOCAL_ADMIN},
    {"POST", "/control/tools/approve", control_approve, "Approves what tools are now.",
     ROUTE_JSON_BODY | ROUTE_SOCKET_ONLY | ROUTE_LOCAL_ADMIN},
    {"POST", "/control/keys", control_key_create, "A new key, shown once.",
     ROUTE_JSON_BODY | ROUTE_SOCKET_ONLY | ROUTE_LOCAL_ADMIN},
    {"GET", "/control/keys", control_key_list, "Keys, by id.",
     ROUTE_SOCKET_ONLY | ROUTE_LOCAL_ADMIN},
    {"POST", "/control/users", control_user_change, "Makes or changes a user.",
     ROUTE_JSON_BODY | ROUTE_SOCKET_ONLY | ROUTE_LOCAL_ADMIN},
    {"GET", "/control/users/sessions", control_user_sessions, "Where a user is signed in.",
     ROUTE_SOCKET_ONLY | ROUTE_LOCAL_ADMIN},
    {"DELETE", "/control/keys/{id}", control_key_revoke, "Revokes a key.",
     ROUTE_SOCKET_ONLY | ROUTE_LOCAL_ADMIN},
};

void front_start(void)
{
    router_prepare(routes, countof(routes));
    api_start();
}

static bool is_json(struct str type)
{
    struct str rest = type, media = str_trim(str_split(&rest, ';'));
    if (!str_ieq(media, STR("application/json")))
        return false;
    if (!rest.p)
        return true;
    rest = str_trim(rest);
    return rest.n == 0 || str_ieq(rest, STR("charset=utf-8")) ||
           str_ieq(rest, STR("charset=\"utf-8\""));
}

/* Returns why the peer, Host, Origin or Sec-Fetch-Site is refused; NULL: the request may go on. */
static const char *check_names(const struct config *c, struct http_request *r)
{
    struct str origin = http_header_get(r->head, STR("origin"));
    struct str site = http_header_get(r->head, STR("sec-fetch-site"));

    if (r->is_unix)
        return NULL;
    if (!c->listens_on_loopback && !r->is_tls && !peer_is_trusted_proxy(c, r))
        return "only the proxies that \"trusted_proxies\" names may connect here";
    if (!host_is_allowed(c, client_host(c, r)))
        return arena_printf(r->mem,
                            "the Host \"%.*s\" is not one of ours: use a loopback name or that of "
                            "\"public_url\"; a proxy in front must pass the client's Host on",
                            STR_ARG(str_cut(client_host(c, r), 100)))
            .p;
    if (origin.p &&
        (http_header_count(r->head, STR("origin")) > 1 || !origin_is_allowed(c, origin)))
        return "this Origin is not allowed; add it to \"origins\" if it should be";
    if (str_eq(site, STR("cross-site")) && !origin.p)
        return "a page of another site may not call this server";
    return NULL;
}

static void find(struct http_request *r, struct route_found *ret)
{
    size_t n = countof(routes);
    /* The last rows are for the unix socket only.  Other callers get 404 for them, never a 405 that
     * lists their methods. */
    while (!r->is_unix && (routes[n - 1].flags & ROUTE_SOCKET_ONLY))
        n--;
    ret->route = router_find(routes, n, r, &ret->match, &ret->status, &ret->allow);
    if (ret->route && (ret->route->flags & ROUTE_SOCKET_ONLY) && !r->is_unix) {
        ret->route = NULL;
        ret->status = 404;
    }
}

/* Clients send credentials in these headers, in the path and in the query of a profile (?config=).
 * Bodies of REST requests and of commands hold passwords, credentials for other services and new
 * keys. */
static bool may_hold_secrets(const struct http_request *r)
{
    static const struct str names[] = {{"authorization", 13},
                                       {"x-api-key", 9},
                                       {"cookie", 6},
                                       {"proxy-authorization", 19},
                                       {"mcp-config", 10}};

    if (r->is_unix || api_is_path(r->head->path) || str_starts(r->head->path, STR("/mcp/k/")) ||
        (r->head->query.p && str_starts(r->head->path, STR("/mcp/p/"))))
        return true;
    for (size_t i = 0; i < countof(names); i++)
        if (http_header_get(r->head, names[i]).p)
            return true;
    return false;
}

int front_gate(void *arg, struct http_request *r, struct str *ret_body)
{
    struct services *sv = arg;
    const char *wrong = check_names(sv->config, r);

    if (may_hold_secrets(r))
        arena_wipe_later(r->mem);
    if (api_is_path(r->head->path))
        r->word_refusal = api_word_refusal;
    if (wrong) {
        *ret_body = r->word_refusal ? r->word_refusal(r, 403, wrong) : plain_refusal(r, wrong);
        return 403;
    }
    if (unlikely(sv->config->n_origins))
        r->extra = cors_lines(sv->config, r);
    struct route_found *found = arena_new_of(r->mem, struct route_found);
    r->route = found;
    if (api_is_path(r->head->path)) {
        api_find(r, found); /* the API checks Content-Type itself and answers with a problem */
        return 0;
    }
    find(r, found);
    const struct http_route *route = found->route;
    if (route && (route->flags & ROUTE_JSON_BODY) &&
        (http_header_count(r->head, STR("content-type")) != 1 ||
         !is_json(http_header_get(r->head, STR("content-type"))))) {
        *ret_body = plain_refusal(r, "send Content-Type: application/json");
        return 415;
    }
    return 0; /* front_handle() answers 404, and 405 with Allow */
}

static void refuse_unknown(struct services *sv, struct http_request *r, const struct identify *q)
{
    plain_refuse(r, error_info(q->err.code)->http_status,
                 q->err.code == ERR_UNAUTHENTICATED
                     ? identity_challenge(sv->config, r, q->had_credential)
                     : STR("Retry-After: 1\r\n"),
                 q->err.text);
}

static void handle_identified(void *arg, struct http_request *r, const struct principal *who,
                              const struct identify *q)
{
    const struct route_found *f = r->route;

    r->who = who;
    if (!who)
        refuse_unknown(arg, r, q);
    else if ((f->route->flags & ROUTE_LOCAL_ADMIN) == ROUTE_LOCAL_ADMIN && who->credential.p)
        plain_refuse(r, 403, STR_NONE, "this is for the user who runs Holdfast, without a key");
    else
        f->route->fn(arg, r, &f->match);
}

void front_handle(void *arg, struct http_request *r)
{
    struct services *sv = arg;
    const struct route_found *f = r->route;
    struct str lines;

    if (api_is_path(r->head->path)) {
        api_handle(sv, r);
        return;
    }
    if (f->route && (f->route->flags & ROUTE_AUTHENTICATED)) {
        identify_request(sv->identity, sv->config, r, STR_NONE, handle_identified, sv);
        return;
    }
    if (f->route)
        f->route->fn(arg, r, &f->match);
    else if (f->status == 405 && cors_is_preflight(sv->config, r, f->allow, &lines))
        http_reply(r, 204, NULL, lines, STR(""));
    else if (f->status == 405)
        plain_refuse(r, 405, arena_printf(r->mem, "Allow: %.*s\r\n", STR_ARG(f->allow)),
                     "this path does not take that method; the Allow header names those it takes");
    else
        refuse_nothing_here(r, f->status);
}
