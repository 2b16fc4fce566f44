/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a call; the diagram is in call.h.  Every path ends in call_answered() once, unless
 * the call was refused before anything was written.  Each attempt ends in exec_end() once. */
#include "call/call.h"
#include "call/call_impl.h"

#include "audit/known.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/log_quiet.h"
#include "call/credential.h"
#include "call/level.h"
#include "crypto/hash.h"
#include "mcp/method.h"
#include "mcp/usage.h"
#include "session/setup.h"
#include "upstream/builtin.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#define MAX_REQUEST (256u * 1024 * 1024) /* "limits.body" goes up to 64 MiB; we add little */
#define MAX_ATTEMPTS 2
#define KEPT_TEXT (64u * 1024)

/* The copy of a request, the answer's texts and the rows of the intent.  "limits.body" bounds the
 * request. */
#define CALL_BYTES (1024u * 1024 * 1024)
/* The first page of a call's memory: the call, and a request of usual size. */
#define CALL_PAGE (sizeof(struct call) + 2048)

struct calls *calls_new(const struct calls_config *config)
{
    struct calls *home = xcalloc(1, sizeof(*home));
    home->audit = config->audit;
    home->loop = config->loop;
    home->lanes = config->lanes;
    home->keyring = config->keyring;
    home->undelivered = config->undelivered;
    home->traces = config->traces;
    home->config = config->config;
    map_init(&home->by_client_id);
    buf_init(&home->text, MAX_REQUEST);
    return home;
}

void calls_free(struct calls *home)
{
    while (home->n_spare)
        arena_free(home->spare[--home->n_spare]);
    map_release(&home->by_client_id);
    buf_release(&home->text);
    free(home);
}

unsigned calls_in_flight(const struct calls *home)
{
    return home->in_flight;
}

static void count(struct calls *home, int by)
{
    home->in_flight = (unsigned)((int)home->in_flight + by);
    lanes_set_in_flight(home->lanes, home->in_flight);
}

static struct str cancel_key(const struct transport *t, struct str id, struct arena *mem)
{
    char *p = arena_alloc(mem, sizeof(t->id_hash) + id.n);
    memcpy(p, t->id_hash, sizeof(t->id_hash));
    memcpy(p + sizeof(t->id_hash), id.p, id.n);
    return str_n(p, sizeof(t->id_hash) + id.n);
}

struct call *calls_find(struct calls *home, const struct transport *t, struct str client_id,
                        struct arena *mem)
{
    return map_get(&home->by_client_id, cancel_key(t, client_id, mem));
}

static void call_begin(struct call *c, int64_t parent);
static void finish(struct call *c);
static void call_send(struct call *c, struct link *l, bool was_open);

/* The era of its link, as far as it is known before the link is open. */
static enum mcp_era era_of(const struct call *c)
{
    return c->transport && c->session->origin != ORIGIN_DERIVED
               ? upstream_era_for(c->up, c->catalog, c->client_era)
               : c->catalog->era;
}

/* The sharing of the link: by everybody, by the owner's calls that name no session, or only within
 * this session. */
static struct link_identity link_identity_of(const struct call *c)
{
    const struct server_config *config = upstream_config(c->up);
    const struct session *s = c->session;
    struct link_identity who = {.key = s->link_key, .owner = s->owner_key};

    if (c->uses_session_link) {
        who.credential = credential_found(c->credential);
        who.context_values = credential_context_values(c->credential, &who.n_context_values);
    } else if (config->share == SHARE_ALL ||
               (config->kind == SERVER_HTTP && !mcp_era(era_of(c))->is_stateful))
        who.key = STR("all");
    else if (s->origin == ORIGIN_DERIVED && !call_is_shared(c))
        who.key = s->owner_key; /* which holds the state of the owner's other sessions too */
    if (!str_eq(who.key, STR("all")))
        who.principal = &c->who;
    if (str_eq(who.key, s->link_key))
        who.session_secrets = c->own.session;
    if (str_eq(who.key, s->link_key) && c->transport && mcp_era(c->client_era)->is_stateful)
        who.initialize_params = c->transport->initialize_params;
    const struct session_link *before = session_link_of(c->session, upstream_name(c->up));
    if (before)
        who.resume = before->resume;
    return who;
}

static void commit_outcome(struct call *c);

static void call_answered(struct call *c)
{
    c->state = CALL_ENDING;
    call_measure_answered(c);
    call_keep_result(c);
    commit_outcome(c);
}

/* The audit redacts these secrets in the call's parameters and result. */
static void know_secrets(struct call *c, struct known *known)
{
    struct known *before = c->own.known;

    c->own.known = known_ref(known);
    known_unref(before);
}

static void drop_credential(struct call *c)
{
    credential_free(c->credential);
    c->credential = NULL;
    c->uses_session_link = c->has_credential = false;
}

static void call_failed(struct call *c, const struct error *err)
{
    c->err = *err;
    call_answered(c);
}

static void on_attempt_over(struct exec *x, const struct error *err)
{
    struct call *c = x->user;
    int64_t parent = x->id;

    if (err) { /* the second attempt needs the store as well */
        call_failed(c, err);
        return;
    }
    call_begin(c, parent);
}

/* Each attempt has its own audit row: the first is closed before the second begins. */
static void call_again(struct call *c, const struct error *why)
{
    struct exec_result result = {.outcome = STR("upstream_lost"),
                                 .error = arena_dup(c->mem, str_of(why->text)),
                                 .own = c->own};
    log_debug("sending a call again", LS("server", upstream_name(c->up)), LZ("why", why->text));
    call_trace_end(c, result.outcome);
    c->state = CALL_BEGINNING;
    if (c->kind != EXEC_DURABLE) {
        call_begin(c, 0);
        return;
    }
    exec_end(c->home->audit, &c->exec, &result, on_attempt_over);
}

/* A call may be repeated if nothing of it was sent, or if its tool only reads. */
static bool may_go_again(const struct call *c, const struct error *err, bool left)
{
    bool only_reads = c->kind != EXEC_DURABLE || (c->item && c->item->read_only);

    if (c->attempts >= MAX_ATTEMPTS)
        return false;
    if (!left)
        return err->code == ERR_UNREACHABLE || err->code == ERR_SESSION_NOT_FOUND;
    return err->code == ERR_UNREACHABLE && only_reads;
}

static void on_fail(struct pending *p, const struct error *err, bool left)
{
    struct call *c = container_of(p, struct call, pending);
    if (may_go_again(c, err, left)) {
        call_again(c, err);
        return;
    }
    struct error why = *err;
    if (why.code == ERR_SESSION_NOT_FOUND)
        why.code = ERR_UNREACHABLE;
    call_failed(c, &why);
}

static void on_reply(struct pending *p, struct mcp_message *m, struct arena *mem)
{
    struct call *c = container_of(p, struct call, pending);
    c->answer = *m;
    c->answer_mem = mem;
    c->has_answer = true;
    call_answered(c);
}

static void on_progress(struct pending *p, const struct mcp_message *m)
{
    struct call *c = container_of(p, struct call, pending);

    list_each(&c->listeners, it)
    {
        struct call_listener *l = list_entry(it, struct call_listener, node);
        l->ops->progress(l, m);
    }
}

static bool on_message(struct pending *p, const struct mcp_message *m)
{
    struct call *c = container_of(p, struct call, pending);
    bool is_taken = false;

    list_each(&c->listeners, it)
    {
        struct call_listener *l = list_entry(it, struct call_listener, node);
        if (!is_taken || m->kind != MCP_REQUEST)
            is_taken = l->ops->message(l, m) || is_taken;
    }
    return is_taken;
}

static void note_link(struct call *c, struct link *l, bool was_open)
{
    struct str server = upstream_name(c->up);
    const struct session_link *before;
    char resume[LINK_RESUME_MAX];

    if (!link_is_stateful(l) || (call_is_shared(c) && c->session->origin == ORIGIN_DERIVED))
        return; /* not the link of the owner's calls */
    before = session_link_of(c->session, server);
    if (before && before->generation == link_generation(l) && !before->lost)
        return; /* the common case */
    struct link_seen seen = {
        .generation = link_generation(l),
        .was_open = was_open,
        .resume = link_resume(l, resume),
        .reason = link_lost_reason(l),
    };
    c->state_lost = session_note_link(c->session, server, &seen) == LINK_STATE_LOST;
    if (seen.resume.p)
        session_keep_resume(c->session, server, seen.resume);
}

static void on_level(void *arg, struct link *l, const struct error *err)
{
    struct call *c = arg;

    c->level = NULL;
    if (err)
        on_fail(&c->pending, err, false);
    else
        call_send(c, l, true);
}

/* True: the call goes on once the server has accepted its client's log level. */
static bool sends_level(struct call *c, struct link *l)
{
    const char *level = c->transport ? c->transport->log_level : NULL;

    if (!level || !mcp_era(link_era(l))->is_stateful || !catalog_offers(c->catalog, "logging"))
        return false;
    c->level = level_send(l, level, on_level, c);
    return c->level != NULL;
}

/* A request's text is needed until it is sent, mostly at once, so calls reuse one buffer.  A second
 * call that needs it meanwhile gets a buffer of its own. */
static struct buf borrow_text(struct calls *home)
{
    struct buf text = home->text;

    buf_init(&home->text, MAX_REQUEST);
    buf_reset(&text);
    return text;
}

static void return_text(struct calls *home, struct buf *text)
{
    if (home->text.p || text->cap > KEPT_TEXT) {
        buf_release(text);
        return;
    }
    home->text = *text;
}

static void call_send(struct call *c, struct link *l, bool was_open)
{
    struct mcp_call_request r = {
        .m = &c->request,
        .client_era = c->client_era,
        .server_era = link_era(l),
        .drop_session_id = c->drop_session_id,
        .named = c->named,
        .name = c->tool,
        .state_node = c->state_node,
        .state = c->state_text,
        .initialize_params = c->transport ? c->transport->initialize_params : STR_NONE,
        .log_level = c->transport ? c->transport->log_level : NULL,
        .mem = c->mem,
    };
    struct buf text;
    struct error err;

    note_link(c, l, was_open);
    c->server_era = link_era(l);
    if (unlikely(r.client_era != r.server_era) &&
        !mcp_method_find(c->request.method, r.server_era)) {
        error_set(&err, ERR_NO_METHOD, CALL_NOT_TRANSLATED);
        call_failed(c, &err);
        return;
    }
    if (sends_level(c, l))
        return;
    c->pending.id = r.id = upstream_next_id_for(c->up);
    c->pending.on_reply = on_reply;
    c->pending.on_fail = on_fail;
    c->pending.on_progress = on_progress;
    c->pending.on_message = on_message;
    text = borrow_text(c->home);
    (void)buf_room(&text, c->request.doc.text.n + 256); /* one allocation in the common case */
    mcp_write_request(&r, &text);
    credential_stamp(link_meta_credential(l), &text);
    struct outgoing m = {
        .method = c->request.method,
        .name = c->tool,
        .text = buf_str(&text),
        .header_lines = c->header_lines,
        .trace_lines = call_trace_send(c),
        .who = &c->who,
        .session_id = c->session->id,
        .session_owner = c->session->owner,
        .handle = c->session->handle,
        .person = c->session->origin == ORIGIN_TOOL ? c->session->client_name : STR_NONE,
        .session_named = c->session_named,
        .carrier = c->carrier,
        .carrier_key = c->carrier_key,
        .client = c->client_name,
    };
    c->state = CALL_SENT;
    if (link_known(l))
        know_secrets(c, link_known(l));
    c->sent_us = clock_mono_us();
    bool sent = upstream_send(l, &c->exec, &c->pending, &m, &err);
    if (link_meta_credential(l).value.p)
        crypto_wipe(text.p, text.n);
    return_text(c->home, &text);
    if (!sent)
        on_fail(&c->pending, &err, false);
}

static void on_link(struct link_wait *w, struct link *l, const struct error *err)
{
    struct call *c = container_of(w, struct call, wait);
    if (err)
        call_failed(c, err);
    else
        call_send(c, l, false);
}

static void link_now(struct call *c)
{
    struct link_identity who = link_identity_of(c);
    struct link *l;
    struct error err;

    c->wait.done = on_link;
    if (!upstream_link(c->up, &who, &c->wait, &l, &err))
        call_failed(c, &err);
    else if (l)
        call_send(c, l, true);
}

/* Checks the credential and context values for a new link of the session.  False: c->err says
 * why. */
static bool check_credential(struct call *c, const struct error *err)
{
    size_t n = 0;
    const struct config_pair *values = credential_context_values(c->credential, &n);

    if (err)
        c->err = *err;
    c->has_credential =
        !err && (!values || upstream_check_context_values(c->up, values, n, &c->err));
    if (!c->has_credential)
        return false;
    c->uses_session_link = values || credential_found(c->credential).value.p != NULL;
    return true;
}

static void link_with_credential(struct call *c)
{
    if (c->has_credential)
        link_now(c);
    else
        call_answered(c);
}

static void on_late_credential(void *arg, const struct error *err)
{
    (void)check_credential(arg, err);
    link_with_credential(arg);
}

static bool is_credential_due(const struct call *c, struct credential_ask *ret)
{
    *ret = (struct credential_ask){
        .loop = c->home->loop,
        .lanes = c->home->lanes,
        .keyring = c->home->keyring,
        .who = &c->who,
        .config = *c->home->config,
    };
    return credential_is_due(c->session, upstream_config(c->up), ret);
}

/* An open link has its credential and context values already.  Otherwise both were looked up before
 * the intent was written, unless the link was lost since. */
static void call_link(struct call *c)
{
    struct credential_ask ask;

    c->state = CALL_LINKING;
    if (!is_credential_due(c, &ask)) {
        link_now(c);
    } else if (upstream_has_link(c->up, c->session->link_key)) {
        drop_credential(c);
        c->uses_session_link = true;
        link_now(c);
    } else if (c->credential) {
        link_with_credential(c);
    } else {
        c->credential = credential_fetch(&ask, on_late_credential, c);
    }
}

/* The intent and the session's row are durable, or err says why not. */
static void begun(struct call *c, const struct store_op *ops, const struct error *err)
{
    enum verdict planned = session_plan_committed(&c->plan, ops, c->n_plan, !err);

    if (err) {
        c->err = *err;
        c->outcome = OUTCOME_ERROR;
        c->is_refused = true;
        call_keep_result(c);
        finish(c);
        return;
    }
    if (c->cancelled) {
        struct error gone;
        error_set(&gone, ERR_CANCELLED, "the client cancelled the call");
        call_failed(c, &gone);
        return;
    }
    if (planned == VERDICT_LIMIT) {
        struct error limit;
        error_set(&limit, ERR_LIMIT, SESSION_LIMIT_TEXT);
        c->session_over_limit = true;
        call_failed(c, &limit);
        return;
    }
    struct session_link *l = session_link_of(c->session, upstream_name(c->up));
    if (l)
        l->stored = true;
    call_link(c);
}

static void on_begun(struct exec *x, const struct error *err)
{
    begun(x->user, x->ops, err);
}

/* A write of rows only: the request has no intent. */
struct row_write {
    struct call *call;
    struct write_job job;
    struct store_op ops[SESSION_PLAN_OPS + 1];
};

static void on_rows_written(struct write_job *job)
{
    struct row_write *write = container_of(job, struct row_write, job);
    struct error err;

    if (!job->ok) {
        static struct log_quiet quiet;
        log_warn_quietly(&quiet, "the store refused a write", LZ("why", job->err.text));
        error_set(&err, ERR_UNAVAILABLE, "the store cannot write right now; try again shortly");
    }
    begun(write->call, write->ops, job->ok ? NULL : &err);
}

/* A caller who shares the session of another owner changes its rows in the name of that owner. */
static const struct principal *row_owner(const struct call *c)
{
    return call_is_shared(c) ? &c->session_owner : &c->who;
}

/* Rows that must be stored before the call is sent: in the transaction of the intent. */
static void gather_ops(struct call *c, struct store_op ops[SESSION_PLAN_OPS + 1])
{
    struct session_link *link = session_link_of(c->session, upstream_name(c->up));
    size_t n;

    c->plan.who = row_owner(c);
    n = c->n_plan = session_plan_ops(&c->plan, c->mem, ops);

    if (!upstream_is_stateless(c->up, era_of(c)) && (!link || !link->stored)) {
        c->link_row = (struct link_row){
            .session_id = c->session->id,
            .server = upstream_name(c->up),
            .writer = sessions_writer(c->session->home),
            .remote_id = link ? link->resume : STR_NONE,
            .opened_ms = clock_life_ms(),
        };
        ops[n++] =
            (struct store_op){.kind = OP_LINK_PUT, .who = row_owner(c), .link = &c->link_row};
    }
    c->n_extra = n;
}

/* "2025-11-25>2026-07-28": the versions of the client and of the upstream. */
static struct str both_eras(const struct call *c)
{
    struct str from = c->client_version;
    struct str to = era_of(c) == c->catalog->era ? c->catalog->version : from;
    char *p = arena_alloc(c->mem, from.n + 1 + to.n);
    memcpy(p, from.p, from.n);
    p[from.n] = '>';
    memcpy(p + from.n + 1, to.p, to.n);
    return str_n(p, from.n + 1 + to.n);
}

enum server_audit call_audit_mode(const struct session_setup *rules, const struct upstream *up)
{
    const struct server_config *server = upstream_config(up);
    enum server_audit mode = setup_audit_mode(rules, server->audit);

    if (likely(mode != AUDIT_FULL) || server->kind != SERVER_BUILTIN)
        return mode;
    const struct builtin *builtin = builtin_find(upstream_name(up));
    return builtin && builtin->has_secrets ? AUDIT_REDACTED : mode;
}

static struct exec_request what_of(const struct call *c, int64_t parent)
{
    const struct session_setup *rules = c->session->rules;

    return (struct exec_request){
        .who = &c->who,
        .session_id = c->session->id,
        .transport = c->transport ? str_n(c->transport->shown, 8) : STR_NONE,
        .carrier = c->session->carrier,
        .client = c->client_name,
        .server = upstream_name(c->up),
        .method = c->request.method,
        .tool = c->tool,
        .era = both_eras(c),
        .body = mcp_params_raw(&c->request),
        .mode = call_audit_mode(rules, c->up),
        .max_body = setup_audit_body(rules),
        .parent = parent,
        .own = c->own,
    };
}

/* Without an intent the call waits only for new rows, if there are any. */
static void begin_without_intent(struct call *c, const struct store_op *ops)
{
    struct error err;

    c->exec = c->kind == EXEC_NOTE ? exec_for_note() : exec_housekeeping(EXEC_SUBSCRIBE);
    if (!c->n_extra) {
        begun(c, NULL, NULL);
        return;
    }
    struct row_write *write = arena_new_of(c->mem, struct row_write);
    write->call = c;
    memcpy(write->ops, ops, c->n_extra * sizeof(*ops));
    write->job = (struct write_job){
        .ops = write->ops, .n = c->n_extra, .grows = true, .done = on_rows_written};
    if (lane_write(c->home->lanes, &write->job))
        return;
    error_set(&err, ERR_UNAVAILABLE, "too much is waiting for the store; try again shortly");
    begun(c, NULL, &err);
}

static void write_intent(struct call *c)
{
    struct store_op ops[SESSION_PLAN_OPS + 1];

    gather_ops(c, ops);
    session_touch(c->session);
    if (c->kind != EXEC_DURABLE) {
        begin_without_intent(c, ops);
        return;
    }
    struct exec_request what = what_of(c, c->parent);
    c->exec.user = c;
    exec_begin(c->home->audit, &c->exec, &what, ops, c->n_extra, on_begun);
}

/* The intent is written in any case: without the credential the call fails after it. */
static void on_credential(void *arg, const struct error *err)
{
    struct call *c = arg;

    if (check_credential(c, err)) {
        struct link_identity who = link_identity_of(c);
        struct known *known = upstream_secrets(c->up, &who);
        know_secrets(c, known);
        known_unref(known);
    }
    write_intent(c);
}

/* A session's secrets are looked up before its intent is written, because its parameters may hold
 * them. */
static void call_begin(struct call *c, int64_t parent)
{
    struct credential_ask ask;

    c->attempts++;
    c->state = CALL_BEGINNING;
    c->parent = parent;
    drop_credential(c);
    if (likely(!is_credential_due(c, &ask))) {
        write_intent(c);
    } else if (upstream_has_link(c->up, c->session->link_key)) {
        know_secrets(c, upstream_link_known(c->up, c->session->link_key));
        write_intent(c);
    } else {
        c->credential = credential_fetch(&ask, on_credential, c);
    }
}

static const struct js_node *node_in(const struct call *c, const struct mcp_message *from,
                                     const struct js_node *node)
{
    return node ? c->request.doc.nodes + (node - from->doc.nodes) : NULL;
}

/* The request may hold the caller's credential, so the memory of such a call is wiped. */
static void copy_request(struct call *c, const struct call_args *args)
{
    if (args->own.credential.p)
        arena_wipe_later(c->mem);
    c->who = principal_dup(args->who, c->mem);
    c->request = mcp_message_dup(args->request, c->mem);
    c->own.session = known_ref(args->own.session);
    c->own.credential = arena_dup(c->mem, args->own.credential);
    c->own.credential_marker = arena_dup(c->mem, args->own.credential_marker);
    c->tool = arena_dup(c->mem, args->tool);
    c->client_name = arena_dup(c->mem, args->client_name);
    c->carrier = arena_dup(c->mem, args->carrier);
    c->carrier_key = arena_dup(c->mem, args->carrier_key);
    c->named = node_in(c, args->request, args->named);
    c->state_node = node_in(c, args->request, args->state_node);
    c->state_text = arena_dup(c->mem, args->state_text);
    c->header_lines = arena_dup(c->mem, args->header_lines);
    if (args->trace) {
        c->trace = *args->trace;
        c->trace.parent_text = arena_dup(c->mem, args->trace->parent_text);
        c->trace.state = arena_dup(c->mem, args->trace->state);
    }
}

static void take_references(struct call *c, const struct call_args *args)
{
    upstream_ref(args->up);
    c->up = args->up;
    c->catalog = catalog_ref(args->catalog);
    c->item = args->item;
    session_ref(args->session);
    c->session = args->session;
    if (args->transport)
        transport_ref(args->transport);
    c->transport = args->transport;
    c->plan = args->plan;
    c->session_owner = session_owner(args->session);
    c->plan.connection = arena_dup(c->mem, args->plan.connection);
}

static struct arena *take_memory(struct calls *home)
{
    if (home->n_spare)
        return home->spare[--home->n_spare];
    return arena_new_for(CALL_BYTES, CALL_PAGE, 16);
}

static void return_memory(struct calls *home, struct arena *mem)
{
    if (home->n_spare == CALLS_SPARE) {
        arena_free(mem);
        return;
    }
    arena_reset(mem);
    home->spare[home->n_spare++] = mem;
}

struct call *call_new(struct calls *home, const struct call_args *args)
{
    struct arena *mem = take_memory(home);
    struct call *c = arena_alloc(mem, sizeof(*c));

    memset(c, 0, offsetof(struct call, err));
    c->err.code = c->audit_err.code = ERR_NONE;
    c->err.text[0] = c->audit_err.text[0] = '\0';
    c->home = home;
    c->mem = mem;
    list_init(&c->listeners);
    c->kind = args->kind;
    c->method = args->method;
    c->client_era = args->client_era;
    c->client_version = args->client_version;
    c->session_named = args->session_named;
    c->drop_session_id = args->drop_session_id;
    c->adds_handle = args->adds_handle;
    copy_request(c, args);
    take_references(c, args);
    return c;
}

static void call_free(struct call *c)
{
    if (c->undelivered)
        undelivered_result_end(c->undelivered, c->undelivered_stored);
    credential_free(c->credential);
    known_unref(c->own.known);
    known_unref(c->own.session);
    if (c->answer_mem)
        arena_free(c->answer_mem);
    upstream_unref(c->up);
    catalog_unref(c->catalog);
    session_unref(c->session);
    session_plan_release(&c->plan);
    transport_unref(c->transport);
    return_memory(c->home, c->mem); /* frees c too */
}

void call_attach(struct call *c, struct call_listener *l)
{
    assert(c->state != CALL_OVER && !l->call);
    l->call = c;
    list_push(&c->listeners, &l->node);
}

void call_detach(struct call_listener *l)
{
    struct call *c = l->call;

    if (!c)
        return;
    list_remove(&l->node);
    l->call = NULL;
    bool is_under_way = c->state != CALL_NEW && c->state != CALL_OVER;
    if (!is_under_way && !c->is_announcing && list_empty(&c->listeners))
        call_free(c);
}

void call_start(struct call *c)
{
    struct calls *home = c->home;

    assert(c->state == CALL_NEW);
    count(home, 1);
    session_used(c->session);
    if (c->transport && c->request.id.p) {
        c->cancel_key = cancel_key(c->transport, c->request.id, c->mem);
        struct call *before = map_put(&home->by_client_id, c->cancel_key, c);
        if (before) /* a repeated id: from now on it cancels this call */
            before->cancel_key = STR_NONE;
    }
    call_begin(c, 0);
}

/* Tells every listener.  A listener may detach itself and others, so the list of those that are not
 * told yet is read anew each time. */
static void announce(struct call *c)
{
    struct list waiting;

    list_init(&waiting);
    list_move_all(&waiting, &c->listeners);
    c->is_announcing = true;
    for (struct list *it; (it = list_pop(&waiting));) {
        struct call_listener *l = list_entry(it, struct call_listener, node);
        list_push(&c->listeners, it);
        l->ops->over(l);
    }
    c->is_announcing = false;
}

static void finish(struct call *c)
{
    c->state = CALL_OVER;
    if (c->cancel_key.p)
        map_remove(&c->home->by_client_id, c->cancel_key);
    count(c->home, -1);
    c->is_delivered = call_has_client(c);
    announce(c);
    if (list_empty(&c->listeners))
        call_free(c);
}

static void on_ended(struct exec *x, const struct error *err)
{
    struct call *c = x->user;
    if (err)
        c->audit_err = *err;
    else
        c->undelivered_stored = c->undelivered && x->ops[0].verdict == VERDICT_OK;
    finish(c);
}

static void commit_outcome(struct call *c)
{
    struct exec_result result = {0};

    session_touch(c->session);
    result.outcome = call_outcome_name(c->outcome);
    result.own = c->own;
    if (c->has_answer) {
        const struct js_node *body = c->answer.error ? c->answer.error : c->answer.result;
        result.body = js_raw(&c->answer.doc, body);
        result.tokens = mcp_result_tokens(&c->answer.doc, c->answer.result);
    } else {
        result.error = str_of(c->err.text);
    }
    if (c->kind != EXEC_DURABLE) {
        struct exec_request what = what_of(c, 0);
        if (c->kind == EXEC_NOTE)
            exec_note(c->home->audit, &what, &result);
        finish(c);
        return;
    }
    struct store_op extra;
    if (c->undelivered) {
        extra = undelivered_result_op(c->undelivered);
        result.extra = &extra;
        result.n_extra = 1;
    }
    exec_end(c->home->audit, &c->exec, &result, on_ended);
}

void call_cancel(struct call *c, struct str reason)
{
    struct error err;

    if (c->state == CALL_LINKING && c->level)
        level_drop(c->level);
    else if (c->state == CALL_LINKING && credential_is_awaited(c->credential)) {
        credential_free(c->credential);
        c->credential = NULL;
    } else if (c->state == CALL_LINKING)
        link_wait_cancel(&c->wait);
    else if (c->state == CALL_SENT)
        pending_cancel(&c->pending, reason);
    else {
        c->cancelled = c->state == CALL_BEGINNING; /* else it is too late */
        return;
    }
    error_set(&err, ERR_CANCELLED, "the client cancelled the call");
    call_failed(c, &err);
}

void call_abandon(struct call_listener *l, struct str reason)
{
    struct call *c = l->call;

    if (c->listeners.next == c->listeners.prev)
        call_cancel(c, reason);
}
