/* SPDX-License-Identifier: Apache-2.0 */
/* The set-up of a session: what a template (templates/spec.h) or an administrator laid down for it.
 * It is the JSON text of the column `setup`,
 *
 *   {"template":"support@3","profile":"support","audit":"full","audit_body":65536,
 *    "limits":{"requests":"60/m","calls":2},"credentials":{"github":"${secret:GH}"},"told":true}
 *
 * and every member is optional.  A set-up only narrows what a caller may do: it never widens
 * rights, and it never stores less of a body than the server's own audit mode asks for. */
#ifndef HOLDFAST_SESSION_SETUP_H
#define HOLDFAST_SESSION_SETUP_H

#include "base/error.h"
#include "base/limits.h"
#include "config/config.h"
#include "json/bind.h"

#define SETUP_AUDIT_BODY_MIN ((int64_t)1 << 10)
#define SETUP_AUDIT_BODY_MAX ((int64_t)1 << 20)

enum setup_audit {
    SETUP_AUDIT_REDACTED, /* as each server says */
    SETUP_AUDIT_FULL,     /* complete bodies where a server says redacted */
};
extern const char *const setup_audit_names[]; /* for JS_BIND_ENUM */

#define SETUP_CREDENTIALS_MAX 16
#define SETUP_SERVICE_MAX 128 /* bytes */

/* The credential of a service by the name of its secret, never by its value. */
struct setup_credential {
    struct str service, secret;
};
struct session_setup {
    struct str from; /* "support@3": the template and its version; absent: none */
    struct str profile;
    enum setup_audit audit;
    size_t audit_body; /* stored bytes of one body with SETUP_AUDIT_FULL; 0: as configured */
    struct limits limits;
    struct setup_credential *credentials;
    size_t n_credentials;
    bool is_told; /* the client knows that bodies are recorded completely */
};
/* Texts are in mem.  False: the text is not a set-up that this program has written. */
must_check bool session_setup_parse(struct str json, struct arena *mem, struct session_setup *ret);
/* The same on the heap, with its texts; NULL: it is not a set-up. */
struct session_setup *session_setup_new(struct str json) must_check;
void session_setup_free(const struct session_setup *s); /* NULL is fine */
/* In mem; absent when the set-up says nothing. */
struct str session_setup_write(const struct session_setup *s, struct arena *mem);

/* What another session may take over, with a client that was told nothing: all but the credentials.
 * In mem. */
struct str session_setup_for_copy(struct str json, struct arena *mem);

/* A change by an administrator. */
struct session_setup_change {
    struct session_setup to; /* audit, audit_body and limits alone */
    bool sets_audit, sets_audit_body, sets_limits;
};
extern const struct js_field session_setup_change_fields[]; /* for `to` */
/* Applies the change to a set-up.  The client is told again when the record becomes complete anew.
 * ERR_BAD_INPUT. */
must_check bool session_setup_apply(const struct session_setup_change *change,
                                    struct session_setup *s, struct error *err);
/* JS_BIND_CUSTOM reader of {SERVICE: "${secret:NAME}"}. */
bool session_setup_read_credentials(const struct js_binding *b, const struct js_field *f,
                                    const struct js_node *v, void *place, struct error *err);
/* The name of the secret for this service; absent: there is none. */
struct str session_setup_secret(const struct session_setup *s, struct str service);
bool session_setup_has_limits(const struct session_setup *s);
/* A session counts requests, bytes and calls, but has no processes of its own. */
must_check bool session_limits_check(const struct limits *l, struct error *err);

/* How the bodies of a call are stored if its server says `of_server` (setup NULL: none).  A set-up
 * makes the record complete where the server says redacted.  A server that stores digests or nothing
 * is left as it is: that is the operator's word about this server. */
static inline enum server_audit setup_audit_mode(const struct session_setup *s,
                                                 enum server_audit of_server)
{
    bool is_complete = unlikely(s != NULL) && s->audit == SETUP_AUDIT_FULL;

    return is_complete && of_server == AUDIT_REDACTED ? AUDIT_FULL : of_server;
}
static inline size_t setup_audit_body(const struct session_setup *s)
{
    return unlikely(s != NULL) && s->audit == SETUP_AUDIT_FULL ? s->audit_body : 0;
}

#endif
