/* SPDX-License-Identifier: Apache-2.0 */
/* /users (users_list.c lists them): makes users, gives them passwords, disables and enables them,
 * and ends their sign-ins.  After the commit of a change to an existing user, on_changed() tells
 * the identity service and then answers.  The commit also appends an event to the chain of the
 * user's tenant. */
#include "api/admin_bodies.h"
#include "api/job.h"

#include "base/clock.h"
#include "base/log.h"
#include "crypto/hash.h"
#include "identity/grant.h"
#include "identity/password.h"
#include "identity/user_admin.h"

#define MAX_BYTES (4u * 1024 * 1024)

struct users_job {
    struct api_job j;
    struct read_job read;
    struct write_job write;
    struct user_request wanted;
    struct user_change change;
    struct store_op ops[2]; /* the change and its event */
    struct event_row event;
    struct user_row *row;
    struct str password; /* in mem */
    char hash[PASSWORD_HASH_TEXT];
    bool is_hashed;
    struct error err;
};

static void job_refuse(struct users_job *u, enum err_code code, const char *text)
{
    struct error err;
    error_set(&err, code, "%s", text);
    api_job_refuse(&u->j, &err);
}

/* Answers. */

static void write_user(struct users_job *u, const struct user_row *row)
{
    struct js_writer w;

    js_begin(&w, &u->j.out);
    js_object(&w);
    user_write(&w, row);
    js_object_end(&w);
}

static void notify_identity(struct users_job *u)
{
    struct identity *identity = u->j.call->sv->front->identity;

    if (u->wanted.verb == USER_CREATE)
        return;
    if (u->wanted.verb == USER_REVOKE && u->wanted.login.p)
        identity_revoked(identity,
                         arena_printf(u->j.mem, "session:%.*s", STR_ARG(u->wanted.login)));
    else
        identity_user_changed(identity, u->change.user.id);
}

static void reply_changed(struct users_job *u)
{
    struct str location = STR_NONE;

    if (u->wanted.verb == USER_CREATE)
        location = arena_printf(u->j.mem, "Location: /api/v1/users/%.*s\r\n",
                                STR_ARG(api_in_path(u->j.call, u->wanted.name)));
    if (u->wanted.verb == USER_REVOKE)
        buf_addz(&u->j.out, "{\"message\":\"signed out\"}");
    else
        write_user(u, &u->change.user);
    api_job_end(&u->j, location.p ? 201 : 200, location);
}

/* Changes. */

static void on_changed(struct write_job *job)
{
    struct users_job *u = container_of(job, struct users_job, write);
    struct error err;

    if (!job->ok) {
        u->change.op.verdict = u->ops[0].verdict;
        bool is_refused =
            u->ops[0].verdict != VERDICT_FAILED && !user_change_check(&u->wanted, &u->change, &err);
        api_job_refuse(&u->j, is_refused ? &err : &job->err);
        return;
    }
    notify_identity(u);
    log_info("a user was changed", LS("user", u->change.user.id),
             LS("tenant", u->change.user.tenant));
    reply_changed(u);
}

static void change(struct users_job *u)
{
    u->wanted.hash = u->is_hashed ? str_of(u->hash) : STR_NONE;
    user_change_fill(&u->wanted, clock_life_ms(), &u->change);
    if (u->row)
        u->change.user.role = u->row->role; /* for the answer: no change but create writes it */
    u->event = (struct event_row){
        .tenant = u->change.user.tenant,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = arena_printf(u->j.mem, "user:%.*s", STR_ARG(u->change.user.id)),
        .method = arena_printf(u->j.mem, "user/%s", user_verb_name(u->wanted.verb)),
        .outcome = STR("ok"),
        .error = api_by(u->j.call, u->j.mem),
        .body_len = -1,
    };
    u->ops[0] = u->change.op;
    u->ops[0].required = true;
    u->ops[1] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &u->event};
    u->write = (struct write_job){.ops = u->ops, .n = 2, .done = on_changed};
    if (!lane_write(u->j.call->sv->lanes, &u->write))
        api_job_busy(&u->j);
}

static void run_hash(void *arg)
{
    struct users_job *u = arg;
    u->is_hashed = password_hash(u->password, u->hash, &u->err);
}

static void on_hashed(void *arg)
{
    struct users_job *u = arg;

    crypto_wipe((char *)u->password.p, u->password.n);
    if (u->is_hashed)
        change(u);
    else
        api_job_refuse(&u->j, &u->err);
}

/* Hashing takes a while, so it is not done on the loop. */
static void change_hashed(struct users_job *u, struct str password)
{
    u->password = arena_dup(u->j.mem, password);
    if (password_check(u->password, &u->err))
        loop_work(u->j.call->sv->loop, run_hash, on_hashed, u);
    else
        api_job_refuse(&u->j, &u->err);
}

/* False: the refusal was sent.  A credential with scopes, limits or an expiry may not admit
 * users. */
static bool may_change(struct users_job *u)
{
    const struct api_call *c = u->j.call;
    bool admits = u->wanted.verb == USER_CREATE || u->wanted.verb == USER_PASSWD ||
                  u->wanted.verb == USER_ENABLE;

    if (user_request_check(&u->wanted, &u->err) &&
        (!admits || api_is_local(c) || grant_user(&c->who, &u->err)))
        return true;
    api_job_refuse(&u->j, &u->err);
    return false;
}

/* The user that the path and ?tenant= name.  NULL: the refusal was sent. */
static struct users_job *job_of_named(struct api_call *c, enum user_verb verb)
{
    struct user_request r = {.verb = verb, .name = c->match.params[0], .role = ROLE_MEMBER};
    struct str asked;

    if (!api_query(c, "tenant", &asked) || !api_tenant(c, asked, &r.tenant))
        return NULL;
    struct users_job *u = api_job_new(sizeof(*u), MAX_BYTES, c);
    u->wanted = r;
    return u;
}

static struct str tenant_of(const struct users_job *u)
{
    return u->wanted.tenant.p ? u->wanted.tenant : STR("default");
}

static bool run_find(struct read_job *job, struct store *store)
{
    struct users_job *u = container_of(job, struct users_job, read);

    if (!user_find(store, tenant_of(u), u->wanted.name, u->j.mem, &u->row, &job->err))
        return false;
    if (u->row)
        u->wanted.name = u->row->name;
    return true;
}

static void find(struct users_job *u, bool (*run)(struct read_job *job, struct store *store),
                 void (*done)(struct read_job *job))
{
    u->read = (struct read_job){.run = run, .done = done};
    if (!lane_query(u->j.call->sv->lanes, &u->read))
        api_job_busy(&u->j);
}

static bool is_composed(const struct users_job *u)
{
    return user_name_composed(u->wanted.name, u->j.mem).p == u->wanted.name.p;
}

/* A user with the name as it was typed is of an older version, and keeps it. */
static void on_name_looked_up(struct read_job *job)
{
    struct users_job *u = container_of(job, struct users_job, read);

    if (!job->ok) {
        api_job_refuse(&u->j, &job->err);
        return;
    }
    if (!u->row)
        u->wanted.name = user_name_composed(u->wanted.name, u->j.mem);
    u->row = NULL;
    change_hashed(u, u->password);
}

static void create(struct users_job *u, struct str password)
{
    u->password = password;
    if (is_composed(u))
        change_hashed(u, password);
    else
        find(u, run_find, on_name_looked_up);
}

void api_create_user(struct api_call *c)
{
    struct users_job *u = api_job_new(sizeof(*u), MAX_BYTES, c);
    struct user_body b = {.role = ROLE_MEMBER};

    if (!api_bind(c, js_root(&c->doc), &body_user, &b, NULL, NULL) ||
        !api_tenant(c, b.tenant, &b.tenant)) {
        api_job_drop(&u->j);
        return;
    }
    u->wanted = (struct user_request){
        .verb = USER_CREATE, .tenant = b.tenant, .name = b.username, .role = b.role};
    if (may_change(u))
        create(u, b.password);
}

static void refuse_unknown(struct users_job *u)
{
    job_refuse(u, ERR_NOT_FOUND, "there is no such user; make it with `holdfast user create`");
}

static void on_got(struct read_job *job)
{
    struct users_job *u = container_of(job, struct users_job, read);

    if (!job->ok) {
        api_job_refuse(&u->j, &job->err);
    } else if (!u->row) {
        refuse_unknown(u);
    } else {
        write_user(u, u->row);
        api_job_end(&u->j, 200, STR_NONE);
    }
}

void api_get_user(struct api_call *c)
{
    struct users_job *u = job_of_named(c, USER_REVOKE);

    if (u && may_change(u))
        find(u, run_find, on_got);
}

/* The row is read for its role, which the answer shows. */
static void on_found(struct read_job *job)
{
    struct users_job *u = container_of(job, struct users_job, read);

    if (!job->ok)
        api_job_refuse(&u->j, &job->err);
    else if (!u->row)
        refuse_unknown(u);
    else if (u->wanted.verb == USER_PASSWD)
        change_hashed(u, u->password);
    else
        change(u);
}

void api_patch_user(struct api_call *c)
{
    struct user_patch_body b = {0};

    if (!api_bind(c, js_root(&c->doc), &body_user_patch, &b, NULL, NULL))
        return;
    if ((b.password.p != NULL) == (b.disabled != DISABLED_UNSAID)) {
        api_refuse(c, ERR_BAD_INPUT, "send either \"password\" or \"disabled\"");
        return;
    }
    struct users_job *u = job_of_named(c, b.password.p                  ? USER_PASSWD
                                          : b.disabled == DISABLED_TRUE ? USER_DISABLE
                                                                        : USER_ENABLE);
    if (!u || !may_change(u))
        return;
    u->password = b.password;
    find(u, run_find, on_found);
}

/* Sign-ins. */

static bool run_list(struct read_job *job, struct store *store)
{
    struct users_job *u = container_of(job, struct users_job, read);
    struct login_row *rows = NULL;
    size_t n = 0;

    if (!run_find(job, store))
        return false;
    if (!u->row)
        return error_set(&job->err, ERR_NOT_FOUND, "there is no user \"%.*s\" in tenant %.*s",
                         STR_ARG(u->wanted.name), STR_ARG(tenant_of(u)));
    if (!store_logins_page(store, tenant_of(u), u->row->id, STR_NONE, STORE_PAGE_MAX, u->j.mem,
                           &rows, &n, &job->err))
        return false;
    logins_write(&u->j.out, rows, n);
    return true;
}

static void on_listed(struct read_job *job)
{
    struct users_job *u = container_of(job, struct users_job, read);

    if (job->ok)
        api_job_end(&u->j, 200, STR_NONE);
    else
        api_job_refuse(&u->j, &job->err);
}

void api_list_user_logins(struct api_call *c)
{
    struct users_job *u = job_of_named(c, USER_REVOKE);

    if (u && may_change(u))
        find(u, run_list, on_listed);
}

void api_end_user_logins(struct api_call *c)
{
    struct users_job *u = job_of_named(c, USER_REVOKE);

    if (u && may_change(u))
        find(u, run_find, on_found);
}

void api_end_user_login(struct api_call *c)
{
    struct users_job *u = job_of_named(c, USER_REVOKE);

    if (!u)
        return;
    u->wanted.login = c->match.params[1];
    if (!may_change(u))
        return;
    if (is_composed(u))
        change(u);
    else
        find(u, run_find, on_found);
}
