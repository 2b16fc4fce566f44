/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions that do not follow the specification's schema.  Many clients validate a whole list
 * and drop all of it for one such entry; in a list of several servers that would hide the others.
 * So each entry is checked against the shapes below when it arrives, and a corrected copy is kept
 * if needed: a required member is filled in, a wrong optional member is removed.  Everything else
 * stays as the server wrote it. */
#include "upstream/catalog.h"

typedef bool fits_fn(const struct js_doc *doc, const struct js_node *v);
typedef void mend_fn(const struct js_doc *doc, const struct js_node *v, struct buf *out);

/* One known member of an object. */
struct member {
    const char *key;
    fits_fn *fits;
    mend_fn *mend;    /* writes a value that fits; NULL: a wrong one is removed */
    const char *fill; /* for a required member that is missing or wrong; NULL: optional */
    const char *like; /* a missing required member is copied from this one */
};
struct shape {
    const struct member *members;
    size_t n;
};

static bool is_string(const struct js_doc *doc unused_arg, const struct js_node *v)
{
    return v->type == JS_STRING;
}

static bool is_object(const struct js_doc *doc unused_arg, const struct js_node *v)
{
    return v->type == JS_OBJECT;
}

static bool is_number(const struct js_doc *doc unused_arg, const struct js_node *v)
{
    return v->type == JS_NUMBER;
}

static bool is_boolean(const struct js_doc *doc unused_arg, const struct js_node *v)
{
    return v->type == JS_TRUE || v->type == JS_FALSE;
}

static bool is_one_of(const struct js_doc *doc, const struct js_node *v, const char *const *words)
{
    for (; v->type == JS_STRING && *words; words++)
        if (js_is(doc, v, str_of(*words)))
            return true;
    return false;
}

static bool each_is(const struct js_doc *doc, const struct js_node *array, fits_fn *fits)
{
    if (array->type != JS_ARRAY)
        return false;
    for (const struct js_node *v = js_first(doc, array); v; v = js_next(doc, array, v))
        if (!fits(doc, v))
            return false;
    return true;
}

static bool is_strings(const struct js_doc *doc, const struct js_node *v)
{
    return each_is(doc, v, is_string);
}

static bool is_role(const struct js_doc *doc, const struct js_node *v)
{
    static const char *const roles[] = {"user", "assistant", NULL};
    return is_one_of(doc, v, roles);
}

static bool is_roles(const struct js_doc *doc, const struct js_node *v)
{
    return each_is(doc, v, is_role);
}

/* From 0 to 1, in the usual forms of such numbers. */
static bool is_priority(const struct js_doc *doc, const struct js_node *v)
{
    struct str raw = js_raw(doc, v);
    return v->type == JS_NUMBER &&
           (raw.p[0] == '0' || str_eq(raw, STR("1")) || str_eq(raw, STR("1.0")));
}

static const struct member *member_of(const struct shape *s, const struct js_doc *doc,
                                      const struct js_node *key)
{
    for (size_t i = 0; i < s->n; i++)
        if (js_is(doc, key, str_of(s->members[i].key)))
            return &s->members[i];
    return NULL;
}

static bool shape_fits(const struct shape *s, const struct js_doc *doc,
                       const struct js_node *object)
{
    if (object->type != JS_OBJECT)
        return false;
    for (const struct js_node *k = js_first(doc, object); k; k = js_next(doc, object, k + 1)) {
        const struct member *m = member_of(s, doc, k);
        if (m && !m->fits(doc, js_value_of(k)))
            return false;
    }
    for (size_t i = 0; i < s->n; i++)
        if ((s->members[i].fill || s->members[i].like) &&
            !js_get(doc, object, str_of(s->members[i].key)))
            return false;
    return true;
}

static void write_key(struct str raw_key, struct buf *out)
{
    if (out->p[out->n - 1] != '{')
        buf_addc(out, ',');
    buf_addstr(out, raw_key);
    buf_addc(out, ':');
}

static void shape_mend(const struct shape *s, const struct js_doc *doc,
                       const struct js_node *object, struct buf *out)
{
    unsigned written = 0; /* bits: required members already written */

    buf_addc(out, '{');
    for (const struct js_node *k = js_first(doc, object); k; k = js_next(doc, object, k + 1)) {
        const struct js_node *v = js_value_of(k);
        const struct member *m = member_of(s, doc, k);
        if (m && !m->fits(doc, v) && !m->mend)
            continue;
        write_key(js_raw(doc, k), out);
        if (m && !m->fits(doc, v))
            m->mend(doc, v, out);
        else
            buf_addstr(out, js_raw(doc, v));
        written |= m ? 1u << (m - s->members) : 0;
    }
    for (size_t i = 0; i < s->n; i++) {
        const struct member *m = &s->members[i];
        if ((!m->fill && !m->like) || written & 1u << i)
            continue;
        buf_addf(out, "%s\"%s\":", out->p[out->n - 1] == '{' ? "" : ",", m->key);
        if (m->fill)
            buf_addz(out, m->fill);
        else
            buf_addstr(out, js_raw(doc, js_get(doc, object, str_of(m->like))));
    }
    buf_addc(out, '}');
}

/* Schemas of tools. */

static bool is_object_word(const struct js_doc *doc, const struct js_node *v)
{
    return js_is(doc, v, STR("object"));
}

/* Each value must be an object: clients do not accept `true` as a schema here. */
static bool is_properties(const struct js_doc *doc, const struct js_node *v)
{
    if (v->type != JS_OBJECT)
        return false;
    for (const struct js_node *k = js_first(doc, v); k; k = js_next(doc, v, k + 1))
        if (js_value_of(k)->type != JS_OBJECT)
            return false;
    return true;
}

static void mend_properties(const struct js_doc *doc, const struct js_node *v, struct buf *out)
{
    buf_addc(out, '{');
    for (const struct js_node *k = v->type == JS_OBJECT ? js_first(doc, v) : NULL; k;
         k = js_next(doc, v, k + 1)) {
        const struct js_node *property = js_value_of(k);
        write_key(js_raw(doc, k), out);
        if (property->type == JS_OBJECT)
            buf_addstr(out, js_raw(doc, property));
        else
            buf_addz(out, property->type == JS_FALSE ? "{\"not\":{}}" : "{}");
    }
    buf_addc(out, '}');
}

static const struct member schema_members[] = {
    {"$schema", is_string, NULL, NULL, NULL},
    {"type", is_object_word, NULL, "\"object\"", NULL},
    {"properties", is_properties, mend_properties, NULL, NULL},
    {"required", is_strings, NULL, NULL, NULL},
};
static const struct shape schema_shape = {schema_members, countof(schema_members)};

static bool is_schema(const struct js_doc *doc, const struct js_node *v)
{
    return shape_fits(&schema_shape, doc, v);
}

static void mend_schema(const struct js_doc *doc, const struct js_node *v, struct buf *out)
{
    if (v->type == JS_OBJECT)
        shape_mend(&schema_shape, doc, v, out);
    else
        buf_addz(out, "{\"type\":\"object\"}");
}

static const struct member hint_members[] = {
    {"title", is_string, NULL, NULL, NULL},
    {"readOnlyHint", is_boolean, NULL, NULL, NULL},
    {"destructiveHint", is_boolean, NULL, NULL, NULL},
    {"idempotentHint", is_boolean, NULL, NULL, NULL},
    {"openWorldHint", is_boolean, NULL, NULL, NULL},
};
static const struct shape hint_shape = {hint_members, countof(hint_members)};

static bool is_hints(const struct js_doc *doc, const struct js_node *v)
{
    return shape_fits(&hint_shape, doc, v);
}

static void mend_hints(const struct js_doc *doc, const struct js_node *v, struct buf *out)
{
    if (v->type == JS_OBJECT)
        shape_mend(&hint_shape, doc, v, out);
    else
        buf_addz(out, "{}");
}

static bool is_task_support(const struct js_doc *doc, const struct js_node *v)
{
    static const char *const words[] = {"forbidden", "optional", "required", NULL};
    return is_one_of(doc, v, words);
}

static const struct member execution_members[] = {
    {"taskSupport", is_task_support, NULL, NULL, NULL},
};
static const struct shape execution_shape = {execution_members, countof(execution_members)};

static bool is_execution(const struct js_doc *doc, const struct js_node *v)
{
    return shape_fits(&execution_shape, doc, v);
}

/* Members common to several kinds. */

static bool is_theme(const struct js_doc *doc, const struct js_node *v)
{
    static const char *const words[] = {"light", "dark", NULL};
    return is_one_of(doc, v, words);
}

static const struct member icon_members[] = {
    {"src", is_string, NULL, "\"\"", NULL},
    {"mimeType", is_string, NULL, NULL, NULL},
    {"sizes", is_strings, NULL, NULL, NULL},
    {"theme", is_theme, NULL, NULL, NULL},
};
static const struct shape icon_shape = {icon_members, countof(icon_members)};

static bool is_icon(const struct js_doc *doc, const struct js_node *v)
{
    return shape_fits(&icon_shape, doc, v);
}

static bool is_icons(const struct js_doc *doc, const struct js_node *v)
{
    return each_is(doc, v, is_icon);
}

static const struct member annotation_members[] = {
    {"audience", is_roles, NULL, NULL, NULL},
    {"priority", is_priority, NULL, NULL, NULL},
    {"lastModified", is_string, NULL, NULL, NULL},
};
static const struct shape annotation_shape = {annotation_members, countof(annotation_members)};

static bool is_annotations(const struct js_doc *doc, const struct js_node *v)
{
    return shape_fits(&annotation_shape, doc, v);
}

static const struct member argument_members[] = {
    {"name", is_string, NULL, "\"\"", NULL},
    {"title", is_string, NULL, NULL, NULL},
    {"description", is_string, NULL, NULL, NULL},
    {"required", is_boolean, NULL, NULL, NULL},
};
static const struct shape argument_shape = {argument_members, countof(argument_members)};

static bool is_argument(const struct js_doc *doc, const struct js_node *v)
{
    return shape_fits(&argument_shape, doc, v);
}

static bool is_arguments(const struct js_doc *doc, const struct js_node *v)
{
    return each_is(doc, v, is_argument);
}

/* An argument without a name cannot be passed, so it is left out. */
static void mend_arguments(const struct js_doc *doc, const struct js_node *v, struct buf *out)
{
    buf_addc(out, '[');
    for (const struct js_node *a = v->type == JS_ARRAY ? js_first(doc, v) : NULL; a;
         a = js_next(doc, v, a)) {
        if (!js_type_is(js_get(doc, a, STR("name")), JS_STRING))
            continue;
        if (out->p[out->n - 1] != '[')
            buf_addc(out, ',');
        shape_mend(&argument_shape, doc, a, out);
    }
    buf_addc(out, ']');
}

#define SHARED_MEMBERS                                                                             \
    {"title", is_string, NULL, NULL, NULL}, {"description", is_string, NULL, NULL, NULL},          \
        {"icons", is_icons, NULL, NULL, NULL},                                                     \
    {                                                                                              \
        "_meta", is_object, NULL, NULL, NULL                                                       \
    }

static const struct member tool_members[] = {
    SHARED_MEMBERS,
    {"inputSchema", is_schema, mend_schema, "{\"type\":\"object\"}", NULL},
    {"outputSchema", is_schema, NULL, NULL, NULL},
    {"annotations", is_hints, mend_hints, NULL, NULL},
    {"execution", is_execution, NULL, NULL, NULL},
};
static const struct member prompt_members[] = {
    SHARED_MEMBERS,
    {"arguments", is_arguments, mend_arguments, NULL, NULL},
};
static const struct member resource_members[] = {
    SHARED_MEMBERS,
    {"name", is_string, NULL, NULL, "uri"},
    {"mimeType", is_string, NULL, NULL, NULL},
    {"size", is_number, NULL, NULL, NULL},
    {"annotations", is_annotations, NULL, NULL, NULL},
};
static const struct member template_members[] = {
    SHARED_MEMBERS,
    {"name", is_string, NULL, NULL, "uriTemplate"},
    {"mimeType", is_string, NULL, NULL, NULL},
    {"annotations", is_annotations, NULL, NULL, NULL},
};
static const struct shape shapes[CATALOG_KINDS] = {
    [CATALOG_TOOLS] = {tool_members, countof(tool_members)},
    [CATALOG_PROMPTS] = {prompt_members, countof(prompt_members)},
    [CATALOG_RESOURCES] = {resource_members, countof(resource_members)},
    [CATALOG_TEMPLATES] = {template_members, countof(template_members)},
};

bool catalog_mend(enum catalog_kind kind, const struct js_doc *doc, const struct js_node *item,
                  struct buf *out)
{
    if (shape_fits(&shapes[kind], doc, item))
        return false;
    shape_mend(&shapes[kind], doc, item, out);
    return true;
}
