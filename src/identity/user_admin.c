/* SPDX-License-Identifier: Apache-2.0 */
/* A user's id is derived from tenant and name (key_user_id()), so no lookup is needed. */
#include "identity/user_admin.h"

#include "base/utf8.h"
#include "identity/key_admin.h"
#include "identity/password.h"
#include "json/bind.h"
#include "json/read.h"

#include <stddef.h>

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
    if ((r->verb == USER_CREATE || r->verb == USER_PASSWD) && !password_hash_is_sound(r->hash))
        return error_set(err, ERR_BAD_INPUT, "the password is not hashed as it should be");
    return key_request_check(&as_key, err);
}

/* The members of the JSON request. */
struct told {
    struct str verb, tenant, name, role, hash, login;
};
#define TEXT(NAME, MEMBER)                                                                         \
    {                                                                                              \
        .name = (NAME), .kind = JS_BIND_STRING, .offset = offsetof(struct told, MEMBER)            \
    }
static const struct js_field fields[] = {
    TEXT("do", verb),
    TEXT("tenant", tenant),
    TEXT("name", name),
    TEXT("role", role),
    TEXT("password_hash", hash),
    TEXT("session", login),
    {0},
};

bool user_request_parse(struct str json, struct arena *mem, struct user_request *ret,
                        struct error *err)
{
    struct told t = {0};
    struct js_doc doc;
    size_t verb = 0;

    if (!js_parse(json, &js_limits_request, mem, &doc, NULL) ||
        !js_type_is(js_root(&doc), JS_OBJECT))
        return error_set(err, ERR_BAD_INPUT, "send a JSON object that says what is to be done");
    struct js_binding b = {.doc = &doc, .mem = mem, .code = ERR_BAD_INPUT, .null_is_absent = true};
    if (!js_bind(&b, js_root(&doc), fields, &t, err))
        return false;
    while (verb < countof(verb_names) && !str_eq(t.verb, str_of(verb_names[verb])))
        verb++;
    struct user_request r = {.verb = (enum user_verb)verb,
                             .tenant = t.tenant,
                             .name = t.name,
                             .role = ROLE_MEMBER,
                             .hash = t.hash,
                             .login = t.login};
    if (verb == countof(verb_names) || (t.role.p && !role_parse(t.role, &r.role)))
        return error_set(err, ERR_BAD_INPUT,
                         "this cannot be done to a user; is it another version?");
    if (!user_request_check(&r, err))
        return false;
    *ret = r;
    return true;
}

struct str user_request_write(const struct user_request *r, struct arena *mem)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, 64 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "do", str_of(verb_names[r->verb]));
    js_kv_string(&w, "tenant", r->tenant);
    js_kv_string(&w, "name", r->name);
    js_kv_string(&w, "role", str_of(role_name(r->role)));
    js_kv_string(&w, "password_hash", r->hash);
    js_kv_string(&w, "session", r->login);
    js_object_end(&w);
    struct str text = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return text;
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
                         "user enable`");
    return error_set(err, ERR_NOT_FOUND,
                     r->verb == USER_REVOKE
                         ? "there is no such sign-in any more; see `holdfast user "
                           "sessions`"
                         : "there is no such user; make it with `holdfast user "
                           "create`");
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
    js_object_end(&w);
}
