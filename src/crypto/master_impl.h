/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by master.c (keys in use) and master_file.c (keys on disk). */
#ifndef HOLDFAST_CRYPTO_MASTER_IMPL_H
#define HOLDFAST_CRYPTO_MASTER_IMPL_H

#include "crypto/master.h"

struct master_key {
    uint8_t key[MASTER_KEY_BYTES];
    char id[MASTER_ID_TEXT];
    struct seal_key *seal;
};
struct master {
    size_t n;
    struct master_key keys[MASTER_KEYS_MAX]; /* the first is in use */
};
struct master *master_new(void) must_check;

#endif
