/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of one issuer, made from what the configuration names: PEM files, secrets, and a key set
 * from a file or from bytes that were fetched. */
#ifndef HOLDFAST_IDENTITY_ISSUER_KEYS_H
#define HOLDFAST_IDENTITY_ISSUER_KEYS_H

#include "config/config.h"
#include "identity/jwks.h"

#define ISSUER_PEM_MAX (64u << 10)

/* `set` is the key set of a URL; absent: none has come.  Complaints (ERR_CONFIG) about files begin
 * with the place in the configuration. */
must_check bool issuer_keys_make(const struct issuer_config *c, struct str set,
                                 struct jwt_keys **ret, struct error *err);
/* Changes when one of the files does; 0 when there are none. */
uint64_t issuer_keys_mark(const struct issuer_config *c);

#endif
