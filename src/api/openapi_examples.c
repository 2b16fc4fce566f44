/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of requests and answers.  Members come in the order of their tables, each with the value
 * that this file, or a part of another folder, has for its name.  Optional members without a value
 * are left out. */
#include "api/openapi_impl.h"

#include <stdio.h>

static const struct api_example values[] = {
    {"session_id", "\"session-1\""},
    {"tenant_id", "\"default\""},
    {"edge_mcp_id", "\"edge-1\""},
    {"client_name", "\"Editor\""},
    {"client_type", "\"ide\""},
    {"client_version", "\"1.4.0\""},
    {"initialized", "true"},
    {"metadata", "{\"region\":\"eu\"}"},
    {"connection_metadata",
     "{\"region\":\"eu\",\"ip_address\":\"127.0.0.1\",\"user_agent\":\"editor/1.4\","
     "\"protocol\":\"HTTP/1.1\",\"tls_version\":\"none\"}"},
    {"ttl", "\"1h30m\""},
    {"expires_at", "\"2026-11-16T12:00:00.000Z\""},
    {"server", "\"files\""},
    {"tool_name", "\"read_file\""},
    {"arguments", "{\"path\":\"notes.md\"}"},
    {"result", "{\"content\":[{\"type\":\"text\",\"text\":\"# Notes\"}]}"},
    {"duration_ms", "12"},
    {"tokens_used", "340"},
    {"context", "{\"topic\":\"release notes\"}"},
    {"append", "{\"steps\":[\"drafted\"]}"},
    {"next_cursor", "null"},
    {"services", "[\"github\"]"},
    {"value", "\"s3cr3t-value\""},
    {"used_by", "[\"github\"]"},
    {"message", "\"activity updated\""},
    {"average_session_time_minutes", "12.5"},
    {"username", "\"ada\""},
    {"password", "\"four words of your own\""},
    {"device_name", "\"laptop\""},
    {"role", "\"member\""},
    {"access_token", "\"the-next-one\""},
    {"token_type", "\"Bearer\""},
    {"expires_in", "900"},
    {"refresh_token", "\"the-last-one\""},
    {"user", "{\"id\":\"01932c5e-7d1a-7b7e-9a52-3f1f6a0c2b41\",\"username\":\"ada\",\"tenant_id\":"
             "\"default\",\"role\":\"member\"}"},
    {"ip_address", "\"192.0.2.1\""},
    {"device_info", "{\"user_agent\":\"curl/8.0\",\"device_name\":\"laptop\"}"},
    {"last_activity", "\"2026-11-15T12:00:00.000Z\""},
    {"current", "true"},
    {"reason", "\"reads better\""},
    {"name", "\"laptop\""},
    {"key", "\"shown-this-once\""},
    {"scopes", "{\"servers\":[\"files\"]}"},
    {"limits", "{\"tenant\":{\"requests\":\"600/m\"},\"key\":{},\"max_sessions\":100}"},
    {"disabled", "false"},
    {"revoked_at", "null"},
    {"last_used_at", "null"},
    {0},
};

static struct str find_value(const struct api_example *list, const char *name)
{
    for (; list->name; list++)
        if (strcmp(list->name, name) == 0)
            return str_of(list->json);
    return STR_NONE;
}

static struct str value_of(const char *name)
{
    size_t n;
    const struct api_part *const *parts = api_parts(&n);
    struct str found = find_value(values, name);

    for (size_t i = 0; !found.p && i < n; i++)
        found = find_value(parts[i]->examples, name);
    return found;
}

/* Requests. */

static bool is_shown(const struct js_field *f)
{
    const struct api_kind *kind = f->data;
    return f->kind != JS_BIND_IGNORED &&
           !(f->kind == JS_BIND_CUSTOM && kind && (kind->is_read_only || kind->is_secret));
}

/* A member of an answer may have the same name and another type. */
static bool fits(const struct js_field *f, struct str json)
{
    const struct api_kind *kind = f->kind == JS_BIND_CUSTOM ? f->data : NULL;
    bool is_string = kind && kind->type && strcmp(kind->type, "string") == 0;

    return json.p && (!is_string || json.p[0] == '"');
}

void openapi_body_example(struct js_writer *w, const struct api_body *body)
{
    js_object(w);
    if (!body->fields)
        js_kv_string(w, "topic", STR("release notes"));
    for (const struct js_field *f = body->fields; f && f->name; f++)
        if (is_shown(f) && fits(f, value_of(f->name)))
            js_kv_raw(w, f->name, value_of(f->name));
    js_object_end(w);
}

/* Answers. */

static void write_value(struct js_writer *w, const struct api_member *m)
{
    bool is_array = m->type && strcmp(m->type, "array") == 0;
    bool is_bool = m->type && strcmp(m->type, "boolean") == 0;
    bool is_string = m->type && strncmp(m->type, "string", 6) == 0;
    bool is_uuid = m->format && strcmp(m->format, "uuid") == 0;

    if (is_array && m->ref) {
        js_array(w);
        openapi_answer_example(w, openapi_schema_named(m->ref));
        js_array_end(w);
    } else if (is_uuid) {
        js_string(w, STR("01932c5e-7d1a-7b7e-9a52-3f1f6a0c2b41"));
    } else if (m->ref && m->type && strcmp(m->type, "object") == 0) {
        openapi_answer_example(w, openapi_schema_named(m->ref));
    } else if (value_of(m->name).p) {
        js_raw_value(w, value_of(m->name));
    } else if (m->ref) {
        openapi_answer_example(w, openapi_schema_named(m->ref));
    } else if (m->names) {
        js_string(w, str_of(m->names[0]));
    } else if (is_string) {
        js_string(w, m->format ? STR("2026-11-15T12:00:00.000Z") : str_of(m->help));
    } else {
        js_raw_value(w, is_array ? STR("[]") : is_bool ? STR("true") : STR("1"));
    }
}

void openapi_answer_example(struct js_writer *w, const struct api_schema *schema)
{
    js_object(w);
    if (!schema->members)
        js_kv_string(w, "topic", STR("release notes"));
    for (const struct api_member *m = schema->members; m && m->name; m++) {
        if (!m->is_required && !value_of(m->name).p)
            continue;
        js_key(w, str_of(m->name));
        write_value(w, m);
    }
    js_object_end(w);
}

static enum err_code code_of(int status, bool is_once)
{
    static const struct {
        int status;
        enum err_code code;
    } table[] = {
        {400, ERR_BAD_INPUT},
        {401, ERR_TENANT_NOT_FOUND},
        {403, ERR_DENIED},
        {404, ERR_SESSION_NOT_FOUND},
        {409, ERR_SESSION_NOT_ACTIVE},
        {412, ERR_PRECONDITION_FAILED},
        {413, ERR_TOO_LARGE},
        {415, ERR_MEDIA_TYPE},
        {422, ERR_IDEMPOTENCY_MISMATCH},
        {428, ERR_PRECONDITION_MISSING},
        {429, ERR_SESSION_LIMIT},
        {503, ERR_UNAVAILABLE},
    };

    for (size_t i = 0; i < countof(table); i++)
        if (table[i].status == status)
            return status == 409 && is_once ? ERR_IDEMPOTENCY_BUSY : table[i].code;
    return ERR_INTERNAL;
}

void openapi_problem_example(struct js_writer *w, int status, const char *detail, bool is_once)
{
    const struct error_info *info = error_info(code_of(status, is_once));
    char type[96];

    snprintf(type, sizeof(type), "urn:holdfast:problem:%s", info->name);
    js_object(w);
    js_kv_string(w, "type", str_of(type));
    js_kv_string(w, "title", str_of(info->sentence));
    js_kv_int(w, "status", status);
    js_kv_string(w, "detail", str_of(detail));
    js_kv_string(w, "code", str_of(info->name));
    js_kv_string(w, "request_id", STR("req_9f86d081884c7d65"));
    js_kv_string(w, "error", str_of(detail));
    js_object_end(w);
}
