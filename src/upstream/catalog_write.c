/* SPDX-License-Identifier: Apache-2.0 */
/* Lists written from the catalog's bytes.  An item is changed in at most two places: its name gets
 * a prefix, and a tool's schema gets the optional property session_id.  Every other byte is as the
 * server sent it. */
#include "upstream/catalog.h"

#include "json/splice.h"

#define HANDLE_PROPERTY                                                                            \
    "\"session_id\":{\"type\":\"string\",\"description\":\"The [session: ...] value from an "      \
    "earlier result of this server, to go on with the same state. Leave it out to start afresh; "  \
    "state is kept for 30 minutes without use.\"}"

#define SHORT_HANDLE_PROPERTY                                                                      \
    "\"session_id\":{\"type\":\"string\",\"description\":\"from [session: ...] of a result\"}"

static void splice_handle(struct js_splice *splice, const struct js_doc *doc, bool is_short)
{
    struct str property = is_short ? STR(SHORT_HANDLE_PROPERTY) : STR(HANDLE_PROPERTY);
    struct str alone = is_short ? STR("\"properties\":{" SHORT_HANDLE_PROPERTY "}")
                                : STR("\"properties\":{" HANDLE_PROPERTY "}");
    const struct js_node *schema = js_get(doc, js_root(doc), STR("inputSchema"));
    const struct js_node *properties = js_get(doc, schema, STR("properties"));

    if (js_type_is(properties, JS_OBJECT))
        js_splice_member(splice, properties, property);
    else if (js_type_is(schema, JS_OBJECT) && !properties)
        js_splice_member(splice, schema, alone);
}

/* `prefix` goes right behind the opening quote, so escapes in the name stay as they are. */
static void splice_prefix(struct js_splice *splice, const struct js_doc *doc, struct str prefix,
                          struct arena *mem)
{
    const struct js_node *name = js_get(doc, js_root(doc), STR("name"));
    struct str raw = js_raw(doc, name);
    struct buf text;

    buf_init(&text, CATALOG_MAX_BYTES);
    buf_addc(&text, '"');
    buf_addstr(&text, prefix);
    buf_add(&text, raw.p + 1, raw.n - 1);
    js_splice_replace(splice, name, arena_dup(mem, buf_str(&text)));
    buf_release(&text);
}

static void write_changed(struct str definition, struct str prefix, bool with_handle, bool is_short,
                          struct buf *out)
{
    struct arena *mem = arena_new(CATALOG_MAX_BYTES * 4);
    struct js_splice splice;
    struct js_doc doc;

    if (!js_parse(definition, &js_limits_upstream, mem, &doc, NULL))
        die("a definition that parsed once does not parse again");
    js_splice_init(&splice, &doc);
    if (prefix.n)
        splice_prefix(&splice, &doc, prefix, mem);
    if (with_handle)
        splice_handle(&splice, &doc, is_short);
    js_splice_write(&splice, js_root(&doc), out);
    arena_free(mem);
}

size_t catalog_write_items(const struct catalog *c, enum catalog_kind kind,
                           const struct catalog_writing *w, struct buf *out)
{
    const struct catalog_list *list = &c->lists[kind];
    bool named = kind == CATALOG_TOOLS || kind == CATALOG_PROMPTS;
    struct str prefix = named ? w->prefix : STR_NONE;
    size_t written = 0;

    for (size_t i = w->from; i < list->n && written < w->max; i++, written++) {
        const struct catalog_item *item = &list->items[i];
        struct str definition =
            w->mended && item->mended.p && !item->held.p ? item->mended : catalog_shown(item);
        bool with_handle = w->with_handles && kind == CATALOG_TOOLS && !item->owns_session_id;
        if (written)
            buf_addc(out, ',');
        if (prefix.n || with_handle)
            write_changed(definition, prefix, with_handle, w->short_handles, out);
        else
            buf_addstr(out, definition);
    }
    return written;
}
