/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas (JSON Schema 2020-12).  Schemas of requests come from the tables that read the bodies,
 * schemas of answers from the tables of their members. */
#include "api/openapi_impl.h"

void openapi_ref(struct js_writer *w, const char *group, const char *name)
{
    char text[128];
    size_t n = 0;
    const char *const parts[] = {"#/components/", group, "/", name};

    for (size_t i = 0; i < countof(parts); i++)
        for (const char *p = parts[i]; *p && n < sizeof(text); p++)
            text[n++] = *p;
    js_object(w);
    js_kv_string(w, "$ref", str_n(text, n));
    js_object_end(w);
}

const struct api_schema *openapi_schema_named(const char *name)
{
    size_t n;
    const struct api_schema *const *schemas = api_schemas(&n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(schemas[i]->name, name) == 0)
            return schemas[i];
    return NULL;
}

/* "string", or "string|null" as a list; NULL: anything. */
static void write_type(struct js_writer *w, const char *type, bool or_null)
{
    struct str rest = str_of(type);
    bool is_list = or_null || str_find(rest, '|') != rest.n;

    if (!type)
        return;
    js_key(w, STR("type"));
    if (is_list)
        js_array(w);
    while (rest.p)
        js_string(w, str_split(&rest, '|'));
    if (or_null)
        js_string(w, STR("null"));
    if (is_list)
        js_array_end(w);
}

static void write_enum(struct js_writer *w, const char *const *names, bool or_null)
{
    if (!names)
        return;
    js_key(w, STR("enum"));
    js_array(w);
    for (; *names; names++)
        js_string(w, str_of(*names));
    if (or_null)
        js_null(w);
    js_array_end(w);
}

static void write_number(struct js_writer *w, const char *key, int64_t value)
{
    if (value)
        js_kv_int(w, key, value);
}

static bool type_is(const char *type, const char *want)
{
    return type && strcmp(type, want) == 0;
}

/* Bounds of a number, of the length of a string, or of the bytes of an object. */
static void write_bounds(struct js_writer *w, const char *type, int64_t min, int64_t max)
{
    if (type_is(type, "integer")) {
        js_kv_int(w, "minimum", min);
        write_number(w, "maximum", max);
    } else if (type_is(type, "string")) {
        write_number(w, "minLength", min);
        write_number(w, "maxLength", max);
    } else if (type_is(type, "object")) {
        write_number(w, "x-max-bytes", max);
    }
}

void openapi_param_schema(struct js_writer *w, const struct api_param *p)
{
    js_object(w);
    write_type(w, p->type, false);
    write_enum(w, p->names, false);
    write_bounds(w, p->type, p->min, p->max);
    if (p->default_text && type_is(p->type, "string"))
        js_kv_string(w, "default", str_of(p->default_text));
    else if (p->default_text)
        js_kv_raw(w, "default", str_of(p->default_text));
    js_object_end(w);
}

/* Requests. */

static const struct api_kind *kind_of(const struct js_field *f)
{
    static const struct api_kind
        any = {0},
        boolean = {.type = "boolean"}, integer = {.type = "integer"}, string = {.type = "string"},
        strings = {.type = "array"}, object = {.type = "object"},
        size = {.type = "integer|string", .pattern = "^[0-9]+(B|kB|MB|GB|KiB|MiB|GiB)?$"},
        duration = {.type = "integer|string",
                    .is_duration = true,
                    .pattern = "^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$|"
                               "^[0-9]+$"};

    switch (f->kind) {
    case JS_BIND_BOOL:
        return &boolean;
    case JS_BIND_INT:
        return &integer;
    case JS_BIND_STRING:
    case JS_BIND_ENUM:
        return &string;
    case JS_BIND_STRINGS:
        return &strings;
    case JS_BIND_DURATION:
        return &duration;
    case JS_BIND_SIZE:
        return &size;
    case JS_BIND_OBJECT:
        return &object;
    case JS_BIND_CUSTOM:
        return f->data ? f->data : &any;
    default:
        return &any;
    }
}

/* The bounds of a duration that is sent as a number of seconds. */
static void write_duration(struct js_writer *w, const struct js_field *f)
{
    js_kv_int(w, "minimum", 1);
    js_kv_int(w, "maximum", f->max / 1000);
}

static void write_array(struct js_writer *w, const struct api_kind *kind)
{
    js_kv_int(w, "minItems", 1);
    js_kv_int(w, "maxItems", kind->max_items);
    js_key(w, STR("items"));
    openapi_ref(w, "schemas", kind->items->name);
}

static void write_texts(struct js_writer *w, const struct js_field *f)
{
    write_number(w, "maxItems", (int64_t)f->max_items);
    js_kv_raw(w, "items", STR("{\"type\":\"string\"}"));
}

static void write_field(struct js_writer *w, const struct js_field *f, const struct api_body *body)
{
    const struct api_kind *kind = kind_of(f);
    bool or_null = kind->type && (body->takes_null ? kind->is_nullable : !f->required);

    js_key(w, str_of(f->name));
    js_object(w);
    js_kv_string(w, "description", str_of(f->help));
    write_type(w, kind->type, or_null);
    js_kv_string(w, "format", str_of(kind->format));
    js_kv_string(w, "pattern", str_of(kind->pattern));
    write_enum(w, f->kind == JS_BIND_ENUM ? f->names : kind->names, or_null);
    if (kind->is_duration)
        write_duration(w, f);
    else
        write_bounds(w, kind->type, f->min, f->max);
    if (kind->items)
        write_array(w, kind);
    if (f->kind == JS_BIND_STRINGS)
        write_texts(w, f);
    if (kind->is_secret)
        js_kv_bool(w, "writeOnly", true);
    js_object_end(w);
}

static void write_required(struct js_writer *w, const struct js_field *fields)
{
    bool is_begun = false;

    for (const struct js_field *f = fields; f->name; f++) {
        if (!f->required)
            continue;
        if (!is_begun) {
            js_key(w, STR("required"));
            js_array(w);
            is_begun = true;
        }
        js_string(w, str_of(f->name));
    }
    if (is_begun)
        js_array_end(w);
}

/* Read-only members are left out: a request with one is refused, as with an unknown member. */
static void write_body_schema(struct js_writer *w, const struct api_body *body)
{
    js_key(w, str_of(body->name));
    js_object(w);
    js_kv_string(w, "description",
                 body->unknown_ok ? STR("Other members are ignored.")
                                  : STR("Other members are refused."));
    js_kv_string(w, "type", STR("object"));
    write_required(w, body->fields);
    js_key(w, STR("properties"));
    js_object(w);
    for (const struct js_field *f = body->fields; f->name; f++)
        if (!kind_of(f)->is_read_only)
            write_field(w, f, body);
    js_object_end(w);
    js_kv_bool(w, "additionalProperties", body->unknown_ok);
    js_object_end(w);
}

/* Answers. */

static void write_items(struct js_writer *w, const struct api_member *m)
{
    js_key(w, STR("items"));
    if (m->ref) {
        openapi_ref(w, "schemas", m->ref);
        return;
    }
    js_object(w);
    js_kv_string(w, "type", m->format ? str_of(m->format) : STR("string"));
    js_object_end(w);
}

static void write_member(struct js_writer *w, const struct api_member *m)
{
    bool is_array = type_is(m->type, "array");

    js_key(w, str_of(m->name));
    if (m->ref && !is_array) {
        openapi_ref(w, "schemas", m->ref);
        return;
    }
    js_object(w);
    js_kv_string(w, "description", str_of(m->help));
    write_type(w, m->type, false);
    if (!is_array)
        js_kv_string(w, "format", type_is(m->type, "integer") ? STR("int64") : str_of(m->format));
    write_enum(w, m->names, false);
    if (is_array)
        write_items(w, m);
    js_object_end(w);
}

/* The members that other folders write into the answer of /readyz; none is required. */
static void write_ready_members(struct js_writer *w)
{
    size_t n;
    const struct api_part *const *parts = api_parts(&n);
    for (size_t i = 0; i < n; i++)
        for (const struct api_member *m = parts[i]->ready_members; m && m->name; m++)
            write_member(w, m);
}

static void write_members(struct js_writer *w, const struct api_schema *s)
{
    const struct api_member *members = s->members;

    js_key(w, STR("required"));
    js_array(w);
    for (const struct api_member *m = members; m->name; m++)
        if (m->is_required)
            js_string(w, str_of(m->name));
    js_array_end(w);
    js_key(w, STR("properties"));
    js_object(w);
    for (const struct api_member *m = members; m->name; m++)
        write_member(w, m);
    if (strcmp(s->name, "Health") == 0)
        write_ready_members(w);
    js_object_end(w);
}

static void write_answer_schema(struct js_writer *w, const struct api_schema *s)
{
    js_key(w, str_of(s->name));
    js_object(w);
    js_kv_string(w, "description", str_of(s->help));
    js_kv_string(w, "type", STR("object"));
    if (s->members)
        write_members(w, s);
    js_object_end(w);
}

void openapi_schemas(struct js_writer *w)
{
    size_t n_schemas, n_operations;
    const struct api_schema *const *schemas = api_schemas(&n_schemas);
    const struct api_operation *const *operations = api_operations(&n_operations);

    for (size_t i = 0; i < n_schemas; i++)
        write_answer_schema(w, schemas[i]);
    for (size_t i = 0; i < n_operations; i++) {
        const struct api_body *body = operations[i]->body;
        if (!body || !body->fields)
            continue;
        write_body_schema(w, body);
        for (const struct js_field *f = body->fields; f->name; f++)
            if (kind_of(f)->items)
                write_body_schema(w, kind_of(f)->items);
    }
}
