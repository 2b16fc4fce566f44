/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/auth: users sign in and out, and list the devices they are signed in on.  Every refused
 * login gets the same answer, whatever the reason. */
#include "api/api.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "crypto/hash.h"
#include "identity/logins.h"
#include "identity/proxy.h"
#include "identity/user_admin.h"
#include "json/write.h"
#include "api/bodies.h"

#define REFUSED                                                                                    \
    "The name or the password is wrong, or there were too many attempts; try again later."
#define REFRESH_REFUSED "This refresh token is not valid, or not any more; sign in again."
#define USER_AGENT_MAX 256

static struct str take(struct buf *out, struct arena *mem)
{
    struct str text = arena_dup(mem, buf_str(out));
    buf_release(out);
    return text;
}

/* {"user_agent":…,"device_name":…} as the client gives them; a long user_agent is cut. */
static struct str device_info(const struct api_call *c, struct str device_name)
{
    struct str agent = http_header_get(c->http->head, STR("user-agent"));
    struct js_writer w;
    struct buf out;

    if (agent.n > USER_AGENT_MAX)
        agent.n = USER_AGENT_MAX;
    buf_init(&out, 16 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    if (agent.n && utf8_is_valid(agent))
        js_kv_string(&w, "user_agent", agent);
    if (device_name.n)
        js_kv_string(&w, "device_name", device_name);
    js_object_end(&w);
    return take(&out, c->mem);
}

static void write_user(struct js_writer *w, const struct user_row *u)
{
    js_key(w, STR("user"));
    js_object(w);
    js_kv_string(w, "id", u->id);
    js_kv_string(w, "username", u->name);
    js_kv_string(w, "tenant_id", u->tenant);
    js_kv_string(w, "role", str_of(role_name(u->role)));
    js_object_end(w);
}

static void reply_tokens(struct api_call *c, const struct login_call *l)
{
    struct js_writer w;
    struct buf out;

    buf_init_secret(&out, 64 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "access_token", l->access_token);
    js_kv_string(&w, "token_type", STR("Bearer"));
    js_kv_int(&w, "expires_in", OWN_TOKEN_MS / 1000);
    js_kv_string(&w, "refresh_token", str_of(l->refresh_token));
    js_kv_string(&w, "session_id", l->login->family);
    write_user(&w, l->row);
    js_object_end(&w);
    api_reply(c, 200, STR_NONE, take(&out, c->mem));
}

static void on_answer(struct login_call *l)
{
    struct api_call *c = l->user;
    bool is_login = l->name.p;

    crypto_wipe((char *)l->password.p, l->password.n);
    switch (l->result) {
    case LOGIN_OK:
        reply_tokens(c, l);
        break;
    case LOGIN_REFUSED:
        api_problem(c, ERR_UNAUTHENTICATED, is_login ? "login failed" : "refresh failed",
                    is_login ? REFUSED : REFRESH_REFUSED,
                    identity_challenge(c->config, c->http, false));
        break;
    case LOGIN_CONFLICT:
        api_refuse(
            c, ERR_CONFLICT,
            "another request has used this refresh token already; use the tokens of its answer");
        break;
    case LOGIN_BUSY:
        api_problem(c, ERR_UNAVAILABLE, "too many logins", "Too many are signing in; try again.",
                    STR("Retry-After: 2\r\n"));
        break;
    case LOGIN_UNAVAILABLE:
        api_refuse(c, l->err.code, "%s", l->err.text);
        break;
    }
    crypto_wipe(l->refresh_token, sizeof(l->refresh_token));
}

static struct login_call *login_call_new(struct api_call *c)
{
    struct login_call *l = arena_new_of(c->mem, struct login_call);

    l->mem = c->mem;
    l->address = client_address(c->config, c->http, c->mem);
    l->done = on_answer;
    l->user = c;
    return l;
}

void api_login(struct api_call *c)
{
    struct login_body b = {0};

    if (!api_bind(c, js_root(&c->doc), &body_login, &b, NULL, NULL))
        return;
    struct login_call *l = login_call_new(c);
    l->tenant = b.tenant.p ? b.tenant : STR("default");
    l->name = b.username;
    l->password = arena_dup(c->mem, b.password);
    l->device_info = device_info(c, b.device_name);
    if (logins_login(c->sv->logins, l))
        on_answer(l);
}

void api_refresh_login(struct api_call *c)
{
    struct refresh_login_body b = {0};

    if (!api_bind(c, js_root(&c->doc), &body_refresh_login, &b, NULL, NULL))
        return;
    struct login_call *l = login_call_new(c);
    l->token = b.refresh_token;
    if (logins_refresh(c->sv->logins, l))
        on_answer(l);
}

/* Ending. */

struct end_login {
    struct api_call *call;
    struct write_job write;
    struct store_op op;
    struct login_row row;
};

static void on_ended(struct write_job *job)
{
    struct end_login *e = container_of(job, struct end_login, write);
    struct api_call *c = e->call;

    if (!job->ok) {
        api_refuse(c, job->err.code, "%s", job->err.text);
        return;
    }
    if (e->op.verdict != VERDICT_OK) {
        api_problem(c, ERR_NOT_FOUND, "session not found",
                    "You have no sign-in with this id; see GET /api/v1/auth/sessions.", STR_NONE);
        return;
    }
    if (e->op.kind == OP_LOGIN_REVOKE)
        identity_revoked(c->sv->front->identity,
                         arena_printf(c->mem, "session:%.*s", STR_ARG(e->row.id)));
    else
        identity_user_changed(c->sv->front->identity, e->row.user_id);
    api_reply(c, 200, STR_NONE, STR("{\"message\":\"signed out\"}"));
}

static void end_logins(struct api_call *c, enum op_kind kind, struct str id, struct str user_id,
                       struct str reason)
{
    struct end_login *e = arena_new_of(c->mem, struct end_login);

    e->call = c;
    e->row = (struct login_row){
        .id = id,
        .tenant = c->who.tenant,
        .user_id = user_id,
        .revoked_ms = clock_life_ms(),
        .revoke_reason = reason,
    };
    e->op = (struct store_op){.kind = kind, .who = &c->who, .login = &e->row};
    e->write = (struct write_job){.ops = &e->op, .n = 1, .done = on_ended};
    if (!lane_write(c->sv->lanes, &e->write))
        api_refuse(c, ERR_UNAVAILABLE,
                   "too many requests are waiting for the store; try again in a moment");
}

void api_logout(struct api_call *c)
{
    struct str id = login_of_credential(c->who.credential);

    if (!id.p)
        api_refuse(c, ERR_BAD_INPUT,
                   "this credential does not belong to a sign-in; send the access token of the "
                   "sign-in to end");
    else
        end_logins(c, OP_LOGIN_REVOKE, id, c->who.user_id, STR("signed out"));
}

/* Users end their own sign-ins; an admin ends any sign-in of the tenant. */
void api_end_login(struct api_call *c)
{
    bool is_any = c->who.role == ROLE_ADMIN;

    if (!text_is_uuid(c->match.params[0]) || (!is_any && !principal_user(&c->who).p))
        api_problem(c, ERR_NOT_FOUND, "session not found",
                    "You have no sign-in with this id; see GET /api/v1/auth/sessions.", STR_NONE);
    else
        end_logins(c, OP_LOGIN_REVOKE, uuid_lower(c->match.params[0], c->mem),
                   is_any ? STR_NONE : principal_user(&c->who), STR("revoked"));
}

void api_end_logins(struct api_call *c)
{
    if (!principal_user(&c->who).p)
        api_refuse(c, ERR_BAD_INPUT,
                   "this credential does not belong to a user; send a user's access token, or a "
                   "key made with --user and without --server, --tool, --folder and --read-only");
    else
        end_logins(c, OP_LOGINS_REVOKE, STR_NONE, c->who.user_id, STR("signed out everywhere"));
}

/* Listing. */

struct list_logins {
    struct api_call *call;
    struct read_job read;
    struct login_row *rows;
    size_t n;
};

static bool run_list(struct read_job *job, struct store *store)
{
    struct list_logins *l = container_of(job, struct list_logins, read);
    const struct principal *who = &l->call->who;

    return !principal_user(who).p ||
           store_logins_page(store, who->tenant, who->user_id, STR_NONE, LOGIN_MAX_PER_USER,
                             l->call->mem, &l->rows, &l->n, &job->err);
}

static void on_listed(struct read_job *job)
{
    struct list_logins *l = container_of(job, struct list_logins, read);
    struct api_call *c = l->call;
    struct js_writer w;
    struct buf out;

    if (!job->ok) {
        api_refuse(c, job->err.code, "%s", job->err.text);
        return;
    }
    buf_init(&out, 1024 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_key(&w, STR("sessions"));
    js_array(&w);
    for (size_t i = 0; i < l->n; i++) {
        struct str own = login_of_credential(c->who.credential);
        js_object(&w);
        login_write(&w, &l->rows[i]);
        js_kv_bool(&w, "current", own.p && str_eq(own, l->rows[i].id));
        js_object_end(&w);
    }
    js_array_end(&w);
    js_kv_int(&w, "count", (int64_t)l->n);
    js_object_end(&w);
    api_reply(c, 200, STR_NONE, take(&out, c->mem));
}

void api_list_logins(struct api_call *c)
{
    struct list_logins *l = arena_new_of(c->mem, struct list_logins);

    l->call = c;
    l->read = (struct read_job){.run = run_list, .done = on_listed};
    if (!lane_query(c->sv->lanes, &l->read))
        api_refuse(c, ERR_UNAVAILABLE,
                   "too many requests are waiting for the store; try again in a moment");
}
