/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the pages of servers and tools. */
#include "cli/inventory.h"

/* Calls `fn` for each object of the array `rows` of each page. */
static bool each_row(const struct inventory *i, struct str path, const char *rows,
                     inventory_tool_fn *fn, void *arg, struct error *err)
{
    struct arena *mem = i->cli->mem;
    struct str cursor = STR("");
    struct js_doc doc;
    struct str json = STR_NONE;

    do {
        if (!control_get(i->from->control,
                         arena_printf(mem, "%.*s?limit=%d%s%.*s", STR_ARG(path), STORE_PAGE_MAX,
                                      cursor.n ? "&cursor=" : "", STR_ARG(cursor)),
                         mem, &json, err) ||
            !source_parse(json, mem, &doc, err))
            return false;
        const struct js_node *all = js_get(&doc, js_root(&doc), str_of(rows));
        for (const struct js_node *r = js_first(&doc, all); r; r = js_next(&doc, all, r))
            if (!fn(arg, &doc, r, err))
                return false;
        cursor = source_text(&doc, js_root(&doc), "next_cursor", mem);
    } while (cursor.n);
    return true;
}

struct each_server {
    struct arena *mem;
    inventory_server_fn *fn;
    void *arg;
};

static bool on_server(void *arg, const struct js_doc *doc, const struct js_node *server,
                      struct error *err)
{
    const struct each_server *e = arg;
    return e->fn(e->arg, source_text(doc, server, "name", e->mem), doc, server, err);
}

bool inventory_each_server(const struct inventory *i, inventory_server_fn *fn, void *arg,
                           struct error *err)
{
    struct each_server each = {i->cli->mem, fn, arg};

    if (i->from->local && i->from->config_err.code != ERR_NONE) {
        *err = i->from->config_err;
        return false;
    }
    return each_row(i, STR("/api/v1/servers"), "servers", on_server, &each, err);
}

bool inventory_each_tool(const struct inventory *i, struct str server, inventory_tool_fn *fn,
                         void *arg, struct error *err)
{
    struct str path = STR("/api/v1/tools");

    if (server.p)
        path = arena_printf(i->cli->mem, "/api/v1/servers/%.*s/tools",
                            STR_ARG(source_encoded(server, i->cli->mem)));
    return each_row(i, path, "tools", fn, arg, err);
}

/* Names. */

struct search {
    struct arena *mem;
    struct str name;
    const char *member; /* of a tool: "server" or "name" */
    struct cli_nearest near;
    bool found;
};

/* * stands for any rest. */
static bool fits(struct str pattern, struct str name)
{
    size_t star = str_find(pattern, '*');

    return star == pattern.n ? str_eq(pattern, name) : str_starts(name, str_n(pattern.p, star));
}

static bool look_at(struct search *s, struct str name)
{
    s->found = s->found || fits(s->name, name);
    cli_nearest_offer(&s->near, arena_dup(s->mem, name).p);
    return true;
}

static bool look_at_server(void *arg, struct str name, const struct js_doc *doc unused_arg,
                           const struct js_node *server unused_arg, struct error *err unused_arg)
{
    return look_at(arg, name);
}

static bool look_at_tool(void *arg, const struct js_doc *doc, const struct js_node *tool,
                         struct error *err unused_arg)
{
    struct search *s = arg;
    return look_at(s, source_text(doc, tool, s->member, s->mem));
}

static bool unknown(const struct search *s, const char *what, const char *list, struct error *err)
{
    if (s->near.name)
        return error_set(err, ERR_NOT_FOUND,
                         "there is no %s \"%.*s\", neither configured nor on record; did you mean "
                         "\"%s\"?",
                         what, (int)(s->name.n < 100 ? s->name.n : 100), s->name.p, s->near.name);
    return error_set(err, ERR_NOT_FOUND,
                     "there is no %s \"%.*s\", neither configured nor on record; see `%s`", what,
                     (int)(s->name.n < 100 ? s->name.n : 100), s->name.p, list);
}

bool inventory_fits_server(const struct inventory *i, struct str pattern, bool *ret_fits,
                           const char **ret_near, struct error *err)
{
    struct search s = {
        .mem = i->cli->mem, .name = pattern, .member = "server", .near = cli_nearest_to(pattern)};

    if (!inventory_each_server(i, look_at_server, &s, err) ||
        (!s.found && !inventory_each_tool(i, STR_NONE, look_at_tool, &s, err)))
        return false;
    *ret_fits = s.found;
    *ret_near = s.near.name;
    return true;
}

bool inventory_has_server(const struct inventory *i, struct str name, struct error *err)
{
    struct search s = {.name = name};

    if (!inventory_fits_server(i, name, &s.found, &s.near.name, err))
        return false;
    return s.found || unknown(&s, "server", "holdfast servers list", err);
}

bool inventory_has_tool(const struct inventory *i, struct str name, struct error *err)
{
    struct search s = {
        .mem = i->cli->mem, .name = name, .member = "name", .near = cli_nearest_to(name)};

    if (!inventory_each_tool(i, STR_NONE, look_at_tool, &s, err))
        return false;
    return s.found || unknown(&s, "tool", "holdfast servers show NAME", err);
}
