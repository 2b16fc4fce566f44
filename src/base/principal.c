/* SPDX-License-Identifier: Apache-2.0 */
/* The words for roles, as stored, configured and shown. */
#include "base/principal.h"

static const char *const role_names[] = {
    [ROLE_ADMIN] = "admin",
    [ROLE_MEMBER] = "member",
    [ROLE_AUDITOR] = "auditor",
    [ROLE_SERVICE] = "service",
};

const char *role_name(enum role role)
{
    return role_names[role];
}

bool role_parse(struct str name, enum role *ret)
{
    for (size_t i = 0; i < countof(role_names); i++)
        if (str_eq(name, str_of(role_names[i]))) {
            *ret = (enum role)i;
            return true;
        }
    return false;
}
