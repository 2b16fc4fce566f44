/* SPDX-License-Identifier: Apache-2.0 */
/* Usage of each tenant and of each key (limits: base/limits.h): requests and bytes as token
 * buckets, calls and server processes as counts.
 *
 *   a request ── quota_take() ──┬── tenant and key have enough left: taken from both
 *                               └── else nothing is taken; the refusal names limit and retry time
 *
 * Bytes are counted when they are known: those of a request on arrival, those of a reply when it is
 * sent.  Bytes above the limit become a debt of at most one burst.  Later requests wait until the
 * debt is paid.
 *
 * Counts are in memory, by name, and bounded: the least recently used are evicted first.  With
 * Redis they are shared with other nodes (quota_share.c).  While Redis is unreachable, each node
 * uses its own counts, and refusals say so.  Loop thread only; no locks. */
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

#define QUOTA_MAX 16384      /* quotas of tenants and keys in memory, and as many of sessions */
#define QUOTA_CALL_RETRY_S 1 /* wait for another call to end */
#define QUOTA_CHILD_RETRY_S 5

struct quotas;
struct quota; /* of one tenant, or of one key */

struct quotas_config {
    struct loop *loop;   /* NULL in tests without sharing */
    struct lanes *lanes; /* writes audit events of refusals; NULL: no events */
    struct config *config;
    size_t max_quotas; /* 0: QUOTA_MAX */
    /* The Redis of shared counts; NULL: each node counts alone.  Must outlive the quotas. */
    const struct redis_target *redis;
    const char *ca_file;
    struct str prefix; /* prefix of Redis keys, copied */
    uint8_t key[32];   /* hashes names for Redis keys; the same on all nodes */
    struct str node;   /* unique for every process, copied */
};
must_check bool quotas_new(const struct quotas_config *config, struct quotas **ret,
                           struct error *err);
/* Applies another configuration: limits change, usage stays. */
void quotas_apply(struct quotas *q, struct config *config);
void quotas_free(struct quotas *q); /* NULL is fine; no use may hold anything */

/* Whether any limit applies.  Checked first; usually false. */
static inline bool quota_applies(const struct config *c, const struct principal *who)
{
    return unlikely(c->is_limited) || unlikely(who->scopes && who->scopes->limits);
}

/* The usage that a request holds; embedded in the request and zeroed first. */
struct quota_use {
    struct quota *of[3]; /* of the tenant, of the key, of the session */
    unsigned held;       /* bits: counts held until quota_release() */
};
enum quota_scope { QUOTA_OF_TENANT, QUOTA_OF_KEY, QUOTA_OF_SESSION };
#define QUOTA_SCOPES 3
struct quota_refusal {
    struct error err; /* ERR_QUOTA, with a text for the client */
    enum limit_kind kind;
    struct limit limit;
    int64_t retry_s; /* seconds, at least 1 */
    enum quota_scope scope;
    struct quota *who; /* valid until control returns to the loop */
};
#define QUOTA_REQUEST (1u << LIMIT_REQUESTS | 1u << LIMIT_BYTES)
#define QUOTA_CALL (QUOTA_REQUEST | 1u << LIMIT_CALLS)
#define QUOTA_CHILD (1u << LIMIT_CHILDREN)
#define QUOTA_ALWAYS (1u << 8) /* count, but never refuse */
/* Takes all of `what` for the tenant and the key, or takes nothing and returns false. */
must_check bool quota_take(struct quotas *q, const struct principal *who, unsigned what,
                           size_t bytes, struct quota_use *use, struct quota_refusal *ret);
/* A session whose set-up has limits of its own. */
struct quota_session {
    struct str tenant, id;
    struct str from; /* the template that set them, for the text of a refusal; absent: none */
    const struct limits *limits;
};
/* The same for the session of the request, in addition: quota_take() came first with the same
 * `what`, or no limit of tenant and key applies.  A refusal leaves what those hold. */
must_check bool quota_take_session(struct quotas *q, const struct quota_session *s, unsigned what,
                                   size_t bytes, struct quota_use *use, struct quota_refusal *ret);
/* Counts more bytes of the same request. */
void quota_spend(struct quota_use *use, size_t bytes);
/* Releases the held counts; also for a use that holds nothing. */
void quota_release(struct quota_use *use);
/* Call it when a refusal was sent: it is counted, and occasionally logged and recorded. */
void quota_refused(struct quotas *q, const struct quota_refusal *r);
/* The headers "Retry-After: …\r\nRateLimit-Policy: …\r\nRateLimit: …\r\n", in mem. */
struct str quota_lines(const struct quota_refusal *r, struct arena *mem);

/* Whether the usage on other nodes is currently known. */
bool quotas_are_shared(const struct quotas *q);
size_t quotas_count(const struct quotas *q); /* for tests */

#endif
