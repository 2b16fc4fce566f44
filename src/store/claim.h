/* SPDX-License-Identifier: Apache-2.0 */
/* Claims let one of several processes on a shared store do some work or decide a value, and let the
 * others see which process or value it was.  A claim has a name, a value of 32 bytes and an end.
 * Claims are stored as rows of Idempotency-Keys, where the first process to put a row wins. */
#ifndef HOLDFAST_STORE_CLAIM_H
#define HOLDFAST_STORE_CLAIM_H

#include "store/store.h"

#define CLAIM_FOR_EVER INT64_MAX

struct claim {
    uint8_t value[32];
    struct str where; /* "NODE:PATH" of the process that made the claim; absent: not recorded */
};
/* *ret_ours: this call made the claim; false when a claim of that name already stands.  `where` may
 * be absent. */
must_check bool claim_make(struct store *s, struct str name, const uint8_t value[32],
                           struct str where, int64_t for_ms, bool *ret_ours, struct error *err);
/* *ret is NULL when there is no such claim. */
must_check bool claim_get(struct store *s, struct str name, struct arena *mem, struct claim **ret,
                          struct error *err);
/* "NODE:PATH": this machine's name and a file on it. */
struct str claim_where(struct str path, struct arena *mem);

/* A key in a file that all processes on one store must share.  The first process that starts claims
 * the key's fingerprint; the others must have the same key.  Each rotation adds a claim, and the
 * last claim counts.  The fingerprint is a digest that reveals nothing about the key. */
struct key_claim {
    const char *file;     /* "token.key" */
    const char *variable; /* variable that names another file: "HOLDFAST_TOKEN_KEY_FILE" */
    struct str path;      /* path of the file on this machine */
};
/* `prints` are the fingerprints of the keys in the file; the key in use is first.  ERR_CONFIG when
 * none of them was claimed last; the error says where to copy the file from. */
must_check bool claim_key(struct store *s, const struct key_claim *k, const uint8_t (*prints)[32],
                          size_t n, struct error *err);
/* Claims `print` as the new fingerprint.  Does nothing when no fingerprint was claimed before (then
 * the store is not shared). */
must_check bool claim_key_rotated(struct store *s, const struct key_claim *k,
                                  const uint8_t print[32], struct error *err);

#endif
