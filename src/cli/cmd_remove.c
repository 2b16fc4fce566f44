/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast remove NAME: takes a server out of the configuration file. */
#include "cli/cli.h"

#include "cli/config_file.h"
#include "config/config.h"

#include <stdio.h>

/* ERR_NOT_FOUND, with the nearest server of the file. */
static bool no_such_server(struct cli *cli, const struct config_file *f, const char *name,
                           struct error *err)
{
    struct cli_nearest near = cli_nearest_to(str_of(name));
    struct config *config = NULL;
    struct error ignored;

    if (f->text.p && config_parse(f->text, f->path, &(struct config_source){0}, &config, &ignored))
        for (size_t i = 0; i < config->n_servers; i++)
            if (config->servers[i].kind != SERVER_BUILTIN)
                cli_nearest_offer(&near, arena_dup(cli->mem, config->servers[i].name).p);
    config_unref(config);
    if (near.name)
        return error_set(err, ERR_NOT_FOUND, "%.*s has no server \"%.64s\"; did you mean \"%s\"?",
                         STR_ARG(f->path), name, near.name);
    return error_set(err, ERR_NOT_FOUND,
                     "%.*s has no server \"%.64s\"; see `holdfast servers list`", STR_ARG(f->path),
                     name);
}

int cmd_remove(struct cli *cli)
{
    struct config_file file;
    struct error err;

    if (cli->n_args != 1)
        return cli_usage(cli, "remove takes the name of one server");
    struct str path[] = {STR("mcpServers"), str_of(cli->args[0])};
    if (!config_file_open(cli, &file, &err))
        return cli_fail(cli, &err);
    if (!config_file_has(cli, &file, path, 2)) {
        (void)no_such_server(cli, &file, cli->args[0], &err);
        return cli_fail(cli, &err);
    }
    if (!config_file_change(cli, &file, path, 2, STR_NONE, &err))
        return cli_fail(cli, &err);
    struct str reload = config_file_reload(cli, &file);
    if (cli_flag(cli, "--json")) {
        printf("{\"server\":\"%s\",\"removed\":true}\n", cli->args[0]);
        return 0;
    }
    fprintf(stderr, "removed %s from %.*s%s%.*s\n", cli->args[0], STR_ARG(file.path),
            reload.p ? "; " : "", STR_ARG(reload));
    return 0;
}
