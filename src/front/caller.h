/* SPDX-License-Identifier: Apache-2.0 */
/* The sender of a request, as the front has established it (admit.h).  Every handler gets a caller;
 * no handler identifies anybody itself.
 *
 * A caller holds a reference to the configuration that its request is judged by, and what the
 * request has taken from the quotas.  The front releases both when the handler returns.  A handler
 * that answers later moves the caller into its own memory with caller_take(). */
#ifndef HOLDFAST_FRONT_CALLER_H
#define HOLDFAST_FRONT_CALLER_H

#include "base/error.h"
#include "base/principal.h"
#include "config/config.h"
#include "identity/quota.h"

struct front_route;

struct caller {
    struct principal who; /* only if is_known; its spans are in the memory of the request */
    bool is_known;        /* false on routes that need no credential */
    bool is_unix;         /* the request came over the control socket */
    bool is_limited;      /* `use` holds a share of the quotas */
    struct config *config;
    struct quota_use use;
    const struct front_route *route; /* the row that was found; NULL: not called by a route */
};

/* Takes a reference to `config`; the principal is not known yet. */
void caller_init(struct caller *c, struct config *config);
/* Moves `from`; releasing `from` afterwards does nothing. */
void caller_take(struct caller *c, struct caller *from);
/* Counts bytes of an answer against the quotas. */
void caller_spend(struct caller *c, size_t bytes);
/* Releases the references and the share of the quotas; also for a caller that holds nothing. */
void caller_release(struct caller *c);

/* The callers that may use a route or an operation. */
enum access {
    ACCESS_UNSAID,
    ACCESS_OPEN, /* any caller; it is not identified */
    /* For the MCP spine, which must parse the message before it refuses a caller.  Its steps
     * `identify` and `limit` call the functions of admit.h. */
    ACCESS_SPINE,
    ACCESS_ANY,         /* every principal */
    ACCESS_WRITE,       /* every role but auditor */
    ACCESS_WATCH,       /* the roles admin and auditor */
    ACCESS_ADMIN,       /* the role admin */
    ACCESS_LOCAL_ADMIN, /* the user who runs Holdfast, over the control socket without a key */
};
/* Whether the caller is the user who runs Holdfast, over the control socket without a key. */
bool caller_is_local_admin(const struct caller *c);
/* False also for a caller that is not known. */
bool caller_may(const struct caller *c, enum access access);

/* A refusal by the front.  Each surface words it in its own format. */
struct refusal {
    /* ERR_UNAUTHENTICATED, ERR_LIMIT (invalid credentials from this address), ERR_UNAVAILABLE,
     * ERR_QUOTA, ERR_NOT_FOUND (switched off) or ERR_DENIED.  error_info() has the status. */
    enum err_code code;
    const char *text;   /* a sentence for the client; lives as long as the request's memory */
    struct str headers; /* WWW-Authenticate, Retry-After, RateLimit lines; or absent */
    int64_t retry_s;    /* with ERR_QUOTA: seconds, at least 1 */
};

#endif
