/* SPDX-License-Identifier: Apache-2.0 */
/* The data directory.  It has one owner at a time: the process that holds its lock.  The lock ends
 * with that process. */
#ifndef HOLDFAST_CONFIG_DATADIR_H
#define HOLDFAST_CONFIG_DATADIR_H

#include "base/arena.h"
#include "base/error.h"

struct datadir;
/* Creates the directory (0700) if it is missing, and locks it.  ERR_CONFIG when another process
 * owns it, or when the group or others may write to it. */
must_check bool datadir_own(struct str dir, struct datadir **ret, struct error *err);
void datadir_release(struct datadir *d); /* NULL is fine */
/* The pid of the living owner; 0 when there is no owner, -1 when it has not written its pid yet. */
int datadir_owner(struct str dir);
/* ERR_CONFIG when `dir` exists but is not a directory or cannot be read, because an answer about it
 * would be wrong.  *ret_exists: `dir` exists. */
must_check bool datadir_check_readable(struct str dir, bool *ret_exists, struct error *err);
/* Searches /proc/net/unix (`table`) for a listening control socket outside of `own_dir`.  Returns
 * its data directory, relative if the path was given so; absent when no such socket exists. */
struct str datadir_of_another(struct str table, struct str own_dir);
/* "DIR/name", NUL-terminated, in mem. */
struct str datadir_path(struct str dir, const char *name, struct arena *mem);
/* The path of the audit key: HOLDFAST_AUDIT_KEY_FILE, else the credential that the service manager
 * passed, else DIR/audit.key; in mem.  *ret_is_own (may be NULL): DIR/audit.key, created when
 * missing. */
struct str datadir_audit_key(struct str dir, struct arena *mem, bool *ret_is_own);
/* Likewise the key that signs access tokens: HOLDFAST_TOKEN_KEY_FILE, else the credential, else
 * DIR/token.key. */
struct str datadir_token_key(struct str dir, struct arena *mem, bool *ret_is_own);
/* DIR/holdfast.sock; an error when the path is too long for a socket address. */
must_check bool datadir_socket(struct str dir, struct arena *mem, struct str *ret,
                               struct error *err);

#endif
