/* SPDX-License-Identifier: Apache-2.0 */
/* Exec tokens: the only thing upstream_send() takes.
 *
 *   UNUSED --exec_begin--> BEGINNING --intent durable--> OPEN --exec_end--> ENDING --> CLOSED
 *                              \--store failed--> REFUSED
 *
 * OPEN means that the intent is durable (or that the server is not audited).  Only then may a byte
 * be sent.  ENDING ends in CLOSED whether or not the outcome is durable yet.  If it is not,
 * unsaved_outcomes.c retries it, and the caller gets the error unless the spool has the outcome.
 * Notes and housekeeping are OPEN from the start and never end.
 *
 * A token contains its write job: a call allocates memory only if a body must be redacted or its
 * texts are long.  Everything runs on the loop, except on_prepare(), which runs on the write lane.
 */
#include "audit/audit_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "crypto/hash.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

static const bool edges[][EXEC_REFUSED + 1] = {
    [EXEC_UNUSED] = {[EXEC_BEGINNING] = true},
    [EXEC_BEGINNING] = {[EXEC_OPEN] = true, [EXEC_REFUSED] = true},
    [EXEC_OPEN] = {[EXEC_ENDING] = true},
    [EXEC_ENDING] = {[EXEC_CLOSED] = true},
    [EXEC_CLOSED] = {false},
    [EXEC_REFUSED] = {false},
};

static void enter(struct exec *x, enum exec_state state)
{
    assert(edges[x->state][state]);
    x->state = state;
}

bool exec_is_open(const struct exec *x)
{
    return x->state == EXEC_OPEN;
}

static struct str cut_text(struct str s)
{
    return str_cut(s, AUDIT_TEXT_MAX);
}

/* The event's texts in one table, so that one loop copies them. */
enum {
    TEXT_TENANT,
    TEXT_OWNER,
    TEXT_SESSION,
    TEXT_TRANSPORT,
    TEXT_CARRIER,
    TEXT_CLIENT,
    TEXT_SERVER,
    TEXT_METHOD,
    TEXT_TOOL,
    TEXT_ERA,
    N_TEXTS
};

static void texts_of(const struct exec_request *what, struct str ret[N_TEXTS])
{
    const struct str texts[N_TEXTS] = {
        [TEXT_TENANT] = what->who->tenant,           [TEXT_OWNER] = what->who->owner,
        [TEXT_SESSION] = cut_text(what->session_id), [TEXT_TRANSPORT] = cut_text(what->transport),
        [TEXT_CARRIER] = cut_text(what->carrier),    [TEXT_CLIENT] = cut_text(what->client),
        [TEXT_SERVER] = cut_text(what->server),      [TEXT_METHOD] = cut_text(what->method),
        [TEXT_TOOL] = cut_text(what->tool),          [TEXT_ERA] = cut_text(what->era),
    };
    memcpy(ret, texts, sizeof(texts));
}

static size_t texts_size(const struct str texts[N_TEXTS])
{
    size_t n = 0;
    for (size_t i = 0; i < N_TEXTS; i++)
        n += texts[i].n;
    return n;
}

/* Copies the texts to `to`, which has enough room, and points the event at the copies. */
static void event_set_texts(struct event_row *e, struct str texts[N_TEXTS], char *to)
{
    for (size_t i = 0; i < N_TEXTS; i++) {
        if (!texts[i].p)
            continue;
        memcpy(to, texts[i].p, texts[i].n);
        texts[i].p = to;
        to += texts[i].n;
    }
    e->tenant = texts[TEXT_TENANT];
    e->owner = texts[TEXT_OWNER];
    e->session_id = texts[TEXT_SESSION];
    e->transport = texts[TEXT_TRANSPORT];
    e->carrier = texts[TEXT_CARRIER];
    e->client = texts[TEXT_CLIENT];
    e->server = texts[TEXT_SERVER];
    e->method = texts[TEXT_METHOD];
    e->tool = texts[TEXT_TOOL];
    e->era = texts[TEXT_ERA];
}

/* For an unaudited call, only the server's name is kept, for the counters. */
static void describe_unaudited(struct exec *x, struct str server)
{
    struct str name = cut_text(server);

    static_assert(sizeof(x->copied) >= AUDIT_TEXT_MAX, "the longest name has room");
    memcpy(x->copied, name.n ? name.p : "", name.n);
    x->event.server = str_n(x->copied, name.n);
    x->event.id = 0;
    x->n_copied = 0;
}

static void describe_intent(struct exec *x, const struct exec_request *what)
{
    struct str texts[N_TEXTS];
    texts_of(what, texts);
    size_t n = texts_size(texts);
    char *to = x->copied;
    if (n > sizeof(x->copied)) {
        x->texts = arena_new(n + 1);
        to = arena_alloc(x->texts, n);
    }
    x->n_copied = n <= sizeof(x->copied) ? n : 0;
    x->event = (struct event_row){
        .at_ms = clock_wall_ms(), .kind = EVENT_INTENT, .parent = what->parent, .body_len = -1};
    event_set_texts(&x->event, texts, to);
}

static void describe_outcome(struct exec *x, const struct exec_result *result)
{
    struct event_row *e = &x->event;
    e->id = e->seq = 0;
    e->kind = EVENT_OUTCOME;
    e->exec = x->id;
    e->at_ms = clock_wall_ms();
    e->duration_us = clock_mono_us() - x->began_us;
    e->outcome = cut_text(result->outcome);
    e->error = result->error;
    e->tokens = result->tokens;
    e->request_len = e->body_len > 0 ? e->body_len : 0;
    e->body_len = -1;
    e->body = STR_NONE;
    memset(e->body_sha, 0, sizeof(e->body_sha));
    memset(e->stored_sha, 0, sizeof(e->stored_sha));
}

static struct exec *exec_of(struct write_job *job)
{
    return container_of(job, struct exec, job);
}

static void on_prepare(struct write_job *job)
{
    struct exec *x = exec_of(job);
    if (x->sealed || x->mode == AUDIT_NONE)
        return;
    audit_seal_event(x->audit, x->audit->redactor, &x->own, &x->event, x->body,
                     (struct body_rule){x->mode, x->max_body}, &x->redacted);
    x->sealed = true;
}

static void drop_body(struct exec *x)
{
    free(x->redacted);
    x->redacted = NULL;
    x->body = STR_NONE;
    x->event.body = STR_NONE;
}

static void drop_texts(struct exec *x)
{
    arena_free(x->texts);
    x->texts = NULL;
}

/* Write jobs and deferred completions both end here, on the loop.  `then` may free the token. */
static void finish_begin(struct exec *x, bool ok)
{
    drop_body(x);
    if (ok) {
        x->id = x->event.id;
        if (x->mode != AUDIT_NONE)
            memcpy(x->intent_mac, x->event.mac, sizeof(x->intent_mac));
        enter(x, EXEC_OPEN);
        x->then(x, NULL);
        return;
    }
    audit_failed(x->audit, "intent", &x->job.err);
    /* A numbered event was already submitted when the store failed, so its commit may have
     * succeeded. */
    if (x->audit->unknown_commits && x->event.id != 0 && x->job.err.code == ERR_UNAVAILABLE)
        unknown_commits_add(x->audit->unknown_commits, &x->event);
    audit_count(x->audit, x->event.server, STR("refused"));
    drop_texts(x);
    enter(x, EXEC_REFUSED);
    error_wrap(&x->job.err, "nothing was executed, because the audit record of the call cannot be "
                            "written");
    x->then(x, &x->job.err);
}

static void close_exec(struct exec *x, const struct error *err)
{
    drop_body(x);
    drop_texts(x);
    enter(x, EXEC_CLOSED);
    x->then(x, err);
}

static void finish_end(struct exec *x, bool ok)
{
    if (ok) {
        close_exec(x, NULL);
        return;
    }
    audit_failed(x->audit, "outcome", &x->job.err);
    if (x->mode == AUDIT_NONE) /* only the extra ops failed */
        close_exec(x, &x->job.err);
    else
        audit_retry_outcome(x->audit, x, close_exec);
}

static bool job_succeeded(struct write_job *job, const struct store_op *event_op)
{
    if (job->ok && event_op && event_op->verdict != VERDICT_OK) {
        job->ok = false;
        error_set(&job->err, ERR_UNAVAILABLE,
                  "the audit record was refused by the store; look at its log and try again");
    }
    return job->ok;
}

static void on_written(struct write_job *job)
{
    struct exec *x = exec_of(job);
    const struct store_op *event_op = x->mode == AUDIT_NONE ? NULL : &job->ops[job->n - 1];
    bool ok = job_succeeded(job, event_op);
    if (x->state == EXEC_BEGINNING)
        finish_begin(x, ok);
    else
        finish_end(x, ok);
}

/* Completes jobs that were never handed to the lane, also from the loop. */
static void on_deferred(struct loop_task *task)
{
    struct exec *x = container_of(task, struct exec, job.task);
    if (x->state == EXEC_BEGINNING)
        finish_begin(x, x->job.ok);
    else
        finish_end(x, x->job.ok);
}

static void defer_finish(struct exec *x, bool ok)
{
    x->job.ok = ok;
    x->job.task.fn = on_deferred;
    loop_defer(x->audit->loop, &x->job.task);
}

/* Sets the fields one by one: the error buffer is large and is touched only on errors. */
static void job_init(struct exec *x, size_t n_ops)
{
    x->job.next = NULL;
    x->job.ops = x->ops;
    x->job.n = n_ops;
    x->job.prepare = on_prepare;
    x->job.done = on_written;
    x->job.ok = false;
    x->job.grows = x->state == EXEC_BEGINNING;
    x->job.warm[0] = str_n((const char *)&x->event, offsetof(struct exec, copied) -
                                                        offsetof(struct exec, event) + x->n_copied);
    x->job.warm[1] = x->body;
}

static void submit(struct exec *x, size_t n_ops)
{
    job_init(x, n_ops);
    if (n_ops == 0) {
        defer_finish(x, true);
    } else if (!lane_write(x->audit->lanes, &x->job)) {
        error_set(&x->job.err, ERR_UNAVAILABLE,
                  "the audit has too many records waiting; try again in a moment");
        defer_finish(x, false);
    }
}

static void refuse_behind(struct exec *x)
{
    size_t waiting = x->audit->n_unsaved;
    job_init(x, 0);
    if (waiting > 0)
        error_set(&x->job.err, ERR_UNAVAILABLE,
                  "%zu outcomes wait for the store to come back; check the disk and the store, "
                  "then try again",
                  waiting);
    else
        error_set(&x->job.err, ERR_UNAVAILABLE,
                  "the store cannot be written at the moment, so the call was not sent; try again "
                  "shortly");
    defer_finish(x, false);
}

void exec_begin(struct audit *a, struct exec *x, const struct exec_request *what,
                const struct store_op *extra, size_t n_extra,
                void (*ready)(struct exec *x, const struct error *err))
{
    assert(n_extra + 1 < countof(x->ops));
    /* Fields that are not set here are written before they are read. */
    x->kind = EXEC_DURABLE;
    x->state = EXEC_UNUSED;
    x->id = 0;
    x->audit = a;
    x->mode = what->mode;
    x->max_body = what->max_body;
    x->then = ready;
    x->body = what->body;
    x->own = what->own;
    x->began_us = clock_mono_us();
    x->redacted = NULL;
    x->texts = NULL;
    x->sealed = false;
    if (what->mode == AUDIT_NONE)
        describe_unaudited(x, what->server);
    else
        describe_intent(x, what);
    enter(x, EXEC_BEGINNING);
    for (size_t i = 0; i < n_extra; i++)
        x->ops[i] = extra[i];
    if (a->n_unsaved >= AUDIT_UNSAVED_MAX || !unsaved_outcomes_go_first(a)) {
        refuse_behind(x);
        return;
    }
    if (what->mode != AUDIT_NONE)
        x->ops[n_extra++] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &x->event};
    submit(x, n_extra);
}

void exec_end(struct audit *a, struct exec *x, const struct exec_result *result,
              void (*done)(struct exec *x, const struct error *err))
{
    enter(x, EXEC_ENDING);
    x->audit = a;
    x->then = done;
    x->body = result->body;
    x->own = result->own;
    x->sealed = false;
    size_t n = result->n_extra;
    assert(n + 1 < countof(x->ops));
    for (size_t i = 0; i < n; i++)
        x->ops[i] = result->extra[i];
    if (x->mode != AUDIT_NONE) {
        describe_outcome(x, result);
        x->ops[n++] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &x->event};
    }
    if (x->kind == EXEC_DURABLE)
        audit_count(a, x->event.server, cut_text(result->outcome));
    submit(x, n);
}

static struct exec open_token(enum exec_kind kind)
{
    return (struct exec){
        .kind = kind, .state = EXEC_OPEN, .mode = AUDIT_NONE, .began_us = clock_mono_us()};
}

struct exec exec_for_note(void)
{
    return open_token(EXEC_NOTE);
}

struct exec exec_housekeeping(enum exec_reason reason)
{
    static const char *const names[] = {
        [EXEC_PROBE] = "probe",
        [EXEC_INITIALIZE] = "initialize",
        [EXEC_PING] = "ping",
        [EXEC_LIST] = "list",
        [EXEC_CANCEL] = "cancel",
        [EXEC_SUBSCRIBE] = "subscribe",
        [EXEC_CLIENT_RESPONSE] = "client_response",
    };
    struct metric *m =
        metric_register(METRIC_COUNTER, "holdfast_housekeeping_total",
                        "Messages of our own towards upstreams, by reason.", "reason", 16);
    const struct str name = str_of(names[reason]);
    metric_add(metric_cell(m, &name, 1), 1);
    struct exec x = open_token(EXEC_HOUSEKEEPING);
    x.reason = reason;
    return x;
}

/* A note: its job, its event and the bytes that both point to, in one allocation. */
struct note {
    struct write_job job;
    struct store_op op;
    struct event_row event;
    struct audit *audit;
    char *redacted;
    char *tool; /* event.tool without its secrets; NULL: it has none */
    struct own_secrets own;
    struct body_rule rule;
    struct str body;
    size_t size;
    char bytes[];
};

static void note_free(struct note *n)
{
    n->audit->note_bytes -= n->size;
    own_secrets_unref(&n->own);
    if (n->own.credential.p)
        crypto_wipe((char *)n->own.credential.p, n->own.credential.n);
    free(n->redacted);
    free(n->tool);
    free(n);
}

/* A note may be about a uri, or a name that no server lists: any text of the client. */
static void redact_tool(struct note *n)
{
    struct str clean = redact_text(n->audit->redactor, &n->own, n->event.tool);

    if (clean.p == n->event.tool.p)
        return;
    clean = str_cut(clean, AUDIT_TEXT_MAX);
    n->tool = xmalloc(clean.n + 1);
    memcpy(n->tool, clean.p, clean.n);
    n->event.tool = str_n(n->tool, clean.n);
}

static void on_note_prepare(struct write_job *job)
{
    struct note *n = container_of(job, struct note, job);

    if (n->rule.mode == AUDIT_REDACTED && !n->tool)
        redact_tool(n);
    audit_seal_event(n->audit, n->audit->redactor, &n->own, &n->event, n->body, n->rule,
                     &n->redacted);
}

static void on_note_written(struct write_job *job)
{
    struct note *n = container_of(job, struct note, job);
    if (!job_succeeded(job, &n->op))
        audit_failed(n->audit, "note", &job->err);
    note_free(n);
}

static struct str copy_to(char **to, struct str s)
{
    if (!s.p)
        return s;
    memcpy(*to, s.p, s.n);
    struct str copy = str_n(*to, s.n);
    *to += s.n;
    return copy;
}

static struct note *note_new(struct audit *a, const struct exec_request *what,
                             const struct exec_result *result)
{
    struct str texts[N_TEXTS];
    texts_of(what, texts);
    size_t text_bytes = texts_size(texts);
    size_t size = sizeof(struct note) + text_bytes + result->outcome.n + result->error.n +
                  what->body.n + what->own.credential.n;
    if (size > AUDIT_NOTES_MAX - a->note_bytes)
        return NULL;
    struct note *n = xmalloc(size + 1);
    memset(n, 0, sizeof(*n));
    n->audit = a;
    n->rule = (struct body_rule){what->mode, what->max_body};
    n->own = what->own;
    own_secrets_ref(&n->own);
    n->size = size;
    n->event = (struct event_row){.at_ms = clock_wall_ms(),
                                  .kind = EVENT_NOTE,
                                  .parent = what->parent,
                                  .tokens = result->tokens,
                                  .body_len = -1};
    event_set_texts(&n->event, texts, n->bytes);
    char *to = n->bytes + text_bytes;
    n->event.outcome = copy_to(&to, result->outcome);
    n->event.error = copy_to(&to, result->error);
    n->body = copy_to(&to, what->body);
    n->own.credential = copy_to(&to, what->own.credential);
    n->op = (struct store_op){.kind = OP_EVENT_APPEND, .event = &n->event};
    n->job = (struct write_job){
        .ops = &n->op, .n = 1, .grows = true, .prepare = on_note_prepare, .done = on_note_written};
    a->note_bytes += size;
    return n;
}

void exec_note(struct audit *a, const struct exec_request *what, const struct exec_result *result)
{
    audit_count(a, what->server, result->outcome);
    if (what->mode == AUDIT_NONE)
        return;
    struct note *n = note_new(a, what, result);
    if (n && lane_write(a->lanes, &n->job))
        return;
    struct error err;
    error_set(&err, ERR_UNAVAILABLE, "too many records wait for the store");
    audit_failed(a, "note", &err);
    if (n)
        note_free(n);
}
