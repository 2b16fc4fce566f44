/* SPDX-License-Identifier: Apache-2.0 */
/* A new master key in place of the old one, while nobody else uses the store:
 *
 *   new key into the file, before the old ── [ new tenants' keys, rows sealed again ] ── tenants'
 *   keys wrapped again ── old key out of the file
 *
 * Each step is whole or not at all, and the file says how far it went: killed anywhere, everything
 * stays readable, and running it again goes on where it was. */
#ifndef HOLDFAST_SESSION_ROTATE_H
#define HOLDFAST_SESSION_ROTATE_H

#include "store/store.h"

struct rotation {
    bool resumed;    /* one that had been left half-way */
    size_t keys;     /* tenants' keys wrapped again */
    size_t made;     /* … made anew */
    size_t rows;     /* sessions sealed again */
    size_t unusable; /* sessions whose credentials no key here opens; left as they are */
    char master_id[24];
};
/* `path` is the file, `text` the new key (absent: a random one).  reseal: tenants get new keys too,
 * and what theirs sealed is sealed again.  Blocking. */
must_check bool rotate_master(struct store *store, struct str path, struct str text, bool reseal,
                              struct rotation *ret, struct error *err);

#endif
