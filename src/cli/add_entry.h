/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of a server in the configuration, as `holdfast add` makes it: JSON in, JSON out. */
#ifndef HOLDFAST_CLI_ADD_ENTRY_H
#define HOLDFAST_CLI_ADD_ENTRY_H

#include "base/arena.h"
#include "base/error.h"

struct add_secret {
    struct str name; /* "SERVER.KEY" */
    struct str value;
};

/* Makes a command usable from any environment: "command" becomes an absolute path, found in
 * `path_env`, and "env" gets that PATH if it has none.  Entries without a command stay as they are.
 * *ret and *ret_program (the absolute path; absent: there is no command) are in mem.  ERR_BAD_INPUT:
 * the program was not found. */
must_check bool add_entry_locate(struct str entry, struct str path_env, struct arena *mem,
                                 struct str *ret, struct str *ret_program, struct error *err);
/* Replaces each value that looks like a secret by ${secret:SERVER.KEY}: by its name in "env",
 * "headers", the query of "url" and "args" (--token=…, --token …), or because it has the shape of a
 * known kind of token.  Values that refer to a variable stay.  *ret and *ret_secrets are in mem. */
must_check bool add_entry_seal(struct str entry, struct str server, struct arena *mem,
                               struct str *ret, struct add_secret **ret_secrets, size_t *ret_n,
                               struct error *err);

#endif
