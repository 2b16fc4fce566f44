/* SPDX-License-Identifier: Apache-2.0 */
#include "recording/bytes.h"

#include "base/utf8.h"
#include "crypto/base64.h"
#include "crypto/hash.h"

/* A text may be this much longer than base64, because people can read it. */
#define TEXT_GRACE 4096

/* Whether the bytes may stand in a line as they are: one JSON value, without a line break. */
static bool fits_line(struct str bytes)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct js_doc doc;
    bool fits = str_find(bytes, '\n') == bytes.n && str_find(bytes, '\r') == bytes.n &&
                js_parse(bytes, &js_limits_upstream, mem, &doc, NULL) &&
                js_raw(&doc, js_root(&doc)).n == bytes.n;

    arena_free(mem);
    return fits;
}

/* Bytes that a text of JSON takes. */
static size_t quoted_size(struct str bytes)
{
    size_t n = 2;

    for (size_t i = 0; i < bytes.n; i++) {
        unsigned char c = (unsigned char)bytes.p[i];
        n += c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t' ? 2 : c < ' ' ? 6 : 1;
    }
    return n;
}

void recorded_bytes_write(struct js_writer *w, struct str bytes, struct arena *mem)
{
    size_t in_base64 = 4 * ((bytes.n + 2) / 3);

    if (fits_line(bytes)) {
        js_kv_raw(w, "json", bytes);
    } else if (utf8_is_valid(bytes) && quoted_size(bytes) <= in_base64 + TEXT_GRACE) {
        js_kv_string(w, "text", bytes);
    } else {
        char *text = arena_alloc(mem, in_base64 + 1);
        js_kv_string(w, "base64", str_n(text, base64_encode(bytes.p, bytes.n, text)));
    }
}

static bool read_base64(struct str text, struct arena *mem, struct str *ret)
{
    *ret = base64_decode(text, mem);
    return ret->p != NULL;
}

bool recorded_bytes_read(const struct js_doc *doc, const struct js_node *object, struct arena *mem,
                         struct str *ret)
{
    const struct js_node *json = js_get(doc, object, STR("json")),
                         *text = js_get(doc, object, STR("text")),
                         *base64 = js_get(doc, object, STR("base64"));

    *ret = STR_NONE;
    if ((json != NULL) + (text != NULL) + (base64 != NULL) > 1 ||
        (text && !js_type_is(text, JS_STRING)) || (base64 && !js_type_is(base64, JS_STRING)))
        return false;
    if (base64)
        return read_base64(js_text(doc, base64, mem), mem, ret);
    if (json || text)
        *ret = json ? js_raw(doc, json) : js_text(doc, text, mem);
    return true;
}

void recorded_text_write(struct js_writer *w, const char *name, struct str text, struct arena *mem)
{
    if (!text.p || utf8_is_valid(text)) {
        js_kv_string(w, name, text);
        return;
    }
    char *hex = arena_alloc(mem, 2 * text.n + 1);
    hex_encode(text.p, text.n, hex);
    js_key(w, str_of(name));
    js_object(w);
    js_kv_string(w, "hex", str_of(hex));
    js_object_end(w);
}

bool recorded_text_read(const struct js_doc *doc, const struct js_node *object, const char *name,
                        struct arena *mem, struct str *ret)
{
    const struct js_node *v = js_get(doc, object, str_of(name));
    struct str hex;

    *ret = STR_NONE;
    if (!v)
        return true;
    if (js_type_is(v, JS_STRING)) {
        *ret = js_text(doc, v, mem);
        return true;
    }
    hex = js_text(doc, js_get(doc, v, STR("hex")), mem);
    char *bytes = hex.p ? arena_try_alloc(mem, hex.n / 2 + 1) : NULL;
    if (!bytes || !hex_decode(hex, (uint8_t *)bytes, hex.n / 2))
        return false;
    *ret = str_n(bytes, hex.n / 2);
    return true;
}
