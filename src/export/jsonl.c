/* SPDX-License-Identifier: Apache-2.0 */
/* Exported sessions as lines of JSON.  A body is written with its own bytes: as a JSON value when it
 * fits into a line, else as a text, else in base64. */
#include "export/line.h"

#include "audit/event_id.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "crypto/base64.h"
#include "crypto/hash.h"
#include "export/origin.h"
#include "export/sign.h"
#include "json/read.h"
#include "json/write.h"

#include <stdio.h>

/* A text may be this much longer than base64, because people can read it. */
#define TEXT_GRACE 4096

void export_line_end(struct export_chain *chain, struct buf *out, size_t from)
{
    const struct str parts[] = {str_n((const char *)chain->link, sizeof(chain->link)),
                                str_n(out->p + from, out->n - from)};
    char hex[2 * SHA256_BYTES + 1];

    sha256_parts(parts, countof(parts), chain->link);
    hex_encode(chain->link, sizeof(chain->link), hex);
    buf_addf(out, ",\"chain\":\"%s\"}\n", hex);
}

struct str export_signed_text(const struct export_chain *chain, int64_t calls,
                              char ret[EXPORT_SIGNED_TEXT])
{
    char hex[2 * SHA256_BYTES + 1];

    hex_encode(chain->link, sizeof(chain->link), hex);
    int n = snprintf(ret, EXPORT_SIGNED_TEXT, "holdfast-session-export %d\n%lld\n%s",
                     EXPORT_FORMAT_VERSION, (long long)calls, hex);
    return str_n(ret, (size_t)n);
}

/* A line without its end: the writer stays inside of the object. */
static size_t begin_line(struct js_writer *w, struct buf *out, const char *type)
{
    size_t from = out->n;

    js_begin(w, out);
    js_object(w);
    js_kv_string(w, "type", str_of(type));
    return from;
}

/* A text as it is, also if a peer sent bytes that are not UTF-8. */
static void kv_text(struct js_writer *w, const char *name, struct str text, struct arena *mem)
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

static void kv_hex(struct js_writer *w, const char *name, const uint8_t *bytes, size_t n)
{
    char hex[2 * 64 + 1];

    hex_encode(bytes, n, hex);
    js_kv_string(w, name, str_n(hex, 2 * n));
}

/* Whether the bytes may stand in a line as they are: one JSON value, without a line break. */
static bool fits_line(struct str bytes)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct js_doc doc;
    bool fits = str_find(bytes, '\n') == bytes.n && str_find(bytes, '\r') == bytes.n &&
                js_parse(bytes, &js_limits_upstream, mem, &doc, NULL);

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

static void write_bytes(struct js_writer *w, struct str bytes, struct arena *mem)
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

static void write_body(struct js_writer *w, const char *name, const struct recorded_body *b,
                       struct arena *mem)
{
    static const uint8_t zero[32];

    js_key(w, str_of(name));
    js_object(w);
    js_kv_string(w, "state", str_of(recorded_state_name(b->state)));
    if (b->length >= 0)
        js_kv_int(w, "length", b->length);
    if (memcmp(b->sha, zero, sizeof(zero)) != 0)
        kv_hex(w, "sha256", b->sha, sizeof(b->sha));
    if (b->bytes.p)
        write_bytes(w, b->bytes, mem);
    js_object_end(w);
}

static void kv_id(struct js_writer *w, const char *name, int64_t id)
{
    char text[EVENT_ID_TEXT];

    if (id)
        js_kv_string(w, name, str_of(event_id_format(id, text)));
}

static void write_call(struct js_writer *w, const struct recorded_call *c, struct arena *mem)
{
    js_kv_int(w, "number", c->number);
    kv_id(w, "id", c->origin_id);
    kv_id(w, "parent", c->parent);
    js_kv_string(w, "kind", str_of(recorded_kind_name(c->kind)));
    js_kv_time(w, "at", c->at_ms);
    if (c->duration_us >= 0)
        js_kv_int(w, "duration_us", c->duration_us);
    if (c->tokens >= 0)
        js_kv_int(w, "tokens", c->tokens);
    kv_text(w, "owner", c->owner, mem);
    kv_text(w, "transport", c->transport, mem);
    kv_text(w, "carrier", c->carrier, mem);
    kv_text(w, "client", c->client, mem);
    kv_text(w, "server", c->server, mem);
    kv_text(w, "method", c->method, mem);
    kv_text(w, "tool", c->tool, mem);
    kv_text(w, "tool_id", c->tool_id, mem);
    kv_text(w, "era", c->era, mem);
    kv_text(w, "outcome", c->outcome, mem);
    kv_text(w, "error", c->error, mem);
    write_body(w, "params", &c->params, mem);
    write_body(w, "result", &c->result, mem);
}

static void jsonl_call(struct export_writer *e, const struct recorded_call *call, struct buf *out)
{
    struct js_writer w;
    size_t from = begin_line(&w, out, "call");

    write_call(&w, call, e->scratch);
    export_line_end(&e->chain, out, from);
}

/* The session. */

static void write_toolsets(struct js_writer *w, struct str toolsets)
{
    if (!toolsets.n)
        return;
    js_key(w, STR("toolsets"));
    js_array(w);
    while (toolsets.n)
        js_string(w, str_split(&toolsets, ','));
    js_array_end(w);
}

/* A JSON column, on one line: line breaks between its tokens become blanks. */
static void kv_json(struct js_writer *w, const char *name, struct str json, struct arena *mem)
{
    if (!json.n)
        return;
    char *copy = arena_alloc(mem, json.n);
    memcpy(copy, json.p, json.n);
    js_flatten(copy, json.n);
    js_kv_raw(w, name, str_n(copy, json.n));
}

static void write_session(struct js_writer *w, const struct export_session *s, struct arena *mem)
{
    const struct session_row *row = s->row;
    struct export_origin o = export_origin_of(row, mem);

    js_object(w);
    js_kv_string(w, "id", row->id);
    js_kv_string(w, "session_id", row->handle);
    js_kv_string(w, "tenant_id", row->tenant);
    js_kv_string(w, "owner", row->owner);
    js_kv_string(w, "user_name", s->user);
    js_kv_string(w, "key_name", s->key);
    js_kv_string(w, "edge_mcp_id", row->edge_mcp_id);
    js_kv_string(w, "client_name", row->client_name);
    js_kv_string(w, "client_type", row->client_type);
    js_kv_string(w, "client_version", row->client_version);
    js_kv_string(w, "status", str_of(session_status_name(o.status)));
    js_kv_string(w, "termination_reason", row->termination_reason);
    js_kv_string(w, "origin", o.origin);
    js_kv_string(w, "carrier", o.carrier);
    js_kv_bool(w, "initialized", row->initialized);
    js_kv_string(w, "core_session_id", row->core_session_id);
    kv_json(w, "connection_metadata", row->connection_metadata, mem);
    kv_json(w, "setup", row->setup, mem);
    write_toolsets(w, row->toolsets);
    kv_json(w, "lineage", row->lineage, mem);
    js_kv_time(w, "created_at", o.created_ms);
    js_kv_time(w, "last_activity_at", o.last_activity_ms);
    js_kv_time(w, "terminated_at", o.terminated_ms);
    js_kv_int(w, "tool_execution_count", o.calls);
    js_kv_int(w, "total_tokens_used", o.tokens);
    js_kv_string(w, "context_id", row->context_id);
    if (s->context.n) {
        js_key(w, STR("context"));
        js_object(w);
        write_bytes(w, s->context, mem);
        js_object_end(w);
    }
    js_object_end(w);
}

static void jsonl_begin(struct export_writer *e, struct buf *out)
{
    struct js_writer w;
    size_t from = begin_line(&w, out, "session");

    js_kv_int(&w, "format", EXPORT_FORMAT_VERSION);
    js_kv_string(&w, "holdfast", STR(HOLDFAST_VERSION));
    if (e->key)
        kv_hex(&w, "key", export_key_public(e->key), EXPORT_KEY_BYTES);
    js_key(&w, STR("session"));
    write_session(&w, e->session, e->scratch);
    export_line_end(&e->chain, out, from);
}

static void jsonl_end(struct export_writer *e, struct buf *out)
{
    uint8_t signature[EXPORT_SIGNATURE_BYTES];
    char text[EXPORT_SIGNED_TEXT];
    struct js_writer w;
    size_t from = begin_line(&w, out, "end");

    js_kv_int(&w, "calls", e->calls);
    if (e->key) {
        export_sign(e->key, export_signed_text(&e->chain, e->calls, text), signature);
        kv_hex(&w, "signature", signature, sizeof(signature));
    }
    export_line_end(&e->chain, out, from);
}

const struct export_format export_jsonl = {
    .name = "jsonl",
    .type = "application/x-ndjson",
    .begin = jsonl_begin,
    .call = jsonl_call,
    .end = jsonl_end,
};
