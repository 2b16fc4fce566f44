/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast up: checks the command line, the environment and the configuration before a directory is
 * created or a port is bound.  gateway.c does the rest. */
#include "base/log.h"
#include "cli/cli.h"
#include "cli/secret.h"
#include "gateway.h"

#include <stdlib.h>

int cmd_up(struct cli *cli)
{
    struct gateway_options options = {0};
    enum log_level level = LOG_INFO;
    const char *wanted = cli_flag(cli, "--log-level");
    struct error err;

    if (cli->n_args)
        return cli_usage(cli, "up takes no argument \"%.100s\"", cli->args[0]);
    if (!wanted)
        wanted = getenv("HOLDFAST_LOG_LEVEL");
    if (wanted && !log_level_parse(str_of(wanted), &level))
        return cli_usage(cli, "the log level is debug, info, warn or error, not \"%.100s\"",
                         wanted);
    log_setup(level, -1);
    options.source = (struct config_source){
        .file = str_of(cli_flag(cli, "--config")),
        .listen = str_of(cli_flag(cli, "--listen")),
        .must_exist = cli_flag(cli, "--config") != NULL,
    };
    if (!config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &options.data_dir, &err) ||
        !database_choose(str_of(getenv("DATABASE_URL")), options.data_dir, cli->mem,
                         &options.database, &err) ||
        !redis_choose(str_of(getenv("REDIS_URL")), cli->mem, &options.redis, &err) ||
        !config_load(&options.source, &options.config, &err))
        return cli_fail(cli, &err);
    if (!gateway_check_files(options.config, &err)) {
        config_unref(options.config);
        return cli_fail(cli, &err);
    }
    if (!secret_ask_inputs(cli, options.config, &err)) {
        config_unref(options.config);
        return cli_fail(cli, &err);
    }
    return gateway_run(&options);
}
