/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/temporary.h"

#include "cli/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAID_MAX 4096 /* bytes of its last words */

static never_returns void become_stdio(struct str data_dir, int in, int said)
{
    const char *const argv[] = {"holdfast", "stdio",    "--log-level", "error",
                                "--data",   data_dir.p, NULL};
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);

    /* An interrupt in the terminal is for the command, which ends the pipe. */
    setpgid(0, 0);
    /* The pipe is that of the local admin; a key in the environment may belong to another place. */
    unsetenv("HOLDFAST_KEY");
    if (nothing >= 0 && dup2(in, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
        dup2(said, STDERR_FILENO) >= 0)
        execv("/proc/self/exe", (char *const *)argv);
    _exit(1);
}

/* Adds the last line of what it said to the error. */
static void add_last_words(int said, struct error *err)
{
    char text[SAID_MAX];
    off_t size = lseek(said, 0, SEEK_END);
    off_t from = size > SAID_MAX ? size - SAID_MAX : 0;
    ssize_t n = pread(said, text, sizeof(text), from);
    struct str words = str_trim(str_n(text, n > 0 ? (size_t)n : 0)), line = words;

    while (words.p && words.n)
        line = str_split(&words, '\n');
    if (str_starts(line, STR("holdfast: ")))
        line = str_n(line.p + 10, line.n - 10);
    if (line.n)
        error_set(err, ERR_UNREACHABLE, "no Holdfast runs, and none could be started: %.*s",
                  (int)(line.n < 1000 ? line.n : 1000), line.p);
}

bool temporary_start(struct cli *cli, struct str data_dir, struct temporary *ret, struct error *err)
{
    int said = memfd_create("said", MFD_CLOEXEC), in[2], status;
    struct temporary t;

    if (said < 0 || pipe2(in, O_CLOEXEC) < 0) {
        if (said >= 0)
            close(said);
        return error_sys(err, ERR_INTERNAL, errno, "cannot make a pipe");
    }
    t = (struct temporary){.pid = fork(), .in = in[1]};
    if (t.pid == 0)
        become_stdio(data_dir, in[0], said);
    close(in[0]);
    bool ok = t.pid > 0 ? daemon_await(cli, data_dir, t.pid, &status, err)
                        : error_sys(err, ERR_INTERNAL, errno, "cannot start a process");
    if (ok) {
        *ret = t;
    } else {
        if (t.pid < 0 || status >= 0) /* it has been waited for */
            t.pid = 0;
        close(t.in);
        if (t.pid)
            waitpid(t.pid, &status, 0);
        add_last_words(said, err);
    }
    close(said);
    return ok;
}

void temporary_end(struct temporary *t)
{
    if (!t->pid)
        return;
    close(t->in);
    while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    t->pid = 0;
}
