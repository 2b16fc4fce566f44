/* SPDX-License-Identifier: Apache-2.0 */
/* The unwrapped keys of tenants.  They seal and open the credentials of sessions.
 *
 *   master key (file) ──opens──> tenant's key (a row) ──opens──> a session's credentials (a column)
 *
 * A tenant's key is looked up at first use, created if the tenant has none, and kept in memory.
 * Loop thread only. */
#ifndef HOLDFAST_SESSION_KEYRING_H
#define HOLDFAST_SESSION_KEYRING_H

#include "base/map.h"
#include "base/random.h"
#include "crypto/master.h"
#include "session/sealed.h"
#include "store/lanes.h"

#define KEYRING_KEYS_MAX 4096 /* in memory; above that all are dropped */

struct keyring;
struct keyring_config {
    struct loop *loop;
    struct master *master; /* taken */
    /* File of the master key, copied; read again when a tenant's key names an unknown master
     * key. */
    struct str path;
};
struct keyring *keyring_new(const struct keyring_config *config) must_check;
void keyring_use(struct keyring *v, struct lanes *lanes); /* call it before all other functions */
void keyring_free(struct keyring *v);                     /* after lanes_free(); NULL is fine */
/* Whether this master key can unwrap the store's keys.  Blocking; for the start.  *ret_any: the
 * store has keys. */
must_check bool keyring_fits(struct store *store, struct master *master, bool *ret_any,
                             struct error *err);

/* One secret to seal or open.  The caller embeds it.  The job and its spans stay valid until
 * `done`. */
struct keyring_job {
    struct sealed_place place;
    struct str services, plain; /* input of keyring_seal() */
    struct str sealed;          /* input of keyring_open(): the stored text */
    bool is_quiet;              /* a text that does not open is neither counted nor logged */
    /* Holds the result; the caller wipes plain text in it. */
    struct arena *mem;
    void (*done)(struct keyring_job *j);
    void *user;
    bool ok;
    struct error err;
    struct str result; /* the sealed text, or the plain text */
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
/* Returns true when the job is done at once; see `ok`.  Returns false when `done` will be called
 * from the loop.  `ok` is false when the store does not answer (ERR_UNAVAILABLE), or when the
 * stored text does not open (ERR_SEALED), which is counted and logged. */
must_check bool keyring_seal(struct keyring *v, struct keyring_job *j);
must_check bool keyring_open(struct keyring *v, struct keyring_job *j);

#endif
