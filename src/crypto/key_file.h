/* SPDX-License-Identifier: Apache-2.0 */
/* A file that holds one key: 64 hex digits and a newline.  Only its owner can read it. */
#ifndef HOLDFAST_CRYPTO_KEY_FILE_H
#define HOLDFAST_CRYPTO_KEY_FILE_H

#include "base/arena.h"
#include "base/error.h"

#define KEY_FILE_BYTES 32
/* Words for error messages. */
struct key_file {
    const char *name;    /* "the audit key" */
    const char *or_move; /* purpose of moving a broken file: "away to …" */
};
/* Reads the key.  With `create`, a missing file is created first, atomically.  A file that other
 * users can read, or that holds anything but a key, is an error (ERR_CONFIG). */
must_check bool key_file_load(const struct key_file *f, struct str path, bool create,
                              uint8_t ret_key[KEY_FILE_BYTES], struct error *err);

/* Writes a file that only its owner can read, atomically; it is on disk when this returns true.
 * `first`: creates the file only if it does not exist; a file made meanwhile is accepted.
 * Otherwise replaces the file, and removes temporary files that crashes left beside it.  On false,
 * errno has the reason. */
must_check bool key_file_put(const char *path, struct str text, bool first);

/* Credentials from a service manager (CREDENTIALS_DIRECTORY).  key_file_handed_over() returns the
 * path of the credential of that name, or absent; key_is_handed_over() says whether a path is in
 * that directory.  systemd shows the access list of such a file as rights of its group. */
struct str key_file_handed_over(const char *name, struct arena *mem);
bool key_is_handed_over(const char *path);
/* Checks that the file belongs to the user we run as, or to root; else ERR_CONFIG.  Any other owner
 * could read and change the file, whatever its mode is. */
struct stat;
must_check bool key_file_check_owner(const struct stat *st, const char *path, struct error *err);

#endif
