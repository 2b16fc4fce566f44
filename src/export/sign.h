/* SPDX-License-Identifier: Apache-2.0 */
/* The key that signs exported sessions (Ed25519).  It is derived from the key of the audit, so it is
 * the same on every node of a store and across restarts, and needs no file of its own. */
#ifndef HOLDFAST_EXPORT_SIGN_H
#define HOLDFAST_EXPORT_SIGN_H

#include "base/str.h"

#define EXPORT_KEY_BYTES 32
#define EXPORT_SIGNATURE_BYTES 64
/* What chain_derive() makes the seed for. */
#define EXPORT_KEY_PURPOSE "exports"

struct export_key;
struct export_key *export_key_new(const uint8_t seed[32]) must_check;
void export_key_free(struct export_key *k); /* NULL is fine */
/* The public key; lives as long as `k`. */
const uint8_t *export_key_public(const struct export_key *k);
/* Any number of threads may sign with one key at once. */
void export_sign(const struct export_key *k, struct str text, uint8_t ret[EXPORT_SIGNATURE_BYTES]);
bool export_signature_is_of(const uint8_t public_key[EXPORT_KEY_BYTES], struct str text,
                            const uint8_t signature[EXPORT_SIGNATURE_BYTES]);

/* The key's name for people: 16 hex digits of the digest of the public key. */
#define EXPORT_FINGERPRINT_TEXT 17
void export_fingerprint(const uint8_t public_key[EXPORT_KEY_BYTES],
                        char ret[EXPORT_FINGERPRINT_TEXT]);

#endif
