/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a credential into a principal, or refuses it.  No other part of Holdfast grants authority.
 *
 *   none        a loopback listener with `auth: none`, or the control socket: tenant default, role
 *               admin
 *   API key     "Authorization: Bearer hf_…", "X-API-Key: hf_…" or, if enabled, in the path
 *   JWT         "Authorization: Bearer eyJ…", of a configured issuer, or of Holdfast itself for
 *               users who signed in (logins.h)
 *
 * An invalid credential is refused even if none is needed.  A bounded cache holds recent proofs, so
 * most requests are answered at once.  A revocation drops the cache entry and notifies every watch,
 * so a revoked credential is unusable within a second on every node. */
#ifndef HOLDFAST_IDENTITY_IDENTITY_H
#define HOLDFAST_IDENTITY_IDENTITY_H

#include "base/error.h"
#include "base/list.h"
#include "base/principal.h"
#include "base/random.h"
#include "config/config.h"
#include "http/server.h"
#include "store/lanes.h"

#define IDENTITY_MAX_CACHED 4096             /* cache entries of proved credentials */
#define IDENTITY_CACHED_MS (60 * 1000)       /* lifetime of such an entry */
#define IDENTITY_REFUSED_MS 1000             /* lifetime of the cache entry of a refusal */
#define IDENTITY_MAX_CREDENTIAL (16u * 1024) /* bytes */

struct identity;

struct identity_config {
    struct loop *loop;
    struct lanes *lanes;
    struct own_tokens *own; /* borrowed; NULL: users cannot sign in */
};
/* ERR_CONFIG when a key file of an issuer holds no key. */
must_check bool identity_new(const struct identity_config *config, struct config *c,
                             struct identity **ret, struct error *err);
/* Applies a new configuration: issuers, tenants.  All credentials are proved again.  If the issuers
 * changed, watches of tokens are notified.  On failure nothing changes. */
must_check bool identity_apply(struct identity *id, struct config *c, struct error *err);
/* Applies a change that another process made to the store (store/change_poller.h): a revoked key, an
 * ended sign-in, a changed user.  Other kinds are ignored. */
void identity_changed_elsewhere(struct identity *id, const struct change_row *row);
/* Call it before lanes_free(). */
void identity_stop(struct identity *id);
void identity_free(struct identity *id); /* after lanes_free(); NULL is fine */

/* A request for identification.  The caller embeds it and owns `mem`, which holds the spans of
 * `who`. */
struct identify {
    const struct config *config;
    const struct http_head *head; /* not used after identify() has returned */
    struct str path_key;          /* a key in the path; absent: none */
    /* Not used after identify() has returned either.  Its address is throttled after too many
     * invalid credentials.  NULL: no throttling. */
    const struct http_request *from;
    bool is_unix;
    bool is_elsewhere; /* the client is on another machine, behind a proxy on this machine */
    unsigned peer_uid;
    struct arena *mem;
    void (*done)(struct identify *q); /* from the loop */
    /* Output. */
    bool ok;
    bool had_credential;
    struct principal who;
    /* ERR_UNAUTHENTICATED; ERR_LIMIT when a throttled address sends an invalid credential;
     * ERR_UNAVAILABLE when the store cannot answer. */
    struct error err;
    /* private */
    struct str address;
    bool is_held_up;
    struct list waiting;
};
/* The credential of a request, as identify() reads it; absent: none.  Borrowed from the head or the
 * path.  *ret_marker is the text that the audit writes instead. */
struct str identity_presented(const struct http_head *head, struct str path_key,
                              struct str *ret_marker);
/* Returns true when `q` is answered at once, false when `done` will be called. */
must_check bool identify(struct identity *id, struct identify *q);
/* Cancels the request before `done` is called. */
void identify_cancel(struct identify *q);

/* Embedded in a long-lived user of a credential (a stream, a pipe).  on_revoked is called once,
 * from the loop, when the credential is revoked or expires.  Zero it before the first use. */
struct identity_watch {
    void (*on_revoked)(struct identity_watch *w);
    /* private */
    struct list node;
    struct watched *watched;
};
/* A principal without a credential is never notified.  `who` need not outlive the call. */
void identity_watch(struct identity *id, struct identity_watch *w, const struct principal *who);
void identity_unwatch(struct identity_watch *w); /* also when it does not watch */
/* Call it after the row says that the credential is revoked. */
void identity_revoked(struct identity *id, struct str credential);
/* The user's password changed, or the user was disabled or enabled.  Notifies the watches of the
 * user's credentials and drops their cache entries. */
void identity_user_changed(struct identity *id, struct str user_id);

/* The user id of a token: a UUID (version 8) of issuer and subject. */
void identity_user_id(struct str issuer, struct str subject, char ret[UUID_TEXT]);

/* The "WWW-Authenticate: …\r\n" header of a 401, in r->mem. */
struct str identity_challenge(const struct config *c, const struct http_request *r,
                              bool had_credential);
/* The protected resource metadata (RFC 9728) of the resource that r's path names, in r->mem. */
struct str identity_metadata(const struct config *c, const struct http_request *r);

/* names.c.  Against DNS rebinding (threats H10): Host must be one of our names, and Origin, if
 * present, must be allowed. */
bool host_is_allowed(const struct config *c, struct str host);
bool host_is_loopback(struct str host);
bool origin_is_allowed(const struct config *c, struct str origin);

#endif
