/* SPDX-License-Identifier: Apache-2.0 */
/* The unverified "iss" claim selects the issuer.  The token is then checked against the rules and
 * keys of that issuer alone, so one issuer cannot sign for another. */
#include "identity/issuers.h"

#include "base/clock.h"

#include <stdlib.h>

struct issuer {
    struct jwt_rules rules;
    struct jwks_source *source;
};

struct issuers {
    struct loop *loop;
    struct config *c;
    struct issuer *list;
    size_t n;
    uint64_t applied; /* number of configurations applied */
};

bool issuers_try(const struct config *c, struct error *err)
{
    for (size_t i = 0; i < c->n_issuers; i++) {
        struct jwt_keys *keys;
        if (!issuer_keys_make(&c->issuers[i], STR_NONE, &keys, err))
            return false;
        jwt_keys_free(keys);
    }
    return true;
}

static void list_free(struct issuer *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        jwks_source_free(list[i].source);
    free(list);
}

static bool list_new(struct loop *loop, const struct config *c, struct issuer **ret,
                     struct error *err)
{
    struct issuer *list = xcalloc(c->n_issuers + 1, sizeof(*list));

    for (size_t i = 0; i < c->n_issuers; i++) {
        const struct issuer_config *from = &c->issuers[i];
        list[i].rules = (struct jwt_rules){
            .issuer = from->issuer,
            .audiences = from->audiences,
            .n_audiences = from->n_audiences,
            .tenant_claim = from->tenant_claim,
            .role_claim = from->role_claim,
            .tenant = from->tenant,
            .tenants = from->tenants,
            .n_tenants = from->n_tenants,
            .roles = from->roles,
            .n_roles = from->n_roles,
        };
        if (!jwks_source_new(loop, from, &list[i].source, err)) {
            list_free(list, i);
            return false;
        }
    }
    *ret = list;
    return true;
}

bool issuers_new(struct loop *loop, struct config *c, struct issuers **ret, struct error *err)
{
    struct issuers *is;
    struct issuer *list;

    if (!list_new(loop, c, &list, err))
        return false;
    is = xcalloc(1, sizeof(*is));
    is->loop = loop;
    is->c = config_ref(c);
    is->list = list;
    is->n = c->n_issuers;
    *ret = is;
    return true;
}

void issuers_free(struct issuers *is)
{
    if (!is)
        return;
    list_free(is->list, is->n);
    config_unref(is->c);
    free(is);
}

bool issuers_any(const struct issuers *is)
{
    return is->n > 0;
}

uint64_t issuers_epoch(const struct issuers *is)
{
    uint64_t sum = is->applied << 32;

    for (size_t i = 0; i < is->n; i++)
        sum += jwks_source_version(is->list[i].source);
    return sum;
}

static struct issuer *find(struct issuers *is, struct str name)
{
    for (size_t i = 0; name.p && i < is->n; i++)
        if (str_eq(is->list[i].rules.issuer, name))
            return &is->list[i];
    return NULL;
}

static bool refuse(struct token_question *q, enum jwt_fault fault)
{
    q->fault = fault;
    q->ok = jwt_refuse(fault, &q->err);
    return true;
}

static void on_keys(struct jwks_waiter *w);

/* Returns true when the question is answered. */
static bool try(struct token_question *q)
{
    struct issuer *issuer = find(q->from, jwt_claimed_issuer(q->token, q->mem));
    const struct jwt_keys *keys = issuer ? jwks_source_keys(issuer->source) : NULL;
    enum jwt_fault fault = JWT_NO_KEY;

    if (!issuer)
        return refuse(q, JWT_ISS);
    if (keys)
        fault = jwt_check(keys, &issuer->rules, q->token, clock_life_ms(), q->mem, &q->claims);
    q->ok = fault == JWT_OK;
    if (q->ok)
        return true;
    if (fault != JWT_NO_KEY)
        return refuse(q, fault);
    if (!q->has_waited && jwks_source_wait(issuer->source, &q->waiter)) {
        q->has_waited = true;
        return false;
    }
    if (keys)
        return refuse(q, fault);
    error_set(&q->err, ERR_UNAVAILABLE,
              "the keys of the token's issuer cannot be fetched; try again in a moment");
    return true;
}

static void on_keys(struct jwks_waiter *w)
{
    struct token_question *q = container_of(w, struct token_question, waiter);

    if (try(q))
        q->done(q);
}

bool issuers_ask(struct issuers *is, struct token_question *q)
{
    q->from = is;
    q->has_waited = false;
    q->ok = false;
    q->fault = JWT_OK;
    q->waiter.fn = on_keys;
    list_init(&q->waiter.node);
    return try(q);
}

void token_question_cancel(struct token_question *q)
{
    jwks_waiter_cancel(&q->waiter);
}

static void inherit(struct issuer *list, size_t n, const struct issuers *before)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < before->n; j++)
            if (str_eq(list[i].rules.issuer, before->list[j].rules.issuer))
                jwks_source_inherit(list[i].source, before->list[j].source);
}

bool issuers_apply(struct issuers *is, struct config *c, struct error *err)
{
    struct issuer *list;
    struct list open;
    struct list *first;

    if (!list_new(is->loop, c, &list, err))
        return false;
    inherit(list, c->n_issuers, is);
    list_init(&open);
    for (size_t i = 0; i < is->n; i++)
        jwks_source_take_waiters(is->list[i].source, &open);
    list_free(is->list, is->n);
    config_ref(c);
    config_unref(is->c);
    is->c = c;
    is->list = list;
    is->n = c->n_issuers;
    is->applied++;
    while ((first = list_pop(&open))) {
        struct token_question *q = list_entry(first, struct token_question, waiter.node);
        q->has_waited = false; /* the fetch it waited for was cancelled */
        on_keys(&q->waiter);
    }
    return true;
}
