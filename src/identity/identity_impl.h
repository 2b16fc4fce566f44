/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the service.
 *
 *   identity.c   answers requests, and caches recent proofs
 *   proof.c      proves a credential: its row, its user, its tenant
 *   watch.c      notifies watches of a revocation
 *   changes.c    applies revocations by other processes */
#ifndef HOLDFAST_IDENTITY_IDENTITY_IMPL_H
#define HOLDFAST_IDENTITY_IDENTITY_IMPL_H

#include "base/map.h"
#include "identity/identity.h"
#include "identity/issuers.h"
#include "identity/own_tokens.h"
#include "identity/throttle.h"

#define IDENTITY_MAX_PROOFS 1024  /* running proofs; above that the reply is 503 */
#define IDENTITY_MAX_REFUSED 1024 /* a separate cache, so that refusals never evict proofs */
#define IDENTITY_MAX_REVOKED 4096 /* revocations that are remembered */
/* How long a revocation is remembered, for a request that was identified before it and watches
 * after. */
#define IDENTITY_REVOKED_MS 600000
/* Credentials from a throttled address (throttle.h) wait in a queue, the line, before they are
 * proved. */
/* Length of the line; half of the proofs stay free for other addresses. */
#define IDENTITY_LINE_MAX 512
#define IDENTITY_LINE_MS 10 /* interval of the line … */
/* … and the proofs started in each: about 2 ms of signatures or lookups. */
#define IDENTITY_LINE_AT_ONCE 16
#define IDENTITY_FAMILIAR 4096 /* slots, a power of two */

/* The cached result of proving a credential, by the credential's digest.  The credential itself is
 * not stored. */
struct cached_proof {
    struct list lru;
    uint8_t digest[32];
    struct arena *mem;
    bool ok;
    struct principal who;
    enum err_code code;
    struct str text;
    int64_t until_ms; /* monotonic */
    uint64_t epoch;   /* issuers_epoch() at the time of the proof */
};
struct proof_cache {
    struct map by_digest;
    struct list lru; /* least recently used first */
    size_t n, max;
};

struct identity {
    struct identity_config config;
    struct config *c;
    struct issuers *issuers;
    bool stopping;
    struct proof_cache proved, refused;
    struct map proving;  /* struct proof by digest */
    struct map watched;  /* struct watched by credential */
    struct list revoked; /* struct revoked, oldest first */
    struct map revoked_by_name;
    uint64_t revocations; /* count of revocations; a proof that read rows before one may be stale */
    struct throttle *throttle;
    /* Proofs of credentials from throttled addresses: struct proof, first in, first out. */
    struct list line;
    size_t n_line;
    struct loop_timer *line_timer;
    /* The first bytes of digests that were proved since the start.  A later digest of the same slot
     * replaces the entry.  Such a credential skips the line, but is still proved. */
    uint64_t familiar[IDENTITY_FAMILIAR];
};

/* identity.c: called at the end of a proof, successful or not.  ttl_ms 0: no cache entry. */
void identity_answer(struct identity *id, struct identify *q, const struct principal *who,
                     const struct error *err);
void identity_forget(struct identity *id, struct str credential);
void identity_forget_user(struct identity *id, struct str user_id);
void identity_cache_proof(struct identity *id, const uint8_t digest[32],
                          const struct principal *who, const struct error *err, int64_t ttl_ms);
/* proof.c: `q` waits for the proof.  Returns false when the proof cannot start; q->err says why.
 * With q->is_held_up the proof waits in the line first. */
must_check bool proof_begin(struct identity *id, struct identify *q, struct str credential,
                            const uint8_t digest[32]);
void proofs_start(struct identity *id);
void proofs_stop(struct identity *id);
/* watch.c */
/* For a request that was identified before the revocation and watches after it. */
void identity_remember(struct identity *id, struct str credential);
void identity_end_tokens(struct identity *id); /* notifies the watches of all tokens of issuers */
void identity_watches_release(struct identity *id);

#endif
