/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and releases holds.  The query lane finds the target; the commit of the change also appends
 * an event to the chain of the tenant.  The reason stays in the row and not in the event, because an
 * event cannot be changed and a reason may name a person. */
#include "holds/api/impl.h"

#include "api/bodies.h"
#include "api/session_named.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "holds/store/ops.h"
#include "holds/store/verbs.h"
#include "identity/user_admin.h"

#define MAX_BYTES (4u * 1024 * 1024)

struct hold_call {
    struct api_job j;
    struct hold_body wanted;
    struct hold_row row;
    char id[UUID_TEXT];
    struct read_job read;
    struct hold_row *found; /* of a release: the row as it was */
    struct event_row event;
    struct store_op ops[2];
    struct write_job write;
};

static struct str owner_of(const struct api_call *c)
{
    return c->who.owner.n ? c->who.owner : STR("local");
}

static void refuse(struct hold_call *h, enum err_code code, const char *text)
{
    struct error err;

    error_set(&err, code, "%s", text);
    api_job_refuse(&h->j, &err);
}

static bool run_written(struct read_job *job, struct store *store)
{
    struct hold_call *h = container_of(job, struct hold_call, read);
    struct js_writer w;

    js_begin(&w, &h->j.out);
    return hold_write(&w, store, &h->row, h->j.mem, &job->err);
}

static void on_written(struct read_job *job)
{
    struct hold_call *h = container_of(job, struct hold_call, read);

    if (!job->ok)
        api_job_refuse(&h->j, &job->err);
    else if (h->row.released_ms)
        api_job_end(&h->j, 200, STR_NONE);
    else
        api_job_end(&h->j, 201,
                    arena_printf(h->j.mem, "Location: /api/v1/audit/holds/%s\r\n", h->id));
}

static void query(struct hold_call *h, bool (*run)(struct read_job *job, struct store *store),
                  void (*done)(struct read_job *job))
{
    h->read = (struct read_job){.run = run, .done = done};
    if (!lane_query(h->j.call->sv->lanes, &h->read))
        api_job_busy(&h->j);
}

static void write_with_event(struct hold_call *h, struct store_op op, const char *method,
                             void (*done)(struct write_job *job))
{
    const char *kind = h->row.kind == HOLD_USER ? "user" : "session";

    h->event = (struct event_row){
        .tenant = h->row.tenant,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = arena_printf(h->j.mem, "%s:%.*s", kind, STR_ARG(h->row.target)),
        .session_id = h->row.kind == HOLD_SESSION ? h->row.target : STR_NONE,
        .method = str_of(method),
        .outcome = STR("ok"),
        .error = api_by(h->j.call, h->j.mem),
        .body_len = -1,
    };
    op.required = true;
    h->ops[0] = op;
    h->ops[1] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &h->event};
    h->write = (struct write_job){.ops = h->ops, .n = 2, .done = done};
    if (!lane_write(h->j.call->sv->lanes, &h->write))
        api_job_busy(&h->j);
}

static void on_put(struct write_job *job)
{
    struct hold_call *h = container_of(job, struct hold_call, write);

    if (job->ok) {
        log_info("a hold was made", LS("id", h->row.id), LS("target", h->row.target));
        query(h, run_written, on_written);
        return;
    }
    switch (h->ops[0].verdict) {
    case VERDICT_DUPLICATE:
        refuse(h, ERR_CONFLICT, "it is held already; see `holdfast audit holds`");
        break;
    case VERDICT_LIMIT:
        refuse(h, ERR_LIMIT,
               "the tenant has as many holds as it may have; release one with `holdfast audit "
               "release ID`");
        break;
    case VERDICT_MISSING:
        refuse(h, ERR_NOT_FOUND, "it was deleted meanwhile; there is nothing left to hold");
        break;
    default:
        api_job_refuse(&h->j, &job->err);
    }
}

static bool find_user(struct hold_call *h, struct store *store, struct error *err)
{
    struct str tenant = h->row.tenant, id = uuid_lower(h->wanted.user, h->j.mem);
    struct user_row *user = NULL;

    if (!user_find(store, tenant, h->wanted.user, h->j.mem, &user, err) ||
        (!user && text_is_uuid(id) && !store_user_get(store, id, h->j.mem, &user, err)))
        return false;
    if (!user || !str_eq(user->tenant, tenant))
        return error_set(err, ERR_NOT_FOUND,
                         "there is no such user in tenant %.*s; see `holdfast user list`",
                         STR_ARG(tenant));
    h->row.target = user->id;
    return true;
}

static bool run_find(struct read_job *job, struct store *store)
{
    struct hold_call *h = container_of(job, struct hold_call, read);
    const struct principal wide = {
        .tenant = h->row.tenant, .owner = STR(""), .role = ROLE_ADMIN, .tenant_wide = true};
    struct session_row *session = NULL;

    if (h->row.kind == HOLD_USER)
        return find_user(h, store, &job->err);
    if (!session_find_named(store, &wide, h->wanted.session, h->j.mem, &session, &job->err))
        return false;
    h->row.target = session->id;
    return true;
}

static void on_found(struct read_job *job)
{
    struct hold_call *h = container_of(job, struct hold_call, read);

    if (job->ok)
        write_with_event(h, op_hold_put(&h->row),
                         h->row.kind == HOLD_USER ? "hold/user" : "hold/session", on_put);
    else
        api_job_refuse(&h->j, &job->err);
}

void api_create_hold(struct api_call *c)
{
    struct hold_call *h = api_job_new(sizeof(*h), MAX_BYTES, c);
    struct hold_body *b = &h->wanted;

    if (!api_bind(c, js_root(&c->doc), &body_hold, b, NULL, NULL) ||
        !api_tenant(c, b->tenant, &b->tenant)) {
        api_job_drop(&h->j);
        return;
    }
    if (!b->session.p == !b->user.p) {
        refuse(h, ERR_BAD_INPUT, "send either \"session\" or \"user\"");
        return;
    }
    random_uuid7(h->id);
    h->row = (struct hold_row){
        .id = str_of(h->id),
        .tenant = b->tenant.n ? b->tenant : STR("default"),
        .kind = b->user.p ? HOLD_USER : HOLD_SESSION,
        .reason = b->reason.n ? b->reason : STR_NONE,
        .made_by = owner_of(c),
        .created_ms = clock_life_ms(),
    };
    query(h, run_find, on_found);
}

/* Release.  A hold of another tenant looks like an unknown one. */

static void refuse_missing(struct hold_call *h)
{
    refuse(h, ERR_NOT_FOUND,
           "there is no such hold, or it was released already; see `holdfast audit holds`");
}

static void on_released(struct write_job *job)
{
    struct hold_call *h = container_of(job, struct hold_call, write);

    if (!job->ok && h->ops[0].verdict == VERDICT_MISSING) {
        refuse_missing(h);
    } else if (!job->ok) {
        api_job_refuse(&h->j, &job->err);
    } else {
        log_info("a hold was released", LS("id", h->row.id), LS("target", h->row.target));
        query(h, run_written, on_written);
    }
}

/* The page before the next id is the row itself. */
static bool run_row(struct read_job *job, struct store *store)
{
    struct hold_call *h = container_of(job, struct hold_call, read);
    struct hold_row *rows = NULL;
    struct str after = STR_NONE;
    size_t n = 0;

    do {
        if (!store_holds_page(store, h->row.tenant, true, after, STORE_PAGE_MAX, h->j.mem, &rows,
                              &n, &job->err))
            return false;
        for (size_t i = 0; i < n && !h->found; i++)
            h->found = str_eq(rows[i].id, h->row.id) ? &rows[i] : NULL;
        after = n ? rows[n - 1].id : STR_NONE;
    } while (n == STORE_PAGE_MAX && !h->found);
    return true;
}

static void on_row(struct read_job *job)
{
    struct hold_call *h = container_of(job, struct hold_call, read);

    if (!job->ok) {
        api_job_refuse(&h->j, &job->err);
        return;
    }
    if (!h->found) {
        refuse_missing(h);
        return;
    }
    h->row = *h->found;
    h->row.released_ms = clock_life_ms();
    h->row.released_by = owner_of(h->j.call);
    write_with_event(h, op_hold_release(&h->row), "hold/release", on_released);
}

void api_release_hold(struct api_call *c)
{
    struct hold_call *h = api_job_new(sizeof(*h), MAX_BYTES, c);
    struct str tenant;

    if (!api_tenant(c, STR_NONE, &tenant)) {
        api_job_drop(&h->j);
        return;
    }
    h->row.id = uuid_lower(c->match.params[0], h->j.mem);
    h->row.tenant = tenant;
    if (text_is_uuid(h->row.id))
        query(h, run_row, on_row);
    else
        refuse_missing(h);
}
