/* SPDX-License-Identifier: Apache-2.0 */
/* argv to a command, nothing else. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
