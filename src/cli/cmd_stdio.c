/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast stdio: MCP over this process's own standard input and output.
 *
 * Each data directory has one gateway, and the gateway is never this process.  If no gateway runs,
 * we start one, which ends with its last pipe; with --start it is the daemon of `holdfast start`,
 * which goes on.  So a client that closes its pipe, or kills us, does
 * not affect other clients, even if it was the first.
 *
 *   client ──stdin──> holdfast stdio ──DATA/holdfast.sock──> gateway, exchange/pipe.c
 *
 * If the gateway ends before our client does, we join the next gateway.  We answer the requests
 * under way with an error, send the client's initialize again, and keep the name of the pipe, by
 * which the next gateway finds its session (relay_talk.h has the state for this).
 *
 * Standard output carries only messages.  The log lines of a gateway that we started go to our
 * standard error as long as we run. */
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "cli/cli.h"
#include "cli/control.h"
#include "cli/daemon.h"
#include "config/datadir.h"
#include "cli/relay.h"
#include "cli/relay_talk.h"
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

#define JOIN_MS 15000 /* to join, while a gateway is starting or stopping */
#define JOIN_PAUSE_MS 10
#define LEAVE_MS 20000 /* for a gateway that we started to end in order */
#define SUCCESSOR_MS                                                                               \
    10000 /* for a daemon that is restarted, before we start a gateway ourselves                   \
           */
#define REJOIN_PAUSE_MAX_MS 250
#define REPLAY_MS 60000 /* for the answer to an initialize that is sent again */
#define REPLAY_LINE (16u * 1024 * 1024)
#define REJOINS_MAX                                                                                \
    10 /* in REJOINS_MS: a gateway that ends again and again is not joined for ever */
#define REJOINS_MS 60000
#define LOST_THE_RACE 64 /* exit status of a gateway that found another one */

struct stdio {
    struct cli *cli;
    const char *key;               /* the client's key; NULL: the client is the local admin */
    struct str data_dir, path;     /* path: of the request on the control socket */
    pid_t gateway;                 /* that we started; 0: none */
    int gateway_status;            /* exit status of a gateway that we started */
    int logs;                      /* the gateway's standard error; -1: none */
    struct config_identity config; /* the configuration file that was given or found */
    bool has_printed_config;
    struct relay_ends ends;
    struct relay_talk talk;
    int64_t lost_ms[REJOINS_MAX]; /* when the last gateways were lost, as a ring */
    size_t n_lost;
    bool has_no_daemon; /* --start failed */
    bool was_ours;      /* we started the gateway that was lost, so we start the next at once */
};

static struct config_source config_source_of(const struct cli *cli)
{
    return (struct config_source){
        .file = str_of(cli_flag(cli, "--config")),
        .must_exist = cli_flag(cli, "--config") != NULL,
    };
}

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

/* "…&config=PATH&digest=HEX": the gateway refuses a pipe that is for another configuration. */
static struct str path_with_config(struct str path, const struct config_identity *own,
                                   struct arena *mem)
{
    struct buf out;

    if (!own->path.p)
        return path;
    buf_init(&out, 64 * 1024);
    buf_addf(&out, "%.*s%cconfig=", STR_ARG(path), str_find(path, '?') < path.n ? '&' : '?');
    for (size_t i = 0; i < own->path.n; i++)
        buf_addf(&out, "%%%02x", (unsigned char)own->path.p[i]);
    buf_addf(&out, "&digest=%s", own->digest);
    struct str result = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return result;
}

/* "…&pipe=NAME": by this name the next gateway finds the session of this pipe. */
static struct str path_with_name(struct str path, struct arena *mem)
{
    char name[UUID_TEXT];

    random_uuid7(name);
    return arena_printf(mem, "%.*s%cpipe=%s", STR_ARG(path),
                        str_find(path, '?') < path.n ? '&' : '?', name);
}

/* Prints once what is served, if the user may expect something else. */
static void print_config(struct stdio *s, struct str state)
{
    bool is_sample_meant = cli_flag(s->cli, "--server") || cli_flag(s->cli, "--profile");

    if (s->has_printed_config)
        return;
    s->has_printed_config = true;
    if (!s->config.path.p && !s->gateway)
        fprintf(stderr, "holdfast: joined the Holdfast (pid %d) of the data directory %.*s\n",
                datadir_owner(s->data_dir), STR_ARG(s->data_dir));
    if (str_eq(state, STR("sample")) && !is_sample_meant)
        fprintf(stderr,
                "holdfast: no servers are configured, so only the built-in sample is served; put "
                "\"mcpServers\" into ./holdfast.json, or name a file with --config\n");
    if (str_eq(state, STR("edited")))
        fprintf(
            stderr,
            "holdfast: %.*s was edited after the running Holdfast read it; `kill -HUP %d` makes "
            "it read the file again\n",
            STR_ARG(s->config.path), datadir_owner(s->data_dir));
}

static bool open_channel(struct stdio *s, struct arena *mem, int *ret_fd, struct error *err)
{
    struct control *control;
    struct str state;
    bool ok;

    if (!control_open_socket(s->data_dir, &control, err))
        return false;
    control_set_key(control, s->key);
    ok = control_lines(control, s->path, mem, ret_fd, &state, err);
    control_close(control);
    if (ok)
        print_config(s, state);
    return ok;
}

/* In the gateway's process. */

static bool load(struct stdio *s, struct gateway_options *ret, struct error *err)
{
    const char *server = cli_flag(s->cli, "--server");
    const char *profile = cli_flag(s->cli, "--profile");

    ret->source = config_source_of(s->cli);
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
    struct gateway_options options = {
        .data_dir = s->data_dir, .only_control_socket = true, .ends_with_pipes = true};
    struct error err;

    if (!datadir_own(s->data_dir, &options.datadir, &err))
        return datadir_owner(s->data_dir) ? LOST_THE_RACE : cli_fail(s->cli, &err);
    if (!load(s, &options, &err)) {
        datadir_release(options.datadir);
        return cli_fail(s->cli, &err);
    }
    return gateway_run(&options);
}

/* The gateway outlives us if other clients have joined it.  So it keeps neither our streams,
 * because our client waits for their end, nor our process group, which a terminal or a client may
 * kill. */
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

/* In our own process. */

/* In a child process, because daemon_start() needs a process with our arguments, but without our
 * blocked signals, and the daemon must not become a child that we never wait for. */
static never_returns void run_start(struct stdio *s)
{
    enum daemon_start how;
    struct error err;
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (daemon_start(s->cli, s->data_dir, &how, &err))
        _exit(0);
    fprintf(stderr,
            "holdfast: %s; serving without a daemon, by a Holdfast that ends with its clients\n",
            err.text);
    _exit(1);
}

/* With --start: starts the daemon of the data directory, which goes on when our client ends.  If it
 * cannot start, for instance because its port is taken, we start a gateway as without --start. */
static void start_daemon(struct stdio *s)
{
    int status = 1;
    pid_t pid = fork();

    if (pid == 0)
        run_start(s);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    s->has_no_daemon = pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

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

/* Whether the gateway that we started has ended; then gateway_status is set. */
static bool gateway_has_ended(struct stdio *s)
{
    int status;

    if (s->gateway == 0 || waitpid(s->gateway, &status, WNOHANG) != s->gateway)
        return false;
    s->gateway = 0;
    s->gateway_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    return true;
}

/* Relays the last log lines of the gateway that we started, then waits for its end; LEAVE_MS for
 * both. */
static void await_gateway(struct stdio *s)
{
    int64_t until = clock_mono_ms() + LEAVE_MS;

    if (s->gateway == 0)
        return;
    relay_logs(s->logs, STDERR_FILENO, LEAVE_MS);
    while (!gateway_has_ended(s) && clock_mono_ms() < until)
        (void)poll(NULL, 0, JOIN_PAUSE_MS);
}

/* Whether the gateway is not stopping, because other clients have joined it. */
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
    answered = control_get(control, STR("/api/v1/system"), s->cli->mem, &body, &err);
    control_close(control);
    return answered && js_parse(body, &js_limits_upstream, s->cli->mem, &doc, NULL) &&
           js_type_is(js_get(&doc, js_root(&doc), STR("stopping")), JS_FALSE);
}

static void set_up_ends(struct stdio *s)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    s->ends = (struct relay_ends){
        .channel = -1,
        .in = STDIN_FILENO,
        .out = STDOUT_FILENO,
        .stop = signalfd(-1, &ends, SFD_CLOEXEC),
        .logs = -1,
        .err = STDERR_FILENO,
        .talk = &s->talk,
    };
}

static int leave(struct stdio *s)
{
    if (s->gateway && !gateway_goes_on(s))
        await_gateway(s);
    return s->gateway_status == LOST_THE_RACE ? 0 : s->gateway_status;
}

static bool send_all(int fd, struct str text)
{
    while (text.n) {
        ssize_t n = write(fd, text.p, text.n);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            text = str_n(text.p + n, text.n - (size_t)n);
    }
    return true;
}

/* Reads from the channel until the answer to the initialize has come.  The answer goes to the
 * client only if the client still waits for it.  All lines before the answer go to the client;
 * bytes after it stay in `in`. */
static bool await_initialized(struct stdio *s, int channel, struct buf *in)
{
    struct str id = buf_str(&s->talk.initialize_id);
    bool is_wanted = relay_talk_waits_for(&s->talk, id);
    int64_t until = clock_mono_ms() + REPLAY_MS;
    char bytes[65536];

    for (;;) {
        struct str line = str_n(in->p, in->n ? str_find(buf_str(in), '\n') : 0);
        if (in->n && line.n < in->n) {
            bool is_answer = relay_line_answers(line, id);
            line.n++;
            relay_talk_received(&s->talk, line);
            if ((!is_answer || is_wanted) && !relay_send(&s->ends, line))
                return false;
            buf_consume(in, line.n);
            if (is_answer)
                return true;
            continue;
        }
        struct pollfd fds[] = {{.fd = channel, .events = POLLIN},
                               {.fd = s->ends.stop, .events = POLLIN}};
        int64_t left = until - clock_mono_ms();
        if (left <= 0 || poll(fds, 2, (int)left) <= 0 || fds[1].revents)
            return false;
        ssize_t n = read(channel, bytes, sizeof(bytes));
        if (n <= 0 || !buf_try_add(in, bytes, (size_t)n))
            return false;
    }
}

/* Sends the client's initialize to the new gateway.  false: no answer came, or the client is gone;
 * the gateway counts as lost. */
static bool replay(struct stdio *s, int channel)
{
    static const struct str initialized = {
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n", 55};
    struct buf in;
    bool ok;

    if (!s->talk.initialize.n)
        return true;
    buf_init(&in, REPLAY_LINE);
    ok = send_all(channel, buf_str(&s->talk.initialize)) && await_initialized(s, channel, &in) &&
         (!s->talk.is_initialized || send_all(channel, initialized));
    if (ok && in.n) {
        relay_talk_received(&s->talk, buf_str(&in));
        ok = relay_send(&s->ends, buf_str(&in));
    }
    buf_release(&in);
    return ok;
}

/* After a gateway was lost: answers the requests under way with an error, and drops a line that was
 * half sent.  false: the client is gone, or the rest of that line did not come. */
static bool mourn(struct stdio *s)
{
    bool has_rest = relay_drop_cut_line(&s->ends);
    struct buf out;
    size_t n;

    buf_init(&out, 8u * 1024 * 1024);
    n = relay_talk_lose(&s->talk, &out);
    bool ok = relay_send(&s->ends, buf_str(&out)) && has_rest;
    buf_release(&out);
    fprintf(stderr,
            "holdfast: the Holdfast that served this pipe has ended; %zu request%s under way %s "
            "answered with an error; joining the next one\n",
            n, n == 1 ? "" : "s", n == 1 ? "was" : "were");
    return ok;
}

static bool is_lost_too_often(struct stdio *s)
{
    int64_t now = clock_mono_ms(), *at = &s->lost_ms[s->n_lost++ % REJOINS_MAX];
    bool often = s->n_lost > REJOINS_MAX && now - *at < REJOINS_MS;

    *at = now;
    return often;
}

static int give_up(struct stdio *s, const struct error *why)
{
    struct error err;

    error_set(&err, ERR_UNREACHABLE,
              "the Holdfast that served this pipe has ended%s, and no other could be joined%s%s; "
              "start holdfast stdio again, and it will join the next one or start one",
              s->key ? ", or the key in HOLDFAST_KEY has" : "", why ? ": " : "",
              why ? why->text : "");
    return cli_fail(s->cli, &err);
}

static int join(struct stdio *s, int *ret_channel);

/* Relays lines, through one gateway after another, until our client ends. */
static int carry(struct stdio *s)
{
    int channel = -1;
    int status = join(s, &channel);

    while (status < 0) {
        if (s->n_lost == 0 || replay(s, channel)) {
            s->ends.channel = channel;
            s->ends.logs = s->logs;
            if (relay_run(&s->ends) == RELAY_ENDED) {
                close(channel);
                return leave(s);
            }
        }
        close(channel);
        s->was_ours = s->gateway != 0;
        await_gateway(s);
        s->gateway_status =
            0; /* our exit status is that of the gateway we leave, not of a lost one */
        if (relay_client_left(&s->ends))
            return leave(s);
        if (is_lost_too_often(s) || !mourn(s))
            return give_up(s, NULL);
        status = join(s, &channel);
    }
    return status;
}

/* A daemon that is being restarted gets SUCCESSOR_MS before we start a gateway in its place. */
static bool may_start_gateway(const struct stdio *s, int64_t since_ms)
{
    return s->n_lost == 0 || s->was_ours || clock_mono_ms() >= since_ms + SUCCESSOR_MS;
}

static bool start_one(struct stdio *s, struct error *err)
{
    if (!cli_flag(s->cli, "--start") || s->has_no_daemon)
        return start_gateway(s, err);
    start_daemon(s);
    return true;
}

/* There may be no gateway, or a gateway that is starting or stopping, and that may change between
 * two looks.  Returns -1 when *ret_channel is open, else the exit status. */
static int join(struct stdio *s, int *ret_channel)
{
    int64_t since = clock_mono_ms();
    int64_t until = since + JOIN_MS + (s->n_lost ? SUCCESSOR_MS : 0);
    int pause_ms = JOIN_PAUSE_MS;
    struct error err;

    for (;;) {
        if (s->n_lost && relay_client_left(&s->ends))
            return leave(s);
        if (gateway_has_ended(s)) {
            relay_logs(s->logs, STDERR_FILENO, LEAVE_MS);
            close(s->logs);
            s->logs = -1;
            if (s->gateway_status != LOST_THE_RACE)
                return s->gateway_status ? s->gateway_status : 1;
            s->gateway_status = 0;
        }
        if (datadir_owner(s->data_dir) == 0) {
            error_set(&err, ERR_UNREACHABLE,
                      "Holdfast did not start in time; try again, or run `holdfast up` to see why");
            if (!s->gateway && may_start_gateway(s, since) && !start_one(s, &err))
                return cli_fail(s->cli, &err);
        } else if (open_channel(s, s->cli->mem, ret_channel, &err)) {
            return -1;
        } else if (err.code != ERR_UNREACHABLE && err.code != ERR_UNAVAILABLE) {
            return s->n_lost ? give_up(s, &err) : cli_fail(s->cli, &err);
        }
        if (clock_mono_ms() >= until)
            return s->n_lost ? give_up(s, &err) : cli_fail(s->cli, &err);
        if (s->logs >= 0)
            relay_logs(s->logs, STDERR_FILENO, JOIN_PAUSE_MS);
        (void)poll(NULL, 0, pause_ms);
        if (s->n_lost && pause_ms < REJOIN_PAUSE_MAX_MS)
            pause_ms *= 2;
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
    if (!cli_flag(cli, "--profile") + !cli_flag(cli, "--server") + !cli_flag(cli, "--search") < 2)
        return cli_usage(cli,
                         "--server, --profile and --search exclude each other; use one of them");
    if (!wanted)
        wanted = getenv("HOLDFAST_LOG_LEVEL");
    if (wanted && !log_level_parse(str_of(wanted), &level))
        return cli_usage(cli, "the log level is debug, info, warn or error, not \"%.100s\"",
                         wanted);
    log_setup(level, -1);
    struct config_source source = config_source_of(cli);
    if (!config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &s.data_dir, &err) ||
        !config_identify(&source, cli->mem, &s.config, &err))
        return cli_fail(cli, &err);
    s.key = getenv("HOLDFAST_KEY");
    if (s.key && (!*s.key || strpbrk(s.key, " \r\n\t")))
        return cli_usage(
            cli, "HOLDFAST_KEY does not contain a key; make one with `holdfast key create`");
    s.path = path_of(cli_flag(cli, "--server"),
                     cli_flag(cli, "--search") ? CONFIG_SEARCH_PROFILE : cli_flag(cli, "--profile"),
                     cli->mem);
    s.path = path_with_name(path_with_config(s.path, &s.config, cli->mem), cli->mem);
    signal(SIGPIPE, SIG_IGN);
    relay_talk_init(&s.talk);
    set_up_ends(&s);
    int status = carry(&s);
    close(s.ends.stop);
    relay_talk_release(&s.talk);
    return status;
}
