/* SPDX-License-Identifier: Apache-2.0 */
/* CORS for listed origins.  A loopback origin that is not listed may send requests, but its answers
 * have no CORS header: a page on this machine must not read the data that others store here.
 *
 * A preflight carries no credential, so it is answered before authentication, and the answer does
 * not depend on the caller.  It allows the headers in ALLOWED_HEADERS and the requested headers
 * Mcp-Param-*, which mirror parameters of tools and have no fixed list of names. */
#include "front/cors.h"

#include "base/buf.h"

#define ALLOWED_HEADERS                                                                            \
    "Content-Type, Authorization, X-API-Key, MCP-Protocol-Version, Mcp-Method, Mcp-Name, "         \
    "Mcp-Session-Id, Mcp-Client-Id, Mcp-Config, Last-Event-ID, Idempotency-Key, If-Match, "        \
    "If-None-Match, X-Request-Id"
#define MAX_ASKED 2048 /* bytes; a longer Access-Control-Request-Headers is not read */

static bool is_listed(const struct config *c, struct str origin)
{
    for (size_t i = 0; i < c->n_origins; i++)
        if (str_ieq(c->origins[i], origin))
            return true;
    return false;
}

struct str cors_lines(const struct config *c, struct http_request *r)
{
    struct str origin = http_header_get(r->head, STR("origin"));

    if (!origin.p || !is_listed(c, origin))
        return STR_NONE;
    return arena_printf(r->mem,
                        "Access-Control-Allow-Origin: %.*s\r\n"
                        "Access-Control-Expose-Headers: Mcp-Session-Id, WWW-Authenticate, "
                        "Retry-After, ETag, Location, Link, X-Request-Id, RateLimit, "
                        "RateLimit-Policy, Idempotency-Replayed\r\n"
                        "Vary: Origin\r\n",
                        STR_ARG(origin));
}

static bool is_param_header(struct str name)
{
    struct str prefix = STR("mcp-param-");

    if (name.n <= prefix.n || name.n > 128 || !str_ieq(str_n(name.p, prefix.n), prefix))
        return false;
    for (size_t i = prefix.n; i < name.n; i++)
        if (!((name.p[i] >= 'a' && name.p[i] <= 'z') || (name.p[i] >= 'A' && name.p[i] <= 'Z') ||
              (name.p[i] >= '0' && name.p[i] <= '9') || name.p[i] == '-'))
            return false;
    return true;
}

static void add_params(struct buf *lines, struct str asked)
{
    if (asked.n > MAX_ASKED)
        return;
    while (asked.p) {
        struct str name = str_trim(str_split(&asked, ','));
        if (!is_param_header(name))
            continue;
        buf_addz(lines, ", ");
        buf_addstr(lines, name);
    }
}

bool cors_is_preflight(const struct config *c, struct http_request *r, struct str methods,
                       struct str *ret_lines)
{
    struct str origin = http_header_get(r->head, STR("origin"));
    struct str private_network =
        http_header_get(r->head, STR("access-control-request-private-network"));
    struct buf lines;

    if (!str_eq(r->head->method, STR("OPTIONS")) || !origin.p || !is_listed(c, origin) ||
        !http_header_get(r->head, STR("access-control-request-method")).p)
        return false;
    buf_init(&lines, 8192);
    buf_addf(&lines, "Access-Control-Allow-Methods: %.*s\r\n", STR_ARG(methods));
    buf_addz(&lines, "Access-Control-Allow-Headers: " ALLOWED_HEADERS);
    add_params(&lines, http_header_get(r->head, STR("access-control-request-headers")));
    buf_addz(&lines, "\r\nAccess-Control-Max-Age: 600\r\n");
    if (str_eq(private_network, STR("true"))) /* the operator listed this origin */
        buf_addz(&lines, "Access-Control-Allow-Private-Network: true\r\n");
    *ret_lines = arena_dup(r->mem, buf_str(&lines));
    buf_release(&lines);
    return true;
}
