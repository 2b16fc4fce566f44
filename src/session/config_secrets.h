/* SPDX-License-Identifier: Apache-2.0 */
/* The secrets that the configuration names as ${secret:NAME}: stored sealed by a key of the tenant
 * `default`, bound to their names. */
#ifndef HOLDFAST_SESSION_CONFIG_SECRETS_H
#define HOLDFAST_SESSION_CONFIG_SECRETS_H

#include "config/config.h"
#include "session/sealed.h"
#include "store/store.h"

#define CONFIG_SECRETS_TENANT "default"

/* Where the text of this secret is sealed. */
struct sealed_place config_secret_place(struct str name);
/* Reads and opens all secrets, sorted by name, in mem.  One that does not open has no value; it is
 * logged.  The file of the master key is read only if there are secrets.  Blocking. */
must_check bool config_secrets_read(struct store *store, struct str master_file, struct arena *mem,
                                    struct config_secret **ret, size_t *ret_n, struct error *err);

#endif
