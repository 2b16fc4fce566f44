/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an entry of a client's file means the same in Holdfast's file. */
#ifndef HOLDFAST_CLI_IMPORT_ENTRY_H
#define HOLDFAST_CLI_IMPORT_ENTRY_H

#include "base/arena.h"
#include "base/error.h"
#include "cli/clients.h"

/* Translates what the client writes in another way: "$NAME" of Gemini CLI becomes "${NAME}".  *ret
 * and *ret_why are in mem.  *ret_why absent: the entry can be taken over; else it says what has no
 * meaning outside of the client's own folder, and what to do: relative paths,
 * ${workspaceFolder}. */
must_check bool import_entry(const struct client *client, struct str entry, struct arena *mem,
                             struct str *ret, struct str *ret_why, struct error *err);

#endif
