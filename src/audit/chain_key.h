/* SPDX-License-Identifier: Apache-2.0 */
/* The file that holds the chain's key: 64 hex digits and a newline.  Only its owner can read it. */
#ifndef HOLDFAST_AUDIT_CHAIN_KEY_H
#define HOLDFAST_AUDIT_CHAIN_KEY_H

#include "crypto/key_file.h"

#define CHAIN_KEY_BYTES KEY_FILE_BYTES
/* Reads the key.  With `create`, a missing file is created first, atomically.  A file that other
 * users can read, or that holds anything but a key, is an error. */
must_check bool chain_key_load(struct str path, bool create, uint8_t ret_key[CHAIN_KEY_BYTES],
                               struct error *err);

#endif
