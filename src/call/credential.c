/* SPDX-License-Identifier: Apache-2.0 */
/* From a session's row to the credential and context values of its calls. */
#include "call/credential.h"

#include "base/log.h"
#include "json/splice.h"
#include "json/write.h"
#include "session/bundle.h"
#include "session/profile_context.h"
#include "session/session_metrics.h"
#include "session/setup.h"

#include <stdlib.h>

#define FETCH_BYTES (4u * 1024 * 1024)
#define MAX_TEXT (256u * 1024 * 1024)

struct credential_fetch {
    struct arena *mem;
    struct keyring *keyring;
    struct principal who;
    struct str session_id, service;
    enum credential_as as;
    struct str name;       /* the operator's, from "as" */
    struct str *key_names; /* headers that the client may choose instead */
    size_t n_key_names;
    struct str server;                                /* for the log */
    void (*done)(void *arg, const struct error *err); /* NULL: the result is not wanted any more */
    void *arg;
    bool is_awaited;
    struct read_job read;
    struct session_row *row;
    struct keyring_job job;
    struct link_credential found;
    /* By name: its value, or why it cannot be used. */
    struct str secret;
    struct error secret_err; /* ERR_NONE: none is named, or `secret` is set */
    struct str sealed_context;
    struct config_pair *context_values;
    size_t n_context_values;
    struct loop_task task;
};

bool credential_is_awaited(const struct credential_fetch *f)
{
    return f && f->is_awaited;
}

struct link_credential credential_found(const struct credential_fetch *f)
{
    return f ? f->found : (struct link_credential){0};
}

const struct config_pair *credential_context_values(const struct credential_fetch *f, size_t *ret_n)
{
    *ret_n = f ? f->n_context_values : 0;
    return f ? f->context_values : NULL;
}

static void dispose(struct credential_fetch *f)
{
    arena_free(f->mem);
    free(f);
}

void credential_free(struct credential_fetch *f)
{
    if (!f)
        return;
    f->done = NULL;
    if (!f->is_awaited)
        dispose(f);
}

static void finish(struct credential_fetch *f, const struct error *err)
{
    f->is_awaited = false;
    if (f->done)
        f->done(f->arg, err);
    else
        dispose(f);
}

static void on_context_opened(struct keyring_job *j)
{
    struct credential_fetch *f = j->user;
    struct error err = j->err;
    bool ok =
        j->ok && profile_context_read(j->result, f->mem, &f->context_values, &f->n_context_values);

    if (!ok && (j->ok || err.code == ERR_SEALED))
        error_set(&err, ERR_SEALED,
                  "the context values of this session cannot be decrypted; open a new session, and "
                  "tell the operator");
    finish(f, ok ? NULL : &err);
}

/* The last step: unseals the context values. */
static void open_context(struct credential_fetch *f)
{
    if (!f->sealed_context.p || !f->done) {
        finish(f, NULL);
        return;
    }
    f->job = (struct keyring_job){
        .place = {f->who.tenant, f->session_id, STR(SEALED_FIELD_CONTEXT)},
        .sealed = f->sealed_context,
        .mem = f->mem,
        .done = on_context_opened,
        .user = f,
    };
    if (keyring_open(f->keyring, &f->job))
        on_context_opened(&f->job);
}

static void on_no_credential(struct loop_task *task)
{
    open_context(container_of(task, struct credential_fetch, task));
}

/* The operator's "as" decides where a credential goes.  The client's key_name counts only if the
 * operator lists that header, and is then written as the operator spells it. */
static struct str name_for(const struct credential_fetch *f, const struct credential *c)
{
    if (f->as != CREDENTIAL_HEADER || !c->header.p || str_ieq(c->header, f->name))
        return f->name;
    for (size_t i = 0; i < f->n_key_names; i++)
        if (str_ieq(c->header, f->key_names[i]))
            return f->key_names[i];
    log_info("the credential's key_name is not among the server's key_names and was not used",
             LS("server", f->server), LS("header", f->name));
    return f->name;
}

/* "Bearer …" in Authorization; in other places the secret alone. */
static void place(struct credential_fetch *f, const struct credential *c)
{
    struct str name = name_for(f, c);
    bool with_scheme =
        f->as == CREDENTIAL_HEADER && c->scheme.p && str_ieq(name, STR("Authorization"));

    f->found = (struct link_credential){
        .as = f->as,
        .name = name,
        .value = with_scheme
                     ? arena_printf(f->mem, "%.*s %.*s", STR_ARG(c->scheme), STR_ARG(c->secret))
                     : arena_dup(f->mem, c->secret),
    };
}

/* Nothing is stored for the service. */
static void use_secret(struct credential_fetch *f)
{
    const struct credential c = {.scheme = STR("Bearer"), .secret = f->secret};

    if (f->secret_err.code != ERR_NONE) {
        finish(f, &f->secret_err);
        return;
    }
    if (c.secret.p)
        place(f, &c);
    open_context(f);
}

static void on_opened(struct keyring_job *j)
{
    struct credential_fetch *f = j->user;
    struct str header = f->as == CREDENTIAL_HEADER ? f->name : STR_NONE;
    struct credential c = {0};
    struct error err;

    if (!j->ok) {
        finish(f, &j->err);
    } else if (!bundle_find(j->result, f->service, header, f->mem, &c, &err)) {
        finish(f, &err);
    } else {
        if (!c.secret.p) {
            use_secret(f);
            return;
        }
        place(f, &c);
        open_context(f);
    }
}

static bool run_read(struct read_job *job, struct store *store)
{
    struct credential_fetch *f = container_of(job, struct credential_fetch, read);
    return store_session_by_id(store, &f->who, f->session_id, f->mem, &f->row, &job->err);
}

static void on_read(struct read_job *job)
{
    struct credential_fetch *f = container_of(job, struct credential_fetch, read);
    struct error err;

    if (!job->ok) {
        error_set(
            &err, ERR_UNAVAILABLE,
            "the store does not answer, so credentials cannot be used now; try again shortly");
        finish(f, &err);
        return;
    }
    if (!f->row || !f->row->sealed_auth.p || !f->done) {
        use_secret(f);
        return;
    }
    f->job = (struct keyring_job){
        .place = {f->who.tenant, f->row->id, STR(SEALED_FIELD_AUTH)},
        .sealed = f->row->sealed_auth,
        .mem = f->mem,
        .done = on_opened,
        .user = f,
    };
    if (keyring_open(f->keyring, &f->job))
        on_opened(&f->job);
}

static void on_refused(struct loop_task *task)
{
    struct credential_fetch *f = container_of(task, struct credential_fetch, task);
    struct error err;

    error_set(&err, ERR_UNAVAILABLE, "too many lookups are waiting; try again shortly");
    finish(f, &err);
}

static void read_place(struct credential_fetch *f, struct str as)
{
    static const struct {
        struct str prefix;
        enum credential_as as;
    } places[] = {{{"header", 6}, CREDENTIAL_HEADER},
                  {{"env", 3}, CREDENTIAL_ENV},
                  {{"meta", 4}, CREDENTIAL_META}};
    struct str prefix = str_split(&as, ':');

    for (size_t i = 0; i < countof(places); i++)
        if (str_eq(prefix, places[i].prefix))
            f->as = places[i].as;
    f->name = arena_dup(f->mem, as);
}

static void copy_key_names(struct credential_fetch *f, const struct server_config *server)
{
    f->n_key_names = server->n_key_names;
    f->key_names = arena_zalloc(f->mem, server->n_key_names * sizeof(*f->key_names));
    for (size_t i = 0; i < server->n_key_names; i++)
        f->key_names[i] = arena_dup(f->mem, server->key_names[i]);
}

bool credential_is_due(const struct session *s, const struct server_config *server,
                       struct credential_ask *ask)
{
    struct str secret = server->credential_service.p && unlikely(s->rules != NULL)
                            ? session_setup_secret(s->rules, server->credential_service)
                            : STR_NONE;
    bool with_credential = server->credential_service.p && (s->sealed_auth.p || secret.p);
    bool with_context = server->takes_context && s->context;

    if (!with_credential && !with_context)
        return false;
    ask->session_id = s->id;
    ask->server = with_credential ? server : NULL;
    ask->secret = secret;
    ask->from = secret.p ? s->rules->from : STR_NONE;
    ask->tenant = s->tenant;
    ask->sealed_context = with_context ? s->context->sealed : STR_NONE;
    return true;
}

/* The value of now: a link that is open keeps what it has. */
static void read_secret(struct credential_fetch *f, const struct credential_ask *ask)
{
    f->secret_err = (struct error){.code = ERR_NONE};
    if (!ask->secret.p)
        return;
    if (!config_tenant_may(ask->config, ask->tenant, ask->secret)) {
        error_set(&f->secret_err, ERR_CONFIG,
                  "the template %.*s names the secret %.*s, which the configuration does not allow "
                  "for this tenant any more; tell the operator",
                  STR_ARG(ask->from), STR_ARG(ask->secret));
        return;
    }
    f->secret = arena_dup(f->mem, config_secret_value(ask->config, ask->secret));
    if (!f->secret.p)
        error_set(
            &f->secret_err, ERR_CONFIG,
            "the secret %.*s, which the template %.*s names, is not set; the operator sets it "
            "with `holdfast secret set %.*s`",
            STR_ARG(ask->secret), STR_ARG(ask->from), STR_ARG(ask->secret));
}

struct credential_fetch *credential_fetch(const struct credential_ask *ask,
                                          void (*done)(void *arg, const struct error *err),
                                          void *arg)
{
    struct credential_fetch *f = xcalloc(1, sizeof(*f));

    f->mem = arena_new(FETCH_BYTES);
    arena_wipe_later(f->mem);
    f->keyring = ask->keyring;
    f->who = (struct principal){.tenant = arena_dup(f->mem, ask->who->tenant),
                                .owner = arena_dup(f->mem, ask->who->owner),
                                .role = ask->who->role,
                                .tenant_wide = ask->who->tenant_wide};
    f->session_id = arena_dup(f->mem, ask->session_id);
    f->sealed_context = arena_dup(f->mem, ask->sealed_context);
    f->done = done;
    f->arg = arg;
    f->is_awaited = true;
    if (!ask->server) {
        f->task.fn = on_no_credential;
        loop_defer(ask->loop, &f->task);
        return f;
    }
    f->service = arena_dup(f->mem, ask->server->credential_service);
    f->server = arena_dup(f->mem, ask->server->name);
    read_place(f, ask->server->credential_as);
    copy_key_names(f, ask->server);
    read_secret(f, ask);
    f->read = (struct read_job){.run = run_read, .done = on_read};
    f->task.fn = on_refused;
    if (!lane_lookup(ask->lanes, &f->read))
        loop_defer(ask->loop, &f->task);
    return f;
}

static bool is_named(void *arg, struct str raw_key)
{
    return str_eq(raw_key, *(const struct str *)arg);
}

/* Writes the request in doc with that member. */
static void write_stamped(const struct js_doc *doc, struct str name, struct str member,
                          struct arena *mem, struct buf *out)
{
    const struct js_node *params = js_get(doc, js_root(doc), STR("params"));
    const struct js_node *meta = js_get(doc, params, STR("_meta"));
    const struct js_node *theirs = js_get_key(doc, meta, name);
    struct js_splice s;

    js_splice_init(&s, doc);
    if (theirs) {
        struct str raw = js_raw(doc, theirs);
        js_splice_remove(&s, meta, is_named, &raw);
    }
    if (js_type_is(meta, JS_OBJECT))
        js_splice_member(&s, meta, member);
    else if (js_type_is(params, JS_OBJECT))
        js_splice_member(&s, params, arena_printf(mem, "\"_meta\":{%.*s}", STR_ARG(member)));
    js_splice_write(&s, js_root(doc), out);
}

void credential_stamp(struct link_credential c, struct buf *text)
{
    struct arena *mem;
    struct js_doc doc;
    struct buf member, out;

    if (!c.value.p)
        return;
    mem = arena_new(8 * MAX_TEXT);
    arena_wipe_later(mem);
    buf_init_secret(&member, 8 * (c.name.n + c.value.n) + 32);
    js_quote(&member, c.name);
    buf_addc(&member, ':');
    js_quote(&member, c.value);
    buf_init_secret(&out, MAX_TEXT);
    if (js_parse(buf_str(text), &js_limits_upstream, mem, &doc, NULL)) {
        write_stamped(&doc, c.name, buf_str(&member), mem, &out);
        buf_reset(text);
        buf_addstr(text, buf_str(&out));
    }
    buf_release(&out);
    buf_release(&member);
    arena_free(mem);
}
