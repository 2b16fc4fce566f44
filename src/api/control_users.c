/* SPDX-License-Identifier: Apache-2.0 */
/* Users, for `holdfast user` beside a running Holdfast.  After the commit of a change to an
 * existing user, on_changed() tells the identity service and then answers.  The command sends
 * passwords hashed. */
#include "api/control_job.h"

#include "base/clock.h"
#include "base/log.h"
#include "identity/key_admin.h"
#include "identity/user_admin.h"

#define MAX_BYTES (4u * 1024 * 1024)

struct users_job {
    struct control_job c;
    struct read_job read;
    struct write_job write;
    struct user_request wanted;
    struct user_change change;
    struct str tenant;
    char user_id[UUID_TEXT];
};

static void tell_identity(struct users_job *j)
{
    if (j->wanted.verb == USER_CREATE)
        return;
    if (j->wanted.verb == USER_REVOKE && j->wanted.login.p)
        identity_revoked(j->c.sv->front->identity,
                         arena_printf(j->c.mem, "session:%.*s", STR_ARG(j->wanted.login)));
    else
        identity_user_changed(j->c.sv->front->identity, j->change.user.id);
}

static void on_changed(struct write_job *job)
{
    struct users_job *j = container_of(job, struct users_job, write);
    struct error err;

    if (!job->ok) {
        control_job_end(&j->c, &job->err);
    } else if (!user_change_check(&j->wanted, &j->change, &err)) {
        control_job_end(&j->c, &err);
    } else {
        tell_identity(j);
        log_info("a user was changed", LS("user", j->change.user.id),
                 LS("tenant", j->change.user.tenant));
        buf_addf(&j->c.out, "{\"id\":\"%s\"}", j->change.user_id);
        control_job_end(&j->c, NULL);
    }
}

void control_user_change(void *arg, struct http_request *r, struct caller *caller unused_arg)
{
    struct users_job *j = control_job_new(sizeof(*j), MAX_BYTES, arg, r);
    struct error err;

    if (!user_request_parse(r->body, j->c.mem, &j->wanted, &err)) {
        control_job_end(&j->c, &err);
        return;
    }
    user_change_fill(&j->wanted, clock_life_ms(), &j->change);
    j->write = (struct write_job){.ops = &j->change.op, .n = 1, .done = on_changed};
    if (!lane_write(j->c.sv->lanes, &j->write))
        control_job_busy(&j->c);
}

/* Sessions. */

static bool run_list(struct read_job *job, struct store *store)
{
    struct users_job *j = container_of(job, struct users_job, read);
    struct login_row *rows = NULL;
    struct user_row *user = NULL;
    size_t n = 0;

    if (!store_user_by_name(store, j->tenant, j->wanted.name, j->c.mem, &user, &job->err))
        return false;
    if (!user)
        return error_set(&job->err, ERR_NOT_FOUND, "there is no user \"%.*s\" in tenant %.*s",
                         STR_ARG(j->wanted.name), STR_ARG(j->tenant));
    if (!store_logins_page(store, j->tenant, str_of(j->user_id), STR_NONE, STORE_PAGE_MAX, j->c.mem,
                           &rows, &n, &job->err))
        return false;
    logins_write(&j->c.out, rows, n);
    return true;
}

static void on_listed(struct read_job *job)
{
    control_job_end(&container_of(job, struct users_job, read)->c, job->ok ? NULL : &job->err);
}

void control_user_sessions(void *arg, struct http_request *r, struct caller *caller unused_arg)
{
    struct users_job *j = control_job_new(sizeof(*j), MAX_BYTES, arg, r);
    struct user_request named = {.verb = USER_REVOKE,
                                 .tenant = control_query(r, STR("tenant"), j->c.mem),
                                 .name = control_query(r, STR("name"), j->c.mem)};
    struct error err;

    if (!user_request_check(&named, &err)) {
        control_job_end(&j->c, &err);
        return;
    }
    j->wanted = named;
    j->tenant = named.tenant.p ? named.tenant : STR("default");
    key_user_id(j->tenant, named.name, j->user_id);
    j->read = (struct read_job){.run = run_list, .done = on_listed};
    if (!lane_query(j->c.sv->lanes, &j->read))
        control_job_busy(&j->c);
}
