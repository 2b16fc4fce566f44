/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of single members, and the tables that use them. */
#include "api/bodies.h"

#include "session/bundle.h"
#include "templates/store/rows.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <stddef.h>

static const char *const client_types[] = {"claude-code", "ide", "agent", "cli", NULL};

/* The values that a request may send: the types, and editors that count as ide. */
static const char *const client_types_taken[] = {"claude-code", "ide",    "agent",     "cli",
                                                 "vscode",      "cursor", "jetbrains", NULL};

static const struct api_kind
    kind_text = {.type = "string"},
    kind_nullable = {.type = "string", .is_nullable = true},
    kind_session_id = {.type = "string",
                       .pattern = "^(?!(\\.{1,2}|metrics|by-id|import|active|details|join)$)"
                                  "[!\"$&-.0-9:;<=>@A-Z\\[\\]^_`a-z{|}~]{0,255}$"},
    kind_uuid = {.type = "string", .format = "uuid"},
    kind_uuid_nullable = {.type = "string", .format = "uuid", .is_nullable = true},
    kind_client_type = {.type = "string", .names = client_types_taken},
    kind_client_type_nullable = {.type = "string",
                                 .names = client_types_taken,
                                 .is_nullable = true},
    kind_duration = {.type = "integer|string",
                     .is_duration = true,
                     .pattern =
                         "^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$|^[0-9]+$"},
    kind_object = {.type = "object"},
    kind_object_nullable = {.type = "object", .is_nullable = true}, kind_any = {.type = NULL},
    kind_secret = {.type = "object", .is_secret = true},
    kind_secret_nullable = {.type = "object", .is_secret = true, .is_nullable = true},
    kind_password = {.type = "string", .format = "password"},
    kind_read_only = {.type = NULL, .is_read_only = true};

bool body_read_text(const struct js_binding *b, const struct js_field *f,
                    const struct js_node *value, void *place, struct error *err)
{
    const struct api_kind *kind = f->data;
    struct str *ret = place, text = js_text(b->doc, value, b->mem);

    if (value->type == JS_NULL && kind->is_nullable) {
        *ret = STR_NONE;
        return true;
    }
    size_t n = text.p ? utf8_count(text) : 0;
    if (!text.p || (int64_t)n < f->min || (f->max && (int64_t)n > f->max) ||
        str_find(text, '\0') != text.n)
        return js_bind_fault(b, value, err, "\"%s\" must be a string of %lld to %lld characters",
                             f->name, (long long)f->min, (long long)f->max);
    *ret = text;
    return true;
}

bool session_id_is_fit(struct str id)
{
    static const struct str reserved[] = {{"metrics", 7}, {"by-id", 5},   {"import", 6},
                                          {"active", 6},  {"details", 7}, {"join", 4}};

    if (!id.n || id.n > SESSION_ID_MAX)
        return false;
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] <= ' ' || id.p[i] >= 0x7f || id.p[i] == '/' || id.p[i] == '?' ||
            id.p[i] == '#' || id.p[i] == '%')
            return false;
    /* No path can name these, because the path decoder refuses them. */
    if (str_eq(id, STR(".")) || str_eq(id, STR("..")) || str_find(id, '\\') != id.n)
        return false;
    for (size_t i = 0; i < countof(reserved); i++)
        if (str_eq(id, reserved[i]))
            return false;
    return true;
}

static bool read_session_id(const struct js_binding *b, const struct js_field *f,
                            const struct js_node *value, void *place, struct error *err)
{
    struct str text = js_text(b->doc, value, b->mem);

    if (text.p && text.n == 0) /* an empty id counts as left out, as in the first API */
        return true;
    if (!text.p || !session_id_is_fit(text))
        return js_bind_fault(b, value, err,
                             "\"%s\" must be 1 to %d visible ASCII characters without / ? # %% and "
                             "\\, and none of: metrics, by-id, import, active, details, join",
                             f->name, SESSION_ID_MAX);
    *(struct str *)place = text;
    return true;
}

bool text_is_uuid(struct str text)
{
    if (text.n != 36)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (is_dash ? c != '-' : !is_hex)
            return false;
    }
    return true;
}

struct str uuid_lower(struct str text, struct arena *mem)
{
    char *lower = arena_alloc(mem, text.n);

    for (size_t i = 0; i < text.n; i++)
        lower[i] = (char)(text.p[i] >= 'A' && text.p[i] <= 'F' ? text.p[i] + 32 : text.p[i]);
    return str_n(lower, text.n);
}

static bool read_uuid(const struct js_binding *b, const struct js_field *f,
                      const struct js_node *value, void *place, struct error *err)
{
    const struct api_kind *kind = f->data;
    struct str *ret = place, text = js_text(b->doc, value, b->mem);

    if (value->type == JS_NULL && kind->is_nullable) {
        *ret = STR_NONE;
        return true;
    }
    if (!text_is_uuid(text))
        return js_bind_fault(b, value, err, "\"%s\" must be a UUID", f->name);
    *ret = uuid_lower(text, b->mem);
    return true;
}

/* The four types of the first API, and the names that its clients send for editors. */
bool client_type_parse(struct str text, struct str *ret, struct error *err)
{
    static const struct {
        const char *alias, *type;
    } aliases[] = {{"vscode", "ide"}, {"cursor", "ide"}, {"jetbrains", "ide"}};

    for (size_t i = 0; i < countof(aliases); i++)
        if (str_ieq(text, str_of(aliases[i].alias)))
            text = str_of(aliases[i].type);
    for (size_t i = 0; client_types[i]; i++)
        if (text.p && str_ieq(text, str_of(client_types[i]))) {
            *ret = str_of(client_types[i]);
            return true;
        }
    return error_set(err, ERR_UNKNOWN_CLIENT_TYPE,
                     "unknown client_type; use claude-code, ide, agent or cli, or leave it out");
}

static bool read_client_type(const struct js_binding *b, const struct js_field *f,
                             const struct js_node *value, void *place, struct error *err)
{
    const struct api_kind *kind = f->data;
    struct str *ret = place, text = js_text(b->doc, value, b->mem);

    if ((value->type == JS_NULL && kind->is_nullable) || (text.p && text.n == 0)) {
        *ret = STR_NONE;
        return true;
    }
    return client_type_parse(text, ret, err);
}

static bool read_ttl(const struct js_binding *b, const struct js_field *f,
                     const struct js_node *value, void *place, struct error *err)
{
    struct str text = value->type == JS_STRING   ? js_text(b->doc, value, b->mem)
                      : value->type == JS_NUMBER ? js_raw(b->doc, value)
                                                 : STR_NONE;
    int64_t ms;

    if (!text.p || !clock_parse_duration(text, &ms) || ms < f->min || ms > f->max)
        return error_set(err, ERR_BAD_DURATION,
                         "invalid duration: \"%s\" is seconds, or a text such as \"1h\", more than "
                         "0 and at most 30 days",
                         f->name);
    *(int64_t *)place = ms;
    return true;
}

static bool read_object(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *value, void *place, struct error *err)
{
    const struct api_kind *kind = f->data;

    if (value->type == JS_NULL && kind->is_nullable) {
        *(struct str *)place = STR_NONE;
        return true;
    }
    struct str raw = js_raw(b->doc, value);
    if (value->type != JS_OBJECT || (f->max && (int64_t)raw.n > f->max))
        return js_bind_fault(b, value, err, "\"%s\" must be an object of at most %lld bytes",
                             f->name, (long long)f->max);
    *(struct str *)place = raw;
    return true;
}

/* Credentials for other services. */
static bool read_auth(const struct js_binding *b, const struct js_field *f,
                      const struct js_node *value, void *place, struct error *err)
{
    struct session_body *body = (struct session_body *)(void *)((char *)place - f->offset);

    if (value->type == JS_NULL) {
        body->passthrough_auth = STR_NONE;
        return true;
    }
    if (!bundle_check(b->doc, value, b->mem, &body->auth_services, err))
        return false;
    body->passthrough_auth = js_raw(b->doc, value);
    return true;
}

static bool read_any(const struct js_binding *b, const struct js_field *f unused_arg,
                     const struct js_node *value, void *place, struct error *err unused_arg)
{
    *(struct str *)place = js_raw(b->doc, value);
    return true;
}

static bool refuse_member(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *value, void *place unused_arg, struct error *err)
{
    return js_bind_fault(b, value, err, "\"%s\" cannot be changed; leave it out", f->name);
}

#define TEXT(MEMBER, MIN, MAX, KIND, HELP)                                                         \
    .name = #MEMBER, .kind = JS_BIND_CUSTOM, .read = body_read_text, .data = &(KIND),              \
    .min = (MIN), .max = (MAX), .offset = offsetof(struct session_body, MEMBER), .help = (HELP)
#define AUTH_HELP                                                                                  \
    "Credentials for other services: credentials, oauth_tokens, session_tokens, custom_headers, "  \
    "agent_context. They are stored sealed. Answers name the services only."
#define METADATA_MAX (64 * 1024)
#define TTL_HELP "Lifetime: seconds, or a duration such as \"1h30m\"; at most 30 days."

static const struct js_field session_fields[] = {
    {.name = "session_id",
     .kind = JS_BIND_CUSTOM,
     .read = read_session_id,
     .data = &kind_session_id,
     .offset = offsetof(struct session_body, session_id),
     .help = "Name of the session, unique in the tenant (default: a generated one)."},
    {TEXT(edge_mcp_id, 1, 255, kind_text, "Edge node that the client is connected to."),
     .required = true},
    {TEXT(client_name, 0, 255, kind_text, "Name that the client gives itself.")},
    {.name = "client_type",
     .kind = JS_BIND_CUSTOM,
     .read = read_client_type,
     .data = &kind_client_type,
     .offset = offsetof(struct session_body, client_type),
     .help = "Kind of the client; vscode counts as ide."},
    {TEXT(client_version, 0, 50, kind_text, "Version of the client.")},
    {TEXT(core_session_id, 0, 255, kind_text,
          "Session of another system that this one belongs to.")},
    {.name = "context_id",
     .kind = JS_BIND_CUSTOM,
     .read = read_uuid,
     .data = &kind_uuid,
     .offset = offsetof(struct session_body, context_id),
     .help = "Id of an existing context document to share (default: the session gets its own)."},
    {.name = "initialized",
     .kind = JS_BIND_BOOL,
     .offset = offsetof(struct session_body, initialized),
     .help = "Whether the client has completed its handshake."},
    {.name = "metadata",
     .kind = JS_BIND_CUSTOM,
     .read = read_object,
     .data = &kind_object,
     .max = METADATA_MAX,
     .offset = offsetof(struct session_body, metadata),
     .help = "Any object; stored in connection_metadata. The server sets ip_address, user_agent, "
             "protocol and tls_version there."},
    {.name = "passthrough_auth",
     .kind = JS_BIND_CUSTOM,
     .read = read_auth,
     .data = &kind_secret,
     .max = BUNDLE_BYTES_MAX,
     .offset = offsetof(struct session_body, passthrough_auth),
     .help = AUTH_HELP},
    {.name = "ttl",
     .kind = JS_BIND_CUSTOM,
     .read = read_ttl,
     .data = &kind_duration,
     .min = 1,
     .max = SESSION_LIFE_MAX_MS,
     .offset = offsetof(struct session_body, ttl_ms),
     .help = TTL_HELP},
    {TEXT(template, 1, TEMPLATE_NAME_MAX + 8, kind_text,
          "Template to begin with, as NAME (its newest version) or NAME@VERSION. What the request "
          "sends itself takes precedence, but a ttl may not be longer than the template's.")},
    {.name = "tenant_id", .kind = JS_BIND_IGNORED, .help = "Ignored: the credential decides."},
    {.name = "user_id", .kind = JS_BIND_IGNORED, .help = "Ignored: the credential decides."},
    {0},
};
const struct api_body body_session = {
    .name = "SessionCreate", .fields = session_fields, .unknown_ok = true};

#define READ_ONLY(NAME)                                                                            \
    {                                                                                              \
        .name = (NAME), .kind = JS_BIND_CUSTOM, .read = refuse_member, .data = &kind_read_only,    \
        .help = "Read-only; a request with it is refused."                                         \
    }

static const struct js_field patch_fields[] = {
    {TEXT(client_name, 0, 255, kind_nullable, "Name that the client gives itself.")},
    {.name = "client_type",
     .kind = JS_BIND_CUSTOM,
     .read = read_client_type,
     .data = &kind_client_type_nullable,
     .offset = offsetof(struct session_body, client_type),
     .help = "Kind of the client."},
    {TEXT(client_version, 0, 50, kind_nullable, "Version of the client.")},
    {TEXT(core_session_id, 0, 255, kind_nullable, "Session of another system.")},
    {.name = "context_id",
     .kind = JS_BIND_CUSTOM,
     .read = read_uuid,
     .data = &kind_uuid_nullable,
     .offset = offsetof(struct session_body, context_id),
     .help = "Id of a context document of the tenant."},
    {.name = "initialized",
     .kind = JS_BIND_BOOL,
     .offset = offsetof(struct session_body, initialized),
     .help = "Whether the client has completed its handshake."},
    {.name = "metadata",
     .kind = JS_BIND_CUSTOM,
     .read = read_object,
     .data = &kind_object_nullable,
     .max = METADATA_MAX,
     .offset = offsetof(struct session_body, metadata),
     .help = "Replaces the client's part of connection_metadata."},
    {.name = "passthrough_auth",
     .kind = JS_BIND_CUSTOM,
     .read = read_auth,
     .data = &kind_secret_nullable,
     .max = BUNDLE_BYTES_MAX,
     .offset = offsetof(struct session_body, passthrough_auth),
     .help = AUTH_HELP " Replaces the stored credentials; null deletes them."},
    {.name = "setup",
     .kind = JS_BIND_OBJECT,
     .offset = offsetof(struct session_body, setup),
     .fields = session_setup_change_fields,
     .help = "For administrators: how completely the session is recorded, and its limits. Members "
             "that are left out stay."},
    {.name = "tenant_id", .kind = JS_BIND_IGNORED, .help = "Ignored: the credential decides."},
    {.name = "user_id", .kind = JS_BIND_IGNORED, .help = "Ignored: the credential decides."},
    READ_ONLY("id"),
    READ_ONLY("session_id"),
    READ_ONLY("edge_mcp_id"),
    READ_ONLY("status"),
    READ_ONLY("connection_metadata"),
    READ_ONLY("last_activity_at"),
    READ_ONLY("tool_execution_count"),
    READ_ONLY("total_tokens_used"),
    READ_ONLY("created_at"),
    READ_ONLY("expires_at"),
    READ_ONLY("terminated_at"),
    READ_ONLY("termination_reason"),
    READ_ONLY("origin"),
    {0},
};
const struct api_body body_session_patch = {
    .name = "SessionPatch", .fields = patch_fields, .takes_null = true};

unsigned body_patch_column(const struct js_field *field)
{
    static const struct {
        const char *name;
        unsigned column;
    } table[] = {
        {"client_name", FIELD_CLIENT_NAME},
        {"client_type", FIELD_CLIENT_TYPE},
        {"client_version", FIELD_CLIENT_VERSION},
        {"core_session_id", FIELD_CORE_SESSION_ID},
        {"context_id", FIELD_CONTEXT_ID},
        {"initialized", FIELD_INITIALIZED},
        {"metadata", FIELD_CONNECTION_METADATA},
        {"passthrough_auth", FIELD_SEALED_AUTH},
        {"setup", FIELD_SETUP},
    };
    for (size_t i = 0; i < countof(table); i++)
        if (strcmp(table[i].name, field->name) == 0)
            return table[i].column;
    return 0;
}

static const struct js_field refresh_fields[] = {
    {.name = "ttl",
     .kind = JS_BIND_CUSTOM,
     .read = read_ttl,
     .data = &kind_duration,
     .min = 1,
     .max = SESSION_LIFE_MAX_MS,
     .offset = offsetof(struct refresh_body, ttl_ms),
     .help = TTL_HELP " Default: the previous lifetime."},
    {0},
};
const struct api_body body_refresh = {
    .name = "SessionRefresh", .fields = refresh_fields, .is_optional = true};

#define MOST_MS (INT64_C(366) * 24 * 3600 * 1000)
#define REPORTED_FIELDS                                                                            \
    {.name = "tool_name",                                                                          \
     .kind = JS_BIND_CUSTOM,                                                                       \
     .read = body_read_text,                                                                       \
     .data = &kind_text,                                                                           \
     .min = 1,                                                                                     \
     .max = 255,                                                                                   \
     .required = true,                                                                             \
     .offset = offsetof(struct record_body, execution.tool),                                       \
     .help = "Name of the tool."},                                                                 \
        {.name = "tool_id",                                                                        \
         .kind = JS_BIND_CUSTOM,                                                                   \
         .read = read_uuid,                                                                        \
         .data = &kind_uuid,                                                                       \
         .offset = offsetof(struct record_body, execution.tool_id),                                \
         .help = "Id of a tool that the tenant has used before."},                                 \
        {.name = "arguments",                                                                      \
         .kind = JS_BIND_CUSTOM,                                                                   \
         .read = read_any,                                                                         \
         .data = &kind_any,                                                                        \
         .offset = offsetof(struct record_body, execution.arguments),                              \
         .help = "Arguments of the call. They are redacted and cut before they are stored."},      \
        {.name = "result",                                                                         \
         .kind = JS_BIND_CUSTOM,                                                                   \
         .read = read_any,                                                                         \
         .data = &kind_any,                                                                        \
         .offset = offsetof(struct record_body, execution.result),                                 \
         .help = "Result of the call. It is redacted and cut before it is stored."},               \
        {.name = "error",                                                                          \
         .kind = JS_BIND_CUSTOM,                                                                   \
         .read = body_read_text,                                                                   \
         .data = &kind_text,                                                                       \
         .max = 65536,                                                                             \
         .offset = offsetof(struct record_body, execution.error),                                  \
         .help = "Error message, if the tool failed."},                                            \
        {.name = "duration_ms",                                                                    \
         .kind = JS_BIND_INT,                                                                      \
         .max = MOST_MS,                                                                           \
         .offset = offsetof(struct record_body, execution.duration_ms),                            \
         .help = "Duration of the execution."},                                                    \
    {                                                                                              \
        .name = "tokens_used", .kind = JS_BIND_INT, .max = INT64_C(1000000000000),                 \
        .offset = offsetof(struct record_body, execution.tokens), .help = "Number of tokens used." \
    }

static const struct js_field record_fields[] = {REPORTED_FIELDS, {0}};
const struct api_body body_record = {
    .name = "ExecutionRecord", .fields = record_fields, .unknown_ok = true, .or_array = true};

static const struct js_field record_alias_fields[] = {
    {.name = "session_id",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .min = 1,
     .max = SESSION_ID_MAX,
     .required = true,
     .offset = offsetof(struct record_body, session_id),
     .help = "Session in which the tool ran."},
    REPORTED_FIELDS,
    {0},
};
const struct api_body body_record_alias = {
    .name = "SessionExecutionRecord", .fields = record_alias_fields, .unknown_ok = true};

static const struct js_field edge_auth_fields[] = {
    {.name = "edge_mcp_id",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .max = 255,
     .offset = offsetof(struct edge_auth_body, edge_mcp_id),
     .help = "Edge node that sends the request."},
    {0},
};
const struct api_body body_edge_auth = {
    .name = "EdgeAuth", .fields = edge_auth_fields, .is_optional = true, .unknown_ok = true};

static const struct js_field login_fields[] = {
    {.name = "tenant",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .min = 1,
     .max = 64,
     .offset = offsetof(struct login_body, tenant),
     .help = "Tenant of the user (default: `default`)."},
    {.name = "username",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .min = 1,
     .max = 200,
     .required = true,
     .offset = offsetof(struct login_body, username),
     .help = "Name of the user, as given to `holdfast user create`."},
    {.name = "password",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_password,
     .min = 1,
     .max = 1024,
     .required = true,
     .offset = offsetof(struct login_body, password),
     .help = "The user's password."},
    {.name = "device_name",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .max = 100,
     .offset = offsetof(struct login_body, device_name),
     .help = "Name of this device in the list of devices."},
    {0},
};
const struct api_body body_login = {.name = "Login", .fields = login_fields};

static const struct js_field refresh_login_fields[] = {
    {.name = "refresh_token",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_password,
     .min = 1,
     .max = 256,
     .required = true,
     .offset = offsetof(struct refresh_login_body, refresh_token),
     .help = "The refresh token of the last answer. It can be used once."},
    {0},
};
const struct api_body body_refresh_login = {.name = "LoginRefresh", .fields = refresh_login_fields};

const struct api_body body_context = {.name = "Context"};
const struct api_body body_context_patch = {.name = "Context",
                                            .type = "application/merge-patch+json"};

static const struct js_field context_put_fields[] = {
    {.name = "context",
     .kind = JS_BIND_CUSTOM,
     .read = read_object,
     .data = &kind_object,
     .max = (int64_t)CONTEXT_BYTES_MAX,
     .required = true,
     .offset = offsetof(struct context_alias_body, context),
     .help = "The whole document."},
    {0},
};
const struct api_body body_context_put_alias = {
    .name = "ContextReplace", .fields = context_put_fields, .unknown_ok = true};

static const struct js_field context_patch_fields[] = {
    {.name = "append",
     .kind = JS_BIND_CUSTOM,
     .read = read_object,
     .data = &kind_object,
     .max = (int64_t)CONTEXT_BYTES_MAX,
     .required = true,
     .offset = offsetof(struct context_alias_body, append),
     .help = "Object to merge into the document: arrays are appended, objects are merged, other "
             "values are replaced."},
    {0},
};
const struct api_body body_context_patch_alias = {
    .name = "ContextAppend", .fields = context_patch_fields, .unknown_ok = true};
