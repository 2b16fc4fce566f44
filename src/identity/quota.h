/* SPDX-License-Identifier: Apache-2.0 */
/* How much each tenant, and each key inside of one, has used of what it may (base/limits.h):
 * requests and bytes as token buckets, calls and server processes as counts.
 *
 *   a request ── quota_take() ──┬── of its tenant and of its key there is enough: it is taken
 *                               └── else nothing is, and the refusal says whose, and when again
 *
 * Bytes are taken when they are known: a request's when it comes, an answer's when it goes.  Those
 * that pass the limit are debts, at most as large as the burst; what comes next waits for them.
 *
 * Counts live in memory, by name, and are bounded: who has not been here for longest is forgotten
 * first.  Where Redis is given they are shared with other nodes (quota_share.c); while it is away
 * each node goes by its own, and refusals say so.  Loop thread only; no locks. */
#ifndef HOLDFAST_IDENTITY_QUOTA_H
#define HOLDFAST_IDENTITY_QUOTA_H

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/principal.h"
#include "config/config.h"
#include "io/loop.h"
#include "store/lanes.h"
#include "store/redis_conn.h"

#define QUOTA_MAX_KEPT 16384 /* tenants and keys that are remembered */
#define QUOTA_CALL_RETRY_S 1 /* when somebody else may have ended a call */
#define QUOTA_CHILD_RETRY_S 5

struct quotas;
struct quota; /* of one tenant, or of one key */

struct quotas_config {
    struct loop *loop;   /* NULL in tests that share nothing */
    struct lanes *lanes; /* where refusals go on record; NULL: nowhere */
    struct config *config;
    size_t max_kept; /* 0: QUOTA_MAX_KEPT */
    /* Where nodes share; NULL: each for itself.  Lasts as long. */
    const struct redis_target *redis;
    const char *ca_file;
    struct str prefix; /* of names in Redis, copied */
    uint8_t key[32];   /* of names in Redis: the same on all nodes */
    struct str node;   /* unlike for every process, copied */
};
must_check bool quotas_new(const struct quotas_config *config, struct quotas **ret,
                           struct error *err);
/* Another configuration: limits of those that are counted already change, what they used stays. */
void quotas_apply(struct quotas *q, struct config *config);
void quotas_free(struct quotas *q); /* NULL is fine; nothing may be held any more */

/* Is there anything to count?  The first thing asked, and mostly the only one. */
static inline bool quota_applies(const struct config *c, const struct principal *who)
{
    return unlikely(c->is_limited) || unlikely(who->scopes && who->scopes->limits);
}

/* What a request holds, embedded in it and zeroed before. */
struct quota_use {
    struct quota *of[2];
    unsigned held; /* bits: counts that are taken until quota_release() */
};
struct quota_refusal {
    struct error err; /* ERR_QUOTA, a sentence for whoever reads it */
    enum limit_kind kind;
    struct limit limit;
    int64_t retry_s;   /* seconds, at least 1 */
    bool is_key;       /* whose: the key's, or the tenant's */
    struct quota *who; /* valid for this turn */
};
#define QUOTA_REQUEST (1u << LIMIT_REQUESTS | 1u << LIMIT_BYTES)
#define QUOTA_CALL (QUOTA_REQUEST | 1u << LIMIT_CALLS)
#define QUOTA_CHILD (1u << LIMIT_CHILDREN)
#define QUOTA_ALWAYS (1u << 8) /* counted, and never refused */
/* All of `what`, for the tenant and the key, or nothing and false. */
must_check bool quota_take(struct quotas *q, const struct principal *who, unsigned what,
                           size_t bytes, struct quota_use *use, struct quota_refusal *ret);
/* More bytes of it. */
void quota_spend(struct quota_use *use, size_t bytes);
/* Gives back what was held; also for a use that holds nothing. */
void quota_release(struct quota_use *use);
/* It was said to somebody: counted, and now and then logged and recorded. */
void quota_refused(struct quotas *q, const struct quota_refusal *r);
/* "Retry-After: …\r\nRateLimit-Policy: …\r\nRateLimit: …\r\n", in mem. */
struct str quota_lines(const struct quota_refusal *r, struct arena *mem);

/* Whether other nodes' use is known just now. */
bool quotas_are_shared(const struct quotas *q);
size_t quotas_kept(const struct quotas *q); /* for tests */

#endif
