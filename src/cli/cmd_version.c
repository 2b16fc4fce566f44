/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast version. */
#include "cli/cli.h"

#include <stdio.h>

int cmd_version(struct cli *cli)
{
    printf(cli_flag(cli, "--json") ? "{\"version\":\"%s\"}\n" : "holdfast %s\n", HOLDFAST_VERSION);
    return 0;
}
