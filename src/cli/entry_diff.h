/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the entry of a server, or the difference between two, as lines of JSON for people. */
#ifndef HOLDFAST_CLI_ENTRY_DIFF_H
#define HOLDFAST_CLI_ENTRY_DIFF_H

#include "base/arena.h"
#include "base/buf.h"

/* Appends one line per line of JSON: "+ " only in `theirs`, "- " only in `ours`, two blanks in
 * both.  `ours` absent: all lines are new.  Bytes that would control a terminal are escaped, and
 * long lines are cut.  Secrets have to be replaced before. */
void entry_diff(struct str ours, struct str theirs, struct arena *mem, struct buf *out);

#endif
