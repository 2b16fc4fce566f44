/* SPDX-License-Identifier: Apache-2.0 */
/* /secrets: sets, lists and removes the secrets that the configuration names as ${secret:NAME}.  They
 * belong to the whole gateway, so their rows admit the local admin only.  No answer and no
 * event contains a value.  After the commit of a change the gateway resolves its configuration
 * again. */
#include "api/admin_bodies.h"
#include "api/job.h"

#include "base/clock.h"
#include "base/log.h"
#include "crypto/hash.h"
#include "front/front.h"
#include "session/config_secrets.h"
#include "session/keyring.h"

#define MAX_BYTES (16u * 1024 * 1024)
#define PAGE STORE_PAGE_MAX
#define PAGE_BYTES (64u * 1024 * 1024)

struct secret_call {
    struct api_job j;
    struct secret_body wanted;
    struct keyring_job seal;
    struct secret_row row;
    struct event_row event;
    struct store_op ops[2];
    struct write_job write;
    struct read_job read;
    struct secret_row *rows; /* without their sealed values */
    size_t n;
};

/* Reads {name}.  false: the refusal was sent. */
static bool read_name(struct secret_call *s)
{
    struct error err;

    s->row.name = arena_dup(s->j.mem, s->j.call->match.params[0]);
    if (config_is_secret_name(s->row.name))
        return true;
    error_set(&err, ERR_BAD_INPUT,
              "the name of a secret has 1 to %d letters, digits and . _ -; choose another",
              CONFIG_SECRET_NAME_MAX);
    api_job_refuse(&s->j, &err);
    return false;
}

static void tell_changed(struct secret_call *s, const char *what)
{
    const struct api_services *sv = s->j.call->sv;

    log_info(what, LS("name", s->row.name));
    if (sv->on_secret_changed)
        sv->on_secret_changed(sv->on_secret_changed_arg);
    api_job_end(&s->j, 204, STR_NONE);
}

static void write_with_event(struct secret_call *s, const char *method,
                             void (*done)(struct write_job *job))
{
    s->event = (struct event_row){
        .tenant = STR(CONFIG_SECRETS_TENANT),
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = arena_printf(s->j.mem, "secret:%.*s", STR_ARG(s->row.name)),
        .method = str_of(method),
        .outcome = STR("ok"),
        .body_len = -1,
    };
    s->ops[0].required = true;
    s->ops[1] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &s->event};
    s->write = (struct write_job){.ops = s->ops, .n = 2, .done = done};
    if (!lane_write(s->j.call->sv->lanes, &s->write))
        api_job_busy(&s->j);
}

/* Set. */

static void on_put(struct write_job *job)
{
    struct secret_call *s = container_of(job, struct secret_call, write);
    struct error err;

    if (!job->ok && s->ops[0].verdict == VERDICT_LIMIT) {
        error_set(&err, ERR_LIMIT,
                  "there are %d secrets already; remove one with `holdfast secret remove NAME`",
                  CONFIG_SECRETS_MAX);
        api_job_refuse(&s->j, &err);
    } else if (!job->ok) {
        api_job_refuse(&s->j, &job->err);
    } else {
        tell_changed(s, "a secret was set");
    }
}

static void on_sealed(struct keyring_job *seal)
{
    struct secret_call *s = seal->user;
    int64_t now = clock_life_ms();

    crypto_wipe((void *)s->wanted.value.p, s->wanted.value.n);
    if (!seal->ok) {
        api_job_refuse(&s->j, &seal->err);
        return;
    }
    s->row.sealed = seal->result;
    s->row.created_ms = s->row.updated_ms = now;
    s->ops[0] = (struct store_op){
        .kind = OP_SECRET_PUT, .secret = &s->row, .max_counted = CONFIG_SECRETS_MAX};
    write_with_event(s, "secret/set", on_put);
}

static bool check_value(struct secret_call *s)
{
    struct error err;

    if (s->wanted.value.n && s->wanted.value.n <= CONFIG_SECRET_BYTES_MAX)
        return true;
    error_set(&err, ERR_BAD_INPUT, "a secret has 1 to %u bytes; give a shorter one",
              CONFIG_SECRET_BYTES_MAX);
    api_job_refuse(&s->j, &err);
    return false;
}

void api_put_secret(struct api_call *c)
{
    struct secret_call *s = api_job_new(sizeof(*s), MAX_BYTES, c);

    if (!read_name(s))
        return;
    if (!api_bind(c, js_root(&c->doc), &body_secret, &s->wanted, NULL, NULL)) {
        api_job_drop(&s->j);
        return;
    }
    s->wanted.value = arena_dup(s->j.mem, s->wanted.value);
    if (!check_value(s))
        return;
    if (!c->sv->keyring) {
        api_job_refuse(&s->j, &c->sv->keyring_err);
        return;
    }
    s->seal = (struct keyring_job){
        .place = config_secret_place(s->row.name),
        .services = STR("[]"),
        .plain = s->wanted.value,
        .mem = s->j.mem,
        .done = on_sealed,
        .user = s,
    };
    if (keyring_seal(c->sv->keyring, &s->seal))
        on_sealed(&s->seal);
}

/* Remove. */

static void on_removed(struct write_job *job)
{
    struct secret_call *s = container_of(job, struct secret_call, write);
    struct error err;

    if (!job->ok && s->ops[0].verdict == VERDICT_MISSING) {
        error_set(&err, ERR_NOT_FOUND, "there is no secret %.*s; see `holdfast secret list`",
                  STR_ARG(s->row.name));
        api_job_refuse(&s->j, &err);
    } else if (!job->ok) {
        api_job_refuse(&s->j, &job->err);
    } else {
        tell_changed(s, "a secret was removed");
    }
}

void api_remove_secret(struct api_call *c)
{
    struct secret_call *s = api_job_new(sizeof(*s), MAX_BYTES, c);

    if (!read_name(s))
        return;
    s->ops[0] = (struct store_op){.kind = OP_SECRET_REMOVE, .secret = &s->row};
    write_with_event(s, "secret/remove", on_removed);
}

/* List. */

static bool run_list(struct read_job *job, struct store *store)
{
    struct secret_call *s = container_of(job, struct secret_call, read);
    size_t n = PAGE;
    bool ok = true;

    s->rows = arena_zalloc(s->j.mem, CONFIG_SECRETS_MAX * sizeof(*s->rows));
    while (ok && n == PAGE && s->n < CONFIG_SECRETS_MAX) {
        struct arena *mem = arena_new(PAGE_BYTES);
        struct secret_row *rows = NULL;
        ok = store_secrets_page(store, s->n ? s->rows[s->n - 1].name : STR_NONE, PAGE, mem, &rows,
                                &n, &job->err);
        for (size_t i = 0; ok && i < n && s->n < CONFIG_SECRETS_MAX; i++)
            s->rows[s->n++] = (struct secret_row){.name = arena_dup(s->j.mem, rows[i].name),
                                                  .created_ms = rows[i].created_ms,
                                                  .updated_ms = rows[i].updated_ms};
        arena_free(mem);
    }
    return ok;
}

static void write_time(struct js_writer *w, const char *key, int64_t ms)
{
    char text[CLOCK_TEXT];

    clock_format(ms, text);
    js_kv_string(w, key, str_of(text));
}

static void write_users(struct js_writer *w, const struct config *c, struct str name)
{
    js_key(w, STR("used_by"));
    js_array(w);
    for (size_t i = 0; i < c->n_servers; i++)
        for (size_t k = 0; k < c->servers[i].n_secrets; k++)
            if (str_eq(c->servers[i].secrets[k].name, name))
                js_string(w, c->servers[i].name);
    js_array_end(w);
}

static void on_listed(struct read_job *job)
{
    struct secret_call *s = container_of(job, struct secret_call, read);
    struct js_writer w;

    if (!job->ok) {
        api_job_refuse(&s->j, &job->err);
        return;
    }
    js_begin(&w, &s->j.out);
    js_object(&w);
    js_key(&w, STR("secrets"));
    js_array(&w);
    for (size_t i = 0; i < s->n; i++) {
        js_object(&w);
        js_kv_string(&w, "name", s->rows[i].name);
        write_time(&w, "created_at", s->rows[i].created_ms);
        write_time(&w, "updated_at", s->rows[i].updated_ms);
        write_users(&w, s->j.call->sv->front->config, s->rows[i].name);
        js_object_end(&w);
    }
    js_array_end(&w);
    js_object_end(&w);
    api_job_end(&s->j, 200, STR_NONE);
}

void api_list_secrets(struct api_call *c)
{
    struct secret_call *s = api_job_new(sizeof(*s), MAX_BYTES, c);

    s->read = (struct read_job){.run = run_list, .done = on_listed};
    if (!lane_query(c->sv->lanes, &s->read))
        api_job_busy(&s->j);
}
