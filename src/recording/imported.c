/* SPDX-License-Identifier: Apache-2.0 */
#include "recording/imported.h"

#include "audit/event_id.h"
#include "crypto/hash.h"
#include "recording/bytes.h"
#include "recording/impl.h"

/* A line of an import may be as deep as a body in it, and this much more. */
static const struct js_limits limits = {.depth = 72, .keys = 10000, .nodes = 16 << 20};

static bool is_zero(const uint8_t sha[32])
{
    static const uint8_t zero[32];
    return memcmp(sha, zero, 32) == 0;
}

/* Writing. */

static void write_about(struct js_writer *w, const char *name, const struct recorded_body *b)
{
    char hex[2 * SHA256_BYTES + 1];

    js_key(w, str_of(name));
    js_object(w);
    js_kv_string(w, "state", str_of(recorded_state_name(b->state)));
    if (b->length >= 0)
        js_kv_int(w, "length", b->length);
    if (!is_zero(b->sha)) {
        hex_encode(b->sha, sizeof(b->sha), hex);
        js_kv_string(w, "sha256", str_of(hex));
    }
    js_object_end(w);
}

static void kv_id(struct js_writer *w, const char *name, int64_t id)
{
    char text[EVENT_ID_TEXT];

    if (id)
        js_kv_string(w, name, str_of(event_id_format(id, text)));
}

static struct str origin_of(const struct recorded_call *c, struct arena *mem)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "kind", str_of(recorded_kind_name(c->kind)));
    kv_id(&w, "id", c->origin_id);
    kv_id(&w, "parent", c->parent);
    js_kv_int(&w, "at_ms", c->at_ms);
    recorded_text_write(&w, "owner", c->owner, mem);
    write_about(&w, "params", &c->params);
    write_about(&w, "result", &c->result);
    js_object_end(&w);
    struct str text = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return text;
}

static void write_body(struct js_writer *w, const char *name, const struct recorded_body *b,
                       struct arena *mem)
{
    if (!b->bytes.p)
        return;
    js_key(w, str_of(name));
    js_object(w);
    recorded_bytes_write(w, b->bytes, mem);
    js_object_end(w);
}

static struct str body_of(const struct recorded_call *c, struct arena *mem)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    write_body(&w, "params", &c->params, mem);
    write_body(&w, "result", &c->result, mem);
    js_object_end(&w);
    struct str text = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return text;
}

void imported_call_write(const struct recorded_call *c, struct arena *mem, struct event_row *e)
{
    e->kind = EVENT_IMPORT;
    e->transport = c->transport;
    e->carrier = c->carrier;
    e->client = c->client;
    e->server = c->server;
    e->method = c->method;
    e->tool = c->tool;
    e->tool_id = c->tool_id;
    e->era = c->era;
    e->outcome = c->outcome;
    e->error = c->error;
    e->duration_us = c->duration_us;
    e->tokens = c->tokens > 0 ? c->tokens : 0;
    e->origin = origin_of(c, mem);
    e->body_len = -1;
    if (!c->params.bytes.p && !c->result.bytes.p)
        return;
    e->body = body_of(c, mem);
    e->body_len = (int64_t)e->body.n;
    sha256(e->body, e->body_sha);
    memcpy(e->stored_sha, e->body_sha, sizeof(e->stored_sha));
}

/* Reading.  The seal of the event covers what is read here, so nothing needs to be refused. */

static int64_t id_of(const struct js_doc *doc, const char *name, struct arena *mem)
{
    int64_t id = 0;

    if (!event_id_parse(js_text(doc, js_get(doc, js_root(doc), str_of(name)), mem), &id))
        return 0;
    return id;
}

static void read_about(const struct js_doc *doc, const char *name, struct arena *mem,
                       struct recorded_body *ret)
{
    const struct js_node *about = js_get(doc, js_root(doc), str_of(name));
    struct str hex = js_text(doc, js_get(doc, about, STR("sha256")), mem);

    *ret = (struct recorded_body){.state = RECORDED_NONE, .length = -1};
    if (!recorded_state_parse(js_text(doc, js_get(doc, about, STR("state")), mem), &ret->state) ||
        !js_to_i64(doc, js_get(doc, about, STR("length")), &ret->length))
        ret->length = -1;
    if (hex.p && !hex_decode(hex, ret->sha, sizeof(ret->sha)))
        memset(ret->sha, 0, sizeof(ret->sha));
}

static bool has_bytes(enum recorded_state state)
{
    return state == RECORDED_COMPLETE || state == RECORDED_REDACTED || state == RECORDED_CUT;
}

static void read_bytes(const struct js_doc *doc, const char *name, struct arena *mem,
                       struct recorded_body *b)
{
    const struct js_node *object = doc->n ? js_get(doc, js_root(doc), str_of(name)) : NULL;

    if (!has_bytes(b->state))
        return;
    if (!object || !recorded_bytes_read(doc, object, mem, &b->bytes) || !b->bytes.p)
        b->state = RECORDED_REMOVED;
    else
        b->bytes = arena_dup(mem, b->bytes);
}

static void read_origin(const struct event_row *e, struct arena *mem, struct recorded_call *ret)
{
    struct arena *scratch = arena_new(SIZE_MAX / 4);
    struct js_doc doc = {0}, body = {0};

    if (js_parse(e->origin, &limits, scratch, &doc, NULL)) {
        const struct js_node *root = js_root(&doc);
        if (!recorded_kind_parse(js_text(&doc, js_get(&doc, root, STR("kind")), scratch),
                                 &ret->kind))
            ret->kind = RECORDED_CALL;
        ret->origin_id = id_of(&doc, "id", scratch);
        ret->parent = id_of(&doc, "parent", scratch);
        if (!recorded_text_read(&doc, root, "owner", mem, &ret->owner))
            ret->owner = STR_NONE;
        ret->owner = arena_dup(mem, ret->owner);
        read_about(&doc, "params", scratch, &ret->params);
        read_about(&doc, "result", scratch, &ret->result);
    }
    if (e->body.p && !js_parse(e->body, &limits, scratch, &body, NULL))
        body.n = 0;
    read_bytes(&body, "params", mem, &ret->params);
    read_bytes(&body, "result", mem, &ret->result);
    arena_free(scratch);
}

int64_t imported_call_at(const struct event_row *e)
{
    struct arena *scratch = arena_new(SIZE_MAX / 4);
    int64_t ms = e->at_ms;
    struct js_doc doc;

    if (!js_parse(e->origin, &limits, scratch, &doc, NULL) ||
        !js_to_i64(&doc, js_get(&doc, js_root(&doc), STR("at_ms")), &ms))
        ms = e->at_ms;
    arena_free(scratch);
    return ms;
}

void imported_call_read(const struct event_row *e, struct arena *mem, struct recorded_call *ret)
{
    *ret = (struct recorded_call){
        .id = e->id,
        .kind = RECORDED_CALL,
        .at_ms = imported_call_at(e),
        .duration_us = e->duration_us,
        .tokens = e->tokens > 0 ? e->tokens : -1,
        .transport = e->transport,
        .carrier = e->carrier,
        .client = e->client,
        .server = e->server,
        .method = e->method,
        .tool = e->tool,
        .tool_id = e->tool_id,
        .era = e->era,
        .outcome = e->outcome,
        .error = e->error,
        .params = {.length = -1},
        .result = {.length = -1},
    };
    read_origin(e, mem, ret);
    if (ret->params.state == RECORDED_COMPLETE || ret->params.state == RECORDED_REDACTED)
        ret->arguments = recorded_member(ret->params.bytes, STR("arguments"), mem);
}
