/* SPDX-License-Identifier: Apache-2.0 */
/* What quota.c (counting), quota_tell.c (refusals) and quota_share.c (other nodes) share. */
#ifndef HOLDFAST_IDENTITY_QUOTA_IMPL_H
#define HOLDFAST_IDENTITY_QUOTA_IMPL_H

#include "base/list.h"
#include "base/map.h"
#include "base/metric.h"
#include "identity/quota.h"

/* Tokens in parts of 1/per_ms, so that each millisecond adds `amount` of them and nothing is lost
 * in rounding.  config/limits.c keeps amount and burst small enough for that. */
struct bucket {
    int64_t level; /* below 0: a debt */
    int64_t at_ms; /* clock_mono_ms() up to which it was filled */
};

struct quota {
    struct quotas *home;
    struct str name;               /* "tenant", or "tenant\0credential"; behind this struct */
    struct str tenant, credential; /* of name; the latter absent for a tenant */
    struct list lru;
    unsigned refs; /* uses that hold something, and a report under way */
    uint64_t epoch;
    struct limits limits;
    struct limits own; /* a key's */
    bool is_limited;   /* by any of `limits` */
    struct bucket buckets[LIMIT_RATES];
    int64_t held[LIMIT_KINDS];
    /* With other nodes. */
    int64_t unreported[LIMIT_RATES]; /* tokens used since the last report */
    int64_t elsewhere[LIMIT_KINDS];  /* what others hold, as of the last answer */
    int64_t reported_ms;
    struct list dirty; /* in line to be reported */
    bool is_away;      /* its last report was lost */
    /* Refusals. */
    int64_t said_ms, recorded_ms;
    unsigned unsaid, unrecorded;
};

struct quotas {
    struct loop *loop;
    struct lanes *lanes;
    struct config *config;
    uint64_t epoch;
    size_t max_kept;
    struct map by_name;
    struct list lru; /* struct quota, oldest first */
    struct metric_cell *refused[LIMIT_KINDS][2];
    struct metric_cell *shared;
    struct quota_share *share; /* NULL: none */
};

int64_t bucket_capacity(const struct limit *l);
void bucket_fill(struct bucket *b, const struct limit *l, int64_t now_ms);
void bucket_spend(struct bucket *b, const struct limit *l, int64_t tokens);
void quota_unref(struct quota *q);

/* quota_share.c */
must_check bool quota_share_new(struct quotas *q, const struct quotas_config *config,
                                struct quota_share **ret, struct error *err);
void quota_share_free(struct quota_share *s); /* NULL is fine */
/* It was used, or somebody asked: other nodes hear of it, and we of them. */
void quota_share_touch(struct quota_share *s, struct quota *q);
bool quota_share_is_up(const struct quota_share *s);

#endif
