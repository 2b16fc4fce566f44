/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's stored credentials mean for a call to one server, whose configuration names a
 * service and a place:
 *
 *   the row (sealed) ── keyring ──> bundle ── service ──> credential ── place ──> header, env,
 * _meta
 *
 * and its context values (session/profile_context.h), for ${context:KEY}.
 *
 * Looked up when a link is opened, which then has it for its life; the plain text is wiped with the
 * fetch.  Loop thread only. */
#ifndef HOLDFAST_CALL_CREDENTIAL_H
#define HOLDFAST_CALL_CREDENTIAL_H

#include "session/keyring.h"
#include "session/session.h"
#include "upstream/upstream.h"

struct credential_ask {
    struct loop *loop;
    struct lanes *lanes;
    struct keyring *keyring;
    const struct principal *who;        /* copied, like the id */
    struct str session_id;              /* of the row */
    const struct server_config *server; /* only looked at before credential_fetch() returns; NULL:
                                           no credential is wanted */
    struct str sealed_context;          /* context values to unseal too (copied); or absent */
};
/* What a link of the session's own to that server is opened with, whoever opens it: names it in
 * `ask`.  false: nothing, and `ask` is as it was. */
must_check bool credential_is_due(const struct session *s, const struct server_config *server,
                                  struct credential_ask *ask);
struct credential_fetch;
/* `done` comes from the loop, err NULL: see credential_found(). */
struct credential_fetch *credential_fetch(const struct credential_ask *ask,
                                          void (*done)(void *arg, const struct error *err),
                                          void *arg) must_check;
bool credential_is_awaited(const struct credential_fetch *f); /* NULL: no */
/* Good until it is freed; value absent: the session has none for this server.  NULL is fine. */
struct link_credential credential_found(const struct credential_fetch *f);
/* The context values of the session, likewise; NULL: none were asked for. */
const struct config_pair *credential_context_values(const struct credential_fetch *f,
                                                    size_t *ret_n);
void credential_free(
    struct credential_fetch *f); /* at any time: `done` comes no more; NULL is fine */

/* Puts it into the _meta of the request in `text`, in place of a member of that name. */
void credential_stamp(struct link_credential c, struct buf *text);

#endif
