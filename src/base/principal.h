/* SPDX-License-Identifier: Apache-2.0 */
/* What authentication proved: the only source of authority.  Lives in base because the store takes
 * one on every verb and must not know how it was proved. */
#ifndef HOLDFAST_BASE_PRINCIPAL_H
#define HOLDFAST_BASE_PRINCIPAL_H

#include "base/str.h"

enum role { ROLE_ADMIN, ROLE_MEMBER, ROLE_AUDITOR, ROLE_SERVICE };

struct principal {
    struct str tenant; /* "default" */
    struct str owner;  /* who inside the tenant: "user:ID", "key:ID" or "local" */
    enum role role;
};

/* Same tenant and owner. */
static inline bool principal_owns(const struct principal *p, struct str tenant, struct str owner)
{
    return str_eq(p->tenant, tenant) && str_eq(p->owner, owner);
}

#endif
