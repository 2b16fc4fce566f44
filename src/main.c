/* SPDX-License-Identifier: Apache-2.0 */
/* Passes argv to the command table. */
#include "cli/cli.h"
#include "products.h"

int main(int argc, char **argv)
{
    products_register();
    return cli_main(argc, argv);
}
