/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of tools and the list of servers, from the control socket or read directly. */
#include "cli/inventory.h"

#include "config/config.h"
#include "pins/tool_json.h"

static bool parse(struct str json, struct arena *mem, struct js_doc *ret, struct error *err)
{
    return js_parse(json, &js_limits_upstream, mem, ret, NULL) ||
           error_set(err, ERR_INTERNAL,
                     "the answer of Holdfast is not JSON; is it another version?");
}

struct str inventory_text(const struct js_doc *doc, const struct js_node *object, const char *name,
                          struct arena *mem)
{
    struct str text = js_text(doc, js_get(doc, object, str_of(name)), mem);
    return text.p ? text : STR("");
}

static bool each_configured(const struct inventory *i, inventory_server_fn *fn, void *arg,
                            struct error *err)
{
    const char *file = cli_flag(i->cli, "--config");
    struct config_source source = {.file = str_of(file), .must_exist = file != NULL};
    struct config *config = NULL;
    bool ok = true;

    if (!config_load(&source, &config, err))
        return false;
    for (size_t k = 0; ok && k < config->n_servers; k++)
        ok = fn(arg, arena_dup(i->cli->mem, config->servers[k].name), NULL, NULL, err);
    for (size_t k = 0; ok && k < config->n_builtins; k++)
        ok = fn(arg, arena_dup(i->cli->mem, config->builtins[k].name), NULL, NULL, err);
    config_unref(config);
    return ok;
}

bool inventory_each_server(const struct inventory *i, inventory_server_fn *fn, void *arg,
                           struct error *err)
{
    struct arena *mem = i->cli->mem;
    struct str json = STR_NONE;
    struct js_doc doc;

    if (!i->control)
        return each_configured(i, fn, arg, err);
    if (!control_get(i->control, STR("/control/status"), mem, &json, err) ||
        !parse(json, mem, &doc, err))
        return false;
    const struct js_node *servers = js_get(&doc, js_root(&doc), STR("servers"));
    for (const struct js_node *s = js_first(&doc, servers); s; s = js_next(&doc, servers, s))
        if (!fn(arg, inventory_text(&doc, s, "name", mem), &doc, s, err))
            return false;
    return true;
}

static struct str escaped(struct str s, struct arena *mem)
{
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    for (size_t i = 0; i < s.n; i++)
        buf_addf(&out, "%%%02x", (unsigned char)s.p[i]);
    struct str kept = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return kept;
}

/* One page, in the form of tools_write(). */
static bool tools_page(const struct inventory *i, const struct tool_filter *f, struct str *ret_json,
                       struct error *err)
{
    struct arena *mem = i->cli->mem;
    struct tool_row *rows = NULL;
    struct buf out;
    size_t n = 0;

    if (i->control)
        return control_get(
            i->control,
            arena_printf(mem, "/control/tools?server=%.*s&after_server=%.*s&after=%.*s",
                         STR_ARG(escaped(f->server, mem)), STR_ARG(escaped(f->after_server, mem)),
                         STR_ARG(escaped(f->after, mem))),
            mem, ret_json, err);
    if (i->store && !store_tools_page(i->store, f, STORE_PAGE_MAX, mem, &rows, &n, err))
        return false;
    buf_init(&out, SIZE_MAX / 4);
    tools_write(&out, rows, n, STORE_PAGE_MAX);
    *ret_json = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return true;
}

bool inventory_each_tool(const struct inventory *i, struct str server, inventory_tool_fn *fn,
                         void *arg, struct error *err)
{
    struct tool_filter filter = {.server = server};
    struct arena *mem = i->cli->mem;
    const struct js_node *next;
    struct js_doc doc;
    struct str json = STR_NONE;

    do {
        if (!tools_page(i, &filter, &json, err) || !parse(json, mem, &doc, err))
            return false;
        const struct js_node *tools = js_get(&doc, js_root(&doc), STR("tools"));
        for (const struct js_node *t = js_first(&doc, tools); t; t = js_next(&doc, tools, t))
            if (!fn(arg, &doc, t, err))
                return false;
        next = js_get(&doc, js_root(&doc), STR("next"));
        filter.after_server = inventory_text(&doc, next, "server", mem);
        filter.after = inventory_text(&doc, next, "name", mem);
    } while (next);
    return true;
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
    return look_at(s, inventory_text(doc, tool, s->member, s->mem));
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
