/* SPDX-License-Identifier: Apache-2.0 */
#include "api/admin_bodies.h"

#include "api/bodies.h"
#include "base/clock.h"
#include "identity/scopes.h"

#include <stddef.h>

static const char *const roles[] = {"admin", "member", "auditor", "service", NULL};
static const struct api_kind
    kind_text = {.type = "string"},
    kind_tenant = {.type = "string", .pattern = "^[A-Za-z0-9._-]{1,64}$"},
    kind_role = {.type = "string", .names = roles}, kind_scopes = {.type = "object"},
    kind_duration = {.type = "integer|string",
                     .is_duration = true,
                     .pattern =
                         "^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$|^[0-9]+$"};

static const struct api_kind kind_password = {.type = "string", .format = "password"},
                             kind_boolean = {.type = "boolean"};

static bool read_role(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      void *place, struct error *err)
{
    return (v->type == JS_STRING && role_parse(js_text(b->doc, v, b->mem), place)) ||
           js_bind_fault(b, v, err, "\"%s\" must be admin, member, auditor or service", f->name);
}

static bool read_scopes(const struct js_binding *b, const struct js_field *f unused_arg,
                        const struct js_node *v, void *place, struct error *err)
{
    const struct scopes *scopes = NULL;

    if (!scopes_parse(js_raw(b->doc, v), b->mem, &scopes, err))
        return false;
    *(struct scopes *)place = *scopes;
    return true;
}

/* Seconds, or a text with units.  key_request_check() checks the bounds. */
static bool read_life(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      void *place, struct error *err)
{
    struct str text = v->type == JS_STRING   ? js_text(b->doc, v, b->mem)
                      : v->type == JS_NUMBER ? js_raw(b->doc, v)
                                             : STR_NONE;

    return (text.p && clock_parse_duration(text, place) && *(int64_t *)place > 0) ||
           js_bind_fault(b, v, err, "\"%s\" must be seconds, or a text such as \"90d\"", f->name);
}

#define AT(member) .offset = offsetof(struct key_request, member)
static const struct js_field key_fields[] = {
    {.name = "tenant",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_tenant,
     .min = 1,
     .max = 64,
     AT(tenant),
     .help = "Tenant of the key: the caller's own. On the unix socket: any tenant (default: "
             "`default`)."},
    {.name = "name",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .min = 1,
     .max = KEY_NAME_MAX,
     AT(name),
     .help = "Name for people."},
    {.name = "role",
     .kind = JS_BIND_CUSTOM,
     .read = read_role,
     .data = &kind_role,
     AT(role),
     .help = "Role (default: `member`)."},
    {.name = "user",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .min = 1,
     .max = KEY_NAME_MAX,
     AT(user),
     .help = "User that the key acts for (default: none, the key acts for itself)."},
    {.name = "scopes",
     .kind = JS_BIND_CUSTOM,
     .read = read_scopes,
     .data = &kind_scopes,
     AT(scopes),
     .help = "Scopes of the key: servers, tools, folders, review, read_only, limits. They cannot "
             "be wider than the caller's own."},
    {.name = "expires_in",
     .kind = JS_BIND_CUSTOM,
     .read = read_life,
     .data = &kind_duration,
     .min = KEY_LIFE_MIN_MS,
     .max = KEY_LIFE_MAX_MS,
     AT(expires_in_ms),
     .help = "Time until the key expires: seconds, or a text such as \"90d\" (default: never)."},
    {0},
};
const struct api_body body_key = {.name = "KeyCreate", .fields = key_fields};

static const struct js_field secret_fields[] = {
    {.name = "value",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .required = true,
     .min = 1,
     .max = CONFIG_SECRET_BYTES_MAX,
     .offset = offsetof(struct secret_body, value),
     .help = "The secret: at most 64 KiB of text without NUL. It is stored sealed and never "
             "returned."},
    {0},
};
const struct api_body body_secret = {.name = "SecretSet", .fields = secret_fields};

static const struct js_field approve_fields[] = {
    {.name = "tool",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .min = 1,
     .max = 65536,
     .offset = offsetof(struct approve_body, tool),
     .help = "Tool to approve (default: every tool that differs from its approved definition)."},
    {.name = "digest",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .min = 1,
     .max = 64,
     .offset = offsetof(struct approve_body, digest),
     .help = "Approve only if the tool still has this digest: at least 16 hex digits of it."},
    {0},
};
const struct api_body body_approve = {
    .name = "ToolApproval", .fields = approve_fields, .is_optional = true};

static const struct js_field user_fields[] = {
    {.name = "tenant",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_tenant,
     .min = 1,
     .max = 64,
     .offset = offsetof(struct user_body, tenant),
     .help = "Tenant of the user: the caller's own. On the unix socket: any tenant (default: "
             "`default`)."},
    {.name = "username",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .min = 1,
     .max = KEY_NAME_MAX,
     .required = true,
     .offset = offsetof(struct user_body, username),
     .help = "Name of the user, without blanks."},
    {.name = "password",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_password,
     .min = 1,
     .max = 1024,
     .required = true,
     .offset = offsetof(struct user_body, password),
     .help = "First password: 8 to 1024 bytes."},
    {.name = "role",
     .kind = JS_BIND_CUSTOM,
     .read = read_role,
     .data = &kind_role,
     .offset = offsetof(struct user_body, role),
     .help = "Role (default: `member`)."},
    {0},
};
const struct api_body body_user = {.name = "UserCreate", .fields = user_fields};

static bool read_disabled(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, void *place, struct error *err)
{
    if (v->type != JS_TRUE && v->type != JS_FALSE)
        return js_bind_fault(b, v, err, "\"%s\" must be true or false", f->name);
    *(int *)place = v->type == JS_TRUE ? DISABLED_TRUE : DISABLED_FALSE;
    return true;
}

static const struct js_field user_patch_fields[] = {
    {.name = "password",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_password,
     .min = 1,
     .max = 1024,
     .offset = offsetof(struct user_patch_body, password),
     .help = "New password: 8 to 1024 bytes. The user is signed out everywhere."},
    {.name = "disabled",
     .kind = JS_BIND_CUSTOM,
     .read = read_disabled,
     .data = &kind_boolean,
     .offset = offsetof(struct user_patch_body, disabled),
     .help = "true: the user may not sign in, and its open streams are closed. Cannot be sent "
             "together with a password."},
    {0},
};
const struct api_body body_user_patch = {.name = "UserPatch", .fields = user_patch_fields};
