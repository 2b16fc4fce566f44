/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: what of all servers one endpoint offers.  The same functions answer for lists and for
 * calls, so neither shows what the other refuses.
 *
 * Toolsets are a set of bits, in the order of the profile's own: those that count for a caller
 * right now. */
#ifndef HOLDFAST_ROUTE_PROFILE_H
#define HOLDFAST_ROUTE_PROFILE_H

#include "config/config.h"

#define PROFILE_ALL_TOOLSETS UINT64_MAX

/* Has it anything of this server?  Where it has, prompts and resources of the server are its too.
 */
bool profile_has_server(const struct profile_config *p, struct str server);
/* Is the tool in one of those toolsets?  A profile without toolsets has every tool of its servers.
 */
bool profile_shows(const struct profile_config *p, uint64_t toolsets, struct str server,
                   struct str tool);

#endif
