/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast up: checks the command line, the environment and the configuration before a directory is
 * created or a port is bound.  gateway.c does the rest. */
#include "base/log.h"
#include "cli/secret.h"
#include "cli/up.h"
#include "io/service.h"

#include <stdlib.h>

/* The flag, else the variable; NULL: neither is given. */
static const char *flag_or_variable(const struct cli *cli, const char *flag, const char *variable)
{
    const char *given = cli_flag(cli, flag), *set = getenv(variable);

    return given ? given : set && *set ? set : NULL;
}

/* Lines for people leave out what the shown start and the lines of calls say already, unless a
 * level is asked for. */
bool up_set_log(const struct cli *cli, int json, struct error *err)
{
    const char *format = flag_or_variable(cli, "--log-format", "HOLDFAST_LOG_FORMAT");
    const char *wanted = flag_or_variable(cli, "--log-level", "HOLDFAST_LOG_LEVEL");
    enum log_level level = LOG_INFO;

    if (format && !log_format_parse(str_of(format), &json))
        return error_set(err, ERR_USAGE, "the log format is human or json, not \"%.100s\"", format);
    if (wanted && !log_level_parse(str_of(wanted), &level))
        return error_set(err, ERR_USAGE,
                         "the log level is debug, info, warn or error, not \"%.100s\"", wanted);
    log_setup(level, json);
    if (!wanted && log_is_human())
        log_threshold = LOG_WARN;
    return true;
}

/* The socket of a service manager takes the place of --listen, so the rules for an address beyond
 * loopback are those of the socket's address. */
static bool use_passed_socket(const struct cli *cli, struct gateway_options *options,
                              struct error *err)
{
    const struct conn_address *passed = service_address(options->service);
    char text[160];

    if (!passed)
        return true;
    if (cli_flag(cli, "--listen"))
        return error_set(err, ERR_CONFIG,
                         "the service manager passed a socket, and --listen names an address; "
                         "remove --listen, or disable holdfast.socket");
    address_format(passed, text, sizeof(text));
    options->source.listen = arena_dup(cli->mem, str_of(text));
    return true;
}

bool up_prepare(struct cli *cli, struct service *service, struct gateway_options *ret,
                struct error *err)
{
    struct gateway_options options = {.service = service};

    options.source = (struct config_source){
        .file = str_of(cli_flag(cli, "--config")),
        .listen = str_of(cli_flag(cli, "--listen")),
        .must_exist = cli_flag(cli, "--config") != NULL,
    };
    if (!use_passed_socket(cli, &options, err) ||
        !config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &options.data_dir, err) ||
        !database_choose(str_of(getenv("DATABASE_URL")), options.data_dir, cli->mem,
                         &options.database, err) ||
        !redis_choose(str_of(getenv("REDIS_URL")), cli->mem, &options.redis, err) ||
        !config_load(&options.source, &options.config, err))
        return false;
    if (!gateway_check_files(options.config, err) || !secret_ask_inputs(cli, options.config, err)) {
        config_unref(options.config);
        return false;
    }
    *ret = options;
    return true;
}

int cmd_up(struct cli *cli)
{
    struct gateway_options options;
    struct service *service = NULL;
    struct error err;

    if (cli->n_args)
        return cli_usage(cli, "up takes no argument \"%.100s\"", cli->args[0]);
    if (!up_set_log(cli, -1, &err) || !service_open(&service, &err) ||
        !up_prepare(cli, service, &options, &err)) {
        service_close(service);
        return cli_refuse(cli, &err);
    }
    options.is_shown = log_is_human();
    int status = gateway_run(&options);
    service_close(service);
    return status;
}
