/* SPDX-License-Identifier: Apache-2.0 */
/* The context values that a client gives its session on a profile with "context"
 * (session/profile_context.h).  They are read from every request that carries them.  The request
 * that creates the session fixes them; they are sealed before the session's row is written.  Later
 * requests are refused if their values differ.  A legacy client that sends values gets its session
 * at initialize. */
#include "exchange/exchange.h"

#include "session/profile_context.h"

struct context_seal {
    struct keyring_job job;
    struct exchange *x;
    bool is_done;
};

static bool parse(struct exchange *x, struct str text, struct profile_context *ret,
                  struct error *err)
{
    struct profile_context_rules rules = {
        .profile = x->profile, .key = x->sv->context_key, .tenant = x->caller.who.tenant};

    *ret = (struct profile_context){0};
    return !text.p || profile_context_parse(text, &rules, x->mem, ret, err);
}

enum step_result exchange_read_context(struct exchange *x)
{
    struct profile_context query, header;
    struct str in_query, in_header;
    struct error err;

    if (likely(!x->profile) || x->context)
        return STEP_NEXT;
    if (!profile_context_in_query(x->head, x->mem, &in_query, &err) ||
        !profile_context_in_header(x->head, &in_header, &err) ||
        !parse(x, in_query, &query, &err) || !parse(x, in_header, &header, &err))
        return exchange_fail(x, &err);
    if (query.plain.p && header.plain.p && !crypto_equal(query.mac, header.mac, sizeof(query.mac)))
        return exchange_refuse(x, 400, -32600, "?config= and mcp-config differ; send one of them");
    if (!query.plain.p && !header.plain.p)
        return STEP_NEXT;
    arena_wipe_later(x->mem);
    x->context = arena_new_of(x->mem, struct profile_context);
    *x->context = header.plain.p ? header : query;
    return STEP_NEXT;
}

static void on_sealed(struct keyring_job *j)
{
    struct context_seal *s = j->user;

    s->is_done = true;
    exchange_resume(s->x);
}

/* Requests that begin the same session at the same time each seal the values; the first seal is
 * stored. */
static enum step_result seal_context(struct exchange *x)
{
    struct context_seal *s = x->context_seal;

    if (!s) {
        s = x->context_seal = arena_new_of(x->mem, struct context_seal);
        s->x = x;
        s->job = (struct keyring_job){
            .place = {x->session->tenant, x->session->id, STR(SEALED_FIELD_CONTEXT)},
            .services = profile_context_label(x->context, x->mem),
            .plain = x->context->plain,
            .mem = x->mem,
            .done = on_sealed,
            .user = s,
        };
        s->is_done = keyring_seal(x->sv->keyring, &s->job);
    }
    if (!s->is_done)
        return STEP_WAIT;
    if (s->job.ok) {
        session_seal_context(x->session, s->job.result);
        return STEP_NEXT;
    }
    if (!x->session->context->sealed.p)
        session_forget(x->session); /* the next request begins a new session */
    return exchange_fail(x, &s->job.err);
}

static enum step_result refuse_other(struct exchange *x)
{
    return exchange_refuse(x, 400, -32600,
                           "The config of this request is not what its session has: that was fixed "
                           "when the session began; leave it out, or open a new session, under "
                           "another client id or name where the request gives one");
}

/* A refused request created the session and no other request has used it since: it counts as
 * new. */
static bool has_yet_to_begin(const struct exchange *x, const struct session *s)
{
    unsigned ours = 1 + (x->transport && x->transport->session == s);

    return s == x->session && !s->stored && !s->context && s->refs == ours;
}

enum step_result exchange_fix_context(struct exchange *x)
{
    struct session *s = x->session ? x->session : x->transport ? x->transport->session : NULL;

    if (x->context && s && has_yet_to_begin(x, s))
        session_expect_context(s, x->context->mac);
    if (!s || (!x->context && !s->context))
        return STEP_NEXT;
    if (x->context &&
        (!s->context || !crypto_equal(s->context->mac, x->context->mac, sizeof(s->context->mac))))
        return refuse_other(x);
    if (s->context->sealed.p || s != x->session)
        return STEP_NEXT;
    if (!x->context)
        return exchange_refuse(x, 503, -32000, "The session is being made; try again shortly");
    return seal_context(x);
}

/* A placeholder without a value; NULL: none. */
static const struct context_placeholder *find_empty(const struct config_pair *pairs, size_t n,
                                                    struct str keys)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < pairs[i].n_placeholders; k++) {
            const struct context_placeholder *placeholder = &pairs[i].placeholders[k];
            if (!placeholder->fallback.p && !profile_context_has_key(keys, placeholder->key))
                return placeholder;
        }
    return NULL;
}

enum step_result exchange_check_context(struct exchange *x)
{
    const struct server_config *c = upstream_config(x->up);
    const struct session_context *context = x->session->context;
    uint8_t ignored[SHA256_BYTES];
    struct str keys = STR_NONE;

    if (context && !profile_context_read_label(context->sealed, x->mem, &keys, ignored))
        keys = STR_NONE;
    const struct context_placeholder *empty = c->kind == SERVER_HTTP
                                                  ? find_empty(c->headers, c->n_headers, keys)
                                                  : find_empty(c->env, c->n_env, keys);
    if (!empty)
        return STEP_NEXT;
    return exchange_refuse(
        x, 200, -32602,
        "The server %.*s needs \"%.*s\", which was not given to this session; open a new session "
        "at "
        "/mcp/p/PROFILE, a profile whose \"context\" lists it, with the header mcp-config: "
        "{\"%.*s\": …}, or with the same in ?config=",
        STR_ARG(c->name), STR_ARG(empty->key), STR_ARG(empty->key));
}

/* The session's rows go before the transport's, which refers to the session. */
void exchange_store_session(struct exchange *x)
{
    struct store_op *ops = arena_zalloc(x->mem, (SESSION_PLAN_OPS + 1) * sizeof(*ops));
    size_t n;

    session_used(x->session);
    n = session_plan_ops(exchange_plan_session(x), x->mem, ops);
    ops[n] = x->change->op;
    x->change->job.ops = ops;
    x->change->job.n = n + 1;
}

enum step_result exchange_session_stored(struct exchange *x)
{
    const struct write_job *job = &x->change->job;
    struct error err;

    switch (session_plan_committed(&x->session_plan, job->ops, job->n - 1, true)) {
    case VERDICT_OK:
        return STEP_NEXT;
    case VERDICT_LIMIT:
        session_forget(x->session);
        error_set(&err, ERR_SESSION_LIMIT, SESSION_LIMIT_TEXT ". " SESSION_LIMIT_WAY_OUT);
        return exchange_fail(x, &err);
    default:
        if (x->session->stored)
            return STEP_NEXT;
        session_forget(x->session);
        return exchange_refuse(x, 503, -32000, "The session is being made; try again shortly");
    }
}
