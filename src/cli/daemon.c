/* SPDX-License-Identifier: Apache-2.0 */
/* The process in the background is a fork of the command, made while it has one thread.  It has a
 * session of its own, so no terminal ends it, and its standard error is DATA/holdfast.log.  The
 * configuration is checked before the fork, so its errors reach the user directly. */
#include "cli/daemon.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli/control.h"
#include "cli/program.h"
#include "cli/up.h"
#include "config/datadir.h"
#include "json/read.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAUSE_MS 20
#define UNIT "holdfast.service"
#define UNIT_MS 10000 /* for a question to the service manager */
#define TAIL_BYTES (64 * 1024)
#define PROBLEM_LINES 5

/* The owner. */

static bool peer_of_socket(struct str data_dir, struct ucred *ret, struct error *err)
{
    struct arena *mem = arena_new(64 * 1024);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    socklen_t n = sizeof(*ret);
    struct str path;
    bool ok = datadir_socket(data_dir, mem, &path, err);
    int fd = ok ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;

    if (ok) {
        memcpy(to.sun_path, path.p, path.n);
        ok = (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0 &&
              getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &n) == 0) ||
             error_sys(err, ERR_UNREACHABLE, errno, "the socket %s does not answer", path.p);
    }
    if (fd >= 0)
        close(fd);
    arena_free(mem);
    return ok;
}

bool daemon_pid(struct str data_dir, int *ret, struct error *err)
{
    int owner = datadir_owner(data_dir);
    struct ucred peer;

    if (owner == 0) {
        *ret = 0;
        return true;
    }
    if (!peer_of_socket(data_dir, &peer, err))
        return error_wrap(err, "Holdfast (pid %d) is starting or stopping", owner);
    if (peer.uid != geteuid() && geteuid() != 0)
        return error_set(err, ERR_DENIED,
                         "the Holdfast of %.*s (pid %d) belongs to another user; run this as that "
                         "user",
                         STR_ARG(data_dir), peer.pid);
    *ret = peer.pid;
    return true;
}

bool daemon_signal(struct str data_dir, int signum, int *ret_pid, struct error *err)
{
    int pid = 0;

    if (!daemon_pid(data_dir, &pid, err))
        return false;
    *ret_pid = pid;
    if (pid == 0)
        return true;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    bool ok = fd >= 0 && syscall(SYS_pidfd_send_signal, fd, signum, NULL, 0) == 0;
    int failed = errno;
    if (fd >= 0)
        close(fd);
    if (!ok && failed == ESRCH)
        *ret_pid = 0;
    return ok || failed == ESRCH ||
           error_sys(err, ERR_DENIED, failed, "cannot signal the process %d", pid);
}

/* The unit of the user's service manager. */

/* Runs systemctl --user VERB UNIT.  Returns its exit status; -1: it could not be run, or took
 * longer than `wait_ms`. */
static int systemctl(const char *verb, int64_t wait_ms)
{
    const char *argv[] = {"systemctl", "--user", "--quiet", verb, UNIT, NULL};
    struct program program = {.argv = argv, .timeout_ms = wait_ms, .is_silent = true};

    return program_run(&program) == PROGRAM_EXITED ? program.status : -1;
}

/* Variables that say which data or configuration is meant.  A service does not get those of a
 * shell. */
static const struct {
    const char *name;
    const char *usual; /* value that changes nothing, below HOME; NULL: any value counts */
} shell_variables[] = {
    {"HOLDFAST_CONFIG", NULL},
    {"HOLDFAST_LOG_FORMAT", NULL},
    {"HOLDFAST_LOG_LEVEL", NULL},
    {"HOLDFAST_MASTER_KEY_FILE", NULL},
    {"HOLDFAST_AUDIT_KEY_FILE", NULL},
    {"HOLDFAST_TOKEN_KEY_FILE", NULL},
    {"DATABASE_URL", NULL},
    {"REDIS_URL", NULL},
    {"XDG_DATA_HOME", "/.local/share"},
    {"XDG_CONFIG_HOME", "/.config"},
};

static bool shell_names_another(struct arena *mem)
{
    struct str home = str_of(getenv("HOME"));

    for (size_t i = 0; i < countof(shell_variables); i++) {
        struct str value = str_of(getenv(shell_variables[i].name));
        const char *usual = shell_variables[i].usual;
        if (value.n &&
            !(usual && home.p && str_eq(value, arena_printf(mem, "%.*s%s", STR_ARG(home), usual))))
            return true;
    }
    return access("holdfast.json", F_OK) == 0; /* of this directory */
}

/* The unit has its own flags and environment, so it is used only if the command has none. */
static bool has_unit(const struct cli *cli)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char path[4096];

    if (cli_flag(cli, "--config") || cli_flag(cli, "--data") || cli_flag(cli, "--listen") ||
        shell_names_another(cli->mem) || !runtime)
        return false;
    int n = snprintf(path, sizeof(path), "%s/systemd/private", runtime);
    return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0 &&
           systemctl("cat", UNIT_MS) == 0;
}

/* Waiting. */

static bool is_ready(struct str data_dir, struct arena *mem)
{
    struct control *control;
    struct error err;
    struct str body;
    bool ok;

    if (datadir_owner(data_dir) == 0 || !control_open_socket(data_dir, &control, &err))
        return false;
    control_set_deadline(control, 2000);
    ok = control_get(control, STR("/readyz"), mem, &body, &err);
    control_close(control);
    return ok;
}

bool daemon_await(struct cli *cli, struct str data_dir, int pid, int *ret_status, struct error *err)
{
    int64_t until = clock_mono_ms() + DAEMON_READY_MS;
    int status;

    *ret_status = -1;
    while (!is_ready(data_dir, cli->mem)) {
        if (pid && waitpid(pid, &status, WNOHANG) == pid) {
            *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
            if (datadir_owner(data_dir) == 0)
                return error_set(err, ERR_INTERNAL, "Holdfast did not start");
            pid = 0; /* another one was faster */
        }
        if (clock_mono_ms() >= until)
            return error_set(err, ERR_UNREACHABLE, "Holdfast was not ready after %d s",
                             DAEMON_READY_MS / 1000);
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return true;
}

/* The log. */

/* Adds the message and the reason of a JSON line with the level error or warn, or a whole line that
 * is not JSON. */
static bool add_problem_line(struct buf *out, struct str line, struct arena *mem)
{
    struct js_doc doc;

    line = str_trim(line);
    if (!line.n)
        return false;
    if (!js_parse(line, &js_limits_upstream, mem, &doc, NULL)) {
        buf_addz(out, "\n  ");
        log_escape(out, line, 300);
        return true;
    }
    struct str level = js_text(&doc, js_get(&doc, js_root(&doc), STR("level")), mem);
    struct str why = js_text(&doc, js_get(&doc, js_root(&doc), STR("why")), mem);
    struct str msg = js_text(&doc, js_get(&doc, js_root(&doc), STR("msg")), mem);
    if (!str_eq(level, STR("error")) && !str_eq(level, STR("warn")))
        return false;
    buf_addz(out, "\n  ");
    log_escape(out, msg, 300);
    if (why.n) {
        buf_addz(out, ": ");
        log_escape(out, why, 500);
    }
    return true;
}

/* Adds the last lines about problems, of those written after the byte `since`. */
static void add_log(struct str path, off_t since, struct error *err, struct arena *mem)
{
    struct str lines[PROBLEM_LINES];
    struct buf text, out;
    struct stat st;
    int fd = open(path.p, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    size_t n = 0, i;

    buf_init(&text, TAIL_BYTES + 1);
    buf_init(&out, 64 * 1024);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        off_t from = st.st_size < since ? 0 : since;
        from = st.st_size - from > TAIL_BYTES ? st.st_size - TAIL_BYTES : from;
        ssize_t got = pread(fd, buf_room(&text, TAIL_BYTES), TAIL_BYTES, from);
        if (got > 0)
            buf_grown(&text, (size_t)got);
    }
    if (fd >= 0)
        close(fd);
    for (struct str rest = buf_str(&text); rest.n;) {
        struct buf one;
        struct str line = str_split(&rest, '\n');
        buf_init(&one, 8192);
        if (add_problem_line(&one, line, mem))
            lines[n++ % PROBLEM_LINES] = arena_dup(mem, buf_str(&one));
        buf_release(&one);
    }
    for (i = n > PROBLEM_LINES ? n - PROBLEM_LINES : 0; i < n; i++)
        buf_addstr(&out, lines[i % PROBLEM_LINES]);
    error_set(err, err->code, "%.200s; its log is %.*s", arena_dup(mem, str_of(err->text)).p,
              STR_ARG(path));
    if (out.n)
        fprintf(stderr, "holdfast: the log says:%s\n", out.p);
    buf_release(&text);
    buf_release(&out);
}

/* The process in the background. */

/* The child loads the configuration again, because memory with secrets does not survive a fork. */
static never_returns void become_daemon(struct cli *cli, const char *log)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct gateway_options options;
    struct error err;

    setsid();
    umask(077);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0 ||
        !log_to_file(log, &err))
        _exit(1);
    if (nothing > STDERR_FILENO)
        close(nothing);
    exit(up_prepare(cli, NULL, &options, &err) ? gateway_run(&options) : cli_fail(cli, &err));
}

static off_t size_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_size <= LOG_FILE_MAX ? st.st_size : 0;
}

/* Creates and checks the directory, which will hold the log. */
static bool make_directory(struct str data_dir, struct error *err)
{
    struct datadir *own;

    if (!datadir_own(data_dir, &own, err))
        return datadir_owner(data_dir) != 0;
    datadir_release(own);
    return true;
}

static bool start_process(struct cli *cli, struct str data_dir, struct error *err)
{
    struct gateway_options options;
    struct str log = datadir_path(data_dir, DAEMON_LOG, cli->mem);
    int status;

    if (!up_set_log(cli, 1, err) || !up_prepare(cli, NULL, &options, err))
        return false;
    config_unref(options.config);
    off_t since = size_of(log.p);
    if (!make_directory(data_dir, err))
        return false;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become_daemon(cli, log.p);
    if (pid < 0)
        return error_sys(err, ERR_INTERNAL, errno, "cannot start a process");
    if (daemon_await(cli, data_dir, pid, &status, err))
        return true;
    add_log(log, since, err, cli->mem);
    if (status >= 0)
        err->code = ERR_CONFIG; /* a refused start */
    return false;
}

static bool start_unit(struct cli *cli, struct str data_dir, struct error *err)
{
    int status;

    if (systemctl("start", DAEMON_READY_MS) != 0 || !daemon_await(cli, data_dir, 0, &status, err))
        return error_set(err, ERR_UNREACHABLE,
                         "the user unit " UNIT " did not start; see: systemctl --user status " UNIT
                         " and journalctl --user -u " UNIT);
    return true;
}

/* Waits for the owner of the directory.  *ret_ready is false if it ended, because it was
 * stopping. */
static bool await_owner(struct cli *cli, struct str data_dir, bool *ret_ready, struct error *err)
{
    int64_t until = clock_mono_ms() + DAEMON_STOP_MS;
    int owner;

    while (!(*ret_ready = is_ready(data_dir, cli->mem)) && (owner = datadir_owner(data_dir)) != 0) {
        if (clock_mono_ms() >= until)
            return error_set(
                err, ERR_UNREACHABLE,
                "another process (pid %d) has the data directory %.*s, and was neither "
                "ready nor over after %d s; look at `holdfast status` and at the log %s",
                owner, STR_ARG(data_dir), DAEMON_STOP_MS / 1000,
                datadir_path(data_dir, DAEMON_LOG, cli->mem).p);
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return true;
}

bool daemon_start(struct cli *cli, struct str data_dir, enum daemon_start *ret, struct error *err)
{
    bool runs = false;

    if (!await_owner(cli, data_dir, &runs, err))
        return false;
    if (runs) {
        *ret = DAEMON_RAN;
        return true;
    }
    bool by_unit = has_unit(cli);
    if (!(by_unit ? start_unit(cli, data_dir, err) : start_process(cli, data_dir, err)))
        return false;
    *ret = by_unit ? DAEMON_BY_UNIT : DAEMON_STARTED;
    return true;
}

/* The end. */

/* A Holdfast that is starting has no socket yet, and one that is stopping has none any more. */
static bool await_pid(struct str data_dir, int64_t until_ms, int *ret_pid, struct error *err)
{
    while (!daemon_pid(data_dir, ret_pid, err)) {
        if (err->code != ERR_UNREACHABLE || clock_mono_ms() >= until_ms)
            return false;
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return true;
}

bool daemon_stop(struct str data_dir, int *ret_pid, struct error *err)
{
    int64_t until = clock_mono_ms() + DAEMON_STOP_MS;
    int owner = datadir_owner(data_dir), pid = 0;

    if (!await_pid(data_dir, until, &pid, err))
        return false;
    *ret_pid = pid ? pid : owner;
    if (pid == 0)
        return true;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    if (fd < 0 || syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) < 0) {
        if (fd >= 0)
            close(fd);
        return errno == ESRCH ||
               error_sys(err, ERR_DENIED, errno, "cannot end the process %d", pid);
    }
    int n;
    do {
        int64_t left = until - clock_mono_ms();
        n = left > 0 ? poll(&ended, 1, (int)left) : 0;
    } while (n < 0 && errno == EINTR);
    close(fd);
    return n > 0 ||
           error_set(err, ERR_TIMEOUT,
                     "Holdfast (pid %d) is still stopping after %d s; kill -9 %d ends it at "
                     "once, and no acknowledged call is lost",
                     pid, DAEMON_STOP_MS / 1000, pid);
}
