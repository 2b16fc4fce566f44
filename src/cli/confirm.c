/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/confirm.h"

#include "cli/terminal.h"

bool confirm(struct cli *cli, const char *question, const char *purpose, bool otherwise,
             bool *ret_yes, struct error *err)
{
    struct str answer;

    *ret_yes = true;
    if (cli_flag(cli, "--yes"))
        return true;
    if (!terminal_is_there())
        return error_set(err, ERR_USAGE, "standard input or output is not a terminal; add --yes %s",
                         purpose);
    answer = terminal_line(
        arena_printf(cli->mem, "%s [%s] ", question, otherwise ? "Y/n" : "y/N").p, cli->mem);
    *ret_yes = answer.p && (answer.n ? (answer.p[0] | 32) == 'y' : otherwise);
    return true;
}
