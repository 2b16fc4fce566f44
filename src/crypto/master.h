/* SPDX-License-Identifier: Apache-2.0 */
/* The master key: what seals the keys that seal tenants' secrets.  It lives in a file outside the
 * database, and in locked memory while it is used.
 *
 * The file has one key per line, the first in use, the others only to open what they sealed until a
 * rotation is through.  A line is 32 bytes as 64 hex digits or as base64, or, as we write it,
 * "hfmk1 ID HEX", where ID is the key's fingerprint and must fit. */
#ifndef HOLDFAST_CRYPTO_MASTER_H
#define HOLDFAST_CRYPTO_MASTER_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "crypto/seal.h"

#define MASTER_KEY_BYTES 32
#define MASTER_ID_TEXT 17 /* 16 hex digits */
#define MASTER_KEYS_MAX 8
#define MASTER_WRAPPED (SEAL_KEY_BYTES + SEAL_OVERHEAD)

/* Where the file is: named by HOLDFAST_MASTER_KEY_FILE, or holdfast-master-key among the
 * credentials that systemd hands over, else master.key in the data directory, which is ours to
 * make. */
struct str master_path(struct str data_dir, struct arena *mem, bool *ret_is_ours);

struct master;
/* Reads the file; with `create`, a missing one is made first, whole or not at all.  Refused with
 * ERR_CONFIG: a file that others can read, and keys that are short, guessable or published. */
must_check bool master_load(struct str path, bool create, struct master **ret, struct error *err);
void master_free(struct master *m); /* wipes; NULL is fine */
struct str master_id(const struct master *m);
/* Of all keys there are, the one in use first; how many.  They tell nothing of the keys. */
size_t master_fingerprints(const struct master *m, uint8_t ret[MASTER_KEYS_MAX][32]);
/* Are there older keys, that a rotation has not done with? */
bool master_has_old(const struct master *m);

/* A data key, bound to its tenant and its id. */
void master_wrap(struct master *m, struct str tenant, struct str key_id,
                 const uint8_t key[SEAL_KEY_BYTES], uint8_t ret[MASTER_WRAPPED]);
/* False: that master key is not here, or the bytes are not what it sealed for them. */
must_check bool master_unwrap(struct master *m, struct str by, struct str tenant, struct str key_id,
                              struct str wrapped, uint8_t ret_key[SEAL_KEY_BYTES]);

/* Rotation, each step whole or not at all: a new key goes before those there are, `text` or a
 * random one (absent); and the old ones go. */
must_check bool master_add(struct str path, struct str text, struct error *err);
must_check bool master_drop_old(struct str path, struct error *err);
/* Would this do as a key?  For keys from elsewhere. */
must_check bool master_check(struct str text, struct error *err);

#endif
