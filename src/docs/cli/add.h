/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_DOCS_CLI_ADD_H
#define HOLDFAST_DOCS_CLI_ADD_H

#include "cli/cli.h"

/* holdfast docs add NAME PATH: writes a folder to the configuration file.  Needs no running
 * Holdfast; a running one reads the file again.  Returns the exit status. */
int docs_add(struct cli *cli);

#endif
