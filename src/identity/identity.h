/* SPDX-License-Identifier: Apache-2.0 */
/* Who is calling: a credential to a principal, or a refusal.  Nothing else in Holdfast gives
 * authority.
 *
 *   none        a loopback listener with `auth: none`, or the control socket: tenant default, role
 *               admin
 *   API key     "Authorization: Bearer hf_…", "X-API-Key: hf_…" or, where enabled, in the path
 *   JWT         "Authorization: Bearer eyJ…", of an issuer that is configured, or of our own for
 *               users who signed in (logins.h)
 *
 * A credential that does not hold is refused, also where none is needed.  What was proved is kept
 * for a while (bounded), so that most requests are answered at once; a revocation drops it and
 * tells every watch, so nothing goes on with it for longer than a second, on any node. */
#ifndef HOLDFAST_IDENTITY_IDENTITY_H
#define HOLDFAST_IDENTITY_IDENTITY_H

#include "base/error.h"
#include "base/list.h"
#include "base/principal.h"
#include "base/random.h"
#include "config/config.h"
#include "http/server.h"
#include "store/lanes.h"

#define IDENTITY_MAX_CACHED 4096       /* credentials proved lately */
#define IDENTITY_CACHED_MS (60 * 1000) /* after which one is proved again */
#define IDENTITY_REFUSED_MS 1000 /* for which a refusal stands without being looked at again */
#define IDENTITY_MAX_CREDENTIAL (16u * 1024) /* bytes */

struct identity;

struct identity_config {
    struct loop *loop;
    struct lanes *lanes;
    bool is_shared;         /* others use the store too: what they revoke is asked for */
    struct own_tokens *own; /* borrowed; NULL: nobody signs in here */
};
/* Key files of issuers that do not hold keys are ERR_CONFIG. */
must_check bool identity_new(const struct identity_config *config, struct config *c,
                             struct identity **ret, struct error *err);
/* A new configuration: issuers, tenants.  Everything is proved again, and where issuers
 * are others, what was open in the name of a token is closed.  On failure all stays. */
must_check bool identity_apply(struct identity *id, struct config *c, struct error *err);
/* Another process has changed something: asks the store at once what it was. */
void identity_nudge(struct identity *id);
/* Before lanes_free(): nothing more is asked of the store on its own. */
void identity_stop(struct identity *id);
void identity_free(struct identity *id); /* after lanes_free(); NULL is fine */

/* One question.  Embedded in whoever asks; spans of `who` live in `mem`, the asker's. */
struct identify {
    const struct config *config;
    const struct http_head *head; /* not looked at any more once identify() has returned */
    struct str path_key;          /* a key that stood in the path; absent: none did */
    /* The same: its address is held up when too many credentials from there do not hold.  NULL:
     * no address is. */
    const struct http_request *from;
    bool is_unix;
    bool is_elsewhere; /* the client is, and a proxy on this machine speaks for it */
    unsigned peer_uid;
    struct arena *mem;
    void (*done)(struct identify *q); /* from the loop */
    /* Out. */
    bool ok;
    bool had_credential;
    struct principal who;
    /* ERR_UNAUTHENTICATED, ERR_LIMIT instead of it for an address with too many of those, or
     * ERR_UNAVAILABLE when the store cannot say. */
    struct error err;
    /* private */
    struct str address;
    bool is_held_up;
    struct list waiting;
};
/* The credential that a request carries, as identify() reads it; absent: none.  Borrowed from the
 * head or the path.  *ret_marker is what the audit writes in its place. */
struct str identity_presented(const struct http_head *head, struct str path_key,
                              struct str *ret_marker);
/* true: answered now.  false: `done` comes. */
must_check bool identify(struct identity *id, struct identify *q);
/* The asker goes away before `done`. */
void identify_cancel(struct identify *q);

/* The same for a whole request: `fn` gets the answer, perhaps before this returns; `who` is NULL
 * when there is none, both live in r->mem.  A client that goes away meanwhile is taken care of, and
 * fn never called.  r->user stays what it was. */
typedef void identified_fn(void *arg, struct http_request *r, const struct principal *who,
                           const struct identify *q);
void identify_request(struct identity *id, const struct config *c, struct http_request *r,
                      struct str path_key, identified_fn *fn, void *arg);

/* Something long-lived that works in somebody's name (a stream, a pipe): told once, from the loop,
 * when that credential is revoked or past its end.  Zeroed before its first use. */
struct identity_watch {
    void (*on_revoked)(struct identity_watch *w);
    /* private */
    struct list node;
    struct watched *watched;
};
/* A principal without a credential is never told.  who need not stay. */
void identity_watch(struct identity *id, struct identity_watch *w, const struct principal *who);
void identity_unwatch(struct identity_watch *w); /* also when it does not watch */
/* The credential holds no longer (its row says so by now). */
void identity_revoked(struct identity *id, struct str credential);
/* A user's password, or whether it may be here at all, is another: whatever works in its name is
 * closed, and proved again when it comes back. */
void identity_user_changed(struct identity *id, struct str user_id);

/* The id of a token's bearer: a UUID (version 8) of issuer and subject. */
void identity_user_id(struct str issuer, struct str subject, char ret[UUID_TEXT]);

/* "WWW-Authenticate: …\r\n" of a 401, in r->mem. */
struct str identity_challenge(const struct config *c, const struct http_request *r,
                              bool had_credential);
/* The protected resource metadata (RFC 9728) of the resource that r's path names, in r->mem. */
struct str identity_metadata(const struct config *c, const struct http_request *r);

/* names.c.  DNS rebinding (threats H10): the Host must be a name of ours, an Origin, when present,
 * one we allow. */
bool host_is_allowed(const struct config *c, struct str host);
bool host_is_loopback(struct str host);
bool origin_is_allowed(const struct config *c, struct str origin);

#endif
