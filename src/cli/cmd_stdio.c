/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast stdio: MCP over this process's own standard input and output.
 *
 * There is one gateway for each data directory, and it is never this process: when none runs, we
 * start one, which ends with its last pipe.  So it does not matter who came first: a client that
 * closes its pipe, or kills us, takes nothing from the others.
 *
 *   client ──stdin──> holdfast stdio ──DATA/holdfast.sock──> gateway, exchange/pipe.c
 *
 * Nothing but messages is ever written to standard output; what a gateway of ours says goes to our
 * standard error for as long as we are there. */
#include "base/clock.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/control.h"
#include "cli/datadir.h"
#include "cli/relay.h"
#include "gateway.h"
#include "json/read.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOIN_MS 15000 /* for a gateway that is starting, or one that is just leaving */
#define JOIN_PAUSE_MS 10
#define LEAVE_MS 20000   /* for a gateway of ours to end in order */
#define LOST_THE_RACE 64 /* exit status of a gateway that found another one */

struct stdio {
    struct cli *cli;
    const char *key;           /* whose client we are; NULL: the local admin's */
    struct str data_dir, path; /* path: what is asked for on the control socket */
    pid_t gateway;             /* ours; 0: none */
    int gateway_status;        /* of one that has ended */
    int logs;                  /* what it says; -1: none */
};

/* "/control/pipe?server=NAME", "/control/pipe?profile=NAME" */
static struct str path_of(const char *server, const char *profile, struct arena *mem)
{
    static const char digits[] = "0123456789ABCDEF";
    struct buf path;

    buf_init(&path, 64 * 1024);
    buf_addz(&path, "/control/pipe");
    if (server || profile)
        buf_addz(&path, server ? "?server=" : "?profile=");
    for (const char *p = server ? server : profile; p && *p; p++) {
        unsigned char c = (unsigned char)*p;
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
            c == '-' || c == '_') {
            buf_addc(&path, *p);
        } else {
            buf_addc(&path, '%');
            buf_addc(&path, digits[c >> 4]);
            buf_addc(&path, digits[c & 15]);
        }
    }
    struct str result = arena_dup(mem, buf_str(&path));
    buf_release(&path);
    return result;
}

static bool open_channel(const struct stdio *s, struct arena *mem, int *ret_fd, struct error *err)
{
    struct control *control;
    bool ok;

    if (!control_open_socket(s->data_dir, &control, err))
        return false;
    control_set_key(control, s->key);
    ok = control_lines(control, s->path, mem, ret_fd, err);
    control_close(control);
    return ok;
}

/* In the process of the gateway. */

static bool load(struct stdio *s, struct gateway_options *ret, struct error *err)
{
    const char *server = cli_flag(s->cli, "--server");
    const char *profile = cli_flag(s->cli, "--profile");

    ret->source = (struct config_source){
        .file = str_of(cli_flag(s->cli, "--config")),
        .must_exist = cli_flag(s->cli, "--config") != NULL,
    };
    if (!database_choose(str_of(getenv("DATABASE_URL")), s->data_dir, s->cli->mem, &ret->database,
                         err) ||
        !redis_choose(str_of(getenv("REDIS_URL")), s->cli->mem, &ret->redis, err) ||
        !config_load(&ret->source, &ret->config, err))
        return false;
    if (server && !config_server(ret->config, str_of(server)))
        error_set(err, ERR_CONFIG,
                  "no server named \"%.100s\" is configured; see \"mcpServers\", or leave "
                  "--server out for all of them",
                  server);
    else if (profile && !config_profile(ret->config, str_of(profile)))
        error_set(err, ERR_CONFIG,
                  "no profile named \"%.100s\" is configured; see \"holdfast.profiles\", or leave "
                  "--profile out for all servers",
                  profile);
    else
        return true;
    config_unref(ret->config);
    return false;
}

static int serve(struct stdio *s)
{
    struct gateway_options options = {.data_dir = s->data_dir, .ends_with_pipes = true};
    struct error err;

    if (!datadir_own(s->data_dir, &options.datadir, &err))
        return datadir_owner(s->data_dir) ? LOST_THE_RACE : cli_fail(s->cli, &err);
    if (!load(s, &options, &err)) {
        datadir_release(options.datadir);
        return cli_fail(s->cli, &err);
    }
    return gateway_run(&options);
}

/* It outlives us if others have joined it, so it keeps nothing of ours: neither the streams, whose
 * end our client waits for, nor the group that a terminal or a client may kill. */
static void become_gateway(struct stdio *s, int logs)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0 ||
        dup2(logs, STDERR_FILENO) < 0)
        _exit(1);
    if (nothing > STDERR_FILENO)
        close(nothing);
    if (logs > STDERR_FILENO)
        close(logs);
    exit(serve(s));
}

/* In ours. */

static bool start_gateway(struct stdio *s, struct error *err)
{
    int logs[2];
    pid_t pid;

    if (pipe2(logs, O_CLOEXEC) < 0)
        return error_sys(err, ERR_INTERNAL, errno, "cannot make a pipe");
    pid = fork();
    if (pid < 0) {
        close(logs[0]);
        close(logs[1]);
        return error_sys(err, ERR_INTERNAL, errno, "cannot start a process");
    }
    if (pid == 0) {
        close(logs[0]);
        become_gateway(s, logs[1]);
    }
    close(logs[1]);
    s->logs = logs[0];
    s->gateway = pid;
    return true;
}

/* Has the gateway of ours ended?  Then its status is known. */
static bool gateway_has_ended(struct stdio *s)
{
    int status;

    if (s->gateway == 0 || waitpid(s->gateway, &status, WNOHANG) != s->gateway)
        return false;
    s->gateway = 0;
    s->gateway_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    return true;
}

/* One that ends says its last words first. */
static void await_gateway(struct stdio *s)
{
    int64_t until = clock_mono_ms() + LEAVE_MS;

    if (s->gateway == 0)
        return;
    relay_logs(s->logs, STDERR_FILENO, LEAVE_MS);
    while (!gateway_has_ended(s) && clock_mono_ms() < until)
        (void)poll(NULL, 0, JOIN_PAUSE_MS);
}

/* Others have joined it: it stays for them. */
static bool gateway_goes_on(const struct stdio *s)
{
    struct control *control;
    struct error err;
    struct str body;
    struct js_doc doc;
    bool answered;

    if (!control_open_socket(s->data_dir, &control, &err))
        return false;
    control_set_deadline(control, 2000);
    answered = control_get(control, STR("/control/status"), s->cli->mem, &body, &err);
    control_close(control);
    return answered && js_parse(body, &js_limits_upstream, s->cli->mem, &doc, NULL) &&
           js_type_is(js_get(&doc, js_root(&doc), STR("stopping")), JS_FALSE);
}

static int carry(struct stdio *s, int channel)
{
    struct error err;
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    struct relay_ends all = {
        .channel = channel,
        .in = STDIN_FILENO,
        .out = STDOUT_FILENO,
        .stop = signalfd(-1, &ends, SFD_CLOEXEC),
        .logs = s->logs,
        .err = STDERR_FILENO,
    };
    enum relay_end end = relay_run(&all);
    close(channel);
    close(all.stop);
    if (end == RELAY_ENDED) {
        if (s->gateway && !gateway_goes_on(s))
            await_gateway(s);
        return s->gateway_status == LOST_THE_RACE ? 0 : s->gateway_status;
    }
    await_gateway(s);
    error_set(&err, ERR_UNREACHABLE,
              s->key ? "the Holdfast that served this pipe has ended, or the key in HOLDFAST_KEY "
                       "has; start holdfast stdio again"
                     : "the Holdfast that served this pipe has ended; start holdfast stdio again, "
                       "and it will join the next one or start one");
    return cli_fail(s->cli, &err);
}

/* Nobody may be there, or somebody who is starting or leaving: which of these may change while we
 * look. */
static int join(struct stdio *s)
{
    int64_t until = clock_mono_ms() + JOIN_MS;
    struct error err;
    int channel;

    for (;;) {
        if (gateway_has_ended(s)) {
            relay_logs(s->logs, STDERR_FILENO, LEAVE_MS);
            close(s->logs);
            s->logs = -1;
            if (s->gateway_status != LOST_THE_RACE)
                return s->gateway_status ? s->gateway_status : 1;
            s->gateway_status = 0;
        }
        if (datadir_owner(s->data_dir) == 0) {
            error_set(&err, ERR_UNREACHABLE, "Holdfast did not start in time");
            if (!s->gateway && !start_gateway(s, &err))
                return cli_fail(s->cli, &err);
        } else if (open_channel(s, s->cli->mem, &channel, &err)) {
            return carry(s, channel);
        } else if (err.code != ERR_UNREACHABLE && err.code != ERR_UNAVAILABLE) {
            return cli_fail(s->cli, &err);
        }
        if (clock_mono_ms() >= until)
            return cli_fail(s->cli, &err);
        if (s->logs >= 0)
            relay_logs(s->logs, STDERR_FILENO, JOIN_PAUSE_MS);
        (void)poll(NULL, 0, JOIN_PAUSE_MS);
    }
}

int cmd_stdio(struct cli *cli)
{
    struct stdio s = {.cli = cli, .logs = -1};
    enum log_level level = LOG_WARN;
    const char *wanted = cli_flag(cli, "--log-level");
    struct error err;

    if (cli->n_args)
        return cli_usage(cli, "stdio takes no argument \"%.100s\"", cli->args[0]);
    if (cli_flag(cli, "--profile") && cli_flag(cli, "--server"))
        return cli_usage(cli, "name a server or a profile, not both");
    if (!wanted)
        wanted = getenv("HOLDFAST_LOG_LEVEL");
    if (wanted && !log_level_parse(str_of(wanted), &level))
        return cli_usage(cli, "the log level is debug, info, warn or error, not \"%.100s\"",
                         wanted);
    log_setup(level, -1);
    if (!config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &s.data_dir, &err))
        return cli_fail(cli, &err);
    s.key = getenv("HOLDFAST_KEY");
    if (s.key && (!*s.key || strpbrk(s.key, " \r\n\t")))
        return cli_usage(cli, "HOLDFAST_KEY does not hold a key");
    s.path = path_of(cli_flag(cli, "--server"), cli_flag(cli, "--profile"), cli->mem);
    signal(SIGPIPE, SIG_IGN);
    return join(&s);
}
