/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on one session besides PATCH: activity, validate, refresh; and the authentication
 * request of edge clients. */
#include "api/bodies.h"

#include "base/clock.h"
#include "json/write.h"

static struct str take(struct buf *out, struct arena *mem)
{
    struct str text = arena_dup(mem, buf_str(out));
    buf_release(out);
    return text;
}

/* An expired or terminated session is answered as missing, as in the first API. */
static void on_used(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);

    if (reg->result == REGISTRY_NOT_ACTIVE)
        reg->result = REGISTRY_MISSING;
    if (reg->result == REGISTRY_OK)
        api_reply_prepared(c, STR_NONE);
    else
        api_refuse_result(c);
}

void api_use_session(struct api_call *c)
{
    api_prepare(c, 200, STR_NONE, STR("{\"message\":\"activity updated\"}"));
    api_session(c, on_used);
    registry_use(c->sv->registry, &c->reg);
}

/* An invalid session is not an error: the answer is 200 with `valid` false and the reason. */
static void on_validated(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);
    const struct session_row *row = reg->row;
    struct js_writer w;
    struct buf out;

    if (reg->result != REGISTRY_OK) {
        api_refuse_result(c);
        return;
    }
    buf_init(&out, 8192);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_bool(&w, "valid", row->status == SESSION_ACTIVE || row->status == SESSION_IDLE);
    js_kv_string(&w, "session_id", row->handle);
    js_kv_string(&w, "status", str_of(session_status_name(row->status)));
    json_kv_time(&w, "expires_at", row->expires_ms);
    js_kv_string(&w, "termination_reason", row->termination_reason);
    js_object_end(&w);
    api_reply(c, 200, STR_NONE, take(&out, c->mem));
}

void api_validate_session(struct api_call *c)
{
    api_session(c, on_validated);
    if (registry_get(c->sv->registry, &c->reg))
        on_validated(&c->reg);
}

/* Refresh. */

static void on_refreshed(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);

    if (reg->result == REGISTRY_OK)
        api_reply_prepared(c, STR_NONE);
    else
        api_refuse_result(c);
}

static void prepare_refresh(struct api_call *c, struct str handle, int64_t expires_ms)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, 8192);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "message", STR("session refreshed"));
    js_kv_string(&w, "session_id", handle);
    json_kv_time(&w, "expires_at", expires_ms);
    js_object_end(&w);
    api_prepare(c, 200, STR_NONE, take(&out, c->mem));
}

/* A session without a ttl of its own gets the default ttl of the tenant from now on, but ends at
 * most SESSION_LIFE_MAX_MS after its creation. */
static void on_refresh_read(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);
    const struct refresh_body *b = c->args;
    int64_t now = clock_life_ms();

    if (reg->result != REGISTRY_OK) {
        api_refuse_result(c);
        return;
    }
    int64_t ttl = b->ttl_ms ? b->ttl_ms : reg->row->ttl_ms;
    int64_t until = now + (ttl ? ttl : api_default_ttl_ms(c));
    if (!ttl && until > reg->row->created_ms + SESSION_LIFE_MAX_MS)
        until = reg->row->created_ms + SESSION_LIFE_MAX_MS;
    prepare_refresh(c, reg->row->handle, until);
    api_session(c, on_refreshed);
    registry_refresh(c->sv->registry, &c->reg, until, ttl);
}

void api_refresh_session(struct api_call *c)
{
    struct refresh_body *b = arena_new_of(c->mem, struct refresh_body);

    c->args = b;
    if (c->doc.n && !api_bind(c, js_root(&c->doc), &body_refresh, b, NULL, NULL))
        return;
    api_session(c, on_refresh_read);
    if (registry_get(c->sv->registry, &c->reg))
        on_refresh_read(&c->reg);
}

/* Only the credential identifies the caller; the body does not. */
void api_edge_auth(struct api_call *c)
{
    struct edge_auth_body *b = arena_new_of(c->mem, struct edge_auth_body);
    struct js_writer w;
    struct buf out;

    if (c->doc.n && !api_bind(c, js_root(&c->doc), &body_edge_auth, b, NULL, NULL))
        return;
    buf_init(&out, 8192);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_bool(&w, "success", true);
    js_kv_string(&w, "tenant_id", c->who.tenant);
    js_object_end(&w);
    api_reply(c, 200, STR_NONE, take(&out, c->mem));
}
