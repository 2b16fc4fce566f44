/* SPDX-License-Identifier: Apache-2.0 */
/* One of several processes that share a store does something, and the others can see who, or what
 * was decided.  A claim is a name that stands until its end and a value of 32 bytes; it is kept
 * among the rows of Idempotency-Keys, which give just this: the first who puts one has it. */
#ifndef HOLDFAST_STORE_CLAIM_H
#define HOLDFAST_STORE_CLAIM_H

#include "store/store.h"

#define CLAIM_FOR_EVER INT64_MAX

struct claim {
    uint8_t value[32];
    struct str where; /* "NODE:PATH", who made it; absent: nothing was noted */
};
/* *ret_ours: nobody else's claim of that name stands.  `where` may be absent. */
must_check bool claim_make(struct store *s, struct str name, const uint8_t value[32],
                           struct str where, int64_t for_ms, bool *ret_ours, struct error *err);
/* NULL in *ret: there is none. */
must_check bool claim_get(struct store *s, struct str name, struct arena *mem, struct claim **ret,
                          struct error *err);
/* "NODE:PATH": this machine's name and a file on it. */
struct str claim_where(struct str path, struct arena *mem);

/* A key in a file that all processes on one store must share.  The first process that starts claims
 * its fingerprint; the others must have the same key.  Each rotation is one more claim, and the
 * last one counts.  A fingerprint is a digest that tells nothing of the key. */
struct key_claim {
    const char *file;     /* "token.key" */
    const char *variable; /* that names another file: "HOLDFAST_TOKEN_KEY_FILE" */
    struct str path;      /* of the file here */
};
/* `prints` are those of the keys in the file, the one in use first.  ERR_CONFIG when none of them
 * is the one that was claimed last; the text says where to copy the file from. */
must_check bool claim_key(struct store *s, const struct key_claim *k, const uint8_t (*prints)[32],
                          size_t n, struct error *err);
/* From now on it is this one.  Where nothing was claimed (nobody shares the store) nothing is. */
must_check bool claim_key_rotated(struct store *s, const struct key_claim *k,
                                  const uint8_t print[32], struct error *err);

#endif
