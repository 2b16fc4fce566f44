/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts for shells, from the command table. */
#ifndef HOLDFAST_CLI_COMPLETION_H
#define HOLDFAST_CLI_COMPLETION_H

#include "cli/cli.h"

/* "bash", "zsh" or "fish"; false: another shell. */
must_check bool completion_write(const char *shell, struct buf *out);
/* The next verb of a usage text such as "list | show NAME | tail|events [flags]": a lower-case word at
 * its start or after "|".  *rest begins as the usage text.  false: there are no more. */
bool completion_next_verb(struct str *rest, struct str *ret);

#endif
