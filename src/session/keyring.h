/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of tenants, opened: what seals and opens the credentials that sessions hold.
 *
 *   master key (file) ──opens──> tenant's key (a row) ──opens──> a session's credentials (a column)
 *
 * A tenant's key is looked up when it is first needed, made where there is none, and kept.  Loop
 * thread only. */
#ifndef HOLDFAST_SESSION_KEYRING_H
#define HOLDFAST_SESSION_KEYRING_H

#include "base/map.h"
#include "base/random.h"
#include "crypto/master.h"
#include "session/sealed.h"
#include "store/lanes.h"

#define KEYRING_KEYS_MAX 4096 /* kept; past that all are let go */

struct keyring;
struct keyring_config {
    struct loop *loop;
    struct master *master; /* taken */
    struct str path;       /* its file, copied: read again when a key names a master unknown yet */
};
struct keyring *keyring_new(const struct keyring_config *config) must_check;
void keyring_use(struct keyring *v, struct lanes *lanes); /* before anything else */
void keyring_free(struct keyring *v);                     /* after lanes_free(); NULL is fine */
/* May the store's keys be opened with this master?  Blocking; at start.  *ret_any: there are some.
 */
must_check bool keyring_fits(struct store *store, struct master *master, bool *ret_any,
                             struct error *err);

/* One secret to be sealed or opened; embedded in whoever asks, in place until `done`.  Spans stay
 * until then too. */
struct keyring_job {
    struct sealed_place place;
    struct str services, plain; /* to seal; or … */
    struct str sealed;          /* … to open: the stored text */
    struct arena *mem; /* what comes out is in it; plain text there is the caller's to wipe */
    void (*done)(struct keyring_job *j);
    void *user;
    bool ok;
    struct error err;
    struct str result; /* the sealed text, or the plain one */
    /* private */
    struct keyring *home;
    bool opens;
    struct sealed parts;
    struct tenant_key_row *row;
    struct tenant_key_row fresh;
    char id[UUID_TEXT];
    uint8_t wrapped[MASTER_WRAPPED];
    struct read_job read;
    struct write_job write;
    struct store_op op;
};
/* true: done now, see ok.  false: `done` comes from the loop.  ok is false when the store does not
 * answer (ERR_UNAVAILABLE), or when what is stored does not open (ERR_SEALED): counted, and logged.
 */
must_check bool keyring_seal(struct keyring *v, struct keyring_job *j);
must_check bool keyring_open(struct keyring *v, struct keyring_job *j);

#endif
