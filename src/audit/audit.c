/* SPDX-License-Identifier: Apache-2.0 */
/* The audit as a whole: made at start and freed at the end; and the functions that its parts share.
 * Tokens are in exec.c, outcomes that wait for the store in unsaved_outcomes.c, anchors in
 * anchor.c. */
#include "audit/audit_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "crypto/hash.h"

#include <stdlib.h>

#define CLOSE_BATCH 200

struct counter {
    struct metric_cell *cell;
    struct str key;
    char bytes[];
};

struct audit *audit_new(const struct audit_config *config)
{
    struct audit *a = xcalloc(1, sizeof(*a));
    a->lanes = config->lanes;
    a->loop = config->loop;
    a->chain = config->chain;
    a->writer = config->writer;
    a->max_body = config->max_body;
    a->anchor_file =
        config->anchor_file.p ? strndup(config->anchor_file.p, config->anchor_file.n) : NULL;
    a->redactor = redactor_new();
    redactor_trust_json(a->redactor);
    a->publish = publish_point_new(a->chain, a->loop);
    a->executions = metric_register(METRIC_COUNTER, "holdfast_executions_total",
                                    "Executions by server and outcome.", "server,outcome", 1000);
    struct metric *failures =
        metric_register(METRIC_COUNTER, "holdfast_audit_failures_total",
                        "Audit records that could not be written when they were due.", "", 1);
    a->failures = metric_cell(failures, NULL, 0);
    map_init(&a->counters);
    a->waiting = metric_cell(metric_register(METRIC_GAUGE, "holdfast_audit_outcomes_waiting",
                                             "Outcomes that wait for the store.", "", 1),
                             NULL, 0);
    unsaved_outcomes_init(a);
    if (config->spool) {
        a->spooler = spooler_new(a, config->spool);
        a->unknown_commits = unknown_commits_new(a);
    }
    anchor_init(a);
    return a;
}

void audit_free(struct audit *a)
{
    if (!a)
        return;
    spooler_free(a->spooler);
    unknown_commits_free(a->unknown_commits);
    unsaved_outcomes_release(a);
    anchor_release(a);
    publish_point_free(a->publish);
    size_t at = 0;
    struct str key;
    for (void *value; map_next(&a->counters, &at, &key, &value);)
        free(value);
    map_release(&a->counters);
    redactor_free(a->redactor);
    free(a->anchor_file);
    free(a);
}

static struct counter *counter_new(struct audit *a, struct str server, struct str outcome,
                                   struct str key)
{
    struct counter *c = xcalloc(1, sizeof(*c) + key.n);
    memcpy(c->bytes, key.p, key.n);
    c->key = str_n(c->bytes, key.n);
    const struct str values[] = {server, outcome};
    c->cell = metric_cell(a->executions, values, countof(values));
    map_put(&a->counters, c->key, c);
    return c;
}

/* A recording that is served has a random name, replay-1a2b3c4d-NAME (replay/serve.c): all of them
 * have one label, so that their number does not grow. */
static struct str label_of(struct str server)
{
    static const char digits[] = "0123456789abcdef";
    const size_t n = 7; /* of "replay-" */

    if (!str_starts(server, STR("replay-")) || server.n < n + 9 || server.p[n + 8] != '-')
        return server;
    for (size_t i = n; i < n + 8; i++)
        if (!memchr(digits, server.p[i], sizeof(digits) - 1))
            return server;
    return STR("replay");
}

void audit_count(struct audit *a, struct str server, struct str outcome)
{
    server = label_of(server);
    char key[2 * AUDIT_TEXT_MAX + 1];
    size_t n = server.n < AUDIT_TEXT_MAX ? server.n : AUDIT_TEXT_MAX;
    size_t m = outcome.n < AUDIT_TEXT_MAX ? outcome.n : AUDIT_TEXT_MAX;
    memcpy(key, server.n ? server.p : "", n);
    key[n] = '\0';
    memcpy(key + n + 1, outcome.n ? outcome.p : "", m);
    struct counter *c = a->counted_last;
    if (!c || !str_eq(c->key, str_n(key, n + 1 + m)))
        c = map_get(&a->counters, str_n(key, n + 1 + m));
    if (!c)
        c = counter_new(a, str_n(key, n), str_n(key + n + 1, m), str_n(key, n + 1 + m));
    a->counted_last = c;
    metric_add(c->cell, 1);
}

void audit_failed(struct audit *a, const char *what, const struct error *err)
{
    metric_add(a->failures, 1);
    log_warn_quietly(strcmp(what, "intent") == 0 ? &a->quiet_intents : &a->quiet_others,
                     "audit record not written", LZ("record", what), LZ("why", err->text));
}

/* Returns the bytes to store of the body: `body` itself, or bytes that belong to the redactor. */
static struct str seal_body(const struct audit *a, struct redactor *redactor,
                            const struct own_secrets *own, struct event_row *e, struct str body,
                            struct body_rule rule)
{
    e->body = STR_NONE;
    e->body_len = body.p ? (int64_t)body.n : -1;
    if (!body.p)
        return STR_NONE;
    sha256(body, e->body_sha);
    if (rule.mode == AUDIT_DIGEST || rule.mode == AUDIT_NONE)
        return STR_NONE;
    return redact_body(redactor, own, body, rule.mode == AUDIT_REDACTED,
                       rule.max > a->max_body ? rule.max : a->max_body);
}

void audit_seal_event(const struct audit *a, struct redactor *redactor,
                      const struct own_secrets *own, struct event_row *e, struct str body,
                      struct body_rule rule, char **ret_heap)
{
    struct str error = e->error.n ? redact_text(redactor, own, e->error) : e->error;
    char *copy = NULL;

    if (error.p != e->error.p) { /* the redactor's bytes: its next use overwrites them */
        copy = xmalloc(error.n + 1);
        memcpy(copy, error.p, error.n);
        e->error = str_n(copy, error.n);
        *ret_heap = copy;
    }
    struct str stored = seal_body(a, redactor, own, e, body, rule);
    if (!stored.p)
        return;
    if (stored.p == body.p && stored.n == body.n) {
        e->body = body;
        memcpy(e->stored_sha, e->body_sha, sizeof(e->stored_sha));
        return;
    }
    size_t before = copy ? error.n : 0;
    *ret_heap = copy = xrealloc(copy, before + stored.n + 1);
    memcpy(copy + before, stored.p, stored.n);
    if (before)
        e->error = str_n(copy, before);
    e->body = str_n(copy + before, stored.n);
    sha256(e->body, e->stored_sha);
}

int64_t audit_committed(const struct audit *a)
{
    return chain_count(a->chain);
}

struct chain *audit_chain_to_verify(struct audit *a, const char **ret_anchor_file)
{
    *ret_anchor_file = a->anchor_file;
    return chain_like(a->chain);
}

bool audit_append(struct store *store, struct chain *chain, struct store_op *ops, size_t n,
                  struct error *err)
{
    struct write_hook hook = chain_hook(chain);
    if (!hook.assign(hook.arg, store, ops, n, err))
        return false;
    if (!store_write(store, ops, n, err)) {
        hook.rollback(hook.arg);
        return false;
    }
    hook.commit(hook.arg);
    return true;
}

/* Closes one batch of open intents in this writer's own chain. */
static bool close_batch(struct store *store, struct chain *chain, struct event_row *intents,
                        size_t n, struct arena *mem, struct error *err)
{
    struct event_row *rows = arena_zalloc(mem, n * sizeof(*rows));
    struct store_op *ops = arena_zalloc(mem, n * sizeof(*ops));
    int64_t now = clock_wall_ms();
    for (size_t i = 0; i < n; i++) {
        const struct event_row *in = &intents[i];
        rows[i] = (struct event_row){
            .tenant = in->tenant,
            .at_ms = now,
            .kind = EVENT_OUTCOME,
            .exec = in->id,
            .parent = in->parent,
            .owner = in->owner,
            .session_id = in->session_id,
            .transport = in->transport,
            .carrier = in->carrier,
            .server = in->server,
            .method = in->method,
            .tool = in->tool,
            .era = in->era,
            .client = in->client,
            .request_len = in->body_len > 0 ? in->body_len : 0,
            .outcome = STR("indeterminate"),
            .body_len = -1,
            .error = STR("Holdfast ended before the outcome was known; check what the server did "
                         "before you repeat the call."),
        };
        ops[i] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &rows[i]};
    }
    return audit_append(store, chain, ops, n, err);
}

bool audit_close_lost(struct store *store, struct chain *chain, size_t *ret_n, struct error *err)
{
    return chain_load(chain, store, err) && chain_check_key(chain, store, err) &&
           audit_close_lapsed(store, chain, ret_n, err);
}

bool audit_close_lapsed(struct store *store, struct chain *chain, size_t *ret_n, struct error *err)
{
    size_t closed = 0, n = CLOSE_BATCH;
    int64_t after = 0;
    while (n == CLOSE_BATCH) {
        struct arena *mem = arena_new(SIZE_MAX / 4);
        struct event_row *intents = NULL;
        bool ok = store_open_intents(store, clock_life_ms(), after, CLOSE_BATCH, mem, &intents, &n,
                                     err) &&
                  (n == 0 || close_batch(store, chain, intents, n, mem, err));
        if (ok && n > 0)
            after = intents[n - 1].id;
        arena_free(mem);
        if (!ok)
            return error_wrap(err, "closing the calls that an earlier run left open");
        closed += n;
    }
    *ret_n = closed;
    return true;
}
