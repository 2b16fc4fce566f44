/* SPDX-License-Identifier: Apache-2.0 */
/* Creates keys and writes their rows as JSON. */
#include "identity/key_admin.h"

#include "base/clock.h"
#include "identity/identity.h"
#include "identity/scopes.h"

static bool is_tenant_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_' || c == '-'))
            return false;
    }
    return name.n >= 1 && name.n <= 64;
}

static bool is_text(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
            return false;
    return text.n >= 1 && text.n <= KEY_NAME_MAX;
}

bool key_request_check(const struct key_request *r, struct error *err)
{
    if (r->tenant.p && !is_tenant_name(r->tenant))
        return error_set(err, ERR_BAD_INPUT,
                         "a tenant's name has 1 to 64 letters, digits and . _ -; choose another");
    if ((r->name.p && !is_text(r->name)) || (r->user.p && !is_text(r->user)))
        return error_set(
            err, ERR_BAD_INPUT,
            "the name of a key or a user has 1 to %d bytes on one line; choose another",
            KEY_NAME_MAX);
    if (r->expires_in_ms &&
        (r->expires_in_ms < KEY_LIFE_MIN_MS || r->expires_in_ms > KEY_LIFE_MAX_MS))
        return error_set(err, ERR_BAD_INPUT,
                         "a key expires after 1 second to 10 years, such as 90d; or leave it out");
    return scopes_check(&r->scopes, err);
}

struct str key_request_write(const struct key_request *r, struct arena *mem)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, 1024 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "tenant", r->tenant);
    js_kv_string(&w, "name", r->name);
    js_kv_string(&w, "role", str_of(role_name(r->role)));
    js_kv_string(&w, "user", r->user);
    js_kv_raw(&w, "scopes", scopes_write(&r->scopes, mem));
    if (r->expires_in_ms)
        js_kv_string(&w, "expires_in", arena_printf(mem, "%lldms", (long long)r->expires_in_ms));
    js_object_end(&w);
    struct str text = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return text;
}

/* The issuer is empty here, and issuers of tokens are never empty, so the two kinds of ids
 * differ. */
void key_user_id(struct str tenant, struct str name, char ret[UUID_TEXT])
{
    char subject[512];
    size_t n = tenant.n + 1 + name.n;

    if (n > sizeof(subject))
        n = sizeof(subject); /* not reached: the lengths were checked */
    memset(subject, 0, sizeof(subject));
    memcpy(subject, tenant.p, tenant.n);
    memcpy(subject + tenant.n + 1, name.p, n - tenant.n - 1);
    identity_user_id(STR(""), str_n(subject, n), ret);
}

void key_new_fill(const struct key_request *r, int64_t now_ms, struct arena *mem,
                  struct key_new *ret)
{
    struct str tenant = r->tenant.p ? r->tenant : STR("default");

    *ret = (struct key_new){.who = {.tenant = tenant, .owner = STR("local"), .role = ROLE_ADMIN}};
    key_make(&ret->text);
    ret->tenant = (struct tenant_row){.id = tenant, .created_ms = now_ms};
    ret->row = (struct key_row){
        .id = str_of(ret->text.id),
        .tenant = tenant,
        .name = r->name.p ? r->name : STR(""),
        .role = r->role,
        .scopes = scopes_write(&r->scopes, mem),
        .created_ms = now_ms,
        .expires_ms = r->expires_in_ms ? now_ms + r->expires_in_ms : 0,
    };
    memcpy(ret->row.hash, ret->text.hash, sizeof(ret->row.hash));
    ret->ops[ret->n++] =
        (struct store_op){.kind = OP_TENANT_ENSURE, .tenant = &ret->tenant, .required = true};
    if (r->user.p) {
        key_user_id(tenant, r->user, ret->user_id);
        ret->row.user_id = str_of(ret->user_id);
        ret->user = (struct user_row){.id = ret->row.user_id,
                                      .tenant = tenant,
                                      .name = r->user,
                                      .role = r->role,
                                      .created_ms = now_ms};
        ret->ops[ret->n++] =
            (struct store_op){.kind = OP_USER_ENSURE, .user = &ret->user, .required = true};
    }
    ret->ops[ret->n++] =
        (struct store_op){.kind = OP_KEY_CREATE, .key = &ret->row, .required = true};
    for (size_t i = 0; i < ret->n; i++)
        ret->ops[i].who = &ret->who;
}

static void write_time(struct js_writer *w, const char *name, int64_t ms)
{
    char text[CLOCK_TEXT];

    js_key(w, str_of(name));
    if (!ms) {
        js_null(w);
        return;
    }
    clock_format(ms, text);
    js_string(w, str_of(text));
}

void key_write(struct js_writer *w, const struct key_row *row)
{
    js_kv_string(w, "id", row->id);
    js_kv_string(w, "tenant", row->tenant);
    js_kv_string(w, "name", row->name);
    js_kv_string(w, "role", str_of(role_name(row->role)));
    js_kv_string(w, "user_id", row->user_id);
    js_kv_raw(w, "scopes", row->scopes.p ? row->scopes : STR("{}"));
    write_time(w, "created_at", row->created_ms);
    write_time(w, "expires_at", row->expires_ms);
    write_time(w, "revoked_at", row->revoked_ms);
    write_time(w, "last_used_at", row->last_used_ms);
}
