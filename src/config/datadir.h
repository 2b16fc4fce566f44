/* SPDX-License-Identifier: Apache-2.0 */
/* The data directory: one owner at a time, kept by a lock that dies with its process. */
#ifndef HOLDFAST_CONFIG_DATADIR_H
#define HOLDFAST_CONFIG_DATADIR_H

#include "base/arena.h"
#include "base/error.h"

struct datadir;
/* Makes the directory (0700) if need be and locks it; ERR_CONFIG when another process owns it, or
 * when everybody may write there. */
must_check bool datadir_own(struct str dir, struct datadir **ret, struct error *err);
void datadir_release(struct datadir *d); /* NULL is fine */
/* The pid of the living owner; 0 when there is none, -1 when it has not written its pid yet. */
int datadir_owner(struct str dir);
/* ERR_CONFIG when there is such a directory and it cannot be looked into, or it is none: an answer
 * about it would be wrong. *ret_exists: there is one. */
must_check bool datadir_check_readable(struct str dir, bool *ret_exists, struct error *err);
/* The data directory of a Holdfast that listens on another control socket than `own_dir`'s, as
 * /proc/net/unix (`table`) lists it; absent: none does.  Relative when it was given so. */
struct str datadir_of_another(struct str table, struct str own_dir);
/* "DIR/name", NUL-terminated, in mem. */
struct str datadir_path(struct str dir, const char *name, struct arena *mem);
/* The file of the audit key: what HOLDFAST_AUDIT_KEY_FILE names, else DIR/audit.key; in mem.
 * *ret_is_own (may be NULL): the latter, which is made when it is not there. */
struct str datadir_audit_key(struct str dir, struct arena *mem, bool *ret_is_own);
/* The file of the key that signs access tokens, likewise: HOLDFAST_TOKEN_KEY_FILE, DIR/token.key.
 */
struct str datadir_token_key(struct str dir, struct arena *mem, bool *ret_is_own);
/* DIR/holdfast.sock, checked against the length a socket name may have. */
must_check bool datadir_socket(struct str dir, struct arena *mem, struct str *ret,
                               struct error *err);

#endif
