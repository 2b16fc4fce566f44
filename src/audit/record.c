/* SPDX-License-Identifier: Apache-2.0 */
/* Executions reported by REST.  Each is one event in the chain, with intent and outcome in one.
 *
 * The batch begins with a required op that uses the session.  In the same transaction the store
 * decides whether the session belongs to the caller and is live, so nothing is recorded for a
 * session that has ended meanwhile.  The write lane redacts and cuts arguments and result
 * separately, so that a long result does not push the arguments out. */
#include "audit/audit_impl.h"

#include "base/clock.h"
#include "crypto/hash.h"
#include "json/write.h"

#include <stdlib.h>

#define ERROR_MAX 1024
#define WHOLE_MAX ((size_t)64 << 20) /* no body is cut */

struct reported_event {
    struct event_row event;
    struct str arguments, result, error; /* as reported */
    struct buf original, kept, words;    /* bodies and error, written on the write lane */
    bool is_sealed;
};

static void add_member(struct buf *out, const char *key, struct str json)
{
    if (!json.p)
        return;
    buf_addc(out, out->n ? ',' : '{');
    js_quote(out, str_of(key));
    buf_addc(out, ':');
    buf_addstr(out, json);
}

static struct str body_of(struct buf *out, struct str arguments, struct str result)
{
    buf_init(out, SIZE_MAX);
    if (!buf_room(out, arguments.n + result.n + 32))
        return STR_NONE;
    add_member(out, "arguments", arguments);
    add_member(out, "result", result);
    if (!out->n)
        return STR_NONE;
    buf_addc(out, '}');
    return buf_str(out);
}

struct str audit_redact(struct audit *a, struct str bytes, bool is_json)
{
    return is_json ? redact_body(a->redactor, NULL, bytes, true, WHOLE_MAX)
                   : redact_text(a->redactor, NULL, bytes);
}

static bool is_same(struct str a, struct str b)
{
    return a.p == b.p && a.n == b.n;
}

/* Returns the body to store of both parts; absent: both are stored as reported.  The redactor's
 * next use overwrites its bytes, so each result is copied at once. */
static struct str redact_parts(struct audit *a, const struct own_secrets *own,
                               struct reported_event *t)
{
    size_t cap = a->max_body / 2;
    struct str arguments = redact_body(a->redactor, own, t->arguments, true, cap);
    bool is_changed = !is_same(arguments, t->arguments);

    buf_init(&t->kept, SIZE_MAX);
    if (is_changed)
        add_member(&t->kept, "arguments", arguments);
    struct str result = redact_body(a->redactor, own, t->result, true, cap);
    if (!is_changed && is_same(result, t->result))
        return STR_NONE;
    if (!is_changed)
        add_member(&t->kept, "arguments", arguments);
    add_member(&t->kept, "result", result);
    if (!t->kept.n)
        buf_addc(&t->kept, '{');
    buf_addc(&t->kept, '}');
    return buf_str(&t->kept);
}

static void seal_bodies(struct audit *a, const struct own_secrets *own, struct reported_event *t)
{
    struct event_row *e = &t->event;
    struct str original = body_of(&t->original, t->arguments, t->result);

    if (!original.p)
        return;
    e->body_len = (int64_t)original.n;
    sha256(original, e->body_sha);
    e->body = redact_parts(a, own, t);
    if (e->body.p) {
        sha256(e->body, e->stored_sha);
    } else {
        e->body = original;
        memcpy(e->stored_sha, e->body_sha, sizeof(e->stored_sha));
    }
}

static void seal(struct audit *a, const struct own_secrets *own, struct reported_event *t)
{
    if (t->error.p) {
        buf_init(&t->words, SIZE_MAX);
        buf_addstr(&t->words, redact_text(a->redactor, own, t->error));
        t->event.error = str_cut(buf_str(&t->words), ERROR_MAX);
    }
    seal_bodies(a, own, t);
}

static void on_prepare(struct write_job *job)
{
    struct audit_record *r = container_of(job, struct audit_record, job);
    for (size_t i = 0; i < r->n; i++) {
        struct reported_event *t = &r->events[i];
        if (!t->is_sealed)
            seal(r->audit, &r->own, t);
        t->is_sealed = true;
    }
}

static void on_written(struct write_job *job)
{
    struct audit_record *r = container_of(job, struct audit_record, job);
    for (size_t i = 0; i < r->n; i++) {
        buf_release(&r->events[i].original);
        buf_release(&r->events[i].kept);
        buf_release(&r->events[i].words);
        if (job->ok)
            audit_count(r->audit, STR("-"), r->events[i].event.outcome);
    }
    r->done(r);
}

static void fill(struct audit_record *r, struct reported_event *t,
                 const struct reported_execution *reported)
{
    t->arguments = reported->arguments;
    t->result = reported->result;
    t->error = reported->error;
    t->event = (struct event_row){
        .at_ms = clock_wall_ms(),
        .kind = EVENT_RECORD,
        .tenant = r->session.tenant,
        .owner = r->who.owner,
        .session_id = r->session.id,
        .carrier = STR("rest"),
        .method = STR("tools/call"),
        .tool = str_cut(reported->tool, AUDIT_TEXT_MAX),
        .tool_id = reported->tool_id,
        .client = str_cut(r->session.client_name, AUDIT_TEXT_MAX),
        .request_len = (int64_t)reported->arguments.n,
        .outcome = reported->error.p ? STR("error") : STR("ok"),
        .error = str_cut(reported->error, ERROR_MAX),
        .duration_us = reported->duration_ms * 1000,
        .tokens = reported->tokens,
        .body_len = -1,
    };
}

struct audit_record *audit_record_new(struct audit *a, const struct audit_record_what *what,
                                      struct arena *mem)
{
    struct audit_record *r = arena_new_of(mem, struct audit_record);
    size_t n = 0;
    struct store_op *ops = arena_zalloc(mem, (1 + what->n_extra + what->n) * sizeof(*ops));

    r->audit = a;
    r->who = *what->who;
    r->session = *what->session;
    r->session.last_activity_ms = what->at_ms;
    r->own = what->own;
    r->events = arena_zalloc(mem, what->n * sizeof(*r->events));
    r->n = what->n;
    ops[n++] = (struct store_op){
        .kind = OP_SESSION_USE,
        .who = &r->who,
        .session = &r->session,
        .is_in_event = true,
        .required = true,
    };
    for (size_t i = 0; i < what->n_extra; i++)
        ops[n++] = what->extra[i];
    for (size_t i = 0; i < what->n; i++) {
        fill(r, &r->events[i], &what->reported[i]);
        ops[n++] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &r->events[i].event};
    }
    r->job = (struct write_job){.ops = ops, .n = n, .prepare = on_prepare, .done = on_written};
    return r;
}
