/* SPDX-License-Identifier: Apache-2.0 */
/* Walking and reading a tape.  Everything here trusts the parser: spans are in bounds, and strings
 * are valid UTF-8 with valid escapes. */
#include "json/read_impl.h"

#include "base/utf8.h"

const struct js_node *js_first(const struct js_doc *d, const struct js_node *container)
{
    if (!container || container->type < JS_ARRAY)
        return NULL;
    return &d->nodes[container->next] == container + 1 ? NULL : container + 1;
}

const struct js_node *js_next(const struct js_doc *d, const struct js_node *container,
                              const struct js_node *current)
{
    return current->next == container->next ? NULL : &d->nodes[current->next];
}

static uint32_t hex4(const char *p)
{
    uint32_t value = 0;

    for (int i = 0; i < 4; i++)
        value = value << 4 | (uint32_t)(p[i] <= '9' ? p[i] - '0' : (p[i] | 0x20) - 'a' + 10);
    return value;
}

size_t js_unescape_one(const char **p, char out[4])
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *at = *p, *known;
    uint32_t code;

    if (*at != '\\') {
        out[0] = *at;
        *p = at + 1;
        return 1;
    }
    if (at[1] != 'u') {
        known = strchr(from, at[1]);
        out[0] = known ? to[known - from] : at[1];
        *p = at + 2;
        return 1;
    }
    code = hex4(at + 2);
    *p = at + 6;
    if (code >= 0xd800 && code <= 0xdbff) {
        code = 0x10000 + ((code - 0xd800) << 10) + (hex4(at + 8) - 0xdc00);
        *p = at + 12;
    }
    return utf8_encode(code, out);
}

size_t js_unescape(struct str body, char *out)
{
    const char *p = body.p, *end = body.p + body.n;
    char *start = out, one[4];

    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        size_t plain = (size_t)((slash ? slash : end) - p), n;
        memcpy(out, p, plain);
        out += plain;
        p += plain;
        if (!slash)
            break;
        n = js_unescape_one(&p, one);
        memcpy(out, one, n);
        out += n;
    }
    return (size_t)(out - start);
}

static bool equals_escaped(struct str body, struct str text)
{
    const char *p = body.p, *end = body.p + body.n;
    size_t at = 0;
    char one[4];

    while (p < end) {
        size_t n = js_unescape_one(&p, one);
        if (text.n - at < n || memcmp(text.p + at, one, n) != 0)
            return false;
        at += n;
    }
    return at == text.n;
}

/* The span includes the quotes. */
static inline bool key_is(const struct js_doc *d, const struct js_node *key, struct str name)
{
    return key->end - key->start == name.n + 2 &&
           (name.n == 0 || memcmp(d->text.p + key->start + 1, name.p, name.n) == 0);
}

const struct js_node *js_get_key(const struct js_doc *d, const struct js_node *object,
                                 struct str key)
{
    const struct js_node *at, *end;

    if (!js_type_is(object, JS_OBJECT))
        return NULL;
    end = &d->nodes[object->next];
    for (at = object + 1; at < end; at = &d->nodes[at[1].next])
        if (likely(!at->escaped) ? key_is(d, at, key) : equals_escaped(js_body(d, at), key))
            return at;
    return NULL;
}

const struct js_node *js_get(const struct js_doc *d, const struct js_node *object, struct str key)
{
    const struct js_node *found = js_get_key(d, object, key);

    return found ? js_value_of(found) : NULL;
}

bool js_is(const struct js_doc *d, const struct js_node *v, struct str text)
{
    if (!js_type_is(v, JS_STRING))
        return false;
    return v->escaped ? equals_escaped(js_body(d, v), text) : str_eq(js_body(d, v), text);
}

struct str js_text(const struct js_doc *d, const struct js_node *v, struct arena *mem)
{
    struct str body;
    char *copy;
    size_t n;

    if (!js_type_is(v, JS_STRING))
        return STR_NONE;
    body = js_body(d, v);
    if (!v->escaped)
        return body;
    copy = arena_alloc(mem, body.n + 1);
    n = js_unescape(body, copy);
    copy[n] = '\0';
    return str_n(copy, n);
}

bool js_to_i64(const struct js_doc *d, const struct js_node *v, int64_t *ret)
{
    struct str raw;
    bool negative;
    uint64_t magnitude;

    if (!js_type_is(v, JS_NUMBER))
        return false;
    raw = js_raw(d, v);
    negative = raw.p[0] == '-';
    if (!str_to_u64(str_n(raw.p + negative, raw.n - negative), (uint64_t)INT64_MAX + negative,
                    &magnitude))
        return false;
    *ret = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

void js_position(struct str text, size_t offset, unsigned *ret_line, unsigned *ret_column)
{
    unsigned line = 1, column = 1;

    for (size_t i = 0; i < offset && i < text.n; i++) {
        if (text.p[i] == '\n') {
            line++;
            column = 1;
        } else if ((text.p[i] & 0xc0) != 0x80) {
            column++; /* characters, as an editor counts them */
        }
    }
    *ret_line = line;
    *ret_column = column;
}

const char *js_type_name(enum js_type type)
{
    static const char *const names[] = {
        [JS_NULL] = "null",       [JS_FALSE] = "false",     [JS_TRUE] = "true",
        [JS_NUMBER] = "a number", [JS_STRING] = "a string", [JS_ARRAY] = "an array",
        [JS_OBJECT] = "an object"};

    return (unsigned)type < countof(names) ? names[type] : "unknown";
}
