/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: what of all servers one endpoint offers.  The same functions answer for lists and for
 * calls, so neither shows what the other refuses.
 *
 * Toolsets are a set of bits, in the order of the profile's own: those that count for a caller
 * right now. */
#ifndef HOLDFAST_ROUTE_PROFILE_H
#define HOLDFAST_ROUTE_PROFILE_H

#include "base/arena.h"
#include "config/config.h"

#define PROFILE_ALL_TOOLSETS UINT64_MAX

/* Has it anything of this server?  Where it has, prompts and resources of the server are its too.
 */
bool profile_has_server(const struct profile_config *p, struct str server);
/* Is the tool in one of those toolsets?  A profile without toolsets has every tool of its servers.
 */
bool profile_shows(const struct profile_config *p, uint64_t toolsets, struct str server,
                   struct str tool);

/* Can those toolsets have a tool of this server?  Without toolsets: has it the server? */
bool profile_reaches(const struct profile_config *p, uint64_t toolsets, struct str server);

/* Those of its toolsets that policy and client id leave to a caller; client absent: it has none. */
uint64_t profile_permitted(const struct profile_config *p, struct str client);
/* Those whose keys are in the list, a comma between them, perhaps with blanks; absent: none. */
uint64_t profile_enabled(const struct profile_config *p, struct str keys);
/* The position of a key; -1: it is not one of the profile's. */
int profile_toolset(const struct profile_config *p, struct str key);
bool profile_allows(const struct profile_config *p, struct str key); /* by policy.allow */
bool profile_denies(const struct profile_config *p, struct str key); /* by policy.deny */

/* Such a list with the key in it, or without; absent when nothing is left. */
struct str toolset_keys_with(struct str keys, struct str key, struct arena *mem);
struct str toolset_keys_without(struct str keys, struct str key, struct arena *mem);

#endif
