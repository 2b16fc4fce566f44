/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the object that holds the servers, and rewrites each entry to the members that Holdfast
 * reads (server_fields).  Members that belong to a client only are left out and named in the note.
 * TOML becomes JSON first. */
#include "config/snippet.h"

#include "base/log.h"
#include "config/config_impl.h"
#include "config/toml.h"
#include "json/read.h"
#include "json/write.h"

#define SERVERS_MAX 1000
#define NOTE_NAME_MAX 64 /* bytes */

struct snippet {
    struct arena *mem;
    struct js_doc doc;
    struct snippet_server *servers;
    size_t n;
};

static bool has_text(const struct js_doc *d, const struct js_node *v, const char *name)
{
    return js_type_is(js_get(d, v, str_of(name)), JS_STRING);
}

static bool is_entry(const struct js_doc *d, const struct js_node *v)
{
    static const char *const names[] = {"command", "url", "httpUrl", "serverUrl"};

    for (size_t i = 0; i < countof(names); i++)
        if (has_text(d, v, names[i]))
            return true;
    return false;
}

static const struct js_field *known_field(struct str name)
{
    for (const struct js_field *f = server_fields; f->name; f++)
        if (str_eq(str_of(f->name), name))
            return f->kind == JS_BIND_IGNORED ? NULL : f;
    return NULL;
}

/* Headers of Codex: "http_headers" as they are, "env_http_headers" and "bearer_token_env_var" name
 * variables. */
static void write_headers(struct js_writer *w, const struct js_doc *d, const struct js_node *entry,
                          struct arena *mem)
{
    const struct js_node *plain = js_get(d, entry, STR("http_headers")),
                         *from_env = js_get(d, entry, STR("env_http_headers")), *k;
    struct str token = js_text(d, js_get(d, entry, STR("bearer_token_env_var")), mem);

    if (!js_type_is(plain, JS_OBJECT) && !js_type_is(from_env, JS_OBJECT) && !token.p)
        return;
    js_key(w, STR("headers"));
    js_object(w);
    for (k = js_type_is(plain, JS_OBJECT) ? js_first(d, plain) : NULL; k;
         k = js_next(d, plain, js_value_of(k))) {
        js_key(w, js_text(d, k, mem));
        js_raw_value(w, js_raw(d, js_value_of(k)));
    }
    for (k = js_type_is(from_env, JS_OBJECT) ? js_first(d, from_env) : NULL; k;
         k = js_next(d, from_env, js_value_of(k))) {
        js_key(w, js_text(d, k, mem));
        js_string(w, arena_printf(mem, "${%.*s}", STR_ARG(js_text(d, js_value_of(k), mem))));
    }
    if (token.p) {
        js_key(w, STR("Authorization"));
        js_string(w, arena_printf(mem, "Bearer ${%.*s}", STR_ARG(token)));
    }
    js_object_end(w);
}

static bool is_header_of_codex(struct str key)
{
    return str_eq(key, STR("http_headers")) || str_eq(key, STR("env_http_headers")) ||
           str_eq(key, STR("bearer_token_env_var"));
}

static void add_note(struct buf *note, struct str key)
{
    buf_addz(note, note->n ? ", " : "left out: ");
    log_escape(note, key, NOTE_NAME_MAX);
}

/* One entry in Holdfast's form. */
static struct str entry_json(struct snippet *s, const struct js_node *entry, struct buf *note)
{
    struct js_writer w;
    struct buf out;
    struct str json;

    buf_init_secret(&out, SIZE_MAX);
    js_begin(&w, &out);
    js_object(&w);
    for (const struct js_node *k = js_first(&s->doc, entry); k;
         k = js_next(&s->doc, entry, js_value_of(k))) {
        struct str key = js_text(&s->doc, k, s->mem);
        if (js_value_of(k)->type == JS_NULL || is_header_of_codex(key))
            continue;
        if (str_eq(key, STR("env_vars")))
            key = STR("inherit_env");
        else if (str_eq(key, STR("httpUrl")) || str_eq(key, STR("serverUrl")))
            key = STR("url");
        if (!known_field(key)) {
            add_note(note, key);
            continue;
        }
        js_key(&w, key);
        js_raw_value(&w, js_raw(&s->doc, js_value_of(k)));
    }
    write_headers(&w, &s->doc, entry, s->mem);
    js_object_end(&w);
    json = arena_dup(s->mem, buf_str(&out));
    buf_release(&out);
    return json;
}

/* Names of Holdfast have letters, digits and . _ - only, and no "__". */
static struct str name_for_us(struct str name, struct arena *mem)
{
    struct str copy = arena_dup(mem, str_cut(name, 64));
    char *p = (char *)copy.p;

    for (size_t i = 0; i < copy.n; i++) {
        bool plain = ((p[i] | 32) >= 'a' && (p[i] | 32) <= 'z') || (p[i] >= '0' && p[i] <= '9') ||
                     p[i] == '.' || p[i] == '-' || (p[i] == '_' && (i == 0 || p[i - 1] != '_'));
        if (!plain)
            p[i] = '-';
    }
    return copy;
}

static void add_server(struct snippet *s, struct str name, const struct js_node *entry)
{
    struct snippet_server *server = &s->servers[s->n++];
    struct buf note;

    buf_init(&note, SIZE_MAX);
    *server = (struct snippet_server){.json = entry_json(s, entry, &note)};
    server->name = name.p ? name_for_us(name, s->mem) : STR_NONE;
    if (name.p && !str_eq(server->name, name)) {
        buf_addf(&note, "%swas named \"", note.n ? "; " : "");
        log_escape(&note, name, NOTE_NAME_MAX);
        buf_addc(&note, '"');
    }
    server->note = note.n ? arena_dup(s->mem, buf_str(&note)) : STR_NONE;
    buf_release(&note);
}

/* The object that holds the servers by name; NULL: there is none. */
static const struct js_node *container(const struct js_doc *d)
{
    static const char *const names[] = {"mcpServers", "servers", "mcp_servers", "context_servers"};
    const struct js_node *root = js_root(d), *inner = js_get(d, root, STR("mcp")), *k;

    for (size_t i = 0; i < countof(names); i++) {
        const struct js_node *v = js_get(d, root, str_of(names[i]));
        if (!v && i < 2)
            v = js_get(d, inner, str_of(names[i]));
        if (js_type_is(v, JS_OBJECT))
            return v;
    }
    for (k = js_first(d, root); k; k = js_next(d, root, js_value_of(k)))
        if (!is_entry(d, js_value_of(k)))
            return NULL;
    return js_first(d, root) ? root : NULL;
}

static bool collect(struct snippet *s, struct error *err)
{
    const struct js_node *root = js_root(&s->doc), *in;
    size_t n = 1;

    if (root->type != JS_OBJECT)
        return error_set(err, ERR_CONFIG,
                         "the text must be an object such as {\"mcpServers\": "
                         "{\"NAME\": {\"command\": …}}}");
    in = is_entry(&s->doc, root) ? NULL : container(&s->doc);
    for (const struct js_node *k = in ? js_first(&s->doc, in) : NULL; k;
         k = js_next(&s->doc, in, js_value_of(k)))
        n++;
    if (n > SERVERS_MAX)
        return error_set(err, ERR_CONFIG, "the text has more than %d servers", SERVERS_MAX);
    s->servers = arena_zalloc(s->mem, n * sizeof(*s->servers));
    if (is_entry(&s->doc, root))
        add_server(s, STR_NONE, root);
    for (const struct js_node *k = in ? js_first(&s->doc, in) : NULL; k;
         k = js_next(&s->doc, in, js_value_of(k)))
        if (is_entry(&s->doc, js_value_of(k)))
            add_server(s, js_text(&s->doc, k, s->mem), js_value_of(k));
    return true;
}

static struct str without_bom(struct str t)
{
    return str_starts(t, STR("\xef\xbb\xbf")) ? str_n(t.p + 3, t.n - 3) : t;
}

/* The text as JSON with comments: TOML is converted, and members without braces get braces. */
static bool to_json(struct str text, struct arena *mem, struct str *ret, struct error *err)
{
    struct buf out;
    size_t at = 0;
    bool ok = true;

    while (at < text.n && strchr(" \t\r\n", text.p[at]))
        at++;
    if (at == text.n)
        return error_set(err, ERR_CONFIG,
                         "the text is empty; paste the servers as {\"mcpServers\": {\"NAME\": "
                         "{\"command\": …}}}");
    *ret = text;
    if (text.p[at] == '{' || text.p[at] == '/')
        return true;
    buf_init_secret(&out, SIZE_MAX);
    if (text.p[at] == '"' && memchr(text.p + at, ':', text.n - at) &&
        !memchr(text.p + at, '=', str_find(str_n(text.p + at, text.n - at), '\n'))) {
        buf_addc(&out, '{');
        buf_addstr(&out, text);
        buf_addz(&out, "\n}");
    } else {
        ok = toml_to_json(text, mem, &out, err);
    }
    if (ok)
        *ret = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return ok;
}

bool snippet_read(struct str text, struct arena *mem, struct snippet_server **ret, size_t *ret_n,
                  struct error *err)
{
    struct snippet s = {.mem = mem};
    struct js_fault f;
    struct str json = STR_NONE;

    if (!to_json(without_bom(text), mem, &json, err))
        return false;
    if (!js_parse(json, &js_limits_config, mem, &s.doc, &f))
        return error_set(err, ERR_CONFIG, "line %u, column %u: %s", f.line, f.column, f.reason);
    if (!collect(&s, err))
        return false;
    *ret = s.servers;
    *ret_n = s.n;
    return true;
}
