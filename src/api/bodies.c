/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of single members, and the tables that use them. */
#include "api/bodies.h"

#include "session/bundle.h"

#include "base/clock.h"

#include <stddef.h>

static const char *const client_types[] = {"claude-code", "ide", "agent", "cli", NULL};

/* The values that a request may send: the types, and editors that count as ide. */
static const char *const client_types_taken[] = {"claude-code", "ide",    "agent",     "cli",
                                                 "vscode",      "cursor", "jetbrains", NULL};

static const struct api_kind
    kind_text = {.type = "string"},
    kind_nullable = {.type = "string", .is_nullable = true},
    kind_session_id = {.type = "string",
                       .pattern = "^(?!(\\.{1,2}|metrics|by-id|import|active)$)"
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

static size_t characters(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

bool body_read_text(const struct js_binding *b, const struct js_field *f,
                    const struct js_node *value, void *place, struct error *err)
{
    const struct api_kind *kind = f->data;
    struct str *ret = place, text = js_text(b->doc, value, b->mem);

    if (value->type == JS_NULL && kind->is_nullable) {
        *ret = STR_NONE;
        return true;
    }
    size_t n = text.p ? characters(text) : 0;
    if (!text.p || (int64_t)n < f->min || (f->max && (int64_t)n > f->max) ||
        str_find(text, '\0') != text.n)
        return js_bind_fault(b, value, err, "\"%s\" must be a string of %lld to %lld characters",
                             f->name, (long long)f->min, (long long)f->max);
    *ret = text;
    return true;
}

bool session_id_is_fit(struct str id)
{
    static const struct str reserved[] = {
        {"metrics", 7}, {"by-id", 5}, {"import", 6}, {"active", 6}};

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
                             "\\, and none of: metrics, by-id, import, active",
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
    "agent_context. Stored sealed; never shown again, only for which services there are some."
#define METADATA_MAX (64 * 1024)
#define TTL_HELP "How long it lives: seconds, or a duration such as \"1h30m\"; at most 30 days."

static const struct js_field session_fields[] = {
    {.name = "session_id",
     .kind = JS_BIND_CUSTOM,
     .read = read_session_id,
     .data = &kind_session_id,
     .offset = offsetof(struct session_body, session_id),
     .help = "A name of the client's own, unique in the tenant. Left out: one is made."},
    {TEXT(edge_mcp_id, 1, 255, kind_text, "Which edge node the client is connected to."),
     .required = true},
    {TEXT(client_name, 0, 255, kind_text, "What the client calls itself.")},
    {.name = "client_type",
     .kind = JS_BIND_CUSTOM,
     .read = read_client_type,
     .data = &kind_client_type,
     .offset = offsetof(struct session_body, client_type),
     .help = "What kind of client it is; vscode counts as ide."},
    {TEXT(client_version, 0, 50, kind_text, "The client's version.")},
    {TEXT(core_session_id, 0, 255, kind_text, "The session of another system it belongs to.")},
    {.name = "context_id",
     .kind = JS_BIND_CUSTOM,
     .read = read_uuid,
     .data = &kind_uuid,
     .offset = offsetof(struct session_body, context_id),
     .help = "A context of the tenant to share; left out, it gets its own."},
    {.name = "initialized",
     .kind = JS_BIND_BOOL,
     .offset = offsetof(struct session_body, initialized),
     .help = "The client has shaken hands."},
    {.name = "metadata",
     .kind = JS_BIND_CUSTOM,
     .read = read_object,
     .data = &kind_object,
     .max = METADATA_MAX,
     .offset = offsetof(struct session_body, metadata),
     .help = "Anything; kept in connection_metadata beside ip_address, user_agent, protocol and "
             "tls_version, which are the server's."},
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
    {.name = "tenant_id", .kind = JS_BIND_IGNORED, .help = "Ignored: the credential tells."},
    {.name = "user_id", .kind = JS_BIND_IGNORED, .help = "Ignored: the credential tells."},
    {0},
};
const struct api_body body_session = {
    .name = "SessionCreate", .fields = session_fields, .unknown_ok = true};

#define READ_ONLY(NAME)                                                                            \
    {                                                                                              \
        .name = (NAME), .kind = JS_BIND_CUSTOM, .read = refuse_member, .data = &kind_read_only,    \
        .help = "Read-only: refused."                                                              \
    }

static const struct js_field patch_fields[] = {
    {TEXT(client_name, 0, 255, kind_nullable, "What the client calls itself.")},
    {.name = "client_type",
     .kind = JS_BIND_CUSTOM,
     .read = read_client_type,
     .data = &kind_client_type_nullable,
     .offset = offsetof(struct session_body, client_type),
     .help = "What kind of client it is."},
    {TEXT(client_version, 0, 50, kind_nullable, "The client's version.")},
    {TEXT(core_session_id, 0, 255, kind_nullable, "The session of another system.")},
    {.name = "context_id",
     .kind = JS_BIND_CUSTOM,
     .read = read_uuid,
     .data = &kind_uuid_nullable,
     .offset = offsetof(struct session_body, context_id),
     .help = "A context of the tenant."},
    {.name = "initialized",
     .kind = JS_BIND_BOOL,
     .offset = offsetof(struct session_body, initialized),
     .help = "The client has shaken hands."},
    {.name = "metadata",
     .kind = JS_BIND_CUSTOM,
     .read = read_object,
     .data = &kind_object_nullable,
     .max = METADATA_MAX,
     .offset = offsetof(struct session_body, metadata),
     .help = "Takes the place of the client's part of connection_metadata."},
    {.name = "passthrough_auth",
     .kind = JS_BIND_CUSTOM,
     .read = read_auth,
     .data = &kind_secret_nullable,
     .max = BUNDLE_BYTES_MAX,
     .offset = offsetof(struct session_body, passthrough_auth),
     .help = AUTH_HELP " Takes the place of what is stored; null takes it away."},
    {.name = "tenant_id", .kind = JS_BIND_IGNORED, .help = "Ignored: the credential tells."},
    {.name = "user_id", .kind = JS_BIND_IGNORED, .help = "Ignored: the credential tells."},
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
        {"client_name", FIELD_CLIENT_NAME},       {"client_type", FIELD_CLIENT_TYPE},
        {"client_version", FIELD_CLIENT_VERSION}, {"core_session_id", FIELD_CORE_SESSION_ID},
        {"context_id", FIELD_CONTEXT_ID},         {"initialized", FIELD_INITIALIZED},
        {"metadata", FIELD_CONNECTION_METADATA},  {"passthrough_auth", FIELD_SEALED_AUTH},
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
     .help = TTL_HELP " Left out: as long as before."},
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
     .help = "Which tool ran."},                                                                   \
        {.name = "tool_id",                                                                        \
         .kind = JS_BIND_CUSTOM,                                                                   \
         .read = read_uuid,                                                                        \
         .data = &kind_uuid,                                                                       \
         .offset = offsetof(struct record_body, execution.tool_id),                                \
         .help = "A tool the tenant has used before."},                                            \
        {.name = "arguments",                                                                      \
         .kind = JS_BIND_CUSTOM,                                                                   \
         .read = read_any,                                                                         \
         .data = &kind_any,                                                                        \
         .offset = offsetof(struct record_body, execution.arguments),                              \
         .help = "What it was called with; redacted and cut before it is kept."},                  \
        {.name = "result",                                                                         \
         .kind = JS_BIND_CUSTOM,                                                                   \
         .read = read_any,                                                                         \
         .data = &kind_any,                                                                        \
         .offset = offsetof(struct record_body, execution.result),                                 \
         .help = "What it gave; redacted and cut before it is kept."},                             \
        {.name = "error",                                                                          \
         .kind = JS_BIND_CUSTOM,                                                                   \
         .read = body_read_text,                                                                   \
         .data = &kind_text,                                                                       \
         .max = 65536,                                                                             \
         .offset = offsetof(struct record_body, execution.error),                                  \
         .help = "Why it failed; left out when it did not."},                                      \
        {.name = "duration_ms",                                                                    \
         .kind = JS_BIND_INT,                                                                      \
         .max = MOST_MS,                                                                           \
         .offset = offsetof(struct record_body, execution.duration_ms),                            \
         .help = "How long it took."},                                                             \
    {                                                                                              \
        .name = "tokens_used", .kind = JS_BIND_INT, .max = INT64_C(1000000000000),                 \
        .offset = offsetof(struct record_body, execution.tokens), .help = "Tokens it used."        \
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
     .help = "Which session it ran in."},
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
     .help = "Which edge node asks."},
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
     .help = "The user's tenant; without it, `default`."},
    {.name = "username",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .min = 1,
     .max = 200,
     .required = true,
     .offset = offsetof(struct login_body, username),
     .help = "As `holdfast user create` named it."},
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
     .help = "What the list of devices shall call this one."},
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
     .help = "The last one that was given out; good once."},
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
     .help = "What is added: arrays grow, objects are joined, all else is replaced."},
    {0},
};
const struct api_body body_context_patch_alias = {
    .name = "ContextAppend", .fields = context_patch_fields, .unknown_ok = true};
