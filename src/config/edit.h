/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of a configuration file by a program: sets or removes one member of JSON with comments and
 * leaves every other byte as it was, so that comments, order, indentation, line ends (LF or CRLF),
 * a byte order mark and trailing commas survive.  Also used for the files of MCP clients. */
#ifndef HOLDFAST_CONFIG_EDIT_H
#define HOLDFAST_CONFIG_EDIT_H

#include "base/buf.h"
#include "base/error.h"

/* Files of clients also hold their histories. */
#define CONFIG_EDIT_MAX ((size_t)32 << 20)

/* Sets the member that `path` names (n keys, from the outermost) to `value_json`, and creates the
 * objects on the way.  Text without any value counts as {}.  The value is written in the style of
 * the file: its indentation, line ends and trailing commas; a new member comes last in its object.
 * An existing member keeps its place and its comments.
 *
 * Errors (ERR_CONFIG) name line and column, without the file: text that is not JSON with comments,
 * a key that occurs twice in one object, a member on the way that is not an object.  `out` is
 * unchanged then.  The result was parsed again before this returns true. */
must_check bool config_edit_set(struct str text, const struct str *path, size_t n,
                                struct str value_json, struct buf *out, struct error *err);
/* Removes the member together with the comments on the lines directly above it and on its own line.
 * *ret_found is false if there is no such member; `out` then receives `text`.  Removing a member
 * that config_edit_set() added to an object restores the bytes, except that an object without
 * members becomes {}. */
must_check bool config_edit_remove(struct str text, const struct str *path, size_t n,
                                   struct buf *out, bool *ret_found, struct error *err);

/* Reads a whole file into `out`.  A missing file is not an error: *ret_exists is false. */
must_check bool config_edit_read(const char *path, struct buf *out, bool *ret_exists,
                                 struct error *err);
/* Replaces the content of a file atomically: a temporary file beside it, fsync, rename.  Mode and
 * owner are kept; if the path is a symbolic link, its target is written.  ERR_CONFLICT if the file
 * no longer holds `before`.  Other writers wait (a lock on the directory); ERR_TIMEOUT after 10 s.
 * `before` absent: the file must not exist; it is created with mode 0600, missing directories with
 * 0700.  `after` absent: the file is removed.  On failure the file is unchanged. */
must_check bool config_edit_write(const char *path, struct str before, struct str after,
                                  struct error *err);

#endif
