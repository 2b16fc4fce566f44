/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the credential of a request and answers from the cache, or starts a proof.
 *
 *   no credential ── the local admin if no credential is needed, else 401
 *   a credential ─┬─ proved or refused recently: answered from the cache
 *                 └─ else proved by proof.c, once for all requests that wait for it */
#include "identity/identity_impl.h"

#include "base/clock.h"
#include "crypto/hash.h"
#include "identity/key.h"
#include "identity/proxy.h"
#include "identity/scopes.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct principal local_admin = {
    .tenant = {"default", 7},
    .owner = {"local", 5},
    .role = ROLE_ADMIN,
};

/* The cache of proofs. */

static void set_init(struct proof_cache *s, size_t max)
{
    *s = (struct proof_cache){.max = max};
    map_init(&s->by_digest);
    list_init(&s->lru);
}

static void set_drop(struct proof_cache *s, struct cached_proof *k)
{
    map_remove(&s->by_digest, str_n((const char *)k->digest, sizeof(k->digest)));
    list_remove(&k->lru);
    s->n--;
    arena_free(k->mem); /* also frees k */
}

static void set_clear(struct proof_cache *s)
{
    list_each(&s->lru, it)
    {
        set_drop(s, list_entry(it, struct cached_proof, lru));
    }
}

static void set_release(struct proof_cache *s)
{
    set_clear(s);
    map_release(&s->by_digest);
}

/* A cache entry, also of a refusal, is invalid after the keys of an issuer changed. */
static bool is_over(const struct identity *id, const struct cached_proof *k)
{
    return k->until_ms <= clock_mono_ms() || k->epoch != issuers_epoch(id->issuers) ||
           (k->who.expires_ms && k->who.expires_ms <= clock_life_ms());
}

static struct cached_proof *set_find(struct identity *id, struct proof_cache *s,
                                     const uint8_t digest[32])
{
    struct cached_proof *k = map_get(&s->by_digest, str_n((const char *)digest, 32));

    if (k && is_over(id, k)) {
        set_drop(s, k);
        return NULL;
    }
    if (k) {
        list_remove(&k->lru);
        list_push(&s->lru, &k->lru);
    }
    return k;
}

static uint64_t *familiar_slot(struct identity *id, const uint8_t digest[32], uint64_t *ret_mark)
{
    uint64_t words[2];

    memcpy(words, digest, sizeof(words));
    *ret_mark = words[0];
    return &id->familiar[words[1] % IDENTITY_FAMILIAR];
}

void identity_cache_proof(struct identity *id, const uint8_t digest[32],
                          const struct principal *who, const struct error *err, int64_t ttl_ms)
{
    struct proof_cache *s = who ? &id->proved : &id->refused;
    struct cached_proof *k = set_find(id, s, digest);
    struct arena *mem;

    if (k)
        set_drop(s, k);
    if (ttl_ms <= 0)
        return;
    if (s->n >= s->max)
        set_drop(s, list_entry(list_first(&s->lru), struct cached_proof, lru));
    mem = arena_new_for(1024 * 1024, sizeof(*k) + 512, 8);
    k = arena_new_of(mem, struct cached_proof);
    k->mem = mem;
    memcpy(k->digest, digest, sizeof(k->digest));
    k->ok = who != NULL;
    if (who) {
        uint64_t mark, *slot = familiar_slot(id, digest, &mark);
        *slot = mark;
        k->who = principal_dup(who, mem);
    } else {
        k->code = err->code;
        k->text = arena_dup(mem, str_of(err->text));
    }
    k->until_ms = clock_mono_ms() + ttl_ms;
    k->epoch = issuers_epoch(id->issuers);
    map_put(&s->by_digest, str_n((const char *)k->digest, sizeof(k->digest)), k);
    list_push(&s->lru, &k->lru);
    s->n++;
}

static void drop_credential(struct identity *id, struct str credential)
{
    list_each(&id->proved.lru, it)
    {
        struct cached_proof *k = list_entry(it, struct cached_proof, lru);
        if (str_eq(k->who.credential, credential))
            set_drop(&id->proved, k);
    }
}

/* The service. */

bool identity_new(const struct identity_config *config, struct config *c, struct identity **ret,
                  struct error *err)
{
    struct issuers *issuers;
    struct identity *id;

    if (!issuers_new(config->loop, c, &issuers, err))
        return false;
    id = xcalloc(1, sizeof(*id));
    id->config = *config;
    id->issuers = issuers;
    id->c = config_ref(c);
    set_init(&id->proved, IDENTITY_MAX_CACHED);
    set_init(&id->refused, IDENTITY_MAX_REFUSED);
    map_init(&id->proving);
    map_init(&id->watched);
    map_init(&id->revoked_by_name);
    list_init(&id->revoked);
    id->throttle = throttle_new();
    proofs_start(id);
    *ret = id;
    return true;
}

static bool is_same_key(const struct issuer_key_config *a, const struct issuer_key_config *b)
{
    return str_eq(a->kid, b->kid) && str_eq(a->alg, b->alg) && str_eq(a->pem, b->pem) &&
           str_eq(a->secret, b->secret);
}

static bool is_same_list(const struct str *a, size_t n_a, const struct str *b, size_t n_b)
{
    bool same = n_a == n_b;

    for (size_t i = 0; same && i < n_a; i++)
        same = str_eq(a[i], b[i]);
    return same;
}

static bool is_same_issuer(const struct issuer_config *a, const struct issuer_config *b)
{
    bool same = str_eq(a->issuer, b->issuer) && str_eq(a->jwks, b->jwks) &&
                str_eq(a->tenant_claim, b->tenant_claim) && str_eq(a->role_claim, b->role_claim) &&
                str_eq(a->tenant, b->tenant) &&
                is_same_list(a->audiences, a->n_audiences, b->audiences, b->n_audiences) &&
                is_same_list(a->tenants, a->n_tenants, b->tenants, b->n_tenants) &&
                is_same_list(a->roles, a->n_roles, b->roles, b->n_roles) && a->n_keys == b->n_keys;

    for (size_t i = 0; same && i < a->n_keys; i++)
        same = is_same_key(&a->keys[i], &b->keys[i]);
    return same;
}

static bool has_same_issuers(const struct config *a, const struct config *b)
{
    bool same = a->n_issuers == b->n_issuers;

    for (size_t i = 0; same && i < a->n_issuers; i++)
        same = is_same_issuer(&a->issuers[i], &b->issuers[i]);
    return same;
}

bool identity_apply(struct identity *id, struct config *c, struct error *err)
{
    if (!issuers_apply(id->issuers, c, err))
        return false;
    if (!has_same_issuers(id->c, c))
        identity_end_tokens(id);
    config_unref(id->c);
    id->c = config_ref(c);
    set_clear(&id->proved);
    set_clear(&id->refused);
    id->revocations++; /* restarts running proofs */
    return true;
}

void identity_stop(struct identity *id)
{
    id->stopping = true;
    proofs_stop(id);
}

void identity_free(struct identity *id)
{
    if (!id)
        return;
    throttle_free(id->throttle);
    loop_timer_free(id->line_timer);
    identity_watches_release(id);
    set_release(&id->proved);
    set_release(&id->refused);
    map_release(&id->proving);
    issuers_free(id->issuers);
    config_unref(id->c);
    free(id);
}

/* Drops the cache entry before the watches are notified, so a client that reconnects is proved
 * again. */
void identity_forget(struct identity *id, struct str credential)
{
    id->revocations++;
    drop_credential(id, credential);
}

void identity_forget_user(struct identity *id, struct str user_id)
{
    id->revocations++;
    list_each(&id->proved.lru, it)
    {
        struct cached_proof *k = list_entry(it, struct cached_proof, lru);
        if (!k->who.user_id.p || !str_eq(k->who.user_id, user_id))
            continue;
        /* The sign-in has ended; keys stay valid. */
        if (str_starts(k->who.credential, STR("session:")))
            identity_remember(id, k->who.credential);
        set_drop(&id->proved, k);
    }
}

/* Answering a request. */

/* Past the limit a refusal does not count, so the bucket of the address refills at a steady
 * rate. */
static void note_failure(struct identity *id, struct identify *q)
{
    if (q->ok || !q->had_credential || q->err.code != ERR_UNAUTHENTICATED)
        return;
    if (q->is_held_up)
        error_set(&q->err, ERR_LIMIT,
                  "this credential is not valid, and too many invalid credentials came from this "
                  "address; check the credential, and try again in a second");
    else
        throttle_failed(id->throttle, q->address, loop_now_ms(id->config.loop));
}

void identity_answer(struct identity *id, struct identify *q, const struct principal *who,
                     const struct error *err)
{
    q->ok = who != NULL;
    if (who)
        q->who = principal_dup(who, q->mem);
    else
        q->err = *err;
    note_failure(id, q);
}

static bool refuse(struct identify *q, const char *text)
{
    return error_set(&q->err, ERR_UNAUTHENTICATED, "%s", text);
}

/* The token of "Bearer TOKEN"; absent for any other value. */
static struct str bearer_of(struct str value)
{
    struct str rest = value, scheme = str_split(&rest, ' ');

    return rest.p && str_ieq(scheme, STR("bearer")) ? str_trim(rest) : STR_NONE;
}

/* Several places may carry the credential if it is the same.  Returns false when it is refused. */
static bool add_credential(struct identify *q, struct str found, struct str *ret)
{
    if (!found.n)
        return refuse(q, "the credential is empty; send Authorization: Bearer and a key or token");
    if (found.n > IDENTITY_MAX_CREDENTIAL)
        return refuse(q, "the credential is too long for a key or a token");
    if (ret->p && !str_eq(*ret, found))
        return refuse(q, "two different credentials were sent; send one");
    *ret = found;
    return true;
}

static bool find_credential(struct identify *q, struct str *ret)
{
    struct str authorization = http_header_get(q->head, STR("authorization"));
    struct str key = http_header_get(q->head, STR("x-api-key"));

    *ret = STR_NONE;
    q->had_credential = authorization.p || key.p || q->path_key.p;
    if (!q->had_credential)
        return true;
    if (http_header_count(q->head, STR("authorization")) > 1 ||
        http_header_count(q->head, STR("x-api-key")) > 1)
        return refuse(q, "a credential was sent more than once; send one");
    if (authorization.p && !bearer_of(authorization).p)
        return refuse(q,
                      "only Authorization: Bearer is understood; send a key or a token that way");
    return (!authorization.p || add_credential(q, bearer_of(authorization), ret)) &&
           (!key.p || add_credential(q, str_trim(key), ret)) &&
           (!q->path_key.p || add_credential(q, q->path_key, ret));
}

struct str identity_presented(const struct http_head *head, struct str path_key,
                              struct str *ret_marker)
{
    struct str bearer = bearer_of(http_header_get(head, STR("authorization")));
    struct str key = bearer.p ? STR_NONE : http_header_get(head, STR("x-api-key"));

    *ret_marker = bearer.p ? STR("[redacted: header Authorization]")
                  : key.p  ? STR("[redacted: header X-API-Key]")
                           : STR("[redacted: key in the path]");
    return bearer.p ? bearer : key.p ? str_trim(key) : path_key;
}

static bool is_held_up(struct identity *id, const struct identify *q, const uint8_t digest[32])
{
    uint64_t mark, *slot = familiar_slot(id, digest, &mark);

    return *slot != mark &&
           !throttle_allows(id->throttle, q->address, loop_now_ms(id->config.loop));
}

static bool answer_cached(struct identity *id, struct identify *q, const uint8_t digest[32])
{
    struct cached_proof *k = set_find(id, &id->proved, digest);

    if (!k) { /* the address is read only here, because most credentials are in the cache */
        q->address = q->from && !q->is_unix ? client_address(q->config, q->from, q->mem) : STR_NONE;
        q->is_held_up = is_held_up(id, q, digest);
        k = set_find(id, &id->refused, digest);
    }
    if (!k)
        return false;
    q->ok = k->ok;
    if (k->ok)
        q->who = principal_dup(&k->who, q->mem);
    else
        error_set(&q->err, k->code, "%.*s", STR_ARG(k->text));
    return true;
}

static bool answer_none(struct identify *q)
{
    if (!q->config->auth_required && q->is_elsewhere)
        return refuse(q, "\"auth\" is none, which serves this machine only, but a proxy forwarded "
                         "this request from another one; set \"auth\" to required, and send a key "
                         "made with `holdfast key create`");
    if (q->config->auth_required && !q->is_unix)
        return refuse(q, "a credential is needed; send Authorization: Bearer with a key made with "
                         "`holdfast key create`, or with a token");
    q->who = local_admin;
    return true;
}

bool identify(struct identity *id, struct identify *q)
{
    struct str credential;
    uint8_t digest[32];

    list_init(&q->waiting);
    q->ok = q->had_credential = q->is_held_up = false;
    q->address = STR_NONE;
    if (q->is_unix && q->peer_uid != geteuid() && q->peer_uid != 0) {
        refuse(
            q,
            "the control socket is for the user who runs Holdfast; run the command as that user");
        return true;
    }
    if (!find_credential(q, &credential))
        return true;
    if (!credential.p) {
        q->ok = answer_none(q);
        return true;
    }
    sha256(credential, digest);
    if (!answer_cached(id, q, digest) && proof_begin(id, q, credential, digest))
        return false;
    note_failure(id, q);
    return true;
}

void identify_cancel(struct identify *q)
{
    list_remove(&q->waiting);
}
