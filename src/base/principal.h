/* SPDX-License-Identifier: Apache-2.0 */
/* The result of authentication: the only source of authority.  In base, because every verb of the
 * store takes a principal and must not depend on how it was authenticated. */
#ifndef HOLDFAST_BASE_PRINCIPAL_H
#define HOLDFAST_BASE_PRINCIPAL_H

#include "base/limits.h"
#include "base/str.h"

enum role { ROLE_ADMIN, ROLE_MEMBER, ROLE_AUDITOR, ROLE_SERVICE };
/* As stored, configured and shown: "admin" … */
const char *role_name(enum role role);
must_check bool role_parse(struct str name, enum role *ret);

/* The scopes of a credential; an empty list does not limit. */
struct scopes {
    const struct str *servers; /* names, or patterns with * */
    size_t n_servers;
    const struct str *tools; /* "server__tool", or patterns with * */
    size_t n_tools;
    const struct str *folders;
    size_t n_folders;
    bool review;                 /* may accept and reject suggestions */
    bool read_only;              /* documents are read-only */
    const struct limits *limits; /* quota of the credential; NULL: none of its own */
};

struct principal {
    struct str tenant; /* "default" */
    struct str owner;  /* owner inside the tenant: "user:ID", "key:ID" or "local" */
    enum role role;
    struct str user_id;    /* a UUID; absent: the credential has no user.  For a key with fewer
                            * rights than its user, `owner` is the key */
    struct str credential; /* "key:ID", "jwt:ISSUER-DIGEST…"; absent: no credential was needed.
                            * Revocations name it */
    int64_t expires_ms;    /* expiry of the credential; 0: never */
    const struct scopes *scopes; /* NULL: unlimited */
    /* Store verbs reach every session of the tenant, not only the owner's.  Only REST sets it, for
     * admin and auditor; MCP never does. */
    bool tenant_wide;
};

struct arena;
/* A deep copy in mem. */
struct principal principal_dup(const struct principal *who, struct arena *mem);

/* Whether tenant and owner are the same. */
static inline bool principal_owns(const struct principal *p, struct str tenant, struct str owner)
{
    return str_eq(p->tenant, tenant) && str_eq(p->owner, owner);
}

/* The user that the principal fully represents; absent: no user, or a key with fewer rights than
 * its user. */
static inline struct str principal_user(const struct principal *p)
{
    return str_starts(p->owner, STR("user:")) ? p->user_id : STR_NONE;
}

#endif
