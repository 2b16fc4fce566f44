/* SPDX-License-Identifier: Apache-2.0 */
/* Catalogs: reading what a probe got, and writing lists back out of the same bytes. */
#include "upstream/catalog.h"

#include "base/clock.h"
#include "json/splice.h"

#include <stdlib.h>

#define CATALOG_MAX_BYTES (16u * 1024 * 1024)
#define CATALOG_MAX_TOOLS 10000

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
    map_init(&c->by_name);
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
    map_release(&c->by_name);
    arena_free(c->mem);
    free(c->tools);
    free(c);
}

static bool keep(struct catalog *c, struct str raw, struct str *ret, struct error *err)
{
    char *copy = arena_try_alloc(c->mem, raw.n + 1);
    if (!copy)
        return error_set(err, ERR_TOO_LARGE, "the server's lists are larger than 16 MiB");
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

bool catalog_take_server(struct catalog *c, const struct js_doc *doc, const struct js_node *result,
                         struct error *err)
{
    const struct js_node *info_home = result;
    struct str info_key = STR("serverInfo");

    if (!js_type_is(result, JS_OBJECT))
        return error_set(err, ERR_UPSTREAM, "the server's handshake result is not an object");
    if (c->era == MCP_MODERN) {
        info_home = js_get(doc, result, STR("_meta"));
        info_key = STR(MCP_KEY_SERVER_INFO);
    } else {
        struct str version = js_text(doc, js_get(doc, result, STR("protocolVersion")), c->mem);
        const struct mcp_version *known = version.p ? mcp_version_find(version) : NULL;
        if (!known || known->era != MCP_LEGACY)
            return error_set(
                err, ERR_UPSTREAM,
                "the server chose protocol version \"%.*s\", which Holdfast does not speak",
                STR_ARG(version));
        c->version = known->name;
    }
    c->offers_tools =
        js_type_is(js_get(doc, js_get(doc, result, STR("capabilities")), STR("tools")), JS_OBJECT);
    return keep_member(c, doc, result, STR("capabilities"), JS_OBJECT, &c->capabilities, err) &&
           keep_member(c, doc, result, STR("instructions"), JS_STRING, &c->instructions, err) &&
           keep_member(c, doc, info_home, info_key, JS_OBJECT, &c->server_info, err);
}

static struct catalog_tool *next_slot(struct catalog *c)
{
    if (c->n_tools == c->room) {
        c->room = c->room ? c->room * 2 : 16;
        c->tools = xrealloc(c->tools, c->room * sizeof(*c->tools));
    }
    return &c->tools[c->n_tools];
}

static bool take_tool(struct catalog *c, const struct js_doc *doc, const struct js_node *tool,
                      struct error *err)
{
    struct str name = js_text(doc, js_get(doc, tool, STR("name")), c->mem);
    struct catalog_tool *slot;

    if (!name.n || memchr(name.p, 0, name.n))
        return error_set(err, ERR_UPSTREAM, "the server lists a tool without a usable name");
    if (map_get(&c->by_name, name))
        return true; /* the first definition of a name stands */
    if (c->n_tools == CATALOG_MAX_TOOLS)
        return error_set(err, ERR_TOO_LARGE, "the server lists more than %d tools",
                         CATALOG_MAX_TOOLS);
    slot = next_slot(c);
    *slot = (struct catalog_tool){.name = arena_dup(c->mem, name)};
    if (!keep(c, js_raw(doc, tool), &slot->raw, err))
        return false;
    const struct js_node *hints = js_get(doc, tool, STR("annotations"));
    const struct js_node *schema = js_get(doc, tool, STR("inputSchema"));
    slot->read_only = js_type_is(js_get(doc, hints, STR("readOnlyHint")), JS_TRUE);
    slot->owns_session_id =
        js_get(doc, js_get(doc, schema, STR("properties")), STR("session_id")) != NULL;
    slot->mirrors = memmem(slot->raw.p, slot->raw.n, "x-mcp-header", 12) != NULL;
    c->n_tools++;
    /* The index stands for "seen"; positions are looked up by walking, as the array may move. */
    map_put(&c->by_name, slot->name, (void *)(uintptr_t)c->n_tools);
    return true;
}

bool catalog_take_tools(struct catalog *c, const struct js_doc *doc, const struct js_node *result,
                        struct str *ret_cursor, struct error *err)
{
    const struct js_node *tools = js_get(doc, result, STR("tools"));
    const struct js_node *cursor = js_get(doc, result, STR("nextCursor"));

    if (!js_type_is(tools, JS_ARRAY))
        return error_set(err, ERR_UPSTREAM,
                         "the server's tools/list result has no array \"tools\"");
    for (const struct js_node *t = js_first(doc, tools); t; t = js_next(doc, tools, t))
        if (!take_tool(c, doc, t, err))
            return false;
    *ret_cursor = STR_NONE;
    return !js_type_is(cursor, JS_STRING) || keep(c, js_raw(doc, cursor), ret_cursor, err);
}

const struct catalog_tool *catalog_tool(const struct catalog *c, struct str name)
{
    uintptr_t index = (uintptr_t)map_get(&c->by_name, name);
    return index ? &c->tools[index - 1] : NULL;
}

bool catalog_offers(const struct catalog *c, const char *capability)
{
    return strcmp(capability, "tools") == 0 && c->offers_tools;
}

#define HANDLE_PROPERTY                                                                            \
    "\"session_id\":{\"type\":\"string\",\"description\":\"The [session: ...] value from an "      \
    "earlier result of this server, to go on with the same state. Leave it out to start afresh; "  \
    "a session ends after 24 hours without use.\"}"

/* Adds the optional session_id property to a tool's input schema, every other byte untouched. */
static void write_with_handle(const struct catalog_tool *tool, struct buf *out)
{
    struct arena *mem = arena_new(CATALOG_MAX_BYTES);
    struct js_doc doc;

    if (!js_parse(tool->raw, &js_limits_upstream, mem, &doc, NULL))
        die("a tool definition that parsed once does not parse again");
    const struct js_node *schema = js_get(&doc, js_root(&doc), STR("inputSchema"));
    const struct js_node *properties = js_get(&doc, schema, STR("properties"));
    struct js_splice splice;
    js_splice_init(&splice, &doc);
    if (js_type_is(properties, JS_OBJECT))
        js_splice_member(&splice, properties, STR(HANDLE_PROPERTY));
    else if (js_type_is(schema, JS_OBJECT) && !properties)
        js_splice_member(&splice, schema, STR("\"properties\":{" HANDLE_PROPERTY "}"));
    js_splice_write(&splice, js_root(&doc), out);
    arena_free(mem);
}

void catalog_write_tools(const struct catalog *c, bool with_handles, struct buf *out)
{
    buf_addc(out, '[');
    for (size_t i = 0; i < c->n_tools; i++) {
        if (i)
            buf_addc(out, ',');
        if (with_handles && !c->tools[i].owns_session_id)
            write_with_handle(&c->tools[i], out);
        else
            buf_addstr(out, c->tools[i].raw);
    }
    buf_addc(out, ']');
}
