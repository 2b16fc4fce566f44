/* SPDX-License-Identifier: Apache-2.0 */
/* Nobody grants more than they hold.  The local admin is not limited, and is not checked here. */
#ifndef HOLDFAST_IDENTITY_GRANT_H
#define HOLDFAST_IDENTITY_GRANT_H

#include "identity/key_admin.h"

/* Whether `maker` may make this key.  The key must belong to the maker's tenant, and its role,
 * scopes, limits and life must not exceed the maker's.  ERR_DENIED says what exceeds them. */
must_check bool grant_key(const struct principal *maker, const struct key_request *wanted,
                          int64_t now_ms, struct error *err);
/* Whether `maker` may make users, give them passwords or let them sign in again.  A user has no
 * scopes and no end, so the maker must have neither. */
must_check bool grant_user(const struct principal *maker, struct error *err);

#endif
