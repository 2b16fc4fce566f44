/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast config check|show. */
#include "cli/cli.h"
#include "config/config.h"

#include <stdio.h>

int cmd_config(struct cli *cli)
{
    struct config_source source = {
        .file = str_of(cli_flag(cli, "--config")),
        .must_exist = cli_flag(cli, "--config") != NULL,
    };
    const char *verb = cli->n_args == 1 ? cli->args[0] : "";
    bool check = strcmp(verb, "check") == 0;
    struct config *config;
    struct error err;
    struct buf out;

    if (!check && strcmp(verb, "show") != 0)
        return cli_usage(cli, "say config check or config show");
    if (!config_load(&source, &config, &err))
        return cli_fail(cli, &err);
    for (size_t i = 0; i < config->n_notes; i++)
        fprintf(stderr, "note: %.*s\n", STR_ARG(config->notes[i]));
    buf_init(&out, 64u * 1024 * 1024);
    if (!check)
        config_write(config, &out);
    else if (config->file.p)
        buf_addf(&out, "%.*s is fine: %zu servers", STR_ARG(config->file), config->n_servers);
    else
        buf_addz(&out, "no configuration file: the built-in defaults are used");
    printf("%s\n", out.p);
    buf_release(&out);
    config_unref(config);
    return 0;
}
