/* SPDX-License-Identifier: Apache-2.0 */
/* Users, for `holdfast user` beside a running Holdfast.  What a change ends is told to the identity
 * service as soon as it is committed, before it is answered.  Passwords come hashed. */
#include "rest/front.h"

#include "base/clock.h"
#include "base/log.h"
#include "identity/key_admin.h"
#include "identity/user_admin.h"

#include <stdlib.h>

struct users_job {
    struct services *sv;
    struct http_request *http;
    struct arena *mem;
    bool aborted;
    struct read_job read;
    struct write_job write;
    struct user_request wanted;
    struct user_change change;
    struct str tenant;
    char user_id[UUID_TEXT];
    struct buf out;
};

static void on_abort(struct http_request *r)
{
    ((struct users_job *)r->user)->aborted = true;
}

static struct users_job *job_new(struct services *sv, struct http_request *r)
{
    struct users_job *j = xcalloc(1, sizeof(*j));

    j->sv = sv;
    j->http = r;
    j->mem = arena_new(4u * 1024 * 1024);
    buf_init(&j->out, 4u * 1024 * 1024);
    r->user = j;
    r->on_abort = on_abort;
    return j;
}

static void job_end(struct users_job *j, const struct error *err)
{
    if (j->aborted)
        http_request_done(j->http);
    else if (err)
        front_refuse(j->http, error_info(err->code)->http_status, STR_NONE, err->text);
    else
        http_reply(j->http, 200, "application/json", STR_NONE, buf_str(&j->out));
    buf_release(&j->out);
    arena_free(j->mem);
    free(j);
}

static void refuse_busy(struct users_job *j)
{
    struct error err;
    error_set(&err, ERR_UNAVAILABLE, "too much is waiting for the store; try again shortly");
    job_end(j, &err);
}

static void tell_identity(struct users_job *j)
{
    if (j->wanted.verb == USER_CREATE)
        return;
    if (j->wanted.verb == USER_REVOKE && j->wanted.login.p)
        identity_revoked(j->sv->identity,
                         arena_printf(j->mem, "session:%.*s", STR_ARG(j->wanted.login)));
    else
        identity_user_changed(j->sv->identity, j->change.user.id);
}

static void on_changed(struct write_job *job)
{
    struct users_job *j = container_of(job, struct users_job, write);
    struct error err;

    if (!job->ok) {
        job_end(j, &job->err);
    } else if (!user_change_check(&j->wanted, &j->change, &err)) {
        job_end(j, &err);
    } else {
        tell_identity(j);
        log_info("a user was changed", LS("user", j->change.user.id),
                 LS("tenant", j->change.user.tenant));
        buf_addf(&j->out, "{\"id\":\"%s\"}", j->change.user_id);
        job_end(j, NULL);
    }
}

void front_control_user_change(void *arg, struct http_request *r,
                               const struct route_match *m unused_arg)
{
    struct users_job *j = job_new(arg, r);
    struct error err;

    if (!user_request_parse(r->body, j->mem, &j->wanted, &err)) {
        job_end(j, &err);
        return;
    }
    user_change_fill(&j->wanted, clock_life_ms(), &j->change);
    j->write = (struct write_job){.ops = &j->change.op, .n = 1, .done = on_changed};
    if (!lane_write(j->sv->lanes, &j->write))
        refuse_busy(j);
}

/* Sessions. */

static bool run_list(struct read_job *job, struct store *store)
{
    struct users_job *j = container_of(job, struct users_job, read);
    struct login_row *rows = NULL;
    size_t n = 0;

    if (!store_logins_page(store, j->tenant, str_of(j->user_id), STR_NONE, STORE_PAGE_MAX, j->mem,
                           &rows, &n, &job->err))
        return false;
    logins_write(&j->out, rows, n);
    return true;
}

static void on_listed(struct read_job *job)
{
    job_end(container_of(job, struct users_job, read), job->ok ? NULL : &job->err);
}

static struct str query_value(struct http_request *r, struct str name, struct arena *mem)
{
    unsigned count = 0;
    struct str query = r->head->query.p ? r->head->query : STR("");
    struct str value = http_query_get(query, name, &count);

    if (count != 1)
        return STR_NONE;
    char *text = arena_alloc(mem, value.n + 1);
    int n = http_percent_decode(value, text, false);
    return n > 0 ? str_n(text, (size_t)n) : STR_NONE;
}

void front_control_user_sessions(void *arg, struct http_request *r,
                                 const struct route_match *m unused_arg)
{
    struct users_job *j = job_new(arg, r);
    struct user_request named = {.verb = USER_REVOKE,
                                 .tenant = query_value(r, STR("tenant"), j->mem),
                                 .name = query_value(r, STR("name"), j->mem)};
    struct error err;

    if (!user_request_check(&named, &err)) {
        job_end(j, &err);
        return;
    }
    j->tenant = named.tenant.p ? named.tenant : STR("default");
    key_user_id(j->tenant, named.name, j->user_id);
    j->read = (struct read_job){.run = run_list, .done = on_listed};
    if (!lane_query(j->sv->lanes, &j->read))
        refuse_busy(j);
}
