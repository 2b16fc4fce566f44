/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: the part of all servers that one endpoint offers.  Lists and calls use the same
 * functions, so they always agree on the tools that exist.
 *
 * Toolsets are a bit set in the order of the profile's toolsets: those that are in effect for a
 * caller. */
#ifndef HOLDFAST_PROFILE_PROFILE_H
#define HOLDFAST_PROFILE_PROFILE_H

#include "base/arena.h"
#include "config/config.h"

#define PROFILE_ALL_TOOLSETS UINT64_MAX

/* Whether the profile has anything of this server.  If so, it includes the server's prompts and
 * resources. */
bool profile_has_server(const struct profile_config *p, struct str server);
/* Whether the tool is in one of these toolsets.  A profile without toolsets has every tool of its
 * servers. */
bool profile_shows(const struct profile_config *p, uint64_t toolsets, struct str server,
                   struct str tool);

/* Whether these toolsets can have a tool of this server.  Without toolsets: whether the profile has
 * the server. */
bool profile_reaches(const struct profile_config *p, uint64_t toolsets, struct str server);

/* The toolsets of the profile that policy and client id permit; `client` is absent when the caller
 * has none. */
uint64_t profile_permitted(const struct profile_config *p, struct str client);
/* The toolsets named in a list with commas and optional blanks; absent: none. */
uint64_t profile_enabled(const struct profile_config *p, struct str keys);
/* The position of a key; -1: the profile does not have it. */
int profile_toolset(const struct profile_config *p, struct str key);
/* The key of the first of these toolsets that has the tool; absent: none has. */
struct str profile_toolset_with(const struct profile_config *p, uint64_t toolsets,
                                struct str server, struct str tool);
bool profile_allows(const struct profile_config *p, struct str key); /* by policy.allow */
bool profile_denies(const struct profile_config *p, struct str key); /* by policy.deny */

/* The list with the key added or removed; absent when the list becomes empty. */
struct str toolset_keys_with(struct str keys, struct str key, struct arena *mem);
struct str toolset_keys_without(struct str keys, struct str key, struct arena *mem);

#endif
