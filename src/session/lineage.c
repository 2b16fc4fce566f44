/* SPDX-License-Identifier: Apache-2.0 */
#include "session/lineage.h"

#include "json/read.h"
#include "json/write.h"

const char *const lineage_kind_names[] = {
    [LINEAGE_FORK] = "fork", [LINEAGE_IMPORT] = "import", [LINEAGE_REPLAY] = "replay", NULL};

/* The members inside the braces of an object. */
static struct str inside(struct str object)
{
    object = str_trim(object);
    return object.n > 2 ? str_trim(str_n(object.p + 1, object.n - 2)) : STR_NONE;
}

struct str lineage_write(enum lineage_kind kind, struct str session, struct str more,
                         struct arena *mem)
{
    struct str members = inside(more), ret = STR_NONE;
    struct js_writer w;
    struct buf out;

    buf_init(&out, SIZE_MAX);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "kind", str_of(lineage_kind_names[kind]));
    js_kv_string(&w, "session", session);
    if (members.n) {
        buf_addc(&out, ',');
        buf_addstr(&out, members);
    }
    js_object_end(&w);
    if (out.n <= LINEAGE_BYTES_MAX)
        ret = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return ret;
}

static bool kind_of(struct str name, enum lineage_kind *ret)
{
    for (size_t i = 0; lineage_kind_names[i]; i++)
        if (str_eq(name, str_of(lineage_kind_names[i]))) {
            *ret = (enum lineage_kind)i;
            return true;
        }
    return false;
}

bool lineage_read(struct str json, struct arena *mem, struct lineage *ret)
{
    struct lineage l = {0};
    struct js_doc doc;

    if (!json.n || !js_parse(json, &js_limits_upstream, mem, &doc, NULL))
        return false;
    if (!kind_of(js_text(&doc, js_get(&doc, js_root(&doc), STR("kind")), mem), &l.kind))
        return false;
    l.session = js_text(&doc, js_get(&doc, js_root(&doc), STR("session")), mem);
    l.json = json;
    if (!l.session.n)
        return false;
    *ret = l;
    return true;
}

struct str lineage_text(const struct lineage *l, struct str name, struct arena *mem)
{
    struct js_doc doc;

    if (!l->json.n || !js_parse(l->json, &js_limits_upstream, mem, &doc, NULL))
        return STR_NONE;
    return js_text(&doc, js_get(&doc, js_root(&doc), name), mem);
}

int64_t lineage_number(const struct lineage *l, struct str name, int64_t if_absent)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    int64_t ret = if_absent;
    struct js_doc doc;

    if (l->json.n && js_parse(l->json, &js_limits_upstream, mem, &doc, NULL)) {
        const struct js_node *v = js_get(&doc, js_root(&doc), name);
        if (!v || !js_to_i64(&doc, v, &ret))
            ret = if_absent;
    }
    arena_free(mem);
    return ret;
}

bool lineage_is(struct str json, enum lineage_kind kind)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct lineage l;
    bool ret = json.n && lineage_read(json, mem, &l) && l.kind == kind;

    arena_free(mem);
    return ret;
}
