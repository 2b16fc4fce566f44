/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 and HMAC-SHA-256 on OpenSSL; only a prepared key is allocated. */
#ifndef HOLDFAST_CRYPTO_HASH_H
#define HOLDFAST_CRYPTO_HASH_H

#include "base/str.h"

#define SHA256_BYTES 32
void sha256(struct str data, uint8_t ret[SHA256_BYTES]);
void sha256_parts(const struct str *parts, size_t n, uint8_t ret[SHA256_BYTES]);
/* Only where a protocol demands it. */
#define SHA1_BYTES 20
void sha1(struct str data, uint8_t ret[SHA1_BYTES]);
/* Key of any length. */
struct hmac_key; /* prepared key; free with hmac_key_free */
struct hmac_key *hmac_key_new(const uint8_t *key, size_t n) must_check;
void hmac_key_free(struct hmac_key *k); /* wipes */
/* Any number of threads may use one key at once. */
void hmac_sha256(const struct hmac_key *k, const struct str *parts, size_t n,
                 uint8_t ret[SHA256_BYTES]);
bool crypto_equal(const void *a, const void *b, size_t n); /* constant time */
void crypto_wipe(void *p, size_t n);
void hex_encode(const void *p, size_t n, char *ret_text /* 2n+1 */);
must_check bool hex_decode(struct str hex, uint8_t *ret, size_t n);

#endif
