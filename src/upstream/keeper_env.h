/* SPDX-License-Identifier: Apache-2.0 */
/* Which variables of Holdfast's own environment a server gets; names are never secret, values are.
 */
#ifndef HOLDFAST_UPSTREAM_KEEPER_ENV_H
#define HOLDFAST_UPSTREAM_KEEPER_ENV_H

#include "config/config.h"

/* Gives `take` every variable of ours that "inherit_env" of the server names, until it returns
 * false; returns how many it was given. */
size_t child_env_each_asked(const struct server_config *s,
                            bool (*take)(void *arg, struct str name, struct str value), void *arg);
/* Names, ", " between, of at most eight variables that are set here, that servers often need, and
 * that this one does not get; "" when there are none. */
void child_env_hint(const struct server_config *s, char *ret_text, size_t size);

#endif
