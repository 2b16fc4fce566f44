/* SPDX-License-Identifier: Apache-2.0 */
/* The zygote: a small process forked while Holdfast has one thread.  It only forks keepers.  So a
 * keeper that was killed (by an operator, or because memory ran out) can be replaced, although
 * Holdfast itself then has threads and must not fork.
 *
 * Holdfast makes the socket pair of each keeper and sends one end here.  The zygote forks, closes
 * its copy and answers with the pid; it never waits for a keeper.  It ends when Holdfast does,
 * because its socket closes. */
#include "upstream/keeper_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* /proc/self/stat says where arguments and environment lie.  A title longer than the arguments runs
 * on into the environment, as the kernel expects of programs that change their title. */
void keeper_take_title(const char *title, const char *name)
{
    char text[2048];
    unsigned long arg = 0, arg_end = 0, env = 0, env_end = 0;
    prctl(PR_SET_NAME, name);
    FILE *f = fopen("/proc/self/stat", "re");
    if (!f)
        return;
    char *line = fgets(text, sizeof(text), f);
    fclose(f);
    char *at = line ? strrchr(line, ')') : NULL;
    for (int field = 2; at && field < 48; field++)
        at = strchr(at + 1, ' ');
    if (!at || sscanf(at, "%lu %lu %lu %lu", &arg, &arg_end, &env, &env_end) != 4)
        return;
    if (!arg || arg_end < arg || env != arg_end || env_end < env || env_end - arg <= strlen(title))
        return;
    memset((void *)arg, 0, env_end - arg);
    memcpy((void *)arg, title, strlen(title) + 1);
}

/* 0 and 1 carry the MCP messages in stdio mode, so they must not stay open here. */
void keeper_take_fds(int socket)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int high = fcntl(socket, F_DUPFD_CLOEXEC, 10);
    if (null < 0 || high < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
        (fcntl(2, F_GETFD) < 0 && dup2(null, 2) < 0) || dup3(high, KEEPER_SOCKET_FD, O_CLOEXEC) < 0)
        _exit(1);
    close_range(KEEPER_SOCKET_FD + 1, ~0U, 0);
}

/* The socket in the next packet; -1 when Holdfast is gone. */
static int zygote_receive(void)
{
    char byte;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &part,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof(control.bytes)};
    ssize_t n;
    int fd = -1;
    do
        n = recvmsg(KEEPER_SOCKET_FD, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    const struct cmsghdr *c = n == 1 ? CMSG_FIRSTHDR(&msg) : NULL;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    return fd;
}

void keeper_zygote_run(int fd)
{
    sigset_t all;
    setsid(); /* Ctrl-C in the terminal is for Holdfast, which then ends this process in order */
    keeper_take_fds(fd);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_IGN); /* the kernel reaps keepers; each keeper resets this for itself */
    char **base_env = child_env_save();
    keeper_take_title("holdfast: zygote", "holdfast-zygote");
    environ = NULL;
    for (int socket = zygote_receive(); socket >= 0; socket = zygote_receive()) {
        pid_t pid = _Fork();
        if (pid == 0)
            keeper_process_run(socket, base_env);
        int32_t answer = pid < 0 ? -errno : pid;
        close(socket);
        if (send(KEEPER_SOCKET_FD, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
            break;
    }
    _exit(0);
}
