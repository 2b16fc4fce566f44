/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are known to be secret: those of `env` and `headers` in the configuration, and what a
 * session's link was opened with.  Wherever one of them stands in what is recorded or logged, its
 * name stands instead: "[redacted: env GITHUB_TOKEN of files]".
 *
 * A value is found as it is, and as JSON (also quoted twice), percent encoding and base64 write it.
 *
 * A set is immutable once finished, and counted; any thread may hold one.  The set of the
 * configuration is published: redactors take up a new one with their next body. */
#ifndef HOLDFAST_AUDIT_KNOWN_H
#define HOLDFAST_AUDIT_KNOWN_H

#include "base/str.h"

/* Shorter values are not looked for: they would be found in ordinary text. */
#define KNOWN_LEAST 8

struct known;
/* `with_table`: the set also knows the tables of shapes and names, as the published one does. */
struct known *known_new(bool with_table) must_check;
/* Until it is finished.  `name` is written in place of the value, in brackets. */
void known_add(struct known *k, struct str value, struct str name);
/* A line of a head or an environment: the credential behind a scheme ("Bearer …"), a Basic password
 * and the password of a URL count as well. */
void known_add_setting(struct known *k, struct str value, struct str name);
void known_finish(struct known *k);
struct config;
/* Of a configuration, finished; and of the one before it, whose servers may still be ending.  NULL:
 * there is none. */
struct known *known_of_config(const struct config *c, const struct config *before) must_check;
size_t known_count(const struct known *k); /* values and their forms; NULL: 0 */
struct known *known_ref(struct known *k);  /* NULL is fine */
void known_unref(struct known *k);         /* NULL is fine; the last one wipes it */

/* The secrets of one request, beside the published values.  All of it is borrowed. */
struct own_secrets {
    struct known *known;          /* those of its session's link; NULL: none */
    struct str credential;        /* that the request came with; absent: none */
    struct str credential_marker; /* what is written in its place, brackets and all */
};

void known_publish(struct known *k);                  /* finished; taken over; NULL: none */
struct known *known_published(uint64_t *ret_version); /* a reference, or NULL */
uint64_t known_version(void);                         /* changes with every known_publish() */

#endif
