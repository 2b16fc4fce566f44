/* SPDX-License-Identifier: Apache-2.0 */
/* Begins the erasure of a person.  The query lane finds the user and what there is of the person; one
 * commit then ends the user's access, stores what remains to be done, and appends an event.  The
 * engine (erasure/erase.h) does the rest after the answer. */
#include "erasure/api/impl.h"

#include "api/bodies.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "docs/critic/critic.h"
#include "erasure/erase.h"
#include "erasure/store/ops.h"
#include "erasure/store/verbs.h"
#include "front/front.h"
#include "identity/identity.h"
#include "identity/user_admin.h"

#define MAX_BYTES (4u * 1024 * 1024)
#define NAMES_BYTES 4096

struct erasure_call {
    struct api_job j;
    struct erasure_body wanted;
    struct erasure_row row;
    char id[UUID_TEXT];
    struct erasure_left *left;
    struct erasure_owner *owners;
    size_t n_owners;
    struct read_job read;
    struct event_row event;
    struct store_op ops[2];
    struct write_job write;
};

static void refuse(struct erasure_call *x, enum err_code code, const char *text)
{
    struct error err;

    error_set(&err, code, "%s", text);
    api_job_refuse(&x->j, &err);
}

/* Finding. */

static bool find_user(struct erasure_call *x, struct store *store, struct user_row **ret,
                      struct error *err)
{
    struct str tenant = x->row.tenant, id = uuid_lower(x->wanted.user, x->j.mem);

    if (!user_find(store, tenant, x->wanted.user, x->j.mem, ret, err) ||
        (!*ret && text_is_uuid(id) && !store_user_get(store, id, x->j.mem, ret, err)))
        return false;
    return (*ret && str_eq((*ret)->tenant, tenant)) ||
           error_set(err, ERR_NOT_FOUND,
                     "there is no such user in tenant %.*s; see `holdfast user list`",
                     STR_ARG(tenant));
}

/* The names under which the person may be an author of documents. */
static struct str names_of(const struct user_row *user, struct arena *mem)
{
    struct str agent = critic_author_name(user->name, mem), cleaned = agent;
    const struct str suffix = STR("'s AI");
    struct buf out;
    struct js_writer w;

    buf_init(&out, NAMES_BYTES);
    js_begin(&w, &out);
    js_array(&w);
    js_string(&w, user->name);
    if (str_ends(agent, suffix)) {
        js_string(&w, agent);
        cleaned.n -= suffix.n;
        if (!str_eq(cleaned, user->name))
            js_string(&w, cleaned);
    }
    js_array_end(&w);
    struct str names = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return names;
}

static bool run_find(struct read_job *job, struct store *store)
{
    struct erasure_call *x = container_of(job, struct erasure_call, read);
    struct user_row *user = NULL;

    if (!find_user(x, store, &user, &job->err) ||
        !store_erasure_left(store, x->row.tenant, user->id, x->j.mem, &x->left, &job->err) ||
        !store_erasure_owners(store, user->id, x->j.mem, &x->owners, &x->n_owners, &job->err))
        return false;
    if (erasure_names(x->row.reason, user->name))
        return error_set(&job->err, ERR_BAD_INPUT,
                         "the reason has the name of the user, and it stays on record; write one "
                         "without the name");
    x->row.user_id = user->id;
    x->row.names = names_of(user, x->j.mem);
    return true;
}

/* Answers. */

static void reply_dry(struct erasure_call *x)
{
    struct js_writer w;

    js_begin(&w, &x->j.out);
    js_object(&w);
    js_kv_string(&w, "tenant", x->row.tenant);
    js_kv_string(&w, "user_id", x->row.user_id);
    js_kv_bool(&w, "held", x->left->is_held != 0);
    js_kv_int(&w, "sessions", x->left->live + x->left->over);
    js_kv_int(&w, "held_sessions", x->left->held);
    js_kv_int(&w, "calls", x->left->calls);
    js_kv_int(&w, "keys", x->left->keys);
    js_kv_int(&w, "sign_ins", x->left->logins);
    js_object_end(&w);
    api_job_end(&x->j, 200, STR_NONE);
}

static void end_access(struct erasure_call *x)
{
    struct identity *identity = x->j.call->sv->front->identity;

    identity_user_changed(identity, x->row.user_id);
    for (size_t i = 0; i < x->n_owners; i++)
        if (str_starts(x->owners[i].owner, STR("key:")))
            identity_revoked(identity, x->owners[i].owner);
}

static void refuse_verdict(struct erasure_call *x, const struct error *err)
{
    switch (x->ops[0].verdict) {
    case VERDICT_MISSING:
        refuse(x, ERR_NOT_FOUND, "there is no such user; see `holdfast user list`");
        break;
    case VERDICT_DUPLICATE:
        refuse(x, ERR_CONFLICT, "this user is being erased already");
        break;
    case VERDICT_NOT_ACTIVE:
        refuse(x, ERR_CONFLICT,
               "this user is held, so nothing is removed; see `holdfast audit holds`, and release "
               "the hold first");
        break;
    default:
        api_job_refuse(&x->j, err);
    }
}

static void on_begun(struct write_job *job)
{
    struct erasure_call *x = container_of(job, struct erasure_call, write);
    struct js_writer w;

    if (!job->ok) {
        refuse_verdict(x, &job->err);
        return;
    }
    log_info("erasing a person has begun", LS("id", x->row.id), LS("user", x->row.user_id));
    end_access(x);
    erasures_wake(x->j.call->sv->erasures, x->row.id);
    js_begin(&w, &x->j.out);
    erasure_write(&w, &x->row);
    api_job_end(&x->j, 201,
                arena_printf(x->j.mem, "Location: /api/v1/audit/erasures/%s\r\n", x->id));
}

static void begin(struct erasure_call *x)
{
    struct str reason = x->row.reason;

    x->event = (struct event_row){
        .tenant = x->row.tenant,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = arena_printf(x->j.mem, "user:%.*s", STR_ARG(x->row.user_id)),
        .method = STR("user/erase"),
        .outcome = STR("ok"),
        .error = arena_printf(x->j.mem, "by %.*s%s%.*s", STR_ARG(x->row.made_by),
                              reason.n ? "; reason: " : "", STR_ARG(reason)),
        .body_len = -1,
    };
    x->ops[0] = op_erasure_begin(&x->row);
    x->ops[1] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &x->event};
    x->write = (struct write_job){.ops = x->ops, .n = 2, .done = on_begun};
    if (!lane_write(x->j.call->sv->lanes, &x->write))
        api_job_busy(&x->j);
}

static void on_found(struct read_job *job)
{
    struct erasure_call *x = container_of(job, struct erasure_call, read);

    if (!job->ok)
        api_job_refuse(&x->j, &job->err);
    else if (x->wanted.dry_run)
        reply_dry(x);
    else
        begin(x);
}

void api_create_erasure(struct api_call *c)
{
    struct erasure_call *x = api_job_new(sizeof(*x), MAX_BYTES, c);
    struct erasure_body *b = &x->wanted;

    if (!api_bind(c, js_root(&c->doc), &body_erasure, b, NULL, NULL) ||
        !api_tenant(c, b->tenant, &b->tenant)) {
        api_job_drop(&x->j);
        return;
    }
    random_uuid7(x->id);
    x->row = (struct erasure_row){
        .id = str_of(x->id),
        .tenant = b->tenant.n ? b->tenant : STR("default"),
        .reason = b->reason.n ? b->reason : STR_NONE,
        .made_by = c->who.owner.n ? c->who.owner : STR("local"),
        .created_ms = clock_life_ms(),
        .moved_ms = clock_life_ms(),
    };
    x->read = (struct read_job){.run = run_find, .done = on_found};
    if (!lane_query(c->sv->lanes, &x->read))
        api_job_busy(&x->j);
}
