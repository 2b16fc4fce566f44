/* SPDX-License-Identifier: Apache-2.0 */
/* The route tables, and the checks of a request's head before its body is read: Host, Origin, fetch
 * metadata, route, content type.  front_handle() admits the request to the handler of one row, or
 * answers 404 or 405. */
#include "front/front.h"

#include "front/cors.h"
#include "front/plain.h"
#include "identity/proxy.h"

#include <assert.h>
#include <stdlib.h>

/* Rows for the unix socket only are the last ones.  Other callers get 404 for them, never a 405
 * that lists their methods. */
struct front_table {
    const struct front_format *words; /* NULL: plain paths */
    struct front_route *routes;
    struct http_route *rows; /* of the same order, for the router */
    size_t n, n_public;
};

/* Tables. */

static struct front_table *table_with(struct front *f, const struct front_format *words)
{
    struct front_table **t = &f->tables[words ? 1 : 0];

    if (!*t) {
        *t = xcalloc(1, sizeof(**t));
        (*t)->words = words;
    }
    assert((*t)->words == words);
    return *t;
}

static void insert(struct front_table *t, size_t at, const struct front_route *route, void *arg)
{
    assert(route->fn && route->need->access != ACCESS_UNSAID);
    memmove(&t->routes[at + 1], &t->routes[at], (t->n - at) * sizeof(*t->routes));
    t->routes[at] = *route;
    t->routes[at].arg = arg;
    t->n++;
}

void front_add(struct front *f, const struct front_format *words, const struct front_route *routes,
               size_t n, void *arg)
{
    struct front_table *t = table_with(f, words);

    t->routes = xrealloc(t->routes, (t->n + n) * sizeof(*t->routes));
    for (size_t i = 0; i < n; i++)
        insert(t, routes[i].flags & ROUTE_SOCKET_ONLY ? t->n : t->n_public++, &routes[i], arg);
    t->rows = xrealloc(t->rows, t->n * sizeof(*t->rows));
    for (size_t i = 0; i < t->n; i++)
        t->rows[i] = (struct http_route){.method = t->routes[i].method,
                                         .pattern = t->routes[i].pattern,
                                         .has_head = t->routes[i].flags & ROUTE_HEAD};
    router_prepare(t->rows, t->n);
}

void front_release(struct front *f)
{
    for (size_t i = 0; i < countof(f->tables); i++) {
        struct front_table *t = f->tables[i];
        if (!t)
            continue;
        free(t->routes);
        free(t->rows);
        free(t);
        f->tables[i] = NULL;
    }
}

static const struct front_table *table_of(const struct front *f, const struct http_request *r)
{
    const struct front_table *t = f->tables[1];

    return t && str_starts(r->head->path, str_of(t->words->prefix)) ? t : f->tables[0];
}

/* The gate. */

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
        return arena_printf(r->mem,
                            "%.*s may not connect here: without \"tls\", only the proxies that "
                            "\"trusted_proxies\" names may; if this is your proxy, add it there",
                            STR_ARG(client_address(c, r, r->mem)))
            .p;
    if (!host_is_allowed(c, client_host(c, r)))
        return arena_printf(r->mem,
                            "the Host \"%.*s\" is not one of ours: use a loopback name or that of "
                            "\"public_url\"; a proxy in front must pass the client's Host on "
                            "(nginx: proxy_set_header Host $host;)",
                            STR_ARG(str_cut(client_host(c, r), 100)))
            .p;
    if (origin.p &&
        (http_header_count(r->head, STR("origin")) > 1 || !origin_is_allowed(c, origin)))
        return "this Origin is not allowed; add it to \"origins\" if it should be";
    if (str_eq(site, STR("cross-site")) && !origin.p)
        return "a page of another site may not call this server";
    return NULL;
}

/* Clients send credentials in these headers, in the path and in the query of a profile (?config=).
 * Bodies of REST requests and of commands hold passwords, credentials for other services and new
 * keys. */
static bool may_hold_secrets(const struct http_request *r, const struct front_table *t)
{
    static const struct str names[] = {{"authorization", 13},
                                       {"x-api-key", 9},
                                       {"cookie", 6},
                                       {"proxy-authorization", 19},
                                       {"mcp-config", 10}};

    if (r->is_unix || t->words || str_starts(r->head->path, STR("/mcp/k/")) ||
        (r->head->query.p && str_starts(r->head->path, STR("/mcp/p/"))))
        return true;
    for (size_t i = 0; i < countof(names); i++)
        if (http_header_get(r->head, names[i]).p)
            return true;
    return false;
}

static const struct front_route *find(const struct front_table *t, struct http_request *r)
{
    struct route_found *found = arena_new_of(r->mem, struct route_found);

    found->route = router_find(t->rows, r->is_unix ? t->n : t->n_public, r, &found->match,
                               &found->status, &found->allow);
    r->route = found;
    return found->route ? &t->routes[found->route - t->rows] : NULL;
}

int front_gate(void *arg, struct http_request *r, struct str *ret_body)
{
    struct front *f = arg;
    const struct front_table *t = table_of(f, r);
    const char *wrong = check_names(f->config, r);

    if (may_hold_secrets(r, t))
        arena_wipe_later(r->mem);
    if (t->words)
        r->format_refusal = t->words->format_refusal;
    if (wrong) {
        *ret_body = r->format_refusal ? r->format_refusal(r, 403, wrong) : plain_refusal(r, wrong);
        return 403;
    }
    if (unlikely(f->config->n_origins))
        r->extra = cors_lines(f->config, r);
    const struct front_route *route = find(t, r);
    if (route && (route->flags & ROUTE_JSON_BODY) &&
        (http_header_count(r->head, STR("content-type")) != 1 ||
         !is_json(http_header_get(r->head, STR("content-type"))))) {
        *ret_body = plain_refusal(r, "send Content-Type: application/json");
        return 415;
    }
    return 0; /* front_handle() answers 404, and 405 with Allow */
}

/* The handler. */

static void refuse_path(const struct front_table *t, struct http_request *r)
{
    const struct route_found *found = r->route;
    struct str allow = found->status == 405
                           ? arena_printf(r->mem, "Allow: %.*s\r\n", STR_ARG(found->allow))
                           : STR_NONE;

    if (t->words)
        t->words->refuse_path(r, allow);
    else if (found->status == 405)
        plain_refuse(r, 405, allow,
                     "this path does not take that method; the Allow header names those it takes");
    else
        plain_refuse(r, found->status, STR_NONE, FRONT_NOTHING_HERE);
}

void front_handle(void *arg, struct http_request *r)
{
    struct front *f = arg;
    const struct front_table *t = table_of(f, r);
    const struct route_found *found = r->route;
    struct str lines;

    if (found->route)
        admit_request(f, r, &t->routes[found->route - t->rows]);
    else if (found->status == 405 && cors_is_preflight(f->config, r, found->allow, &lines))
        http_reply(r, 204, NULL, lines, STR(""));
    else
        refuse_path(t, r);
}
