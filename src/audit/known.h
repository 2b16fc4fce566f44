/* SPDX-License-Identifier: Apache-2.0 */
/* Known secret values: the values of `env` and `headers` in the configuration, the values that a
 * session's link was opened with, and all secrets stored with a session (session/secrets.h).  In records and logs, the value's name replaces the value:
 * "[redacted: env GITHUB_TOKEN of files]".
 *
 * A value is found in plain form, as JSON writes it (also quoted twice, and with the further escapes
 * of PHP, Go, .NET and ASCII-only writers), percent-encoded as Python and JavaScript do it, and in
 * base64.
 *
 * A set is immutable once finished, and reference counted; any thread may hold one.  The
 * configuration's set is published: redactors switch to a new set with their next body. */
#ifndef HOLDFAST_AUDIT_KNOWN_H
#define HOLDFAST_AUDIT_KNOWN_H

#include "base/str.h"

/* Shorter values are not searched for: they would match ordinary text. */
#define KNOWN_LEAST 8

struct known;
/* `with_table`: the set also contains the tables of shapes and names, like the published set. */
struct known *known_new(bool with_table) must_check;
/* Call it before known_finish().  `name`, in brackets, replaces the value. */
void known_add(struct known *k, struct str value, struct str name);
/* Adds the value of a header or an environment variable.  Also adds the credential after a scheme
 * ("Bearer …"), a Basic password, and the password in a URL. */
void known_add_setting(struct known *k, struct str value, struct str name);
void known_finish(struct known *k);
struct config;
/* Makes the finished set of a configuration and of the previous one, because servers of the
 * previous configuration may still be running.  `before` NULL: no previous configuration. */
struct known *known_of_config(const struct config *c, const struct config *before) must_check;
size_t known_count(const struct known *k); /* values and their forms; NULL: 0 */
size_t known_size(const struct known *k);  /* bytes of memory of a finished set, about; NULL: 0 */
struct known *known_ref(struct known *k);  /* NULL is fine */
void known_unref(struct known *k);         /* NULL is fine; the last unref wipes the set */

/* The secrets of one request, in addition to the published values.  All members are borrowed. */
struct own_secrets {
    struct known *known;          /* values of the session's link; NULL: no such values */
    struct known *session;        /* all secrets of the session; NULL: no such values */
    struct str credential;        /* credential of the request; absent: no credential */
    struct str credential_marker; /* replaces the credential; includes the brackets */
};
/* For an owner that outlives the request: takes a reference to both sets, and gives both back.  The
 * credential is the caller's to copy. */
void own_secrets_ref(const struct own_secrets *own);
void own_secrets_unref(struct own_secrets *own);

void known_publish(struct known *k);                  /* takes over a finished set; NULL: no set */
struct known *known_published(uint64_t *ret_version); /* a reference, or NULL */
uint64_t known_version(void);                         /* changes with every known_publish() */

#endif
