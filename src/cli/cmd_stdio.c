/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast stdio: MCP over this process's own standard input and output.
 *
 * There is one gateway for each data directory.  When none runs, it runs here, and a thread carries
 * the bytes between it and our client; when one runs, this process only carries them.  Either way
 * they go through DATA/holdfast.sock and are served by exchange/pipe.c.  Nothing but messages is
 * ever written to standard output. */
#include "base/clock.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/control.h"
#include "cli/datadir.h"
#include "cli/relay.h"
#include "gateway.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define JOIN_MS 10000 /* for an owner that is starting, or one that is just leaving */
#define JOIN_PAUSE_NS 50000000

struct stdio {
    struct cli *cli;
    struct str data_dir, path; /* what is asked for on the control socket */
    struct gateway_options options;
    pthread_t carrier;
    int stop; /* an eventfd: the gateway is gone */
    bool has_carrier;
    int status;
};

/* "/control/pipe?server=NAME" */
static struct str path_of(const char *server, struct arena *mem)
{
    static const char digits[] = "0123456789ABCDEF";
    struct buf path;

    buf_init(&path, 64 * 1024);
    buf_addz(&path, "/control/pipe");
    if (server)
        buf_addz(&path, "?server=");
    for (const char *p = server; p && *p; p++) {
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
    ok = control_lines(control, s->path, mem, ret_fd, err);
    control_close(control);
    return ok;
}

/* Beside the gateway of this process. */
static void *carry(void *arg)
{
    struct stdio *s = arg;
    struct arena *mem = arena_new(64u * 1024 * 1024);
    struct error err;
    int channel;

    if (open_channel(s, mem, &channel, &err)) {
        (void)relay_run(channel, STDIN_FILENO, STDOUT_FILENO, s->stop);
        close(channel);
    } else {
        s->status = cli_fail(s->cli, &err);
        (void)kill(getpid(), SIGTERM); /* nobody is served: the gateway has no reason to stay */
    }
    arena_free(mem);
    return NULL;
}

/* Signals are for the thread of the gateway. */
static void on_ready(void *arg)
{
    struct stdio *s = arg;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->has_carrier = pthread_create(&s->carrier, NULL, carry, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!s->has_carrier) {
        log_error("cannot start a thread; is a limit on processes reached?");
        s->status = 1;
        (void)kill(getpid(), SIGTERM);
    }
}

static bool load(struct stdio *s, const char *server, struct error *err)
{
    struct gateway_options *o = &s->options;

    o->source = (struct config_source){
        .file = str_of(cli_flag(s->cli, "--config")),
        .must_exist = cli_flag(s->cli, "--config") != NULL,
    };
    if (!config_load(&o->source, &o->config, err))
        return false;
    if (!server || config_server(o->config, str_of(server)))
        return true;
    config_unref(o->config);
    return error_set(err, ERR_CONFIG,
                     "no server named \"%.100s\" is configured; see \"mcpServers\", or leave "
                     "--server out for all of them",
                     server);
}

static int serve(struct stdio *s, struct datadir *datadir)
{
    struct error err;

    if (!load(s, cli_flag(s->cli, "--server"), &err)) {
        datadir_release(datadir);
        return cli_fail(s->cli, &err);
    }
    s->options.data_dir = s->data_dir;
    s->options.datadir = datadir;
    s->options.ends_with_pipes = true;
    s->options.on_ready = on_ready;
    s->options.arg = s;
    s->stop = eventfd(0, EFD_CLOEXEC);
    int status = gateway_run(&s->options);
    (void)eventfd_write(s->stop, 1);
    if (s->has_carrier)
        pthread_join(s->carrier, NULL);
    close(s->stop);
    return status ? status : s->status;
}

/* Beside the gateway of another process. */
static int join(struct stdio *s, int channel)
{
    struct error err;
    sigset_t ends;
    int stop;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    stop = signalfd(-1, &ends, SFD_CLOEXEC);
    log_info("joined the Holdfast that serves this data directory; its configuration counts",
             LS("data", s->data_dir), LI("pid", datadir_owner(s->data_dir)));
    enum relay_end end = relay_run(channel, STDIN_FILENO, STDOUT_FILENO, stop);
    close(channel);
    close(stop);
    if (end == RELAY_ENDED)
        return 0;
    error_set(&err, ERR_UNREACHABLE,
              "the Holdfast that served this pipe has ended; start holdfast stdio again, and it "
              "will join the next one or serve by itself");
    return cli_fail(s->cli, &err);
}

/* Own the data directory, or join its owner; which of the two may change while we look. */
static int own_or_join(struct stdio *s)
{
    const struct timespec pause = {.tv_nsec = JOIN_PAUSE_NS};
    int64_t until = clock_mono_ms() + JOIN_MS;
    struct datadir *datadir;
    struct error err;
    int channel;

    for (;;) {
        if (datadir_owner(s->data_dir) == 0) {
            if (datadir_own(s->data_dir, &datadir, &err))
                return serve(s, datadir);
            if (datadir_owner(s->data_dir) == 0) /* it is not that another was faster */
                return cli_fail(s->cli, &err);
        } else {
            if (open_channel(s, s->cli->mem, &channel, &err))
                return join(s, channel);
            if (err.code != ERR_UNREACHABLE && err.code != ERR_UNAVAILABLE)
                return cli_fail(s->cli, &err);
        }
        if (clock_mono_ms() >= until)
            return cli_fail(s->cli, &err);
        nanosleep(&pause, NULL);
    }
}

int cmd_stdio(struct cli *cli)
{
    struct stdio s = {.cli = cli};
    enum log_level level = LOG_WARN;
    const char *wanted = cli_flag(cli, "--log-level");
    struct error err;

    if (cli->n_args)
        return cli_usage(cli, "stdio takes no argument \"%.100s\"", cli->args[0]);
    if (cli_flag(cli, "--profile"))
        return cli_usage(cli, "there are no profiles yet; name one server with --server, or none "
                              "for all of them");
    if (!wanted)
        wanted = getenv("HOLDFAST_LOG_LEVEL");
    if (wanted && !log_level_parse(str_of(wanted), &level))
        return cli_usage(cli, "the log level is debug, info, warn or error, not \"%.100s\"",
                         wanted);
    log_setup(level, -1);
    if (!config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &s.data_dir, &err))
        return cli_fail(cli, &err);
    s.path = path_of(cli_flag(cli, "--server"), cli->mem);
    return own_or_join(&s);
}
