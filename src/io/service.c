/* SPDX-License-Identifier: Apache-2.0 */
/* sd_notify(3), sd_listen_fds(3) and sd_watchdog_enabled(3) without their library: an environment
 * variable each, and datagrams. */
#include "io/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LISTEN_FD 3 /* the first passed descriptor */
#define WATCHDOG_MAX_US (24ull * 3600 * 1000000)

struct service {
    int notify; /* connected datagram socket; -1: nobody listens */
    int64_t watchdog_ms;
    int socket; /* passed, not taken yet; else -1 */
    bool has_address;
    struct conn_address address;
    struct loop_timer *timer;
};

/* Number in a variable; 0 without one. */
static uint64_t env_number(const char *name, uint64_t max)
{
    const char *text = getenv(name);
    uint64_t n = 0;

    return text && str_to_u64(str_of(text), max, &n) ? n : 0;
}

/* A variable that names a process must name this one; it may have been meant for the parent. */
static bool is_for_us(const char *pid_name)
{
    return env_number(pid_name, INT32_MAX) == (uint64_t)getpid();
}

/* "/path", or "@name" in the abstract namespace.  An address of another form is ignored: Holdfast
 * serves without its service manager. */
static int open_notify(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = path ? strlen(path) : 0;

    if (n < 2 || n >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
        return -1;
    memcpy(to.sun_path, path, n);
    if (path[0] == '@')
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, len) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool is_listening_tcp(int fd, struct conn_address *ret)
{
    int type = 0, listens = 0;
    socklen_t n = sizeof(int);

    *ret = (struct conn_address){.len = sizeof(ret->sa)};
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) == 0 && listens &&
           getsockname(fd, (struct sockaddr *)&ret->sa, &ret->len) == 0 &&
           (ret->sa.ss_family == AF_INET || ret->sa.ss_family == AF_INET6);
}

/* A unix socket is refused: its peers would be local admins, whatever the mode of its file. */
static bool take_passed(struct service *s, struct error *err)
{
    uint64_t n = is_for_us("LISTEN_PID") ? env_number("LISTEN_FDS", 1024) : 0;

    if (n == 0)
        return true;
    if (n > 1)
        return error_set(err, ERR_CONFIG,
                         "the service manager passed %llu sockets, and Holdfast serves on one; "
                         "leave one ListenStream= in holdfast.socket",
                         (unsigned long long)n);
    if (!is_listening_tcp(LISTEN_FD, &s->address))
        return error_set(err, ERR_CONFIG,
                         "the service manager passed something other than a listening TCP socket; "
                         "write ListenStream=127.0.0.1:4653 into holdfast.socket");
    int flags = fcntl(LISTEN_FD, F_GETFL);
    if (flags < 0 || fcntl(LISTEN_FD, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(LISTEN_FD, F_SETFD, FD_CLOEXEC) < 0)
        return error_sys(err, ERR_CONFIG, errno, "cannot use the socket of the service manager");
    s->socket = LISTEN_FD;
    s->has_address = true;
    return true;
}

bool service_open(struct service **ret, struct error *err)
{
    static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
                                        "LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES"};
    struct service *s = xcalloc(1, sizeof(*s));

    s->socket = -1;
    s->notify = open_notify(getenv("NOTIFY_SOCKET"));
    if (!getenv("WATCHDOG_PID") || is_for_us("WATCHDOG_PID"))
        s->watchdog_ms = (int64_t)(env_number("WATCHDOG_USEC", WATCHDOG_MAX_US) / 1000);
    bool ok = take_passed(s, err);
    for (size_t i = 0; i < countof(names); i++)
        unsetenv(names[i]);
    if (!ok) {
        service_close(s);
        return false;
    }
    *ret = s;
    return true;
}

void service_close(struct service *s)
{
    if (!s)
        return;
    service_unwatch(s);
    if (s->notify >= 0)
        close(s->notify);
    if (s->socket >= 0)
        close(s->socket);
    free(s);
}

const struct conn_address *service_address(const struct service *s)
{
    return s && s->has_address ? &s->address : NULL;
}

int service_take_socket(struct service *s)
{
    int fd = s ? s->socket : -1;

    if (s)
        s->socket = -1;
    return fd;
}

bool service_is_there(const struct service *s)
{
    return s && s->notify >= 0;
}

void service_notify(const struct service *s, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    if (!service_is_there(s))
        return;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n < sizeof(text))
        (void)!send(s->notify, text, (size_t)n, MSG_NOSIGNAL);
}

/* The service manager compares this time with its own: CLOCK_MONOTONIC, which clock.h has not. */
void service_reloading(const struct service *s)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    service_notify(s, "RELOADING=1\nMONOTONIC_USEC=%lld",
                   (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
}

static void on_watchdog(void *arg)
{
    service_notify(arg, "WATCHDOG=1");
}

void service_watch(struct service *s, struct loop *loop)
{
    if (!service_is_there(s) || s->watchdog_ms <= 0)
        return;
    int64_t period = s->watchdog_ms / 2 > 0 ? s->watchdog_ms / 2 : 1;
    s->timer = loop_timer_new(loop, on_watchdog, s);
    loop_timer_start(s->timer, 0, period);
}

void service_unwatch(struct service *s)
{
    if (!s)
        return;
    loop_timer_free(s->timer);
    s->timer = NULL;
}
