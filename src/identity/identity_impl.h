/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the service share.
 *
 *   identity.c   the question, and what was proved lately
 *   proof.c      a credential being proved: its row, its user, its tenant
 *   watch.c      who is told of a revocation
 *   changes.c    what other processes revoked */
#ifndef HOLDFAST_IDENTITY_IDENTITY_IMPL_H
#define HOLDFAST_IDENTITY_IDENTITY_IMPL_H

#include "base/map.h"
#include "identity/identity.h"
#include "identity/issuers.h"
#include "identity/own_tokens.h"
#include "identity/throttle.h"

#define IDENTITY_MAX_PROOFS 1024   /* under way; then the answer is 503 */
#define IDENTITY_MAX_REFUSED 1024  /* a cache of their own: they never push out what was proved */
#define IDENTITY_MAX_REVOKED 4096  /* remembered … */
#define IDENTITY_REVOKED_MS 600000 /* … for so long, for who was identified just before */
#define IDENTITY_CHANGES_MS 400
/* Credentials from an address that is held up (throttle.h) stand in a line before they are proved.
 */
#define IDENTITY_LINE_MAX 512    /* places in the line; half of the proofs stay free for others */
#define IDENTITY_LINE_MS 10      /* every so often … */
#define IDENTITY_LINE_AT_ONCE 16 /* … so many are proved: about 2 ms of signatures or lookups */
#define IDENTITY_FAMILIAR 4096   /* slots, a power of two */

/* Whether a credential was proved or refused, by its digest.  The text itself is not stored. */
struct cached_proof {
    struct list lru;
    uint8_t digest[32];
    struct arena *mem;
    bool ok;
    struct principal who;
    enum err_code code;
    struct str text;
    int64_t until_ms; /* monotonic */
    uint64_t epoch;   /* of the issuers, when it was proved */
};
struct proof_cache {
    struct map by_digest;
    struct list lru; /* oldest first */
    size_t n, max;
};

struct changes; /* changes.c */

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
    uint64_t revocations; /* so far: what was read before one may be out of date */
    struct changes *changes;
    struct throttle *throttle;
    /* Credentials of held-up addresses that wait to be proved: struct proof, first come first. */
    struct list line;
    size_t n_line;
    struct loop_timer *line_timer;
    /* The first bytes of digests that were proved since the start.  A later one of the same slot
     * replaces it.  Such a credential need not stand in the line; it is proved all the same. */
    uint64_t familiar[IDENTITY_FAMILIAR];
};

/* identity.c: the end of a proof, good or bad; ttl_ms 0 keeps nothing. */
void identity_answer(struct identity *id, struct identify *q, const struct principal *who,
                     const struct error *err);
void identity_forget(struct identity *id, struct str credential);
void identity_forget_user(struct identity *id, struct str user_id);
void identity_cache_proof(struct identity *id, const uint8_t digest[32],
                          const struct principal *who, const struct error *err, int64_t ttl_ms);
/* proof.c: q waits for it; false: it cannot be begun, and q->err says why.  With q->is_held_up it
 * stands in the line first. */
must_check bool proof_begin(struct identity *id, struct identify *q, struct str credential,
                            const uint8_t digest[32]);
void proofs_start(struct identity *id);
void proofs_stop(struct identity *id);
/* watch.c */
/* For who was identified before it was revoked and begins to watch after. */
void identity_remember(struct identity *id, struct str credential);
void identity_end_tokens(struct identity *id); /* who works in the name of one is told */
void identity_watches_release(struct identity *id);
/* changes.c */
struct changes *changes_new(struct identity *id) must_check;
void changes_nudge(struct changes *c); /* something has changed: asks at once */
void changes_stop(struct changes *c);
void changes_free(struct changes *c);

#endif
