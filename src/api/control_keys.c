/* SPDX-License-Identifier: Apache-2.0 */
/* Keys, for `holdfast key` beside a running Holdfast.  The write lane creates and revokes keys, the
 * query lane lists them.  After the commit of a revocation, on_revoked() tells the identity service
 * and then answers.  The commit of a creation or revocation also appends an event to the chain of
 * the key's tenant. */
#include "api/control_job.h"

#include "base/clock.h"
#include "base/log.h"
#include "crypto/hash.h"
#include "identity/key_admin.h"

#define MAX_BYTES (16u * 1024 * 1024)

struct keys_job {
    struct control_job c;
    struct read_job read;
    struct write_job write;
    struct key_new made;
    /* list */
    struct str tenant, after;
    /* revoke */
    struct str id;
    struct key_row *row;
    struct principal who;
    struct key_row revoked;
    /* operations of the commit, the event last */
    struct store_op ops[countof(((struct key_new *)0)->ops) + 1];
    struct event_row event;
};

static void job_end(struct keys_job *j, const struct error *err)
{
    crypto_wipe(&j->made.text, sizeof(j->made.text));
    control_job_end(&j->c, err);
}

static void refuse_busy(struct keys_job *j)
{
    crypto_wipe(&j->made.text, sizeof(j->made.text));
    control_job_busy(&j->c);
}

/* Commits the first n ops, and with them an event about the key. */
static void write_told(struct keys_job *j, size_t n, const struct key_row *key, const char *method,
                       void (*done)(struct write_job *job))
{
    j->event = (struct event_row){
        .tenant = key->tenant,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = arena_printf(j->c.mem, "key:%.*s", STR_ARG(key->id)),
        .method = str_of(method),
        .outcome = STR("ok"),
        .body_len = -1,
    };
    j->ops[n] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &j->event};
    j->write = (struct write_job){.ops = j->ops, .n = n + 1, .done = done};
    if (!lane_write(j->c.sv->lanes, &j->write))
        refuse_busy(j);
}

/* Create. */

static void on_created(struct write_job *job)
{
    struct keys_job *j = container_of(job, struct keys_job, write);
    struct js_writer w;

    if (!job->ok) {
        job_end(j, &job->err);
        return;
    }
    log_info("a key was made", LS("key_id", j->made.row.id), LS("tenant", j->made.row.tenant),
             LZ("role", role_name(j->made.row.role)));
    js_begin(&w, &j->c.out);
    js_object(&w);
    js_kv_string(&w, "key", str_of(j->made.text.text));
    key_write(&w, &j->made.row);
    js_object_end(&w);
    job_end(j, NULL);
}

void control_key_create(void *arg, struct http_request *r, struct caller *caller unused_arg)
{
    struct keys_job *j = control_job_new(sizeof(*j), MAX_BYTES, arg, r);
    struct key_request wanted;
    struct error err;

    if (!key_request_parse(r->body, j->c.mem, &wanted, &err)) {
        job_end(j, &err);
        return;
    }
    key_new_fill(&wanted, clock_life_ms(), j->c.mem, &j->made);
    memcpy(j->ops, j->made.ops, j->made.n * sizeof(*j->ops));
    write_told(j, j->made.n, &j->made.row, "key/create", on_created);
}

/* List. */

static bool run_list(struct read_job *job, struct store *store)
{
    struct keys_job *j = container_of(job, struct keys_job, read);
    struct key_row *rows = NULL;
    size_t n = 0;

    if (!store_keys_page(store, j->tenant, j->after, STORE_PAGE_MAX, j->c.mem, &rows, &n,
                         &job->err))
        return false;
    keys_write(&j->c.out, rows, n, STORE_PAGE_MAX);
    return true;
}

static void on_listed(struct read_job *job)
{
    job_end(container_of(job, struct keys_job, read), job->ok ? NULL : &job->err);
}

void control_key_list(void *arg, struct http_request *r, struct caller *caller unused_arg)
{
    struct keys_job *j = control_job_new(sizeof(*j), MAX_BYTES, arg, r);

    j->tenant = control_query(r, STR("tenant"), j->c.mem);
    j->after = control_query(r, STR("after"), j->c.mem);
    j->read = (struct read_job){.run = run_list, .done = on_listed};
    if (!lane_query(j->c.sv->lanes, &j->read))
        refuse_busy(j);
}

/* Revoke.  The tenant is read from the key's row. */

static void refuse_missing(struct keys_job *j)
{
    struct error err;
    error_set(&err, ERR_NOT_FOUND,
              "there is no such key, or it was revoked already; see `holdfast key list`");
    job_end(j, &err);
}

static void on_revoked(struct write_job *job)
{
    struct keys_job *j = container_of(job, struct keys_job, write);
    struct js_writer w;

    if (!job->ok && j->ops[0].verdict == VERDICT_MISSING) {
        refuse_missing(j);
    } else if (!job->ok) {
        job_end(j, &job->err);
    } else {
        log_info("a key was revoked", LS("key_id", j->id));
        identity_revoked(j->c.sv->front->identity,
                         arena_printf(j->c.mem, "key:%.*s", STR_ARG(j->id)));
        js_begin(&w, &j->c.out);
        js_object(&w);
        j->row->revoked_ms = j->revoked.revoked_ms;
        key_write(&w, j->row);
        js_object_end(&w);
        job_end(j, NULL);
    }
}

static bool run_find(struct read_job *job, struct store *store)
{
    struct keys_job *j = container_of(job, struct keys_job, read);
    return store_key_get(store, j->id, j->c.mem, &j->row, &job->err);
}

static void on_found(struct read_job *job)
{
    struct keys_job *j = container_of(job, struct keys_job, read);

    if (!job->ok) {
        job_end(j, &job->err);
        return;
    }
    if (!j->row || j->row->revoked_ms) {
        refuse_missing(j);
        return;
    }
    j->who =
        (struct principal){.tenant = j->row->tenant, .owner = STR("local"), .role = ROLE_ADMIN};
    j->revoked =
        (struct key_row){.id = j->id, .tenant = j->row->tenant, .revoked_ms = clock_life_ms()};
    j->ops[0] = (struct store_op){
        .kind = OP_KEY_REVOKE, .who = &j->who, .key = &j->revoked, .required = true};
    write_told(j, 1, &j->revoked, "key/revoke", on_revoked);
}

void control_key_revoke(void *arg, struct http_request *r, struct caller *caller unused_arg)
{
    struct keys_job *j = control_job_new(sizeof(*j), MAX_BYTES, arg, r);

    if (!key_id_is_valid(r->route->match.params[0])) {
        refuse_missing(j);
        return;
    }
    j->id = arena_dup(j->c.mem, r->route->match.params[0]);
    j->read = (struct read_job){.run = run_find, .done = on_found};
    if (!lane_lookup(j->c.sv->lanes, &j->read))
        refuse_busy(j);
}
