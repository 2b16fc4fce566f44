/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of Holdfast's own environment that a server gets.  Names are never secret, values
 * are. */
#ifndef HOLDFAST_UPSTREAM_KEEPER_ENV_H
#define HOLDFAST_UPSTREAM_KEEPER_ENV_H

#include "config/config.h"

/* Calls `take` for every variable of ours that "inherit_env" of the server names, until it returns
 * false; returns the number of calls. */
size_t child_env_each_asked(const struct server_config *s,
                            bool (*take)(void *arg, struct str name, struct str value), void *arg);
/* Names, separated by ", ", of at most eight variables that are set here, that servers often need,
 * and that this server does not get; "" when there are none. */
void child_env_hint(const struct server_config *s, char *ret_text, size_t size);

#endif
