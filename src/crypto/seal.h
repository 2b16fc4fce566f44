/* SPDX-License-Identifier: Apache-2.0 */
/* Seals stored data that must not be readable in the store: AES-256-GCM with a random 96-bit nonce.
 * The identity of the data (tenant, owner, session …) is bound to it as associated data, so that
 * sealed bytes moved to another row do not open.
 *
 * Layout: version (1) | nonce (12) | ciphertext | tag (16). */
#ifndef HOLDFAST_CRYPTO_SEAL_H
#define HOLDFAST_CRYPTO_SEAL_H

#include "base/str.h"

#define SEAL_KEY_BYTES 32
#define SEAL_OVERHEAD 29

struct seal_key; /* prepared; one thread at a time */
struct seal_key *seal_key_new(const uint8_t key[SEAL_KEY_BYTES]) must_check;
void seal_key_free(struct seal_key *k); /* wipes; NULL is fine */
/* Writes plain.n + SEAL_OVERHEAD bytes.  Each part of `bound` is bound with its length and its
 * position; an absent part counts as an empty one. */
void seal(struct seal_key *k, const struct str *bound, size_t n_bound, struct str plain,
          uint8_t *ret_sealed);
/* Writes sealed.n - SEAL_OVERHEAD bytes.  Returns false for another key, other bound parts, changed
 * or short bytes; *ret_plain then holds nothing of the plain text. */
must_check bool unseal(struct seal_key *k, const struct str *bound, size_t n_bound,
                       struct str sealed, uint8_t *ret_plain);

#endif
