/* SPDX-License-Identifier: Apache-2.0 */
/* A file that holds one key: 64 hex digits and a newline, readable by its owner alone. */
#ifndef HOLDFAST_CRYPTO_KEY_FILE_H
#define HOLDFAST_CRYPTO_KEY_FILE_H

#include "base/arena.h"
#include "base/error.h"

#define KEY_FILE_BYTES 32
/* How complaints speak of it. */
struct key_file {
    const char *name;    /* "the audit key" */
    const char *or_move; /* what becomes of moving a broken one: "away to …" */
};
/* Reads the key; with `create`, a missing file is made first, whole or not at all.  A file that
 * others can read, or that holds something else, is refused (ERR_CONFIG). */
must_check bool key_file_load(const struct key_file *f, struct str path, bool create,
                              uint8_t ret_key[KEY_FILE_BYTES], struct error *err);

/* Writes a file that its owner alone can read, whole or not at all, and on the disk once this is
 * true.  `first`: only where there is none yet, and one made meanwhile is as good; else in place of
 * what is there, and what crashes left beside it is taken away.  false leaves why in errno. */
must_check bool key_file_put(const char *path, struct str text, bool first);

/* Among the credentials of a service manager (CREDENTIALS_DIRECTORY): the path of the one of that
 * name, absent when there is none; and whether a path leads there.  systemd shows the access list
 * of such a file as rights of its group. */
struct str key_file_handed_over(const char *name, struct arena *mem);
bool key_is_handed_over(const char *path);
/* Of the user we run as, or of root: who else owns a file may read and change it, whatever its mode
 * is.  Else ERR_CONFIG. */
struct stat;
must_check bool key_file_check_owner(const struct stat *st, const char *path, struct error *err);

#endif
