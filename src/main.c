/* SPDX-License-Identifier: Apache-2.0 */
/* Passes argv to the command table. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
