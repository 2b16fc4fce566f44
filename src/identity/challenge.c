/* SPDX-License-Identifier: Apache-2.0 */
/* Tells a client without a credential how to get one (RFC 6750, RFC 9728).  The URLs use public_url
 * if it is configured.  Otherwise they use the host of the request, which the Host check has
 * allowed. */
#include "identity/identity.h"

#include "identity/proxy.h"
#include "json/write.h"

#define WELL_KNOWN "/.well-known/oauth-protected-resource"

/* Without a trailing slash. */
static struct str base_url(const struct config *c, const struct http_request *r)
{
    struct str url = c->public_url;

    while (url.n && url.p[url.n - 1] == '/')
        url.n--;
    if (url.n)
        return url;
    return arena_printf(r->mem, "%s://%.*s", client_is_tls(c, r) ? "https" : "http",
                        STR_ARG(client_host(c, r)));
}

/* The path of the protected resource: /mcp, or a path below it.  Other paths are reported as /mcp.
 * A key in the path is not repeated. */
static struct str resource_path(struct str path)
{
    if (str_starts(path, STR("/mcp/k/")) ||
        (!str_starts(path, STR("/mcp/")) && !str_eq(path, STR("/mcp"))))
        return STR("/mcp");
    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] <= ' ' || path.p[i] == '"' || path.p[i] == '\\' || path.p[i] >= 0x7f)
            return STR("/mcp");
    return path;
}

struct str identity_challenge(const struct config *c, const struct http_request *r,
                              bool had_credential)
{
    struct str base = base_url(c, r), path = resource_path(r->head->path);

    if (r->is_unix)
        return STR("WWW-Authenticate: Bearer realm=\"holdfast\"\r\n");
    return arena_printf(r->mem,
                        "WWW-Authenticate: Bearer realm=\"holdfast\", "
                        "resource_metadata=\"%.*s" WELL_KNOWN "%.*s\"%s\r\n",
                        STR_ARG(base), STR_ARG(path),
                        had_credential ? ", error=\"invalid_token\"" : "");
}

static void write_issuers(const struct config *c, struct js_writer *w)
{
    if (!c->n_issuers)
        return;
    js_key(w, STR("authorization_servers"));
    js_array(w);
    for (size_t i = 0; i < c->n_issuers; i++)
        js_string(w, c->issuers[i].issuer);
    js_array_end(w);
}

struct str identity_metadata(const struct config *c, const struct http_request *r)
{
    struct str path = r->head->path;
    struct js_writer w;
    struct buf out;

    path = str_starts(path, STR(WELL_KNOWN))
               ? str_n(path.p + sizeof(WELL_KNOWN) - 1, path.n - sizeof(WELL_KNOWN) + 1)
               : STR("");
    buf_init(&out, 64 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(
        &w, "resource",
        arena_printf(r->mem, "%.*s%.*s", STR_ARG(base_url(c, r)), STR_ARG(resource_path(path))));
    js_kv_string(&w, "resource_name", STR("Holdfast"));
    write_issuers(c, &w);
    js_key(&w, STR("bearer_methods_supported"));
    js_array(&w);
    js_string(&w, STR("header"));
    js_array_end(&w);
    js_key(&w, STR("scopes_supported"));
    js_array(&w);
    js_array_end(&w);
    js_object_end(&w);
    struct str text = arena_dup(r->mem, buf_str(&out));
    buf_release(&out);
    return text;
}
