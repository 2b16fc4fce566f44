/* SPDX-License-Identifier: Apache-2.0 */
/* /keys: makes, lists and revokes keys.  The write lane creates and revokes, the query lane lists.
 * After the commit of a revocation, on_revoked() tells the identity service and then answers.  The
 * commit of a creation or revocation also appends an event to the chain of the key's tenant. */
#include "api/admin_bodies.h"
#include "api/job.h"
#include "api/page.h"
#include "api/who.h"

#include "base/clock.h"
#include "base/log.h"
#include "crypto/hash.h"
#include "identity/grant.h"
#include "identity/user_admin.h"

#define MAX_BYTES (16u * 1024 * 1024)

struct keys_job {
    struct api_job j;
    struct read_job read;
    struct write_job write;
    struct key_request wanted;
    struct key_new made;
    /* list */
    struct page_place place;
    struct str tenant, after;
    int64_t limit;
    struct str link;
    /* one key */
    struct str id;
    struct key_row *row;
    struct principal who;
    struct key_row revoked;
    /* operations of the commit, the event last */
    struct store_op ops[countof(((struct key_new *)0)->ops) + 1];
    struct event_row event;
};

static void job_refuse(struct keys_job *k, const struct error *err)
{
    crypto_wipe(&k->made.text, sizeof(k->made.text));
    api_job_refuse(&k->j, err);
}

static void job_busy(struct keys_job *k)
{
    crypto_wipe(&k->made.text, sizeof(k->made.text));
    api_job_busy(&k->j);
}

/* Commits the first n ops, and with them an event about the key. */
static void write_with_event(struct keys_job *k, size_t n, const struct key_row *key,
                             const char *method, void (*done)(struct write_job *job))
{
    k->event = (struct event_row){
        .tenant = key->tenant,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = arena_printf(k->j.mem, "key:%.*s", STR_ARG(key->id)),
        .method = str_of(method),
        .outcome = STR("ok"),
        .error = api_by(k->j.call, k->j.mem),
        .body_len = -1,
    };
    k->ops[n] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &k->event};
    k->write = (struct write_job){.ops = k->ops, .n = n + 1, .done = done};
    if (!lane_write(k->j.call->sv->lanes, &k->write))
        job_busy(k);
}

/* Create. */

static void on_created(struct write_job *job)
{
    struct keys_job *k = container_of(job, struct keys_job, write);
    struct js_writer w;

    if (!job->ok) {
        job_refuse(k, &job->err);
        return;
    }
    log_info("a key was made", LS("key_id", k->made.row.id), LS("tenant", k->made.row.tenant),
             LZ("role", role_name(k->made.row.role)));
    js_begin(&w, &k->j.out);
    js_object(&w);
    js_kv_string(&w, "key", str_of(k->made.text.text));
    key_write(&w, &k->made.row);
    js_object_end(&w);
    crypto_wipe(&k->made.text.text, sizeof(k->made.text.text));
    api_job_end(&k->j, 201,
                arena_printf(k->j.mem, "Location: /api/v1/keys/%.*s\r\n", STR_ARG(k->made.row.id)));
}

static void create(struct keys_job *k)
{
    key_new_fill(&k->wanted, clock_life_ms(), k->j.mem, &k->made);
    memcpy(k->ops, k->made.ops, k->made.n * sizeof(*k->ops));
    write_with_event(k, k->made.n, &k->made.row, "key/create", on_created);
}

/* The name of the key's user can be encoded in two ways: a user that exists keeps its own. */
static bool run_user(struct read_job *job, struct store *store)
{
    struct keys_job *k = container_of(job, struct keys_job, read);
    struct str tenant = k->wanted.tenant.p ? k->wanted.tenant : STR("default");
    struct user_row *row = NULL;

    if (!user_find(store, tenant, k->wanted.user, k->j.mem, &row, &job->err))
        return false;
    k->wanted.user = row ? row->name : user_name_composed(k->wanted.user, k->j.mem);
    return true;
}

static void on_user(struct read_job *job)
{
    struct keys_job *k = container_of(job, struct keys_job, read);

    if (job->ok)
        create(k);
    else
        api_job_refuse(&k->j, &job->err);
}

void api_create_key(struct api_call *c)
{
    struct keys_job *k = api_job_new(sizeof(*k), MAX_BYTES, c);
    struct key_request *wanted = &k->wanted;
    struct error err;

    wanted->role = ROLE_MEMBER;
    if (!api_bind(c, js_root(&c->doc), &body_key, wanted, NULL, NULL) ||
        !api_tenant(c, wanted->tenant, &wanted->tenant)) {
        api_job_drop(&k->j);
        return;
    }
    if (!key_request_check(wanted, &err) ||
        (!api_is_local(c) && !grant_key(&c->who, wanted, clock_life_ms(), &err))) {
        api_job_refuse(&k->j, &err);
        return;
    }
    struct str user = wanted->user.p ? user_name_composed(wanted->user, k->j.mem) : STR_NONE;
    if (user.p == wanted->user.p) {
        create(k);
        return;
    }
    k->read = (struct read_job){.run = run_user, .done = on_user};
    if (!lane_query(c->sv->lanes, &k->read))
        api_job_busy(&k->j);
}

/* List. */

static void write_page(struct keys_job *k, struct store *store, const struct key_row *rows,
                       size_t n)
{
    struct str user, ignored;
    struct who_names names;
    bool more = n > (size_t)k->limit || (n == (size_t)k->limit && n == STORE_PAGE_MAX);
    struct js_writer w;

    n = n < (size_t)k->limit ? n : (size_t)k->limit;
    who_init(&names, store, k->j.mem);
    js_begin(&w, &k->j.out);
    js_object(&w);
    js_key(&w, STR("keys"));
    js_array(&w);
    for (size_t i = 0; i < n; i++) {
        js_object(&w);
        key_write(&w, &rows[i]);
        if (rows[i].user_id.p) {
            who_owner(&names, rows[i].tenant,
                      arena_printf(k->j.mem, "user:%.*s", STR_ARG(rows[i].user_id)), &user,
                      &ignored);
            js_kv_string(&w, "user_name", user);
        }
        js_object_end(&w);
    }
    who_release(&names);
    js_array_end(&w);
    k->link = page_end(&k->place, &w, n, more ? rows[n - 1].id : STR_NONE, k->j.mem);
}

static bool run_list(struct read_job *job, struct store *store)
{
    struct keys_job *k = container_of(job, struct keys_job, read);
    unsigned limit = (unsigned)k->limit + (k->limit < STORE_PAGE_MAX);
    struct key_row *rows = NULL;
    size_t n = 0;

    if (!store_keys_page(store, k->tenant, k->after, limit, k->j.mem, &rows, &n, &job->err))
        return false;
    write_page(k, store, rows, n);
    return true;
}

static void on_listed(struct read_job *job)
{
    struct keys_job *k = container_of(job, struct keys_job, read);

    if (job->ok)
        api_job_end(&k->j, 200, k->link);
    else
        api_job_refuse(&k->j, &job->err);
}

void api_list_keys(struct api_call *c)
{
    struct keys_job *k = api_job_new(sizeof(*k), MAX_BYTES, c);
    struct str asked, about;

    if (!api_query(c, "tenant", &asked) || !api_tenant(c, asked, &k->tenant)) {
        api_job_drop(&k->j);
        return;
    }
    about = arena_printf(c->mem, "keys %.*s", STR_ARG(k->tenant));
    if (!api_page(c, about, &k->limit, &k->after)) {
        api_job_drop(&k->j);
        return;
    }
    k->place = (struct page_place){.who = &c->who, .about = about};
    k->place.url = arena_printf(c->mem, "/api/v1/keys?limit=%lld%s%.*s", (long long)k->limit,
                                asked.p ? "&tenant=" : "", STR_ARG(api_in_path(c, asked)));
    k->read = (struct read_job){.run = run_list, .done = on_listed};
    if (!lane_query(c->sv->lanes, &k->read))
        api_job_busy(&k->j);
}

/* One key.  The tenant is read from its row. */

static void refuse_missing(struct keys_job *k)
{
    struct error err;
    error_set(&err, ERR_NOT_FOUND,
              "there is no such key, or it was revoked already; see `holdfast key list`");
    api_job_refuse(&k->j, &err);
}

static bool run_find(struct read_job *job, struct store *store)
{
    struct keys_job *k = container_of(job, struct keys_job, read);
    return store_key_get(store, k->id, k->j.mem, &k->row, &job->err);
}

static void find(struct api_call *c, void (*done)(struct read_job *job))
{
    struct keys_job *k = api_job_new(sizeof(*k), MAX_BYTES, c);

    if (!key_id_is_valid(c->match.params[0])) {
        refuse_missing(k);
        return;
    }
    k->id = arena_dup(k->j.mem, c->match.params[0]);
    k->read = (struct read_job){.run = run_find, .done = done};
    if (!lane_lookup(c->sv->lanes, &k->read))
        api_job_busy(&k->j);
}

/* false: the key is not the caller's to see; the refusal was sent. */
static bool is_found(struct keys_job *k)
{
    const struct api_call *c = k->j.call;

    if (!k->read.ok)
        api_job_refuse(&k->j, &k->read.err);
    else if (!k->row || (!api_is_local(c) && !str_eq(k->row->tenant, c->who.tenant)))
        refuse_missing(k);
    else
        return true;
    return false;
}

static void reply_row(struct keys_job *k)
{
    struct js_writer w;

    js_begin(&w, &k->j.out);
    js_object(&w);
    key_write(&w, k->row);
    js_object_end(&w);
    api_job_end(&k->j, 200, STR_NONE);
}

static void on_got(struct read_job *job)
{
    struct keys_job *k = container_of(job, struct keys_job, read);

    if (is_found(k))
        reply_row(k);
}

void api_get_key(struct api_call *c)
{
    find(c, on_got);
}

static void on_revoked(struct write_job *job)
{
    struct keys_job *k = container_of(job, struct keys_job, write);

    if (!job->ok && k->ops[0].verdict == VERDICT_MISSING) {
        refuse_missing(k);
    } else if (!job->ok) {
        api_job_refuse(&k->j, &job->err);
    } else {
        log_info("a key was revoked", LS("key_id", k->id));
        identity_revoked(k->j.call->sv->front->identity,
                         arena_printf(k->j.mem, "key:%.*s", STR_ARG(k->id)));
        k->row->revoked_ms = k->revoked.revoked_ms;
        reply_row(k);
    }
}

static void on_found(struct read_job *job)
{
    struct keys_job *k = container_of(job, struct keys_job, read);

    if (!is_found(k))
        return;
    if (k->row->revoked_ms) {
        refuse_missing(k);
        return;
    }
    k->who =
        (struct principal){.tenant = k->row->tenant, .owner = STR("local"), .role = ROLE_ADMIN};
    k->revoked =
        (struct key_row){.id = k->id, .tenant = k->row->tenant, .revoked_ms = clock_life_ms()};
    k->ops[0] = (struct store_op){
        .kind = OP_KEY_REVOKE, .who = &k->who, .key = &k->revoked, .required = true};
    write_with_event(k, 1, &k->revoked, "key/revoke", on_revoked);
}

void api_revoke_key(struct api_call *c)
{
    find(c, on_found);
}
