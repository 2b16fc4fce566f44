/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the master key, while no other process uses the store:
 *
 *   new key into the file, before the old ── [ new tenants' keys, rows sealed again ] ── tenants'
 *   keys wrapped again ── old key out of the file
 *
 * Each step is atomic, and the file records the progress.  If the process is killed at any point,
 * all data stays readable, and another run resumes. */
#ifndef HOLDFAST_SESSION_ROTATE_H
#define HOLDFAST_SESSION_ROTATE_H

#include "store/store.h"

struct rotation {
    bool resumed;            /* an unfinished rotation was resumed */
    size_t keys;             /* keys of tenants wrapped again */
    size_t made;             /* new keys of tenants */
    size_t rows;             /* sessions sealed again */
    size_t unusable;         /* sessions with credentials that no key opens; left unchanged */
    size_t secrets;          /* secrets of the configuration sealed again … */
    size_t unusable_secrets; /* … and those that no key opens */
    char master_id[24];
};
/* `path` is the file, `text` the new key (absent: a random key).  reseal: tenants also get new
 * keys, and sealed rows are sealed again with them.  Blocking. */
must_check bool rotate_master(struct store *store, struct str path, struct str text, bool reseal,
                              struct rotation *ret, struct error *err);

#endif
