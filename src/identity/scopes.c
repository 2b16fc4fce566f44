/* SPDX-License-Identifier: Apache-2.0 */
/* Parses, writes and checks scopes. */
#include "identity/scopes.h"

#include "config/config.h"
#include "config/limits.h"
#include "json/bind.h"
#include "json/write.h"

#include <stddef.h>

#define LIST(member)                                                                               \
    .kind = JS_BIND_STRINGS, .offset = offsetof(struct scopes, member),                            \
    .count_offset = offsetof(struct scopes, n_##member), .max_items = SCOPES_MAX_ITEMS

static bool read_limits(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, void *place, struct error *err)
{
    struct limits *l = arena_new_of(b->mem, struct limits);

    *(const struct limits **)place = l;
    return js_bind(b, v, f->fields, l, err);
}

static const struct js_field fields[] = {
    {.name = "servers", LIST(servers)},
    {.name = "tools", LIST(tools)},
    {.name = "folders", LIST(folders)},
    {.name = "review", .kind = JS_BIND_BOOL, .offset = offsetof(struct scopes, review)},
    {.name = "read_only", .kind = JS_BIND_BOOL, .offset = offsetof(struct scopes, read_only)},
    {.name = "limits",
     .kind = JS_BIND_CUSTOM,
     .read = read_limits,
     .fields = limits_fields,
     .offset = offsetof(struct scopes, limits)},
    {0},
};

static bool check_list(const char *what, const struct str *items, size_t n, struct error *err)
{
    if (n > SCOPES_MAX_ITEMS)
        return error_set(err, ERR_BAD_INPUT, "a key has at most %d %s; use a pattern with *",
                         SCOPES_MAX_ITEMS, what);
    for (size_t i = 0; i < n; i++)
        if (!items[i].n || items[i].n > SCOPES_MAX_NAME || memchr(items[i].p, '\0', items[i].n))
            return error_set(err, ERR_BAD_INPUT, "one of the %s has no name, or one over %d bytes",
                             what, SCOPES_MAX_NAME);
    return true;
}

bool scopes_check(const struct scopes *s, struct error *err)
{
    return check_list("servers", s->servers, s->n_servers, err) &&
           check_list("tools", s->tools, s->n_tools, err) &&
           check_list("folders", s->folders, s->n_folders, err);
}

bool scopes_parse(struct str json, struct arena *mem, const struct scopes **ret, struct error *err)
{
    struct scopes *s;
    struct js_doc doc;

    if (!json.p) {
        *ret = NULL;
        return true;
    }
    if (json.n > SCOPES_MAX_TEXT || !js_parse(json, &js_limits_request, mem, &doc, NULL) ||
        !js_type_is(js_root(&doc), JS_OBJECT))
        return error_set(err, ERR_BAD_INPUT, "the scopes of this key are not a JSON object");
    s = arena_new_of(mem, struct scopes);
    struct js_binding b = {.doc = &doc, .mem = mem, .code = ERR_BAD_INPUT};
    if (!js_bind(&b, js_root(&doc), fields, s, err) || !scopes_check(s, err))
        return false;
    *ret = s;
    return true;
}

bool scopes_narrow(const struct scopes *s)
{
    return s && (s->n_servers || s->n_tools || s->n_folders || s->read_only);
}

static void write_list(struct js_writer *w, const char *name, const struct str *items, size_t n)
{
    if (!n)
        return;
    js_key(w, str_of(name));
    js_array(w);
    for (size_t i = 0; i < n; i++)
        js_string(w, items[i]);
    js_array_end(w);
}

struct str scopes_write(const struct scopes *s, struct arena *mem)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, 8u * SCOPES_MAX_TEXT);
    js_begin(&w, &out);
    js_object(&w);
    write_list(&w, "servers", s->servers, s->n_servers);
    write_list(&w, "tools", s->tools, s->n_tools);
    write_list(&w, "folders", s->folders, s->n_folders);
    js_kv_bool(&w, "review", s->review);
    js_kv_bool(&w, "read_only", s->read_only);
    if (s->limits && !limits_are_unset(s->limits)) {
        js_key(&w, STR("limits"));
        js_object(&w);
        limits_write(&w, s->limits);
        js_object_end(&w);
    }
    js_object_end(&w);
    struct str text = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return text;
}

/* Takes at most time proportional to pattern length times name length. */
bool scope_matches(struct str pattern, struct str name)
{
    return config_pattern_fits(pattern, name);
}

static bool is_among(const struct str *patterns, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (scope_matches(patterns[i], name))
            return true;
    return n == 0;
}

bool scope_reaches(struct str pattern, struct str server)
{
    return config_pattern_reaches(pattern, server);
}

/* A key that is limited to tools may use the servers of these tools, but no prompts or resources of
 * other servers. */
bool principal_may_use_server(const struct principal *who, struct str server)
{
    const struct scopes *s = who->scopes;

    if (!s)
        return true;
    if (s->n_servers || !s->n_tools)
        return is_among(s->servers, s->n_servers, server);
    for (size_t i = 0; i < s->n_tools; i++)
        if (scope_reaches(s->tools[i], server))
            return true;
    return false;
}

bool principal_may_use_tool(const struct principal *who, struct str server, struct str tool)
{
    char name[2 * SCOPES_MAX_NAME];
    size_t n = server.n + 2 + tool.n;

    if (!principal_may_use_server(who, server))
        return false;
    if (!principal_limits_tools(who))
        return true;
    if (n > sizeof(name))
        return false; /* longer than any valid pattern */
    memcpy(name, server.p, server.n);
    memcpy(name + server.n, "__", 2);
    if (tool.n)
        memcpy(name + server.n + 2, tool.p, tool.n);
    return is_among(who->scopes->tools, who->scopes->n_tools, str_n(name, n));
}

bool principal_may_use_folder(const struct principal *who, struct str folder)
{
    return !who->scopes || is_among(who->scopes->folders, who->scopes->n_folders, folder);
}

bool principal_limits_tools(const struct principal *who)
{
    return who->scopes && who->scopes->n_tools;
}
