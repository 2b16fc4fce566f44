/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of a profile: which of its tools a caller has, in lists and for calls. */
#include "exchange/exchange.h"

#include "route/profile.h"

bool exchange_profile_shows(const struct exchange *x, struct str server, struct str tool)
{
    return profile_shows(x->profile, PROFILE_ALL_TOOLSETS, server, tool);
}
