/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the keys of one issuer: PEM files and secrets of the configuration, and a key set from a
 * file or from fetched bytes. */
#ifndef HOLDFAST_IDENTITY_ISSUER_KEYS_H
#define HOLDFAST_IDENTITY_ISSUER_KEYS_H

#include "config/config.h"
#include "identity/jwks.h"

#define ISSUER_PEM_MAX (64u << 10)

/* `set` is the key set fetched from the URL; absent: not fetched.  Errors (ERR_CONFIG) about files
 * begin with the position in the configuration. */
must_check bool issuer_keys_make(const struct issuer_config *c, struct str set,
                                 struct jwt_keys **ret, struct error *err);
/* Changes when one of the files changes; 0 when there are no files. */
uint64_t issuer_keys_mark(const struct issuer_config *c);

#endif
