/* SPDX-License-Identifier: Apache-2.0 */
/* What authentication proved: the only source of authority.  Lives in base because the store takes
 * one on every verb and must not know how it was proved. */
#ifndef HOLDFAST_BASE_PRINCIPAL_H
#define HOLDFAST_BASE_PRINCIPAL_H

#include "base/limits.h"
#include "base/str.h"

enum role { ROLE_ADMIN, ROLE_MEMBER, ROLE_AUDITOR, ROLE_SERVICE };
/* As stored, configured and shown: "admin" … */
const char *role_name(enum role role);
must_check bool role_parse(struct str name, enum role *ret);

/* What a credential is limited to; an empty list limits nothing. */
struct scopes {
    const struct str *servers; /* names, or patterns with * */
    size_t n_servers;
    const struct str *tools; /* "server__tool", or patterns with * */
    size_t n_tools;
    const struct str *folders;
    size_t n_folders;
    bool review;                 /* may accept and reject suggestions */
    bool read_only;              /* of documents */
    const struct limits *limits; /* what it may use; NULL: nothing is said */
};

struct principal {
    struct str tenant; /* "default" */
    struct str owner;  /* who inside the tenant: "user:ID", "key:ID" or "local" */
    enum role role;
    struct str user_id;    /* a UUID; absent: a credential without a user.  With a key that may do
                            * less than its user, `owner` is the key all the same */
    struct str credential; /* "key:ID", "jwt:ISSUER-DIGEST…"; absent: none was needed.  What a
                            * revocation names */
    int64_t expires_ms;    /* the credential's own end; 0: none */
    const struct scopes *scopes; /* NULL: everything */
    /* Store verbs reach every session of the tenant, not only the owner's own.  Set by REST alone,
     * for admin and auditor; use by MCP never has it. */
    bool tenant_wide;
};

struct arena;
/* All of it, in mem. */
struct principal principal_dup(const struct principal *who, struct arena *mem);

/* Same tenant and owner. */
static inline bool principal_owns(const struct principal *p, struct str tenant, struct str owner)
{
    return str_eq(p->tenant, tenant) && str_eq(p->owner, owner);
}

/* The user it speaks for in everything; absent: none, or a key that may do less than its user. */
static inline struct str principal_user(const struct principal *p)
{
    return str_starts(p->owner, STR("user:")) ? p->user_id : STR_NONE;
}

#endif
