/* SPDX-License-Identifier: Apache-2.0 */
/* The file that holds the chain's key: 64 hex digits and a newline, readable by its owner alone. */
#ifndef HOLDFAST_AUDIT_CHAIN_KEY_H
#define HOLDFAST_AUDIT_CHAIN_KEY_H

#include "crypto/key_file.h"

#define CHAIN_KEY_BYTES KEY_FILE_BYTES
/* Reads the key; with `create`, a missing file is made first, whole or not at all.  A file that
 * others can read, or that holds something else, is refused. */
must_check bool chain_key_load(struct str path, bool create, uint8_t ret_key[CHAIN_KEY_BYTES],
                               struct error *err);

#endif
