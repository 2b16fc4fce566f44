/* SPDX-License-Identifier: Apache-2.0 */
/* Both documents are walked together; the reader bounds the depth of the recursion.  Members are
 * found through maps: peers choose both documents, which may have thousands of members. */
#include "json/merge.h"

#include "base/map.h"

struct merge {
    struct js_doc before, change;
    enum merge_how how;
    struct arena *mem;
    struct buf *out;
};

static bool put(struct merge *m, struct str text)
{
    return buf_try_add(m->out, text.p, text.n);
}

static bool separate(struct merge *m, bool *first)
{
    bool was_first = *first;
    *first = false;
    return was_first || put(m, STR(","));
}

static bool merge_value(struct merge *m, const struct js_node *before,
                        const struct js_node *change);

/* Indexes the members of an object by name; the values are nodes. */
static void index_members(struct merge *m, const struct js_doc *doc, const struct js_node *object,
                          struct map *ret)
{
    const struct js_node *key, *value;

    map_init(ret);
    for (key = object ? js_first(doc, object) : NULL; key; key = js_next(doc, object, value)) {
        value = js_value_of(key);
        map_put(ret, js_text(doc, key, m->mem), (void *)value);
    }
}

/* Adds the members that only the change has.  RFC 7396 §2: if the target is not an object, the
 * patch is applied to an empty object, so that its nulls are dropped. */
static bool add_members(struct merge *m, const struct map *before, const struct js_node *change,
                        bool *first)
{
    const struct js_node *key, *value;

    for (key = js_first(&m->change, change); key; key = js_next(&m->change, change, value)) {
        value = js_value_of(key);
        struct str name = js_text(&m->change, key, m->mem);
        if (map_get(before, name) || (m->how == MERGE_PATCH && value->type == JS_NULL))
            continue;
        if (!separate(m, first) || !put(m, js_raw(&m->change, key)) || !put(m, STR(":")) ||
            !merge_value(m, NULL, value))
            return false;
    }
    return true;
}

/* Writes the existing members, each with its change applied. */
static bool keep_members(struct merge *m, const struct js_node *before, const struct map *change,
                         bool *first)
{
    const struct js_node *key, *value = NULL;

    for (key = before ? js_first(&m->before, before) : NULL; key;
         key = js_next(&m->before, before, value)) {
        value = js_value_of(key);
        const struct js_node *patch = map_get(change, js_text(&m->before, key, m->mem));
        if (patch && m->how == MERGE_PATCH && patch->type == JS_NULL)
            continue;
        if (!separate(m, first) || !put(m, js_raw(&m->before, key)) || !put(m, STR(":")))
            return false;
        if (patch ? !merge_value(m, value, patch) : !put(m, js_raw(&m->before, value)))
            return false;
    }
    return true;
}

static bool merge_objects(struct merge *m, const struct js_node *before,
                          const struct js_node *change)
{
    struct map old, new;
    bool first = true;

    index_members(m, &m->before, before, &old);
    index_members(m, &m->change, change, &new);
    bool ok = put(m, STR("{")) && keep_members(m, before, &new, &first) &&
              add_members(m, &old, change, &first) && put(m, STR("}"));
    map_release(&old);
    map_release(&new);
    return ok;
}

static bool join_arrays(struct merge *m, const struct js_node *before, const struct js_node *change)
{
    struct str a = js_raw(&m->before, before), b = js_raw(&m->change, change);

    if (!js_first(&m->before, before))
        return put(m, b);
    if (!js_first(&m->change, change))
        return put(m, a);
    return put(m, str_n(a.p, a.n - 1)) && put(m, STR(",")) && put(m, str_n(b.p + 1, b.n - 1));
}

static bool merge_value(struct merge *m, const struct js_node *before, const struct js_node *change)
{
    if (change->type == JS_OBJECT)
        return merge_objects(m, js_type_is(before, JS_OBJECT) ? before : NULL, change);
    if (m->how == MERGE_APPEND && change->type == JS_ARRAY && js_type_is(before, JS_ARRAY))
        return join_arrays(m, before, change);
    return put(m, js_raw(&m->change, change));
}

bool json_merge(struct str document, struct str change, enum merge_how how, struct arena *mem,
                struct buf *out)
{
    struct merge m = {.how = how, .mem = mem, .out = out};

    return js_parse(document, &js_limits_request, mem, &m.before, NULL) &&
           js_parse(change, &js_limits_request, mem, &m.change, NULL) &&
           merge_value(&m, js_root(&m.before), js_root(&m.change));
}
