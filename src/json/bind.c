/* SPDX-License-Identifier: Apache-2.0 */
/* Binding a JSON object to a struct by a table of rows.  Each kind has one function that takes a
 * scalar, given as a JSON value or as plain text, and stores it.  js_bind() walks the object;
 * js_bind_text() and js_bind_defaults() take plain text.
 *
 * Messages are for the author of the file: they name the position, the key and the expected
 * value. */
#include "json/bind.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#define MOST_ITEMS 1000
#define MOST_FIELDS 128

/* One scalar for a field, from any source. */
struct input {
    enum js_type type; /* JS_STRING for plain text too */
    bool plain;        /* plain text: numbers and booleans are written as strings */
    struct str text;   /* unescaped string, or the number as written */
};

static bool within(const struct js_field *f, int64_t v)
{
    return v >= f->min && (f->max == 0 || v <= f->max);
}

static bool to_int(const struct input *in, int64_t *ret)
{
    bool negative = in->text.n > 0 && in->text.p[0] == '-';
    uint64_t magnitude;

    if (in->type != JS_NUMBER && !in->plain)
        return false;
    if (!str_to_u64(str_n(in->text.p + negative, in->text.n - negative),
                    (uint64_t)INT64_MAX + negative, &magnitude))
        return false;
    *ret = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

static bool put_string(const struct js_field *f unused_arg, const struct input *in, void *place,
                       struct arena *mem)
{
    if (in->type != JS_STRING || str_find(in->text, '\0') != in->text.n)
        return false;
    *(struct str *)place = arena_dup(mem, in->text);
    return true;
}

static bool put_bool(const struct js_field *f unused_arg, const struct input *in, void *place,
                     struct arena *mem unused_arg)
{
    bool yes = in->type == JS_TRUE || (in->plain && str_eq(in->text, STR("true")));

    if (!yes && in->type != JS_FALSE && !(in->plain && str_eq(in->text, STR("false"))))
        return false;
    *(bool *)place = yes;
    return true;
}

static bool put_int(const struct js_field *f, const struct input *in, void *place,
                    struct arena *mem unused_arg)
{
    int64_t v;

    if (!to_int(in, &v) || (!within(f, v) && (f->min || f->max)))
        return false;
    *(int64_t *)place = v;
    return true;
}

static bool put_uint(const struct js_field *f, const struct input *in, void *place,
                     struct arena *mem unused_arg)
{
    int64_t v;

    if (!to_int(in, &v) || !within(f, v) || v < 0 || v > UINT32_MAX)
        return false;
    *(unsigned *)place = (unsigned)v;
    return true;
}

static bool put_duration(const struct js_field *f, const struct input *in, void *place,
                         struct arena *mem unused_arg)
{
    int64_t ms;

    if (in->type != JS_STRING && in->type != JS_NUMBER)
        return false;
    if (!clock_parse_duration(in->text, &ms) || !within(f, ms))
        return false;
    *(int64_t *)place = ms;
    return true;
}

static bool put_size(const struct js_field *f, const struct input *in, void *place,
                     struct arena *mem unused_arg)
{
    uint64_t bytes;

    if (in->type != JS_STRING && in->type != JS_NUMBER)
        return false;
    if (!js_parse_size(in->text, &bytes) || bytes > INT64_MAX || !within(f, (int64_t)bytes))
        return false;
    *(size_t *)place = (size_t)bytes;
    return true;
}

static bool put_enum(const struct js_field *f, const struct input *in, void *place,
                     struct arena *mem unused_arg)
{
    for (int i = 0; in->type == JS_STRING && f->names[i]; i++) {
        if (!str_eq(in->text, str_of(f->names[i])))
            continue;
        *(int *)place = i;
        return true;
    }
    return false;
}

static const struct kind {
    bool (*put)(const struct js_field *f, const struct input *in, void *place, struct arena *mem);
    const char *name;
    const char *unit; /* unit of the bounds in messages */
} kinds[] = {
    [JS_BIND_STRING] = {put_string, "a string", ""},
    [JS_BIND_BOOL] = {put_bool, "true or false", ""},
    [JS_BIND_INT] = {put_int, "a whole number", ""},
    [JS_BIND_UINT] = {put_uint, "a whole number", ""},
    [JS_BIND_DURATION] = {put_duration, "a duration such as \"30m\", or a number of seconds",
                          " ms"},
    [JS_BIND_SIZE] = {put_size, "a size such as \"4MiB\", or a number of bytes", " bytes"},
    [JS_BIND_ENUM] = {put_enum, "one of the names listed", ""},
    [JS_BIND_STRINGS] = {NULL, "an array of strings", ""},
    [JS_BIND_OBJECT] = {NULL, "an object", ""},
    [JS_BIND_CUSTOM] = {NULL, "as described", ""},
    [JS_BIND_IGNORED] = {NULL, "anything", ""},
};

const char *js_bind_kind_name(enum js_bind_kind kind)
{
    return kinds[kind].name;
}

/* Writes a bound for people: "1 s", "30 d", "4 MiB". */
static void add_bound(struct buf *out, enum js_bind_kind kind, int64_t v)
{
    static const struct {
        enum js_bind_kind kind;
        int64_t value;
        const char *name;
    } units[] = {
        {JS_BIND_DURATION, 86400000, "d"}, {JS_BIND_DURATION, 3600000, "h"},
        {JS_BIND_DURATION, 60000, "min"},  {JS_BIND_DURATION, 1000, "s"},
        {JS_BIND_DURATION, 1, "ms"},       {JS_BIND_SIZE, 1 << 30, "GiB"},
        {JS_BIND_SIZE, 1 << 20, "MiB"},    {JS_BIND_SIZE, 1 << 10, "KiB"},
        {JS_BIND_SIZE, 1, "bytes"},
    };

    for (size_t i = 0; i < countof(units); i++)
        if (units[i].kind == kind && v >= units[i].value && v % units[i].value == 0) {
            buf_addf(out, "%lld %s", (long long)(v / units[i].value), units[i].name);
            return;
        }
    buf_addf(out, "%lld%s", (long long)v, kinds[kind].unit);
}

/* Writes "a whole number from 1 to 10", `"a", "b" or "c"`. */
static void describe_expected(const struct js_field *f, struct buf *out)
{
    if (f->kind == JS_BIND_ENUM) {
        for (size_t i = 0; f->names[i]; i++)
            buf_addf(out, "%s\"%s\"", i == 0 ? "" : f->names[i + 1] ? ", " : " or ", f->names[i]);
        return;
    }
    buf_addz(out, kinds[f->kind].name);
    if (f->max) {
        buf_addz(out, ", from ");
        add_bound(out, f->kind, f->min);
        buf_addz(out, " to ");
        add_bound(out, f->kind, f->max);
    } else if (f->min) {
        buf_addz(out, ", at least ");
        add_bound(out, f->kind, f->min);
    }
}

static bool refuse(const struct js_binding *b, const struct js_field *f, const struct js_node *at,
                   struct error *err)
{
    struct buf expected;

    buf_init(&expected, SIZE_MAX);
    describe_expected(f, &expected);
    bool forgiven = js_bind_fault(b, at, err, "\"%s\" must be %s", f->name, expected.p);
    buf_release(&expected);
    return forgiven;
}

bool js_bind_fault(const struct js_binding *b, const struct js_node *at, struct error *err,
                   const char *fmt, ...)
{
    char text[sizeof(err->text)];
    unsigned line, column;
    va_list args;

    if (b->forgives && at && b->forgives(b, at))
        return true;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    error_set(err, b->code, "%s", text);
    if (!b->file.p || !at)
        return false;
    js_position(b->doc->text, at->start, &line, &column);
    return error_wrap(err, "%.*s:%u:%u", STR_ARG(b->file), line, column);
}

bool js_bind_parse_fault(struct str file, const struct js_fault *fault, enum err_code code,
                         struct error *err)
{
    error_set(err, code, "%s", fault->reason);
    if (!file.p)
        return error_wrap(err, "line %u, column %u", fault->line, fault->column);
    return error_wrap(err, "%.*s:%u:%u", STR_ARG(file), fault->line, fault->column);
}

static bool input_of(const struct js_binding *b, const struct js_node *v, struct input *ret,
                     struct error *err)
{
    *ret = (struct input){.type = (enum js_type)v->type};
    ret->text = ret->type == JS_STRING ? js_text(b->doc, v, b->mem) : js_raw(b->doc, v);
    return ret->type != JS_STRING || !b->text || b->text(b, v, &ret->text, err);
}

static bool read_strings(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, char *dest, struct error *err)
{
    size_t most = f->max_items ? f->max_items : MOST_ITEMS, n = 0;
    struct str *list;

    if (v->type != JS_ARRAY)
        return refuse(b, f, v, err);
    for (const struct js_node *e = js_first(b->doc, v); e; e = js_next(b->doc, v, e))
        n++;
    if (n > most)
        return js_bind_fault(b, v, err, "\"%s\" has %zu entries; at most %zu are taken", f->name, n,
                             most);
    list = arena_zalloc(b->mem, n * sizeof(*list));
    n = 0;
    for (const struct js_node *e = js_first(b->doc, v); e; e = js_next(b->doc, v, e)) {
        struct input in;
        if (!input_of(b, e, &in, err))
            return false;
        if (!put_string(f, &in, &list[n++], b->mem))
            return refuse(b, f, e, err);
    }
    *(struct str **)(void *)(dest + f->offset) = list;
    *(size_t *)(void *)(dest + f->count_offset) = n;
    return true;
}

static bool read_field(const struct js_binding *b, const struct js_field *f,
                       const struct js_node *v, char *dest, struct error *err)
{
    struct input in;

    switch (f->kind) {
    case JS_BIND_IGNORED:
        return true;
    case JS_BIND_CUSTOM:
        return f->read(b, f, v, dest + f->offset, err);
    case JS_BIND_OBJECT:
        return v->type == JS_OBJECT ? js_bind(b, v, f->fields, dest + f->offset, err)
                                    : refuse(b, f, v, err);
    case JS_BIND_STRINGS:
        return read_strings(b, f, v, dest, err);
    default:
        if (!input_of(b, v, &in, err))
            return false;
        return kinds[f->kind].put(f, &in, dest + f->offset, b->mem) || refuse(b, f, v, err);
    }
}

/* Returns the valid key nearest to the given one, or NULL when none is near. */
static const char *nearest(const struct js_field *fields, struct str name)
{
    unsigned cap = name.n < 4 ? 2 : 3, best = cap;
    const char *found = NULL;

    for (const struct js_field *f = fields; f->name; f++) {
        unsigned far = str_distance(name, str_of(f->name), cap);
        if (far < best) {
            best = far;
            found = f->name;
        }
    }
    return found;
}

static bool refuse_unknown(const struct js_binding *b, const struct js_field *fields,
                           const struct js_node *key, struct error *err)
{
    struct str name = js_text(b->doc, key, b->mem);
    const char *near = nearest(fields, name);
    struct buf shown, known;

    buf_init(&shown, SIZE_MAX);
    buf_init(&known, SIZE_MAX);
    log_escape(&shown, name, 64);
    for (const struct js_field *f = fields; f->name; f++)
        if (f->kind != JS_BIND_IGNORED) /* not useful to an author who looks for the right key */
            buf_addf(&known, "%s%s", known.n == 0 ? "" : ", ", f->name);
    if (near)
        js_bind_fault(b, key, err, "unknown key \"%s\"; did you mean \"%s\"?", buf_str(&shown).p,
                      near);
    else
        js_bind_fault(b, key, err, "unknown key \"%s\"; the keys here are %s", buf_str(&shown).p,
                      buf_str(&known).p);
    buf_release(&shown);
    buf_release(&known);
    return false;
}

static const struct js_field *field_for(const struct js_binding *b, const struct js_field *fields,
                                        const struct js_node *key)
{
    for (const struct js_field *f = fields; f->name; f++)
        if (js_is(b->doc, key, str_of(f->name)))
            return f;
    return NULL;
}

static bool check_required(const struct js_binding *b, const struct js_node *object,
                           const struct js_field *fields, const bool *present, struct error *err)
{
    for (size_t i = 0; fields[i].name; i++)
        if (fields[i].required && !present[i])
            return js_bind_fault(b, object, err, "\"%s\" is missing; add it", fields[i].name);
    return true;
}

bool js_bind(const struct js_binding *b, const struct js_node *object,
             const struct js_field *fields, void *dest, struct error *err)
{
    bool present[MOST_FIELDS] = {false};
    const struct js_node *key, *v;

    if (!js_type_is(object, JS_OBJECT))
        return js_bind_fault(b, object, err,
                             "an object is expected here, not %s; put its members in { }",
                             object ? js_type_name((enum js_type)object->type) : "nothing");
    for (key = js_first(b->doc, object); key; key = js_next(b->doc, object, v)) {
        const struct js_field *f = field_for(b, fields, key);
        v = js_value_of(key);
        if (!f && !b->unknown_ok)
            return refuse_unknown(b, fields, key, err);
        if (!f || (v->type == JS_NULL && b->null_is_absent))
            continue;
        if (!read_field(b, f, v, dest, err))
            return false;
        if (f - fields < MOST_FIELDS)
            present[f - fields] = true;
        if (b->seen)
            b->seen(b, f, key);
    }
    return check_required(b, object, fields, present, err);
}

static bool strings_from_text(const struct js_field *f, struct str text, char *dest,
                              struct arena *mem)
{
    size_t most = f->max_items ? f->max_items : MOST_ITEMS, n = 0, count = text.n > 0;
    struct str *list;

    for (size_t i = 0; i < text.n; i++)
        count += text.p[i] == ',';
    if (count > most)
        return false;
    list = arena_zalloc(mem, count * sizeof(*list));
    while (n < count)
        list[n++] = arena_dup(mem, str_trim(str_split(&text, ',')));
    *(struct str **)(void *)(dest + f->offset) = list;
    *(size_t *)(void *)(dest + f->count_offset) = count;
    return true;
}

static bool can_be_text(const struct js_field *f)
{
    return kinds[f->kind].put || f->kind == JS_BIND_STRINGS;
}

static bool text_to_field(const struct js_field *f, struct str text, void *dest, struct arena *mem)
{
    struct input in = {.type = JS_STRING, .plain = true, .text = text};

    if (f->kind == JS_BIND_STRINGS)
        return strings_from_text(f, text, dest, mem);
    if (!can_be_text(f))
        return false;
    return kinds[f->kind].put(f, &in, (char *)dest + f->offset, mem);
}

bool js_bind_text(const struct js_field *field, struct str text, void *dest, struct arena *mem,
                  enum err_code code, struct error *err)
{
    const struct js_binding b = {.code = code};

    return text_to_field(field, text, dest, mem) || refuse(&b, field, NULL, err);
}

void js_bind_defaults(const struct js_field *fields, void *dest, struct arena *mem)
{
    for (const struct js_field *f = fields; f->name; f++) {
        if (f - fields >= MOST_FIELDS)
            die("more than %d fields in one table; this is a bug, please report it", MOST_FIELDS);
        if (f->kind == JS_BIND_OBJECT)
            js_bind_defaults(f->fields, (char *)dest + f->offset, mem);
        if (!f->default_text || !can_be_text(f))
            continue; /* for a custom field it is documentation: its reader sets the value */
        if (!text_to_field(f, str_of(f->default_text), dest, mem))
            die("the default of \"%s\" is not acceptable; this is a bug, please report it",
                f->name);
    }
}

bool js_parse_size(struct str s, uint64_t *ret)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        {"", 1},
        {"B", 1},
        {"kB", 1000},
        {"KB", 1000},
        {"MB", 1000000},
        {"GB", 1000000000},
        {"KiB", 1ull << 10},
        {"MiB", 1ull << 20},
        {"GiB", 1ull << 30},
    };
    size_t digits = 0;
    uint64_t count;

    while (digits < s.n && s.p[digits] >= '0' && s.p[digits] <= '9')
        digits++;
    if (!str_to_u64(str_n(s.p, digits), UINT64_MAX, &count))
        return false;
    for (size_t i = 0; i < countof(units); i++) {
        if (!str_eq(str_n(s.p + digits, s.n - digits), str_of(units[i].name)))
            continue;
        if (count > UINT64_MAX / units[i].bytes)
            return false;
        *ret = count * units[i].bytes;
        return true;
    }
    return false;
}
