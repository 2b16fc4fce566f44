/* SPDX-License-Identifier: Apache-2.0 */
/* GET /: a small page for a person with a browser, and the paths as JSON for every other client.
 *
 * The page has no script and loads nothing; its style is allowed by its hash.  Callers are not
 * identified here, so with `auth: required` it shows how many servers are in each state, without
 * names, as /readyz does. */
#include "api/plain.h"

#include "api/landing.h"
#include "crypto/base64.h"
#include "crypto/hash.h"
#include "json/write.h"
#include "upstream/upstream.h"

#define PAGE_MAX (1024u * 1024)
#define SERVERS_SHOWN 100

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1d2328;--soft:#5a6670;--line:#d9dfe4;--ground:#fff;"
    "--code:#f3f5f7;--ok:#1a7f37;--bad:#b3261e;--link:#0b5cad}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--soft:#9aa6b0;--line:#333c44;"
    "--ground:#14181c;--code:#1d2329;--ok:#57c26f;--bad:#ff8a80;--link:#7ab8ff}}"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--ground);color:var(--ink);"
    "font:16px/1.5 system-ui,sans-serif}"
    "main{max-width:44rem;margin:0 auto;padding:2rem 1rem}"
    "h1{font-size:1.6rem;margin:0 0 .3rem}h2{font-size:1.05rem;margin:2rem 0 .5rem}"
    "p{margin:.3rem 0}.soft{color:var(--soft)}"
    "ul{list-style:none;margin:0;padding:0}"
    "li{display:flex;flex-wrap:wrap;gap:0 1rem;justify-content:space-between;padding:.35rem 0;"
    "border-bottom:1px solid var(--line);overflow-wrap:anywhere}"
    ".ok{color:var(--ok)}.bad{color:var(--bad)}"
    "pre{background:var(--code);border:1px solid var(--line);border-radius:6px;margin:.3rem 0 "
    ".9rem;"
    "padding:.6rem .7rem;white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.5 "
    "ui-monospace,monospace}"
    "a{color:var(--link)}nav{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem}";

/* An anchor, as SVG. */
#define ICON                                                                                       \
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' "            \
    "fill='none' "                                                                                 \
    "stroke='%230b5cad' stroke-width='1.6'%3E%3Ccircle cx='8' cy='3' r='1.7'/%3E%3Cpath d='M8 "    \
    "5v9M5 7h6M2 9c0 4 4 5 6 5s6-1 6-5'/%3E%3C/svg%3E"

bool landing_wants_html(struct str accept)
{
    while (accept.n) {
        struct str item = str_split(&accept, ','), type = str_trim(str_split(&item, ';'));
        if (str_ieq(type, STR("text/html")) || str_ieq(type, STR("application/xhtml+xml")))
            return true;
    }
    return false;
}

void landing_escape(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '<')
            buf_addz(out, "&lt;");
        else if (c == '>')
            buf_addz(out, "&gt;");
        else if (c == '&')
            buf_addz(out, "&amp;");
        else if (c == '"')
            buf_addz(out, "&quot;");
        else if (c == '\'')
            buf_addz(out, "&#39;");
        else
            buf_addc(out, c);
    }
}

/* The servers. */

struct landing {
    struct buf *out;
    const struct config *config;
    size_t n;
    size_t in_state[HEALTH_DOWN + 1];
};

static const char *state_class(enum health_state state)
{
    return state == HEALTH_HEALTHY ? "ok" : state == HEALTH_UNKNOWN ? "soft" : "bad";
}

static const char *state_word(enum health_state state)
{
    static const char *const words[] = {[HEALTH_UNKNOWN] = "starting",
                                        [HEALTH_HEALTHY] = "up",
                                        [HEALTH_DEGRADED] = "has problems",
                                        [HEALTH_DOWN] = "down"};
    return words[state];
}

static void add_server(void *arg, struct upstream *u)
{
    struct landing *l = arg;
    enum health_state state = upstream_health(u).state;

    l->in_state[state]++;
    if (l->config->auth_required || l->n++ >= SERVERS_SHOWN)
        return;
    buf_addz(l->out, "<li><span>");
    landing_escape(l->out, upstream_name(u));
    buf_addf(l->out, "</span><span class=\"%s\">%s</span></li>\n", state_class(state),
             state_word(state));
}

static void add_servers(struct landing *l, struct upstreams *upstreams)
{
    buf_addz(l->out, "<h2>Servers</h2>\n<ul>\n");
    upstreams_each(upstreams, add_server, l);
    if (l->n > SERVERS_SHOWN)
        buf_addf(l->out, "<li class=\"soft\">and %zu more</li>\n", l->n - SERVERS_SHOWN);
    for (int s = 0; l->config->auth_required && s <= HEALTH_DOWN; s++)
        if (l->in_state[s])
            buf_addf(l->out, "<li><span>%zu</span><span class=\"%s\">%s</span></li>\n",
                     l->in_state[s], state_class(s), state_word(s));
    buf_addz(l->out, "</ul>\n");
}

/* Connecting. */

static void add_line(struct buf *out, const char *client, const char *before, struct str url,
                     const char *after)
{
    buf_addf(out, "<p>%s</p>\n<pre>", client);
    landing_escape(out, str_of(before));
    landing_escape(out, url);
    landing_escape(out, STR("/mcp"));
    landing_escape(out, str_of(after));
    buf_addz(out, "</pre>\n");
}

static void add_connect(struct buf *out, struct str url, bool needs_key)
{
    buf_addz(out, "<h2>Connect</h2>\n");
    if (needs_key)
        buf_addz(out,
                 "<p class=\"soft\">Clients need a key: <code>holdfast key create</code> makes "
                 "one. Send it as <code>Authorization: Bearer KEY</code>.</p>\n");
    add_line(out, "Claude Code", "claude mcp add --transport http holdfast ", url,
             needs_key ? " \\\n  --header \"Authorization: Bearer KEY\"" : "");
    add_line(out, "Codex",
             needs_key ? "codex mcp add holdfast --bearer-token-env-var HOLDFAST_KEY --url "
                       : "codex mcp add holdfast --url ",
             url, "");
    add_line(
        out, "Cursor (~/.cursor/mcp.json)", "{ \"mcpServers\": { \"holdfast\": { \"url\": \"", url,
        needs_key ? "\",\n  \"headers\": { \"Authorization\": \"Bearer KEY\" } } } }" : "\" } } }");
    add_line(out, "VS Code (.vscode/mcp.json)",
             "{ \"servers\": { \"holdfast\": { \"type\": \"http\", \"url\": \"", url,
             needs_key ? "\",\n  \"headers\": { \"Authorization\": \"Bearer KEY\" } } } }"
                       : "\" } } }");
}

/* The answers. */

/* Header lines of the page.  The hash of the style does not change while the process runs. */
static struct str page_headers(struct arena *mem)
{
    uint8_t digest[SHA256_BYTES];
    char hash[64];

    sha256(str_of(style), digest);
    base64_encode(digest, sizeof(digest), hash);
    return arena_printf(mem,
                        "Content-Security-Policy: default-src 'none'; style-src 'sha256-%s'; "
                        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors "
                        "'none'\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: "
                        "no-referrer\r\nCache-Control: no-store\r\nVary: Accept, Origin\r\n",
                        hash);
}

static void send_page(struct api_services *sv, struct http_request *r, const struct config *c)
{
    struct str url = c->public_url.p ? c->public_url : sv->url.p ? sv->url : STR("");
    struct landing l = {.config = c};
    struct buf out;

    while (url.n && url.p[url.n - 1] == '/')
        url.n--;
    buf_init(&out, PAGE_MAX);
    l.out = &out;
    buf_addf(&out,
             "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
             "<title>Holdfast</title>\n<link rel=\"icon\" href=\"%s\">\n<style>%s</style>\n"
             "</head>\n<body>\n<main>\n<h1>Holdfast</h1>\n"
             "<p>The session layer for MCP. AI clients connect here and use all servers behind "
             "it.</p>\n",
             ICON, style);
    if (!c->auth_required)
        buf_addf(&out, "<p class=\"soft\">Version %s</p>\n", HOLDFAST_VERSION);
    add_servers(&l, sv->upstreams);
    add_connect(&out, url, c->auth_required);
    buf_addz(&out, "<h2>More</h2>\n<nav><a href=\"/api/v1/openapi.json\">REST interface (OpenAPI)"
                   "</a> <a href=\"/readyz\">Readiness</a>");
    if (c->metrics)
        buf_addz(&out, " <a href=\"/metrics\">Metrics</a>");
    buf_addz(&out, "</nav>\n<p class=\"soft\">On the machine that runs it: <code>holdfast "
                   "help</code></p>\n</main>\n</body>\n</html>\n");
    http_reply(r, 200, "text/html; charset=utf-8", page_headers(r->mem), buf_str(&out));
    buf_release(&out);
}

static void send_paths(struct http_request *r, const struct config *c)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, 64 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "name", STR("Holdfast"));
    if (!c->auth_required)
        js_kv_string(&w, "version", STR(HOLDFAST_VERSION));
    js_kv_string(&w, "mcp", STR("/mcp"));
    js_kv_string(&w, "server", STR("/mcp/{server}"));
    js_kv_string(&w, "rest", STR("/api/v1"));
    js_kv_string(&w, "openapi", STR("/api/v1/openapi.json"));
    js_kv_string(&w, "ready", STR("/readyz"));
    if (c->metrics)
        js_kv_string(&w, "metrics", STR("/metrics"));
    js_object_end(&w);
    buf_addc(&out, '\n');
    http_reply(r, 200, "application/json", STR("Vary: Accept, Origin\r\n"), buf_str(&out));
    buf_release(&out);
}

void landing_page(void *arg, struct http_request *r, struct caller *caller)
{
    if (landing_wants_html(http_header_get(r->head, STR("accept"))))
        send_page(arg, r, caller->config);
    else
        send_paths(r, caller->config);
}

/* The page names its icon itself; other pages, such as OpenAPI's, have none. */
void landing_favicon(void *arg unused_arg, struct http_request *r, struct caller *caller unused_arg)
{
    http_reply(r, 204, NULL, STR("Cache-Control: max-age=86400\r\n"), STR(""));
}
