/* SPDX-License-Identifier: Apache-2.0 */
/* Catalogs: reading the results of a probe, and finding items.  catalog_write.c writes lists from
 * the same bytes. */
#include "upstream/catalog.h"

#include "base/clock.h"
#include "base/log.h"
#include "json/splice.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

const struct catalog_kind_info catalog_kinds[CATALOG_KINDS] = {
    [CATALOG_TOOLS] = {.method = NAME("tools/list"),
                       .array_key = NAME("tools"),
                       .changed = NAME("notifications/tools/list_changed"),
                       .capability = "tools",
                       .name_key = NAME("name")},
    [CATALOG_PROMPTS] = {.method = NAME("prompts/list"),
                         .array_key = NAME("prompts"),
                         .changed = NAME("notifications/prompts/list_changed"),
                         .capability = "prompts",
                         .name_key = NAME("name")},
    [CATALOG_RESOURCES] = {.method = NAME("resources/list"),
                           .array_key = NAME("resources"),
                           .changed = NAME("notifications/resources/list_changed"),
                           .capability = "resources",
                           .name_key = NAME("uri")},
    [CATALOG_TEMPLATES] = {.method = NAME("resources/templates/list"),
                           .array_key = NAME("resourceTemplates"),
                           .changed = NAME("notifications/resources/list_changed"),
                           .capability = "resources",
                           .name_key = NAME("uriTemplate")},
};

enum catalog_kind catalog_kind_changed(struct str method)
{
    for (enum catalog_kind k = 0; k < CATALOG_KINDS; k++)
        if (k != CATALOG_TEMPLATES && str_eq(method, catalog_kinds[k].changed))
            return k;
    return CATALOG_KINDS;
}

static const char *const known_capabilities[] = {"tools", "prompts", "resources", "completions",
                                                 "logging"};

struct catalog *catalog_new(enum mcp_era era)
{
    struct catalog *c = xcalloc(1, sizeof(*c));
    c->refs = 1;
    c->mem = arena_new(CATALOG_MAX_BYTES);
    c->era = era;
    c->version = mcp_version_latest(era)->name;
    c->capabilities = STR("{}");
    c->server_info = STR_NONE;
    c->filled_ms = clock_mono_ms();
    return c;
}

struct catalog *catalog_ref(struct catalog *c)
{
    c->refs++;
    return c;
}

void catalog_unref(struct catalog *c)
{
    if (!c || --c->refs)
        return;
    for (int kind = 0; kind < CATALOG_KINDS; kind++)
        catalog_clear_list(c, kind);
    catalog_forget_words(c);
    arena_free(c->mem);
    free(c);
}

void catalog_forget_words(struct catalog *c)
{
    if (c->words)
        c->free_words(c->words);
    c->words = NULL;
}

void catalog_clear_list(struct catalog *c, enum catalog_kind kind)
{
    struct catalog_list *list = &c->lists[kind];
    map_release(&list->by_name);
    free(list->items);
    memset(list, 0, sizeof(*list));
    if (kind == CATALOG_TOOLS) {
        map_release(&c->task_tools);
        map_init(&c->task_tools);
    }
}

static bool keep(struct catalog *c, struct str raw, struct str *ret, struct error *err)
{
    char *copy = arena_try_alloc(c->mem, raw.n + 1);
    if (!copy)
        return error_set(err, ERR_UPSTREAM,
                         "the server's lists are larger than 16 MiB; let it list less");
    memcpy(copy, raw.p, raw.n);
    copy[raw.n] = '\0';
    *ret = str_n(copy, raw.n);
    return true;
}

static bool keep_member(struct catalog *c, const struct js_doc *doc, const struct js_node *object,
                        struct str key, enum js_type type, struct str *ret, struct error *err)
{
    const struct js_node *v = js_get(doc, object, key);
    return !js_type_is(v, type) || keep(c, js_raw(doc, v), ret, err);
}

static void take_capabilities(struct catalog *c, const struct js_doc *doc,
                              const struct js_node *capabilities)
{
    const struct js_node *resources = js_get(doc, capabilities, STR("resources"));

    c->offers = c->announces = 0;
    for (unsigned i = 0; i < countof(known_capabilities); i++)
        if (js_type_is(js_get(doc, capabilities, str_of(known_capabilities[i])), JS_OBJECT))
            c->offers |= 1u << i;
    for (unsigned kind = 0; kind < CATALOG_KINDS; kind++) {
        struct str name = str_of(catalog_kinds[kind].capability);
        const struct js_node *capability = js_get(doc, capabilities, name);
        if (js_type_is(js_get(doc, capability, STR("listChanged")), JS_TRUE))
            c->announces |= 1u << kind;
    }
    c->subscribes = js_type_is(js_get(doc, resources, STR("subscribe")), JS_TRUE);
}

static bool refuse_version(struct str version, struct error *err)
{
    char shown[48];

    if (!version.p)
        return error_set(err, ERR_UPSTREAM,
                         "the server named no protocol version; report that to its authors");
    log_escape_cut(shown, sizeof(shown), version);
    return error_set(err, ERR_UPSTREAM,
                     "the server chose protocol version \"%s\", which Holdfast does not speak; try "
                     "a newer release of the server",
                     shown);
}

bool catalog_take_server(struct catalog *c, const struct js_doc *doc, const struct js_node *result,
                         struct error *err)
{
    const struct js_node *info_home = result;
    struct str info_key = STR("serverInfo");

    if (!js_type_is(result, JS_OBJECT))
        return error_set(err, ERR_UPSTREAM, "the server's handshake result is not an object");
    if (!mcp_era(c->era)->is_stateful) {
        info_home = js_get(doc, result, STR("_meta"));
        info_key = STR(MCP_KEY_SERVER_INFO);
    } else {
        struct str version = js_text(doc, js_get(doc, result, STR("protocolVersion")), c->mem);
        const struct mcp_version *known = version.p ? mcp_version_find(version) : NULL;
        if (!known || known->era != c->era)
            return refuse_version(version, err);
        c->version = known->name;
    }
    take_capabilities(c, doc, js_get(doc, result, STR("capabilities")));
    return keep_member(c, doc, result, STR("capabilities"), JS_OBJECT, &c->capabilities, err) &&
           keep_member(c, doc, result, STR("instructions"), JS_STRING, &c->instructions, err) &&
           keep_member(c, doc, info_home, info_key, JS_OBJECT, &c->server_info, err);
}

static struct catalog_item *next_slot(struct catalog_list *list)
{
    if (list->n == list->room) {
        list->room = list->room ? list->room * 2 : 16;
        list->items = xrealloc(list->items, list->room * sizeof(*list->items));
    }
    return &list->items[list->n];
}

static bool has_twice(const struct js_doc *doc, const struct js_node *object, struct str key)
{
    unsigned n = 0;

    for (const struct js_node *k = js_first(doc, object); k; k = js_next(doc, object, k + 1))
        n += js_is(doc, k, key);
    return n > 1;
}

static void read_tool(struct catalog_item *item, const struct js_doc *doc,
                      const struct js_node *tool)
{
    const struct js_node *hints = js_get(doc, tool, STR("annotations"));
    const struct js_node *schema = js_get(doc, tool, STR("inputSchema"));

    item->read_only = js_type_is(js_get(doc, hints, STR("readOnlyHint")), JS_TRUE);
    item->owns_session_id =
        js_get(doc, js_get(doc, schema, STR("properties")), STR("session_id")) != NULL;
    item->mirrors = memmem(item->raw.p, item->raw.n, "x-mcp-header", 12) != NULL;
    item->has_two_names = has_twice(doc, tool, STR("name"));
}

static bool add_item(struct catalog *c, enum catalog_kind kind, struct str name, struct str raw,
                     struct catalog_item **ret, struct error *err)
{
    struct catalog_list *list = &c->lists[kind];
    struct catalog_item *item;

    if (list->n == CATALOG_MAX_ITEMS)
        return error_set(err, ERR_UPSTREAM,
                         "the server's %.*s has more than %d entries; let it list less",
                         STR_ARG(catalog_kinds[kind].method), CATALOG_MAX_ITEMS);
    item = next_slot(list);
    *item = (struct catalog_item){0};
    if (!keep(c, name, &item->name, err) || !keep(c, raw, &item->raw, err))
        return false;
    list->n++;
    /* Positions instead of pointers: the array may move. */
    map_put(&list->by_name, item->name, (void *)(uintptr_t)list->n);
    *ret = item;
    return true;
}

static bool keep_mended(struct catalog *c, enum catalog_kind kind, struct catalog_item *item,
                        const struct js_doc *doc, const struct js_node *node, struct error *err)
{
    struct buf text;
    bool ok = true;

    buf_init(&text, CATALOG_MAX_BYTES);
    if (catalog_mend(kind, doc, node, &text)) {
        c->lists[kind].n_mended++;
        ok = keep(c, buf_str(&text), &item->mended, err);
    }
    buf_release(&text);
    return ok;
}

static bool is_task_support(void *arg unused_arg, struct str raw_key)
{
    return str_eq(raw_key, STR("\"taskSupport\""));
}

static bool is_execution(void *arg unused_arg, struct str raw_key)
{
    return str_eq(raw_key, STR("\"execution\""));
}

static bool keep_without_task(struct catalog *c, const struct js_doc *doc,
                              const struct js_node *tool, struct str *ret, struct error *err)
{
    const struct js_node *execution = js_get(doc, tool, STR("execution"));
    struct js_splice splice;
    struct buf text;

    js_splice_init(&splice, doc);
    if (js_splice_stay(doc, execution, is_task_support, NULL) == 0)
        js_splice_remove(&splice, tool, is_execution, NULL);
    else
        js_splice_remove(&splice, execution, is_task_support, NULL);
    buf_init(&text, CATALOG_MAX_BYTES);
    js_splice_write(&splice, tool, &text);
    bool ok = keep(c, buf_str(&text), ret, err);
    buf_release(&text);
    return ok;
}

static bool has_task_support(const struct js_doc *doc, const struct js_node *tool)
{
    const struct js_node *support =
        js_get(doc, js_get(doc, tool, STR("execution")), STR("taskSupport"));
    return js_is(doc, support, STR("optional")) || js_is(doc, support, STR("forbidden"));
}

/* Holdfast does not announce the tasks of a server, so taskSupport is taken out of its tools. */
static bool keep_untasked(struct catalog *c, struct catalog_item *item, const struct js_doc *doc,
                          const struct js_node *tool, struct error *err)
{
    struct js_doc mended;
    struct arena *mem;
    bool ok = true;

    if (!has_task_support(doc, tool))
        return true;
    if (item->mended.p) {
        mem = arena_new(4 * CATALOG_MAX_BYTES);
        if (js_parse(item->mended, &js_limits_upstream, mem, &mended, NULL) &&
            has_task_support(&mended, js_root(&mended)))
            ok = keep_without_task(c, &mended, js_root(&mended), &item->mended, err);
        arena_free(mem);
    }
    return ok && keep_without_task(c, doc, tool, &item->untasked, err);
}

static bool note_task_tool(struct catalog *c, struct str name, struct error *err)
{
    struct str stored = STR_NONE;

    if (map_get(&c->task_tools, name))
        return true;
    if (c->task_tools.n == CATALOG_MAX_ITEMS)
        return error_set(err, ERR_UPSTREAM,
                         "the server has more than %d tools that run as tasks; let it list less",
                         CATALOG_MAX_ITEMS);
    if (!keep(c, name, &stored, err))
        return false;
    map_put(&c->task_tools, stored, c);
    return true;
}

static bool take_item(struct catalog *c, enum catalog_kind kind, const struct js_doc *doc,
                      const struct js_node *node, struct error *err)
{
    const struct catalog_kind_info *info = &catalog_kinds[kind];
    struct catalog_list *list = &c->lists[kind];
    struct str name = js_text(doc, js_get(doc, node, info->name_key), c->mem);
    struct catalog_item *item = NULL;

    if (!name.n || memchr(name.p, 0, name.n)) {
        list->n_nameless++;
        return true;
    }
    if (map_get(&list->by_name, name))
        return true; /* the first definition of a name wins */
    if (kind == CATALOG_TOOLS &&
        js_is(doc, js_get(doc, js_get(doc, node, STR("execution")), STR("taskSupport")),
              STR("required")))
        return note_task_tool(c, name, err);
    if (!add_item(c, kind, name, js_raw(doc, node), &item, err))
        return false;
    if (kind == CATALOG_TOOLS)
        read_tool(item, doc, node);
    return keep_mended(c, kind, item, doc, node, err) &&
           (kind != CATALOG_TOOLS || keep_untasked(c, item, doc, node, err));
}

bool catalog_take_page(struct catalog *c, enum catalog_kind kind, const struct js_doc *doc,
                       const struct js_node *result, struct str *ret_cursor, struct error *err)
{
    const struct catalog_kind_info *info = &catalog_kinds[kind];
    const struct js_node *array = js_get(doc, result, info->array_key);
    const struct js_node *cursor = js_get(doc, result, STR("nextCursor"));
    struct str stored = STR_NONE;

    if (!js_type_is(array, JS_ARRAY))
        return error_set(err, ERR_UPSTREAM, "the server's %.*s result has no array \"%.*s\"",
                         STR_ARG(info->method), STR_ARG(info->array_key));
    for (const struct js_node *t = js_first(doc, array); t; t = js_next(doc, array, t))
        if (!take_item(c, kind, doc, t, err))
            return false;
    if (js_type_is(cursor, JS_STRING) && !keep(c, js_raw(doc, cursor), &stored, err))
        return false;
    *ret_cursor = stored;
    return true;
}

bool catalog_copy_list(struct catalog *c, const struct catalog *from, enum catalog_kind kind,
                       struct error *err)
{
    const struct catalog_list *list = &from->lists[kind];

    for (size_t i = 0; i < list->n; i++) {
        const struct catalog_item *old = &list->items[i];
        struct catalog_item *item = NULL;
        if (!add_item(c, kind, old->name, old->raw, &item, err))
            return false;
        if (old->mended.p && !keep(c, old->mended, &item->mended, err))
            return false;
        if (old->untasked.p && !keep(c, old->untasked, &item->untasked, err))
            return false;
        item->read_only = old->read_only;
        item->owns_session_id = old->owns_session_id;
        item->mirrors = old->mirrors;
        item->has_two_names = old->has_two_names;
    }
    c->lists[kind].n_mended = list->n_mended;
    c->lists[kind].n_nameless = list->n_nameless;
    struct str name;
    void *ignored;
    for (size_t at = 0; kind == CATALOG_TOOLS && map_next(&from->task_tools, &at, &name, &ignored);)
        if (!note_task_tool(c, name, err))
            return false;
    return true;
}

void catalog_note_fault(struct catalog *c, const char *why)
{
    snprintf(c->fault, sizeof(c->fault), "%s", why); /* a member, as the arena may be full */
    c->tools_fault = str_of(c->fault);
}

void catalog_filter(struct catalog *c, enum catalog_kind kind,
                    bool (*stays)(void *arg, const struct catalog_item *item), void *arg)
{
    struct catalog_list *list = &c->lists[kind];
    size_t n = list->n;

    map_release(&list->by_name);
    map_init(&list->by_name);
    list->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (!stays(arg, &list->items[i]))
            continue;
        list->items[list->n++] = list->items[i];
        map_put(&list->by_name, list->items[list->n - 1].name, (void *)(uintptr_t)list->n);
    }
}

void catalog_each_note(const struct catalog *c, void (*say)(void *arg, const char *note), void *arg)
{
    char note[256];

    if (c->tools_fault.p)
        say(arg, c->tools_fault.p);
    if (c->task_tools.n) {
        snprintf(
            note, sizeof(note),
            "%zu of its tools run only as tasks, which Holdfast does not carry, and are left out",
            (size_t)c->task_tools.n);
        say(arg, note);
    }
    for (enum catalog_kind kind = 0; kind < CATALOG_KINDS; kind++) {
        const struct catalog_list *list = &c->lists[kind];
        const struct catalog_kind_info *info = &catalog_kinds[kind];
        if (list->n_nameless) {
            snprintf(note, sizeof(note), "%zu of its %.*s have no usable \"%.*s\" and are left out",
                     list->n_nameless, STR_ARG(info->array_key), STR_ARG(info->name_key));
            say(arg, note);
        }
        if (list->n_mended) {
            snprintf(note, sizeof(note),
                     "%zu of its %.*s break the MCP schema; /mcp and profiles show them mended",
                     list->n_mended, STR_ARG(info->array_key));
            say(arg, note);
        }
    }
}

void catalog_hold(struct catalog *c, struct catalog_item *tool, struct str definition)
{
    struct error full;

    if (!keep(c, definition, &tool->held, &full))
        tool->held = STR("{\"name\":\"held\",\"inputSchema\":{\"type\":\"object\"}}");
}

struct str catalog_shown(const struct catalog_item *item)
{
    return item->held.p ? item->held : item->untasked.p ? item->untasked : item->raw;
}

const struct catalog_item *catalog_find(const struct catalog *c, enum catalog_kind kind,
                                        struct str name)
{
    const struct catalog_list *list = &c->lists[kind];
    uintptr_t position = (uintptr_t)map_get(&list->by_name, name);
    return position ? &list->items[position - 1] : NULL;
}

const struct catalog_item *catalog_tool(const struct catalog *c, struct str name)
{
    return catalog_find(c, CATALOG_TOOLS, name);
}

bool catalog_needs_task(const struct catalog *c, struct str tool)
{
    return c->task_tools.n && map_get(&c->task_tools, tool);
}

bool catalog_offers(const struct catalog *c, const char *capability)
{
    for (unsigned i = 0; i < countof(known_capabilities); i++)
        if (strcmp(known_capabilities[i], capability) == 0)
            return c->offers & 1u << i;
    return false;
}

bool catalog_announces(const struct catalog *c, enum catalog_kind kind)
{
    return c->announces & 1u << kind;
}

bool catalog_subscribes(const struct catalog *c)
{
    return c->subscribes;
}
