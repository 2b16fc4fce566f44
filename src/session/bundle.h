/* SPDX-License-Identifier: Apache-2.0 */
/* The bundle of credentials that a session holds for other services (passthrough_auth), as JSON:
 *
 *   credentials    {SERVICE or "*": {type, token, username, password, key_name, key_value,
 *                  properties}}
 *   oauth_tokens   {SERVICE: {access_token, refresh_token, token_type, expires_at, scope}}
 *   session_tokens {SERVICE: token}
 *   custom_headers {NAME: value}
 *   agent_context  {agent_type, agent_id, user_id, session_id, environment}
 *
 * Errors name members, never values. */
#ifndef HOLDFAST_SESSION_BUNDLE_H
#define HOLDFAST_SESSION_BUNDLE_H

#include "base/arena.h"
#include "base/error.h"
#include "json/read.h"

#define BUNDLE_BYTES_MAX (64u * 1024)
#define BUNDLE_SERVICES_MAX 64
#define BUNDLE_NAME_MAX 128 /* bytes of a service's name */

/* Checks that `bundle` is a valid bundle.  *ret_services: its services, a sorted JSON array in
 * mem. */
must_check bool bundle_check(const struct js_doc *doc, const struct js_node *bundle,
                             struct arena *mem, struct str *ret_services, struct error *err);

/* The credential to send to a server, in the arena of bundle_find().  `secret` absent: no
 * credential. */
struct credential {
    /* Scheme in Authorization: "Bearer", "Basic"; absent: no scheme. */
    struct str scheme;
    struct str secret;
    /* The client's key_name, used only if the operator lists it; absent: not set. */
    struct str header;
};
/* The credential of a service: by exact name, then "*", then by lower-case name.  `header` is the
 * header that the server expects (or absent): a custom header of that name is the last resort.
 * bundle_check() has accepted `plain`.  Fails for types that cannot be sent. */
must_check bool bundle_find(struct str plain, struct str service, struct str header,
                            struct arena *mem, struct credential *ret, struct error *err);

/* Calls take() for every secret of the bundle: tokens, passwords, keys, the base64 text of Basic,
 * the values of custom headers, and every text inside of `properties` and of an object
 * `environment`.  `name` says what it is: "credential github of the session".  Spans live as long
 * as mem.  Returns false when `plain` is not JSON.
 *
 * No secrets: names, types, times, and the other members of agent_context, including an
 * `environment` that is one text, such as "production". */
must_check bool bundle_each_secret(struct str plain, struct arena *mem,
                                   void (*take)(void *arg, struct str value, struct str name),
                                   void *arg);

#endif
