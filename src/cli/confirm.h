/* SPDX-License-Identifier: Apache-2.0 */
/* A question before a command changes something. */
#ifndef HOLDFAST_CLI_CONFIRM_H
#define HOLDFAST_CLI_CONFIRM_H

#include "cli/cli.h"

/* Asks `question` ("Write this?"); --yes answers it.  `otherwise` is the meaning of an empty line.
 * *ret_yes is false if the person declined.  ERR_USAGE without a terminal: the text says that --yes
 * is needed `purpose` ("to write the file"). */
must_check bool confirm(struct cli *cli, const char *question, const char *purpose, bool otherwise,
                        bool *ret_yes, struct error *err);

#endif
