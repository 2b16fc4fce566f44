/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by quota.c (counting), quota_refusals.c (refusals) and quota_share.c (other nodes). */
#ifndef HOLDFAST_IDENTITY_QUOTA_IMPL_H
#define HOLDFAST_IDENTITY_QUOTA_IMPL_H

#include "base/list.h"
#include "base/map.h"
#include "base/metric.h"
#include "identity/quota.h"

/* Tokens in units of 1/per_ms: each millisecond adds `amount` units, without rounding.
 * config/limits.c keeps amount and burst small enough. */
struct bucket {
    int64_t level; /* below 0: a debt */
    int64_t at_ms; /* clock_mono_ms() of the last fill */
};

struct quota {
    struct quotas *home;
    struct str name; /* "tenant", or "tenant\0credential"; stored after this struct */
    /* Parts of name; `credential` is absent for a tenant, and "session:ID" for a session. */
    struct str tenant, credential;
    bool is_session;
    struct list lru; /* in quotas.lru[is_session] */
    unsigned refs;   /* uses that hold counts, and a pending report */
    uint64_t epoch;
    struct limits limits;
    struct limits own; /* limits of the key itself, or those of the session's set-up */
    bool is_limited;   /* any of `limits` is set */
    struct bucket buckets[LIMIT_RATES];
    int64_t held[LIMIT_KINDS];
    /* Sharing with other nodes. */
    int64_t unreported[LIMIT_RATES]; /* tokens used since the last report */
    int64_t elsewhere[LIMIT_KINDS];  /* held by other nodes, as of the last reply */
    int64_t reported_ms;
    struct list dirty; /* node in the list of quotas to report */
    bool is_away;      /* its last report failed */
    /* Refusals. */
    int64_t logged_ms, recorded_ms;
    unsigned unlogged, unrecorded;
};

struct quotas {
    struct loop *loop;
    struct lanes *lanes;
    struct config *config;
    uint64_t epoch;
    size_t max_quotas;
    struct map by_name;
    /* struct quota, least recently used first.  Those of sessions have a list and a bound of their
     * own: many sessions of one tenant must not evict the quotas of others. */
    struct list lru[2];
    size_t n_sessions;
    struct metric_cell *refused[LIMIT_KINDS][QUOTA_SCOPES];
    struct metric_cell *shared;
    struct quota_share *share; /* NULL: not shared */
};

int64_t bucket_capacity(const struct limit *l);
void bucket_fill(struct bucket *b, const struct limit *l, int64_t now_ms);
void bucket_spend(struct bucket *b, const struct limit *l, int64_t tokens);
void quota_unref(struct quota *q);

/* quota_share.c */
must_check bool quota_share_new(struct quotas *q, const struct quotas_config *config,
                                struct quota_share **ret, struct error *err);
void quota_share_free(struct quota_share *s); /* NULL is fine */
/* The quota was used or checked: exchanges counts with other nodes. */
void quota_share_touch(struct quota_share *s, struct quota *q);
bool quota_share_is_up(const struct quota_share *s);

#endif
