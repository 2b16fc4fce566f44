/* SPDX-License-Identifier: Apache-2.0 */
/* Exported sessions as lines of JSON.  A body is written with its own bytes
 * (recording/bytes.h). */
#include "export/line.h"

#include "audit/event_id.h"
#include "base/clock.h"
#include "crypto/hash.h"
#include "export/origin.h"
#include "export/sign.h"
#include "json/write.h"
#include "recording/bytes.h"
#include "session/setup.h"

#include <stdio.h>

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

static void kv_hex(struct js_writer *w, const char *name, const uint8_t *bytes, size_t n)
{
    char hex[2 * 64 + 1];

    hex_encode(bytes, n, hex);
    js_kv_string(w, name, str_n(hex, 2 * n));
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
        recorded_bytes_write(w, b->bytes, mem);
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
    recorded_text_write(w, "owner", c->owner, mem);
    recorded_text_write(w, "transport", c->transport, mem);
    recorded_text_write(w, "carrier", c->carrier, mem);
    recorded_text_write(w, "client", c->client, mem);
    recorded_text_write(w, "server", c->server, mem);
    recorded_text_write(w, "method", c->method, mem);
    recorded_text_write(w, "tool", c->tool, mem);
    recorded_text_write(w, "tool_id", c->tool_id, mem);
    recorded_text_write(w, "era", c->era, mem);
    recorded_text_write(w, "outcome", c->outcome, mem);
    recorded_text_write(w, "error", c->error, mem);
    write_body(w, "params", &c->params, mem);
    write_body(w, "result", &c->result, mem);
}

void export_write_call(struct buf *out, const struct recorded_call *call, struct arena *mem)
{
    struct js_writer w;

    begin_line(&w, out, "call");
    write_call(&w, call, mem);
}

static void jsonl_call(struct export_writer *e, const struct recorded_call *call, struct buf *out)
{
    size_t from = out->n;

    export_write_call(out, call, e->scratch);
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
    js_kv_raw(w, "setup", session_setup_for_copy(row->setup, mem));
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
        recorded_bytes_write(w, s->context, mem);
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
