/* SPDX-License-Identifier: Apache-2.0 */
/* Documents in the command line. */
#ifndef HOLDFAST_DOCS_CLI_COMMANDS_H
#define HOLDFAST_DOCS_CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct cli_command docs_commands[]; /* for cli_add() */

int cmd_docs(struct cli *cli);

#endif
