/* SPDX-License-Identifier: Apache-2.0 */
/* Proves a credential, once for all requests that wait for it.
 *
 *   key     the rows of the key and its user (lookup lane) ── compared on the loop
 *   token   keys of the issuer (issuers.c) ── tenant and user (lookup lane) ── the user is created
 *           or updated (write lane), so that everything it creates has an owner
 *   own     a token of Holdfast: signature ── sign-in and user (lookup lane), both must exist; the
 *           role is that of the user's row, not of the token
 *
 * A revocation or a new configuration during the proof makes the rows stale; the proof then
 * restarts.
 *
 * Credentials from a throttled address wait in the line and are proved at a bounded rate, so that a
 * flood of invalid credentials costs the loop and the store little.  A valid credential is accepted
 * as usual. */
#include "identity/identity_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "crypto/hash.h"
#include "identity/key.h"

#include <stdio.h>

struct proof {
    struct identity *id;
    struct arena *mem; /* holds this proof */
    uint8_t digest[32];
    struct list waiting; /* struct identify */
    struct list line;    /* node in identity.line */
    bool is_held_up;
    struct str text;   /* the credential; wiped with mem */
    struct str key_id; /* absent: a token */
    bool is_own;       /* a token of Holdfast */
    struct login_row *login;
    uint64_t revocations, epoch;
    struct token_question token;
    bool asks_issuer;
    struct read_job job;
    struct key_row *key;
    struct user_row *user;
    struct tenant_row *tenant;
    bool tenant_is_known; /* the configuration names the tenant */
    /* writes the user of a token, or the last use of a key */
    struct write_job write;
    struct store_op ops[2];
    struct tenant_row tenant_row;
    struct user_row user_row;
    struct key_row used_row;
    char user_id[UUID_TEXT];
    struct principal who;
};

static bool begin(struct proof *p, struct error *err);

static void proof_free(struct proof *p)
{
    arena_free(p->mem);
}

static void on_used(struct write_job *job)
{
    if (!job->ok)
        log_debug("the last use of a key was not recorded", LZ("why", job->err.text));
    proof_free(container_of(job, struct proof, write));
}

/* Returns true when a write was queued; the proof then lives until the write is done. */
static bool note_use(struct proof *p)
{
    int64_t now = clock_life_ms();

    if (!p->key || now - p->key->last_used_ms < KEY_USED_EVERY_MS)
        return false;
    p->used_row = (struct key_row){.id = p->key->id, .tenant = p->key->tenant, .last_used_ms = now};
    p->ops[0] = (struct store_op){.kind = OP_KEY_USED, .who = &p->who, .key = &p->used_row};
    p->write = (struct write_job){.ops = p->ops, .n = 1, .done = on_used};
    return lane_write(p->id->config.lanes, &p->write);
}

/* Answers every waiting request, then frees the proof. */
static void answer_all(struct proof *p, const struct principal *who, const struct error *err,
                       int64_t ttl_ms)
{
    map_remove(&p->id->proving, str_n((const char *)p->digest, sizeof(p->digest)));
    identity_cache_proof(p->id, p->digest, who, err, ttl_ms);
    while (!list_empty(&p->waiting)) {
        struct identify *q = list_entry(list_pop(&p->waiting), struct identify, waiting);
        identity_answer(p->id, q, who, err);
        q->done(q);
    }
    if (!who || !note_use(p))
        proof_free(p);
}

static void refuse(struct proof *p, const struct error *err)
{
    bool is_final = err->code == ERR_UNAUTHENTICATED;

    if (is_final && !p->is_held_up)
        log_info("a credential was refused", LS("key_id", p->key_id), LZ("why", err->text));
    answer_all(p, NULL, err, is_final ? IDENTITY_REFUSED_MS : 0);
}

static void refuse_store(struct proof *p, const struct error *why)
{
    struct error err;

    log_warn("a credential could not be looked up", LZ("why", why->text));
    error_set(&err, ERR_UNAVAILABLE,
              "the credential cannot be checked, because the store does not answer; try again in a "
              "moment");
    refuse(p, &err);
}

/* Returns true when a row or key of the proof may have changed; the proof was then restarted or
 * refused. */
static bool is_outdated(struct proof *p)
{
    struct error err;

    if (p->revocations == p->id->revocations &&
        (p->key_id.p || p->is_own || p->epoch == issuers_epoch(p->id->issuers)))
        return false;
    if (!begin(p, &err))
        refuse(p, &err);
    return true;
}

static bool look_up(struct proof *p, bool (*run)(struct read_job *, struct store *),
                    void (*done)(struct read_job *), struct error *err)
{
    p->job = (struct read_job){.run = run, .done = done};
    return lane_lookup(p->id->config.lanes, &p->job) ||
           error_set(err, ERR_UNAVAILABLE,
                     "too many credentials are being checked; try again in a moment");
}

/* Keys. */

static bool run_key(struct read_job *job, struct store *store)
{
    struct proof *p = container_of(job, struct proof, job);

    p->key = NULL;
    p->user = NULL;
    return store_key_get(store, p->key_id, p->mem, &p->key, &job->err) &&
           (!p->key || !p->key->user_id.p ||
            store_user_get(store, p->key->user_id, p->mem, &p->user, &job->err));
}

static bool check_user(const struct proof *p, struct error *err)
{
    if (!p->key->user_id.p)
        return true;
    if (!p->user || !str_eq(p->user->tenant, p->key->tenant) || p->user->ended_ms)
        return error_set(
            err, ERR_UNAUTHENTICATED,
            "the user of this key does not exist any more; make a key for another user");
    return true;
}

static void on_key(struct read_job *job)
{
    struct proof *p = container_of(job, struct proof, job);
    struct error err;

    if (!job->ok) {
        refuse_store(p, &job->err);
    } else if (is_outdated(p)) {
        return;
    } else if (!key_check(p->key, p->text, clock_life_ms(), &err) || !check_user(p, &err)) {
        refuse(p, &err);
    } else if (!key_principal(p->key, p->mem, &p->who, &err)) {
        log_error("a key's scopes cannot be read", LS("key_id", p->key_id), LZ("why", err.text));
        error_set(&err, ERR_UNAUTHENTICATED,
                  "this key's scopes cannot be read; revoke it and make another");
        refuse(p, &err);
    } else {
        answer_all(p, &p->who, NULL, IDENTITY_CACHED_MS);
    }
}

/* Tokens. */

void identity_user_id(struct str issuer, struct str subject, char ret[UUID_TEXT])
{
    struct str zero = str_n("", 1), parts[] = {STR("user"), zero, issuer, zero, subject};
    uint8_t b[32];

    sha256_parts(parts, countof(parts), b);
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x80); /* version 8: custom */
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    snprintf(ret, UUID_TEXT, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

static bool run_token(struct read_job *job, struct store *store)
{
    struct proof *p = container_of(job, struct proof, job);

    p->tenant = NULL;
    p->user = NULL;
    return (p->tenant_is_known ||
            store_tenant_get(store, p->token.claims.tenant, p->mem, &p->tenant, &job->err)) &&
           store_user_get(store, str_of(p->user_id), p->mem, &p->user, &job->err);
}

static bool check_bearer(const struct proof *p, struct error *err)
{
    if (!p->tenant_is_known && !p->tenant)
        return error_set(err, ERR_UNAUTHENTICATED, "tenant not found");
    if (p->user && !str_eq(p->user->tenant, p->token.claims.tenant))
        return error_set(err, ERR_UNAUTHENTICATED,
                         "the user of this token belongs to another tenant; a subject of an issuer "
                         "has one tenant");
    if (p->user && p->user->ended_ms)
        return error_set(err, ERR_UNAUTHENTICATED,
                         "the user of this token is no longer active; use another token");
    return true;
}

static void accept_token(struct proof *p)
{
    int64_t left = p->token.claims.trust_until_ms - clock_life_ms();

    answer_all(p, &p->who, NULL, left < IDENTITY_CACHED_MS ? left : IDENTITY_CACHED_MS);
}

static void on_user_made(struct write_job *job)
{
    struct proof *p = container_of(job, struct proof, write);

    if (!job->ok || p->ops[1].verdict != VERDICT_OK)
        refuse_store(p, &job->err);
    else if (!is_outdated(p))
        accept_token(p);
}

static void ensure_user(struct proof *p)
{
    const struct jwt_claims *claims = &p->token.claims;
    int64_t now = clock_life_ms();
    struct error err;

    p->tenant_row = (struct tenant_row){.id = claims->tenant, .created_ms = now};
    p->user_row = (struct user_row){
        .id = str_of(p->user_id),
        .tenant = claims->tenant,
        .name = claims->subject,
        .role = claims->role,
        .issuer = claims->issuer,
        .created_ms = now,
    };
    p->ops[0] =
        (struct store_op){.kind = OP_TENANT_ENSURE, .who = &p->who, .tenant = &p->tenant_row};
    p->ops[1] = (struct store_op){.kind = OP_USER_ENSURE, .who = &p->who, .user = &p->user_row};
    p->write = (struct write_job){.ops = p->ops, .n = 2, .done = on_user_made};
    if (lane_write(p->id->config.lanes, &p->write))
        return;
    error_set(&err, ERR_UNAVAILABLE,
              "too many writes are waiting for the store; try again in a moment");
    refuse(p, &err);
}

static void on_bearer(struct read_job *job)
{
    struct proof *p = container_of(job, struct proof, job);
    struct error err;

    if (!job->ok)
        refuse_store(p, &job->err);
    else if (is_outdated(p))
        return;
    else if (!check_bearer(p, &err))
        refuse(p, &err);
    else if (!p->user || p->user->role != p->token.claims.role)
        ensure_user(p);
    else
        accept_token(p);
}

/* The claims are verified.  Looks up tenant and user. */
static bool take_claims(struct proof *p, struct error *err)
{
    const struct jwt_claims *claims = &p->token.claims;
    char digest[33];

    if (!p->token.ok) {
        *err = p->token.err;
        return false;
    }
    hex_encode(p->digest, 16, digest);
    identity_user_id(claims->issuer, claims->subject, p->user_id);
    p->who = (struct principal){
        .tenant = claims->tenant,
        .owner = arena_printf(p->mem, "user:%s", p->user_id),
        .role = claims->role,
        .user_id = str_of(p->user_id),
        .credential = arena_printf(p->mem, "jwt:%s", digest),
        .expires_ms = claims->expires_ms,
    };
    p->tenant_is_known =
        str_eq(claims->tenant, STR("default")) || config_tenant(p->id->c, claims->tenant);
    return look_up(p, run_token, on_bearer, err);
}

static void on_token(struct token_question *q)
{
    struct proof *p = container_of(q, struct proof, token);
    struct error err;

    p->asks_issuer = false;
    p->epoch = issuers_epoch(p->id->issuers);
    if (!take_claims(p, &err))
        refuse(p, &err);
}

static bool begin_token(struct proof *p, struct error *err)
{
    p->epoch = issuers_epoch(p->id->issuers);
    p->token = (struct token_question){.token = p->text, .mem = p->mem, .done = on_token};
    p->asks_issuer = !issuers_ask(p->id->issuers, &p->token);
    return p->asks_issuer || take_claims(p, err);
}

/* Tokens of our own. */

static bool run_own(struct read_job *job, struct store *store)
{
    struct proof *p = container_of(job, struct proof, job);

    p->login = NULL;
    p->user = NULL;
    return store_login_get(store, p->token.claims.id, p->mem, &p->login, &job->err) &&
           store_user_get(store, p->token.claims.subject, p->mem, &p->user, &job->err);
}

static bool check_login(const struct proof *p, struct error *err)
{
    const struct jwt_claims *claims = &p->token.claims;

    if (p->login && p->user && login_row_is_live(p->login, clock_life_ms()) &&
        str_eq(p->login->user_id, p->user->id) && str_eq(p->login->tenant, p->user->tenant) &&
        str_eq(p->user->tenant, claims->tenant) && !p->user->ended_ms)
        return true;
    return error_set(err, ERR_UNAUTHENTICATED, "this sign-in has ended; sign in again");
}

static void on_own(struct read_job *job)
{
    struct proof *p = container_of(job, struct proof, job);
    struct error err;

    if (!job->ok) {
        refuse_store(p, &job->err);
    } else if (is_outdated(p)) {
        return;
    } else if (!check_login(p, &err)) {
        refuse(p, &err);
    } else {
        p->who = (struct principal){
            .tenant = p->user->tenant,
            .owner = arena_printf(p->mem, "user:%.*s", STR_ARG(p->user->id)),
            .role = p->user->role,
            .user_id = p->user->id,
            .credential = arena_printf(p->mem, "session:%.*s", STR_ARG(p->login->id)),
            .expires_ms = p->token.claims.expires_ms,
        };
        accept_token(p);
    }
}

static bool begin_own(struct proof *p, struct error *err)
{
    if (!own_token_verify(p->id->config.own, p->text, clock_life_ms(), p->mem, &p->token.claims,
                          err))
        return false;
    if (!p->token.claims.id.p)
        return jwt_refuse(JWT_CLAIM, err);
    return look_up(p, run_own, on_own, err);
}

/* All kinds. */

static bool begin(struct proof *p, struct error *err)
{
    p->revocations = p->id->revocations;
    if (p->key_id.p)
        return look_up(p, run_key, on_key, err);
    return p->is_own ? begin_own(p, err) : begin_token(p, err);
}

/* A text that is not a key counts as a token if there are issuers, or if its issuer claim is
 * OWN_ISSUER. */
static bool is_known_form(struct identity *id, struct str credential, struct arena *mem,
                          struct str *ret_key_id, bool *ret_is_own)
{
    *ret_key_id = STR_NONE;
    *ret_is_own = false;
    if (key_parse(credential, ret_key_id))
        return true;
    if (str_starts(credential, STR(KEY_PREFIX)))
        return false;
    *ret_is_own = id->config.own && own_token_is(credential, mem);
    return *ret_is_own || issuers_any(id->issuers);
}

/* The line of throttled addresses. */

static struct proof *line_pop(struct identity *id)
{
    id->n_line--;
    return list_entry(list_pop(&id->line), struct proof, line);
}

static void on_line(void *arg)
{
    struct identity *id = arg;
    struct error err;

    for (unsigned i = 0; i < IDENTITY_LINE_AT_ONCE && !list_empty(&id->line); i++) {
        struct proof *p = line_pop(id);
        if (list_empty(&p->waiting)) { /* the clients disconnected meanwhile */
            map_remove(&id->proving, str_n((const char *)p->digest, sizeof(p->digest)));
            proof_free(p);
        } else if (!begin(p, &err)) {
            refuse(p, &err);
        }
    }
    if (!list_empty(&id->line))
        loop_timer_start(id->line_timer, IDENTITY_LINE_MS, 0);
}

static bool line_join(struct proof *p, struct error *err)
{
    struct identity *id = p->id;

    if (id->n_line >= IDENTITY_LINE_MAX)
        return error_set(err, ERR_LIMIT,
                         "too many invalid credentials came from this address, and too many more "
                         "wait to be checked; try again in a second");
    if (!id->n_line++)
        loop_timer_start(id->line_timer, IDENTITY_LINE_MS, 0);
    list_push(&id->line, &p->line);
    p->is_held_up = true;
    return true;
}

void proofs_start(struct identity *id)
{
    list_init(&id->line);
    id->line_timer = loop_timer_new(id->config.loop, on_line, id);
}

bool proof_begin(struct identity *id, struct identify *q, struct str credential,
                 const uint8_t digest[32])
{
    struct proof *p = map_get(&id->proving, str_n((const char *)digest, 32));
    struct arena *mem;
    struct str key_id;
    bool is_own;

    if (p) {
        list_push(&p->waiting, &q->waiting);
        return true;
    }
    mem = arena_new(4u * 1024 * 1024);
    arena_wipe_later(mem);
    if (!is_known_form(id, credential, mem, &key_id, &is_own)) {
        arena_free(mem);
        return error_set(&q->err, ERR_UNAUTHENTICATED,
                         "this credential is unknown; send a key made with `holdfast key create`");
    }
    if (id->stopping || id->proving.n >= IDENTITY_MAX_PROOFS) {
        arena_free(mem);
        return error_set(&q->err, ERR_UNAVAILABLE,
                         "too many credentials are being looked up; try again in a moment");
    }
    p = arena_new_of(mem, struct proof);
    p->id = id;
    p->mem = mem;
    memcpy(p->digest, digest, sizeof(p->digest));
    list_init(&p->waiting);
    p->text = arena_dup(mem, credential);
    p->key_id = arena_dup(mem, key_id);
    p->is_own = is_own;
    list_init(&p->line);
    if (!(q->is_held_up ? line_join(p, &q->err) : begin(p, &q->err))) {
        proof_free(p);
        return false;
    }
    map_put(&id->proving, str_n((const char *)p->digest, sizeof(p->digest)), p);
    list_push(&p->waiting, &q->waiting);
    return true;
}

void proofs_stop(struct identity *id)
{
    struct error err;
    struct str name;
    void *value;
    size_t at = 0;

    error_set(&err, ERR_UNAVAILABLE, "Holdfast is stopping; try again in a moment");
    while (!list_empty(&id->line))
        refuse(line_pop(id), &err);
    while (map_next(&id->proving, &at, &name, &value)) {
        struct proof *p = value;
        if (!p->asks_issuer)
            continue; /* the lanes will still answer these */
        token_question_cancel(&p->token);
        refuse(p, &err);
        at = 0;
    }
}
