/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/grant.h"

#include "identity/scopes.h"

/* Whether some pattern of `own` matches every name that `pattern` matches.  A * of `pattern` can only
 * stand where a * of `own` takes it, so matching the pattern as a text is enough. */
static bool covers(const struct str *own, size_t n, struct str pattern)
{
    for (size_t i = 0; i < n; i++)
        if (scope_matches(own[i], pattern))
            return true;
    return false;
}

static bool list_covers(const struct str *own, size_t n_own, const struct str *wanted,
                        size_t n_wanted)
{
    if (!n_own)
        return true;
    for (size_t i = 0; i < n_wanted; i++)
        if (!covers(own, n_own, wanted[i]))
            return false;
    return n_wanted > 0;
}

/* A rate is compared as a fraction: a / a_ms <= b / b_ms. */
static bool limit_within(const struct limit *wanted, const struct limit *own, bool is_rate)
{
    if (!limit_is_set(own))
        return true;
    if (!limit_is_set(wanted))
        return false;
    if (!is_rate)
        return wanted->amount <= own->amount;
    return (double)wanted->amount * (double)own->per_ms <=
               (double)own->amount * (double)wanted->per_ms &&
           wanted->burst <= own->burst;
}

static bool limits_within(const struct limits *wanted, const struct limits *own)
{
    static const struct limits none;

    for (int i = 0; own && i < LIMIT_KINDS; i++)
        if (!limit_within(&(wanted ? wanted : &none)->of[i], &own->of[i], i < LIMIT_RATES))
            return false;
    return true;
}

/* A user who signed in may review documents; a key only with the scope. */
static bool may_review(const struct principal *who)
{
    return (who->scopes && who->scopes->review) || !str_starts(who->credential, STR("key:"));
}

static bool scopes_within(const struct principal *maker, const struct scopes *wanted,
                          struct error *err)
{
    static const struct scopes none;
    const struct scopes *own = maker->scopes ? maker->scopes : &none;
    const char *wider = NULL;

    if (!list_covers(own->servers, own->n_servers, wanted->servers, wanted->n_servers))
        wider = "servers";
    else if (!list_covers(own->tools, own->n_tools, wanted->tools, wanted->n_tools))
        wider = "tools";
    else if (!list_covers(own->folders, own->n_folders, wanted->folders, wanted->n_folders))
        wider = "folders";
    else if (own->read_only && !wanted->read_only)
        wider = "read_only";
    else if (wanted->review && !may_review(maker))
        wider = "review";
    else if (!limits_within(wanted->limits, own->limits))
        wider = "limits";
    return !wider ||
           error_set(err, ERR_DENIED,
                     "a key may not have more than its maker: \"%s\" of the scopes is wider "
                     "than that of the credential used",
                     wider);
}

/* The end of an access token is not the end of its user, so only keys hand their end down. */
static int64_t end_of(const struct principal *who)
{
    return str_starts(who->credential, STR("key:")) ? who->expires_ms : 0;
}

bool grant_key(const struct principal *maker, const struct key_request *wanted, int64_t now_ms,
               struct error *err)
{
    int64_t end = end_of(maker);

    if (wanted->tenant.p && !str_eq(wanted->tenant, maker->tenant))
        return error_set(err, ERR_DENIED, "a key is made for the tenant of its maker alone");
    if (wanted->role != maker->role && maker->role != ROLE_ADMIN)
        return error_set(err, ERR_DENIED, "a key may not have a higher role than its maker");
    if (end && (!wanted->expires_in_ms || now_ms + wanted->expires_in_ms > end))
        return error_set(err, ERR_DENIED,
                         "a key may not outlive the key that makes it; send a shorter expires_in");
    return scopes_within(maker, &wanted->scopes, err);
}

bool grant_user(const struct principal *maker, struct error *err)
{
    const struct scopes *own = maker->scopes;

    if ((own && (scopes_narrow(own) || own->limits)) || end_of(maker))
        return error_set(err, ERR_DENIED,
                         "users have no scopes, limits or expiry, so a credential that has one of "
                         "these may not create or enable users; use another credential");
    return true;
}
