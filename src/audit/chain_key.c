/* SPDX-License-Identifier: Apache-2.0 */
/* DATA/audit.key.  The key is outside the database, so that an attacker who can edit rows cannot
 * reseal them. */
#include "audit/chain_key.h"

bool chain_key_load(struct str path, bool create, uint8_t ret_key[CHAIN_KEY_BYTES],
                    struct error *err)
{
    static const struct key_file words = {
        .name = "the audit key",
        .or_move = "and the database away to start a new chain",
    };
    return key_file_load(&words, path, create, ret_key, err);
}
