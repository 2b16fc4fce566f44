/* SPDX-License-Identifier: Apache-2.0 */
/* A session's credential for a call to one server: stored with it, or by the name of a secret that its
 * template gave it (session/setup.h).  The server's configuration names a
 * service and a place:
 *
 *   row (sealed) ── keyring ──> bundle ── service ──> credential ── place ──> header, env, _meta
 *
 * Also its context values (session/profile_context.h), for ${context:KEY}.
 *
 * Both are looked up when a link is opened; the link then keeps them for its life.  The plain text
 * is wiped with the fetch.  Loop thread only. */
#ifndef HOLDFAST_CALL_CREDENTIAL_H
#define HOLDFAST_CALL_CREDENTIAL_H

#include "session/keyring.h"
#include "session/session.h"
#include "upstream/upstream.h"

struct credential_ask {
    struct loop *loop;
    struct lanes *lanes;
    struct keyring *keyring;
    const struct principal *who; /* copied, like the id */
    struct str session_id;       /* the row's id */
    /* Read only before credential_fetch() returns; NULL: no credential is wanted. */
    const struct server_config *server;
    const struct config *config; /* for secrets by name; read like `server` */
    struct str sealed_context;   /* context values to unseal too (copied); or absent */
    /* Set by credential_is_due(): the secret that counts if no credential is stored; or absent. */
    struct str secret, from, tenant;
};
/* Whether a link of the session's own to that server needs a credential or context values.  True:
 * fills in `ask`.  False: leaves `ask` unchanged. */
must_check bool credential_is_due(const struct session *s, const struct server_config *server,
                                  struct credential_ask *ask);
struct credential_fetch;
/* `done` is called from the loop.  err NULL: see credential_found(). */
struct credential_fetch *credential_fetch(const struct credential_ask *ask,
                                          void (*done)(void *arg, const struct error *err),
                                          void *arg) must_check;
bool credential_is_awaited(const struct credential_fetch *f); /* false for NULL */
/* Valid until f is freed; value absent: the session has no credential for this server.  Accepts
 * NULL. */
struct link_credential credential_found(const struct credential_fetch *f);
/* The context values of the session, likewise; NULL: none were asked for. */
const struct config_pair *credential_context_values(const struct credential_fetch *f,
                                                    size_t *ret_n);
void credential_free(
    struct credential_fetch *f); /* at any time; `done` is not called afterwards; accepts NULL */

/* Adds the credential to the _meta of the request in `text`, replacing a member of that name. */
void credential_stamp(struct link_credential c, struct buf *text);

#endif
