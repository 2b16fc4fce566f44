/* SPDX-License-Identifier: Apache-2.0 */
/* All secrets of a session as one set of known values (audit/known.h), so that records and logs show
 * their names instead:
 *
 *   sealed credentials ── keyring ──> bundle ──> every secret in it ──┐
 *   sealed context     ── keyring ──> context values ─────────────────┴─> struct known
 *
 * Sets are cached by session.  A cached set counts only for the same sealed texts, so changed
 * credentials get a new set.  Cached sets have limits in number and memory; the least recently used
 * ones are dropped.  Loop thread only. */
#ifndef HOLDFAST_SESSION_SECRETS_H
#define HOLDFAST_SESSION_SECRETS_H

#include "audit/known.h"
#include "session/keyring.h"

#define SECRETS_SETS_MAX 4096
#define SECRETS_BYTES_MAX ((size_t)64 << 20)
/* A session whose texts do not open is tried again after this time. */
#define SECRETS_RETRY_MS 10000

struct session;
struct secrets;
struct secrets *secrets_new(struct keyring *keyring) must_check;
void secrets_free(struct secrets *s); /* after lanes_free(); NULL is fine */
/* The session ended or its credentials changed: wipes its set. */
void secrets_forget(struct secrets *s, struct str session_id);
size_t secrets_cached(const struct secrets *s); /* number of sets */

/* The sealed texts of a session.  Absent texts: it has no such secrets. */
struct secrets_texts {
    struct str tenant, session_id; /* the row's id */
    struct str auth, context;
};
struct secrets_texts secrets_texts_of(const struct session *s); /* borrowed from the session */

/* One lookup.  The caller embeds it and keeps it in place until `done`. */
struct secrets_job {
    void (*done)(struct secrets_job *j);
    void *user;
    /* False: the store does not answer (ERR_UNAVAILABLE).  Nothing that may contain the secrets may
     * be recorded then.  True: `known` is the set, a reference of the caller; NULL: the session has
     * no secrets, or they cannot be opened.  In the latter case no server gets them either. */
    bool ok;
    struct error err;
    struct known *known;
    /* private */
    struct secrets *home;
    struct arena *mem;
    struct secrets_texts texts;
    struct known *building;
    struct keyring_job open;
    bool is_context; /* the text being opened */
    bool is_sealed;  /* a text did not open */
};
/* `texts` are copied if necessary.  Returns true when done at once.  Returns false when `done` will
 * be called from the loop. */
must_check bool secrets_find(struct secrets *s, const struct secrets_texts *texts,
                             struct secrets_job *j);

#endif
