/* SPDX-License-Identifier: Apache-2.0 */
/* One table maps each member of the JSON event to a field of the row.  Writing and reading both use
 * the table, so neither can miss a field.  "time" is only for people: it repeats at_ms and is not
 * read. */
#include "audit/event_json.h"

#include "audit/event_id.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "crypto/hash.h"

#include <stdlib.h>

static const char *const kind_names[] = {
    [EVENT_INTENT] = "intent", [EVENT_OUTCOME] = "outcome", [EVENT_NOTE] = "note",
    [EVENT_ANCHOR] = "anchor", [EVENT_WRITER] = "writer",   [EVENT_SESSION] = "session",
    [EVENT_SYSTEM] = "system", [EVENT_RECORD] = "record",   [EVENT_IMPORT] = "imported",
};

enum field_type { FIELD_ID, FIELD_INT, FIELD_COUNT, FIELD_KIND, FIELD_TEXT, FIELD_DIGEST };

static const struct field {
    const char *name;
    enum field_type type;
    size_t offset;
} fields[] = {
#define ROW(member) offsetof(struct event_row, member)
    {"id", FIELD_ID, ROW(id)},
    {"kind", FIELD_KIND, ROW(kind)},
    {"at_ms", FIELD_INT, ROW(at_ms)},
    {"tenant", FIELD_TEXT, ROW(tenant)},
    {"seq", FIELD_INT, ROW(seq)},
    {"exec", FIELD_ID, ROW(exec)},
    {"parent", FIELD_ID, ROW(parent)},
    {"owner", FIELD_TEXT, ROW(owner)},
    {"session_id", FIELD_TEXT, ROW(session_id)},
    {"transport", FIELD_TEXT, ROW(transport)},
    {"carrier", FIELD_TEXT, ROW(carrier)},
    {"server", FIELD_TEXT, ROW(server)},
    {"method", FIELD_TEXT, ROW(method)},
    {"tool", FIELD_TEXT, ROW(tool)},
    {"era", FIELD_TEXT, ROW(era)},
    {"outcome", FIELD_TEXT, ROW(outcome)},
    {"error", FIELD_TEXT, ROW(error)},
    {"duration_us", FIELD_INT, ROW(duration_us)},
    {"tokens", FIELD_COUNT, ROW(tokens)},
    {"tool_id", FIELD_TEXT, ROW(tool_id)},
    {"client", FIELD_TEXT, ROW(client)},
    {"request_len", FIELD_COUNT, ROW(request_len)},
    {"origin", FIELD_TEXT, ROW(origin)},
    {"body_len", FIELD_INT, ROW(body_len)},
    {"body_sha", FIELD_DIGEST, ROW(body_sha)},
    {"body", FIELD_TEXT, ROW(body)},
    {"stored_sha", FIELD_DIGEST, ROW(stored_sha)},
    {"mac", FIELD_DIGEST, ROW(mac)},
#undef ROW
};

const char *event_kind_name(int kind)
{
    return kind >= 0 && kind < (int)countof(kind_names) ? kind_names[kind] : NULL;
}

bool event_kind_parse(struct str name, int *ret_kind)
{
    for (int i = 0; i < (int)countof(kind_names); i++) {
        if (str_eq(name, str_of(kind_names[i]))) {
            *ret_kind = i;
            return true;
        }
    }
    return false;
}

static void write_text(struct js_writer *w, const char *name, struct str s)
{
    if (!s.p)
        return;
    if (utf8_is_valid(s)) {
        js_kv_string(w, name, s);
        return;
    }
    char *hex = xmalloc(2 * s.n + 1);
    hex_encode(s.p, s.n, hex);
    js_key(w, str_of(name));
    js_object(w);
    js_kv_string(w, "hex", str_of(hex));
    js_object_end(w);
    free(hex);
}

/* Omits id 0, which means "no event".  Writes a negative id, which no writer assigns, as a
 * number. */
static void write_id(struct js_writer *w, const char *name, int64_t id)
{
    char text[EVENT_ID_TEXT];
    if (id < 0)
        js_kv_int(w, name, id);
    else if (id > 0)
        js_kv_string(w, name, str_of(event_id_format(id, text)));
}

static void write_digest(struct js_writer *w, const char *name, const uint8_t digest[SHA256_BYTES])
{
    static const uint8_t zero[SHA256_BYTES];
    char text[2 * SHA256_BYTES + 1];
    if (memcmp(digest, zero, sizeof(zero)) == 0)
        return;
    hex_encode(digest, SHA256_BYTES, text);
    js_kv_string(w, name, str_of(text));
}

static void write_field(struct js_writer *w, const struct field *f, const void *at)
{
    switch (f->type) {
    case FIELD_ID:
        write_id(w, f->name, *(const int64_t *)at);
        break;
    case FIELD_INT:
        js_kv_int(w, f->name, *(const int64_t *)at);
        break;
    case FIELD_COUNT: /* omitted when zero */
        if (*(const int64_t *)at)
            js_kv_int(w, f->name, *(const int64_t *)at);
        break;
    case FIELD_KIND: {
        int kind = (int)*(const enum event_kind *)at;
        if (event_kind_name(kind))
            js_kv_string(w, f->name, str_of(event_kind_name(kind)));
        else
            js_kv_int(w, f->name, kind);
        break;
    }
    case FIELD_TEXT:
        write_text(w, f->name, *(const struct str *)at);
        break;
    case FIELD_DIGEST:
        write_digest(w, f->name, at);
        break;
    }
}

void event_to_json(const struct event_row *e, struct js_writer *w)
{
    char time[CLOCK_TEXT];
    clock_format(e->at_ms, time);
    js_object(w);
    for (size_t i = 0; i < countof(fields); i++) {
        write_field(w, &fields[i], (const char *)e + fields[i].offset);
        if (fields[i].offset == offsetof(struct event_row, at_ms))
            js_kv_string(w, "time", str_of(time));
    }
    js_object_end(w);
}

void events_write(struct js_writer *w, const struct event_row *rows, size_t n, int64_t scanned)
{
    js_key(w, STR("events"));
    js_array(w);
    for (size_t i = 0; i < n; i++)
        event_to_json(&rows[i], w);
    js_array_end(w);
    write_id(w, "scanned", scanned);
}

static bool read_text(const struct js_doc *doc, const struct js_node *v, struct arena *mem,
                      struct str *ret)
{
    if (js_type_is(v, JS_STRING)) {
        *ret = js_text(doc, v, mem);
        return true;
    }
    struct str hex = js_text(doc, js_get(doc, v, STR("hex")), mem);
    char *bytes = hex.p ? arena_try_alloc(mem, hex.n / 2 + 1) : NULL;
    if (!bytes || !hex_decode(hex, (uint8_t *)bytes, hex.n / 2))
        return false;
    *ret = str_n(bytes, hex.n / 2);
    return true;
}

static bool read_id(const struct js_doc *doc, const struct js_node *v, struct arena *mem,
                    int64_t *ret)
{
    return js_type_is(v, JS_STRING) ? event_id_parse(js_text(doc, v, mem), ret)
                                    : js_to_i64(doc, v, ret);
}

static bool read_kind(const struct js_doc *doc, const struct js_node *v, struct arena *mem,
                      enum event_kind *ret)
{
    int kind;
    int64_t number;
    if (js_type_is(v, JS_STRING)) {
        if (!event_kind_parse(js_text(doc, v, mem), &kind))
            return false;
        *ret = (enum event_kind)kind;
        return true;
    }
    if (!js_to_i64(doc, v, &number))
        return false;
    *ret = (enum event_kind)number;
    return true;
}

static bool read_field(const struct js_doc *doc, const struct js_node *v, const struct field *f,
                       struct arena *mem, void *at)
{
    switch (f->type) {
    case FIELD_ID:
        return read_id(doc, v, mem, at);
    case FIELD_INT:
    case FIELD_COUNT:
        return js_to_i64(doc, v, at);
    case FIELD_KIND:
        return read_kind(doc, v, mem, at);
    case FIELD_TEXT:
        return read_text(doc, v, mem, at);
    case FIELD_DIGEST:
        return js_type_is(v, JS_STRING) && hex_decode(js_text(doc, v, mem), at, SHA256_BYTES);
    }
    return false;
}

bool event_from_json(const struct js_doc *doc, const struct js_node *v, struct arena *mem,
                     struct event_row *ret, struct error *err)
{
    struct event_row row = {0};
    if (!js_type_is(v, JS_OBJECT))
        return error_set(
            err, ERR_PARSE,
            "an event is not a JSON object; is the other side the same version of Holdfast?");
    for (size_t i = 0; i < countof(fields); i++) {
        const struct js_node *member = js_get(doc, v, str_of(fields[i].name));
        if (member && !read_field(doc, member, &fields[i], mem, (char *)&row + fields[i].offset))
            return error_set(err, ERR_PARSE,
                             "the %s of an event cannot be read; is the other side the same "
                             "version of Holdfast?",
                             fields[i].name);
    }
    *ret = row;
    return true;
}

bool events_from_json(struct str text, struct arena *mem, struct event_row **ret_rows,
                      size_t *ret_n, int64_t *ret_scanned, struct error *err)
{
    struct js_doc doc;
    int64_t scanned = 0;
    if (!js_parse(text, &js_limits_upstream, mem, &doc, NULL))
        return error_set(err, ERR_PARSE, "the answer is not JSON; is that address a Holdfast?");
    const struct js_node *list = js_get(&doc, js_root(&doc), STR("events"));
    if (!js_type_is(list, JS_ARRAY))
        return error_set(err, ERR_PARSE, "the answer holds no events; is that address a Holdfast?");
    const struct js_node *far = js_get(&doc, js_root(&doc), STR("scanned"));
    if (far && !read_id(&doc, far, mem, &scanned))
        return error_set(err, ERR_PARSE,
                         "the answer has no position to continue from; is the other side the same "
                         "version of Holdfast?");
    size_t n = 0, i = 0;
    for (const struct js_node *v = js_first(&doc, list); v; v = js_next(&doc, list, v))
        n++;
    struct event_row *rows = arena_zalloc(mem, (n + 1) * sizeof(*rows));
    for (const struct js_node *v = js_first(&doc, list); v; v = js_next(&doc, list, v))
        if (!event_from_json(&doc, v, mem, &rows[i++], err))
            return false;
    *ret_rows = rows;
    *ret_n = n;
    *ret_scanned = scanned;
    return true;
}
