/* SPDX-License-Identifier: Apache-2.0 */
/* The master key seals the keys that seal tenants' secrets.  It is in a file outside the database,
 * and in locked memory while it is used.
 *
 * The file has one key per line.  The first key is in use.  The others only open data that they
 * sealed, until a rotation is complete.  A line is 32 bytes as 64 hex digits or as base64, or, as
 * Holdfast writes it, "hfmk1 ID HEX", where ID must be the key's fingerprint. */
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

/* Returns the path of the file: HOLDFAST_MASTER_KEY_FILE, or holdfast-master-key among the
 * credentials from systemd, else master.key in the data directory.  *ret_is_ours: it is the latter,
 * which Holdfast may create. */
struct str master_path(struct str data_dir, struct arena *mem, bool *ret_is_ours);

struct master;
/* Reads the file.  With `create`, a missing file is created first, atomically.  ERR_CONFIG for a
 * file that other users can read, and for keys that are short, guessable or published. */
must_check bool master_load(struct str path, bool create, struct master **ret, struct error *err);
void master_free(struct master *m); /* wipes; NULL is fine */
struct str master_id(const struct master *m);
/* Returns the number of keys and their fingerprints, the key in use first.  Fingerprints reveal
 * nothing about the keys. */
size_t master_fingerprints(const struct master *m, uint8_t ret[MASTER_KEYS_MAX][32]);
/* Whether there are older keys, from a rotation that is not complete. */
bool master_has_old(const struct master *m);

/* Seals a data key, bound to its tenant and its id. */
void master_wrap(struct master *m, struct str tenant, struct str key_id,
                 const uint8_t key[SEAL_KEY_BYTES], uint8_t ret[MASTER_WRAPPED]);
/* Returns false when that master key is not loaded, or did not seal these bytes for this tenant and
 * id. */
must_check bool master_unwrap(struct master *m, struct str by, struct str tenant, struct str key_id,
                              struct str wrapped, uint8_t ret_key[SEAL_KEY_BYTES]);

/* Rotation; each step is atomic.  master_add() puts a new key first: `text`, or a random key if
 * absent.  master_drop_old() removes the old keys. */
must_check bool master_add(struct str path, struct str text, struct error *err);
must_check bool master_drop_old(struct str path, struct error *err);
/* Checks whether a key from elsewhere is acceptable. */
must_check bool master_check(struct str text, struct error *err);

#endif
