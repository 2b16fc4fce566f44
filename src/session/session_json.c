/* SPDX-License-Identifier: Apache-2.0 */
/* Writes rows as JSON, for REST and the built-in session server. */
#include "session/session_json.h"

#include "base/clock.h"
#include "crypto/hash.h"
#include "session/profile_context.h"
#include "session/sealed.h"

#include <stdio.h>

void json_kv_time(struct js_writer *w, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT];

    if (!wall_ms)
        return;
    clock_format(wall_ms, text);
    js_kv_string(w, key, str_of(text));
}

/* Shows that there are credentials, and their services.  Nothing else is ever shown. */
static void auth_to_json(struct str sealed_auth, struct js_writer *w)
{
    struct arena *mem = arena_new(1024 * 1024);
    struct sealed s;

    js_key(w, STR("passthrough_auth"));
    js_object(w);
    js_kv_bool(w, "has_auth", true);
    js_kv_raw(w, "services", sealed_read(sealed_auth, mem, &s) ? s.services : STR("[]"));
    js_object_end(w);
    arena_free(mem);
}

/* Shows the keys of the client's context, never a value. */
static void context_to_json(struct str sealed, struct js_writer *w)
{
    struct arena *mem = arena_new(1024 * 1024);
    uint8_t ignored[SHA256_BYTES];
    struct str keys;

    js_kv_raw(w, "profile_context_keys",
              profile_context_read_label(sealed, mem, &keys, ignored) ? keys : STR("[]"));
    arena_free(mem);
}

int64_t session_refresh_due_ms(const struct session_row *row)
{
    int64_t life = row->ttl_ms ? row->ttl_ms : row->expires_ms - row->last_activity_ms;

    return row->expires_ms ? row->expires_ms - life / 5 : INT64_MAX;
}

void session_add_age(struct buf *out, struct str json, int64_t created_ms)
{
    int64_t age = clock_life_ms() - created_ms;

    buf_add(out, json.p, json.n - 1); /* without its closing brace */
    buf_addf(out, ",\"session_age\":%lld}", (long long)(age > 0 ? age / 1000 : 0));
}

void session_to_json(const struct session_row *row, struct js_writer *w)
{
    bool is_live = row->status == SESSION_ACTIVE || row->status == SESSION_IDLE;

    js_object(w);
    js_kv_string(w, "id", row->id);
    js_kv_string(w, "session_id", row->handle);
    js_kv_string(w, "tenant_id", row->tenant);
    js_kv_string(w, "user_id", row->user_id);
    js_kv_string(w, "edge_mcp_id", row->edge_mcp_id);
    js_kv_string(w, "client_name", row->client_name);
    js_kv_string(w, "client_type", row->client_type);
    js_kv_string(w, "client_version", row->client_version);
    js_kv_string(w, "status", str_of(session_status_name(row->status)));
    js_kv_bool(w, "initialized", row->initialized);
    js_kv_string(w, "core_session_id", row->core_session_id);
    if (row->connection_metadata.n)
        js_kv_raw(w, "connection_metadata", row->connection_metadata);
    if (row->sealed_auth.n)
        auth_to_json(row->sealed_auth, w);
    if (row->sealed_context.n)
        context_to_json(row->sealed_context, w);
    if (row->setup.n)
        js_kv_raw(w, "setup", row->setup);
    if (row->lineage.n)
        js_kv_raw(w, "lineage", row->lineage);
    js_kv_string(w, "context_id", row->context_id);
    json_kv_time(w, "last_activity_at", row->last_activity_ms);
    js_kv_int(w, "tool_execution_count", row->tool_count);
    js_kv_int(w, "total_tokens_used", row->tokens_used);
    json_kv_time(w, "created_at", row->created_ms);
    json_kv_time(w, "expires_at", row->expires_ms);
    json_kv_time(w, "terminated_at", row->terminated_ms);
    js_kv_string(w, "termination_reason", row->termination_reason);
    js_kv_string(w, "origin", str_of(session_origin_name(row->origin)));
    js_kv_bool(w, "is_expired", row->status == SESSION_EXPIRED);
    js_kv_bool(w, "should_refresh", is_live && clock_life_ms() >= session_refresh_due_ms(row));
    js_object_end(w);
}

void execution_row_to_json(const struct execution_row *row, struct js_writer *w)
{
    char id[EXECUTION_UUID_TEXT];

    execution_uuid(row->exec, id);
    js_object(w);
    js_kv_string(w, "id", str_of(id));
    js_kv_string(w, "session_id", row->session_id);
    js_kv_string(w, "server", row->server);
    js_kv_string(w, "tool_name", row->tool_name.p ? row->tool_name : STR(""));
    js_kv_string(w, "tool_id", row->tool_id);
    if (row->arguments.n)
        js_kv_raw(w, "arguments", row->arguments);
    if (row->result.n)
        js_kv_raw(w, "result", row->result);
    js_kv_string(w, "outcome", row->outcome);
    js_kv_string(w, "error", row->error);
    if (row->duration_ms >= 0)
        js_kv_int(w, "duration_ms", row->duration_ms);
    if (row->tokens >= 0)
        js_kv_int(w, "tokens_used", row->tokens);
    json_kv_time(w, "executed_at", row->executed_ms);
    js_object_end(w);
}

void session_totals_to_json(const struct session_totals *t, struct js_writer *w)
{
    char minutes[64];
    int n = snprintf(minutes, sizeof(minutes), "%.3f", t->average_session_time_minutes);

    js_object(w);
    js_kv_int(w, "active_sessions", t->active_sessions);
    js_kv_int(w, "total_sessions", t->total_sessions);
    js_kv_int(w, "total_tool_executions", t->total_tool_executions);
    js_kv_int(w, "total_tokens_used", t->total_tokens_used);
    js_kv_raw(w, "average_session_time_minutes", str_n(minutes, (size_t)n));
    js_object_end(w);
}

void session_tag(int64_t version, struct str json, char ret[SESSION_TAG_TEXT])
{
    uint8_t sha[SHA256_BYTES];
    char hex[13];

    sha256(json, sha);
    hex_encode(sha, 6, hex);
    snprintf(ret, SESSION_TAG_TEXT, "\"%lld-%s\"", (long long)version, hex);
}

bool session_tag_version(struct str tag, int64_t *ret)
{
    uint64_t version;

    if (tag.n < 3 || tag.p[0] != '"' || tag.p[tag.n - 1] != '"')
        return false;
    struct str rest = str_n(tag.p + 1, tag.n - 2);
    if (!str_to_u64(str_split(&rest, '-'), INT64_MAX, &version))
        return false;
    *ret = (int64_t)version;
    return true;
}
