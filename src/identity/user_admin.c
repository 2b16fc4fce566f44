/* SPDX-License-Identifier: Apache-2.0 */
/* A user's id is derived from tenant and name (key_user_id()), so no lookup is needed. */
#include "identity/user_admin.h"

#include "base/unicode.h"
#include "base/utf8.h"
#include "identity/key_admin.h"

static const char *const verb_names[] = {
    [USER_CREATE] = "create", [USER_PASSWD] = "passwd", [USER_DISABLE] = "disable",
    [USER_ENABLE] = "enable", [USER_REVOKE] = "revoke",
};

static bool name_is_fit(struct str name)
{
    if (!name.n || name.n > KEY_NAME_MAX || !utf8_is_valid(name))
        return false;
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] <= ' ' || name.p[i] == 0x7f)
            return false;
    return true;
}

bool user_request_check(const struct user_request *r, struct error *err)
{
    struct key_request as_key = {.tenant = r->tenant, .role = r->role, .user = r->name};

    if (!name_is_fit(r->name))
        return error_set(err, ERR_BAD_INPUT,
                         "a user's name has 1 to %d bytes without blanks; choose another",
                         KEY_NAME_MAX);
    return key_request_check(&as_key, err);
}

struct str user_name_composed(struct str name, struct arena *mem)
{
    struct str composed = unicode_mapped(name, UNICODE_NFC, mem);
    return composed.p && composed.n <= KEY_NAME_MAX ? composed : name;
}

/* A name with two encodings costs two lookups whether it exists or not. */
bool user_find(struct store *s, struct str tenant, struct str name, struct arena *mem,
               struct user_row **ret_row, struct error *err)
{
    struct str composed = user_name_composed(name, mem);
    struct user_row *other = NULL;

    if (!store_user_by_name(s, tenant, name, mem, ret_row, err))
        return false;
    if (composed.p != name.p && !store_user_by_name(s, tenant, composed, mem, &other, err))
        return false;
    if (!*ret_row)
        *ret_row = other;
    return true;
}

const char *user_verb_name(enum user_verb verb)
{
    return verb_names[verb];
}

void user_change_fill(const struct user_request *r, int64_t now_ms, struct user_change *ret)
{
    static const enum op_kind kinds[] = {
        [USER_CREATE] = OP_USER_CREATE,  [USER_PASSWD] = OP_USER_PASSWORD,
        [USER_DISABLE] = OP_USER_END,    [USER_ENABLE] = OP_USER_END,
        [USER_REVOKE] = OP_LOGIN_REVOKE,
    };
    struct str tenant = r->tenant.p ? r->tenant : STR("default");

    *ret =
        (struct user_change){.who = {.tenant = tenant, .owner = STR("local"), .role = ROLE_ADMIN}};
    key_user_id(tenant, r->name, ret->user_id);
    ret->user = (struct user_row){
        .id = str_of(ret->user_id),
        .tenant = tenant,
        .name = r->name,
        .role = r->role,
        .password = r->hash,
        .created_ms = now_ms,
        .ended_ms = r->verb == USER_DISABLE ? now_ms : 0,
    };
    ret->login = (struct login_row){
        .id = r->login,
        .tenant = tenant,
        .user_id = str_of(ret->user_id),
        .revoked_ms = now_ms,
        .revoke_reason = STR("revoked by an administrator"),
    };
    ret->op = (struct store_op){.kind = kinds[r->verb], .who = &ret->who};
    if (r->verb == USER_REVOKE && !r->login.p)
        ret->op.kind = OP_LOGINS_REVOKE;
    if (r->verb == USER_REVOKE)
        ret->op.login = &ret->login;
    else
        ret->op.user = &ret->user;
}

bool user_change_check(const struct user_request *r, const struct user_change *c, struct error *err)
{
    if (c->op.verdict == VERDICT_OK)
        return true;
    if (r->verb == USER_CREATE)
        return error_set(err, ERR_CONFLICT,
                         "there is such a user already; use `holdfast user passwd` or `holdfast "
                         "user enable`, or choose another name if that user was erased");
    return error_set(err, ERR_NOT_FOUND,
                     r->verb == USER_REVOKE
                         ? "there is no such sign-in any more; see `holdfast user "
                           "sessions`"
                         : "there is no such user; make it with `holdfast user "
                           "create`");
}

void user_write(struct js_writer *w, const struct user_row *row)
{
    js_kv_string(w, "id", row->id);
    js_kv_string(w, "username", row->name);
    js_kv_string(w, "tenant_id", row->tenant);
    js_kv_string(w, "role", str_of(role_name(row->role)));
    js_kv_bool(w, "disabled", row->ended_ms != 0);
}

void login_write(struct js_writer *w, const struct login_row *row)
{
    js_kv_string(w, "id", row->id);
    js_kv_string(w, "ip_address", row->ip_address.p ? row->ip_address : STR(""));
    js_kv_raw(w, "device_info", row->device_info.p ? row->device_info : STR("{}"));
    js_kv_time(w, "created_at", row->created_ms);
    js_kv_time(w, "last_activity", row->last_activity_ms);
    js_kv_time(w, "expires_at", row->expires_ms);
}

void logins_write(struct buf *out, const struct login_row *rows, size_t n)
{
    struct js_writer w;

    js_begin(&w, out);
    js_object(&w);
    js_key(&w, STR("sessions"));
    js_array(&w);
    for (size_t i = 0; i < n; i++) {
        js_object(&w);
        login_write(&w, &rows[i]);
        js_object_end(&w);
    }
    js_array_end(&w);
    js_kv_int(&w, "count", (int64_t)n);
    js_object_end(&w);
}
