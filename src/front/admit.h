/* SPDX-License-Identifier: Apache-2.0 */
/* The one pipeline that admits a request: identify → limit → role.
 *
 *   a route     admit_request() runs all of it, then calls the handler or words the refusal
 *   the spine   its steps call admit_ask() and admit_identified(), then admit_limit(), because a
 *               malformed message is refused before an unknown caller, and because each message of
 *               a batch and of a channel is counted by itself
 *
 * Nothing else in Holdfast decides who calls, whether a quota is used up, or what a role may do. */
#ifndef HOLDFAST_FRONT_ADMIT_H
#define HOLDFAST_FRONT_ADMIT_H

#include "front/caller.h"
#include "identity/identity.h"

struct front;

/* Identification of the sender of one HTTP request.  Embedded; not zeroed, because its error text
 * is long.  May wait for the store or for an issuer. */
struct admission {
    void (*done)(struct admission *a);
    struct identify identify;
};
/* Asks who sends `r`.  `config` judges the request; it, `mem` and `a` must outlive the wait.
 * `path_key` is the key in the path, or absent.  Returns true when the answer is there, false when
 * a->done will be called from the loop. */
must_check bool admit_ask(struct front *f, struct admission *a, const struct config *config,
                          const struct http_request *r, struct str path_key, struct arena *mem);
void admit_cancel(struct admission *a); /* before `done` is called */
/* The answer: fills c->who and returns true, or fills *ret. */
must_check bool admit_identified(struct admission *a, const struct http_request *r,
                                 struct caller *c, struct refusal *ret);
/* Takes `what` (QUOTA_…) and `bytes` from the quotas of the caller's tenant and key.  False: one of
 * them is used up; nothing was taken, and the refusal was counted. */
must_check bool admit_limit(struct front *f, struct caller *c, unsigned what, size_t bytes,
                            struct arena *mem, struct refusal *ret);

/* The requirements of a route. */
struct need {
    enum access access;
    unsigned quota; /* QUOTA_REQUEST with the bytes of the body; 0: the request is not counted */
    /* Requests of the local admin are not counted, so that its commands work even if the tenant has
     * used up its quotas. */
    bool is_free_for_local;
    /* May be NULL.  Returns why the route does not exist for this caller, or NULL if it exists.
     * Asked after the limit and before the role. */
    const char *(*off)(const struct caller *c);
    const char *denied; /* the text for a caller that `access` excludes; NULL: the usual one */
};
/* Those that ask for nothing but an access, and count nothing. */
extern const struct need need_open, need_spine, need_any, need_local_admin;

typedef void admitted_fn(void *arg, struct http_request *r, struct caller *c);
typedef void refused_fn(void *arg, struct http_request *r, struct caller *c,
                        const struct refusal *why);
/* Runs the whole pipeline for a request of `route`.  Exactly one of route->fn and route->refuse is
 * called, perhaps before this returns.  If the client disconnects first, neither is called. */
void admit_request(struct front *f, struct http_request *r, const struct front_route *route);

/* The same for the session of the request, whose set-up has limits of its own. */
must_check bool admit_session_limit(struct front *f, struct caller *c,
                                    const struct quota_session *session, unsigned what,
                                    size_t bytes, struct arena *mem, struct refusal *ret);

#endif
