/* SPDX-License-Identifier: Apache-2.0 */
/* Non-blocking descriptors and poll(): every wait ends at its deadline.  That includes name
 * lookups, because the resolver runs on a thread of libc. */
#include "io/wire.h"

#include "io/tls_impl.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct wire {
    int fd;
    struct tls_session *tls;
    bool has_ended;
};

/* A query to the resolver.  If it is not answered in time and cannot be cancelled, the resolver
 * keeps the struct. */
struct name_lookup {
    struct gaicb ask;
    struct gaicb *list[1];
    struct addrinfo hints;
    char host[256], port[8];
};

int64_t wire_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static bool too_late(struct error *err)
{
    return error_set(err, ERR_TIMEOUT, "no answer in time");
}

/* Returns false when the deadline has passed. */
static bool wait_for(int fd, short events, int64_t until_us)
{
    for (;;) {
        int64_t left = until_us - wire_now_us();
        struct pollfd p = {.fd = fd, .events = events};
        if (left <= 0)
            return false;
        int n = poll(&p, 1, (int)(left / 1000 + 1));
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
    }
}

/* Returns NULL when the name is unknown or was not resolved in time. */
static struct addrinfo *ask_resolver(struct name_lookup *l, int64_t until_us)
{
    int64_t left = until_us - wire_now_us();
    struct timespec wait = {.tv_sec = left / 1000000, .tv_nsec = left % 1000000 * 1000};
    struct addrinfo *found = NULL;

    l->list[0] = &l->ask;
    l->ask = (struct gaicb){.ar_name = l->host, .ar_service = l->port, .ar_request = &l->hints};
    if (left <= 0 || getaddrinfo_a(GAI_NOWAIT, l->list, 1, NULL) != 0) {
        free(l);
        return NULL;
    }
    while (gai_error(&l->ask) == EAI_INPROGRESS) {
        int how = gai_suspend((const struct gaicb *const *)l->list, 1, &wait);
        if (how == EAI_AGAIN || (how == EAI_INTR && wire_now_us() >= until_us))
            break;
    }
    if (gai_error(&l->ask) == EAI_INPROGRESS && gai_cancel(&l->ask) == EAI_NOTCANCELED)
        return NULL; /* leaked on purpose: the resolver will still write to it */
    if (gai_error(&l->ask) == 0)
        found = l->ask.ar_result;
    free(l);
    return found;
}

static struct addrinfo *resolve(const char *host, uint16_t port, int64_t until_us)
{
    struct addrinfo *found = NULL;
    struct name_lookup *l = xcalloc(1, sizeof(*l));

    snprintf(l->host, sizeof(l->host), "%s", host);
    snprintf(l->port, sizeof(l->port), "%u", port);
    l->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    if (getaddrinfo(l->host, l->port, &l->hints, &found) == 0) {
        free(l);
        return found;
    }
    l->hints.ai_flags = AI_ADDRCONFIG;
    return ask_resolver(l, until_us);
}

/* Returns a connected descriptor, or -1 with errno set. */
static int connect_to(const struct sockaddr *address, socklen_t n, int64_t until_us)
{
    int one = 1, why = 0;
    socklen_t size = sizeof(why);
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (address->sa_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(fd, address, n) == 0)
        return fd;
    if (errno != EINPROGRESS)
        why = errno; /* EAGAIN: the backlog of a unix socket is full */
    else if (!wait_for(fd, POLLOUT, until_us))
        why = ETIMEDOUT;
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size) < 0)
        why = errno;
    if (why == 0)
        return fd;
    close(fd);
    errno = why;
    return -1;
}

static int connect_path(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    return connect_to((struct sockaddr *)&address, sizeof(address), 0);
}

static bool connect_any(const struct wire_target *target, int64_t until_us, int *ret_fd,
                        struct error *err)
{
    int fd = -1;
    if (target->path) {
        fd = connect_path(target->path);
    } else {
        struct addrinfo *list = resolve(target->host, target->port, until_us);
        if (!list)
            return error_set(err, ERR_UNREACHABLE, "its name could not be resolved");
        for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
            fd = connect_to(a->ai_addr, a->ai_addrlen, until_us);
        int why = errno;
        freeaddrinfo(list);
        errno = why;
    }
    if (fd < 0)
        return errno == ETIMEDOUT ? too_late(err)
                                  : error_sys(err, ERR_UNREACHABLE, errno, "connecting");
    *ret_fd = fd;
    return true;
}

/* Waits for the event that a TLS step needs; false when the step failed or the deadline has
 * passed. */
static bool step_again(struct wire *w, enum tls_step step, int64_t until_us, struct error *err)
{
    if (step == TLS_FAILED)
        return false;
    if (step == TLS_EOF)
        return error_set(err, ERR_UNREACHABLE, "it hung up");
    return wait_for(w->fd, step == TLS_WANT_WRITE ? POLLOUT : POLLIN, until_us) || too_late(err);
}

static bool shake_hands(struct wire *w, const struct wire_target *target, int64_t until_us,
                        struct error *err)
{
    enum tls_step step;
    if (!tls_session_new(target->tls, w->fd, target->host, &w->tls, err))
        return false;
    while ((step = tls_session_shake(w->tls, err)) != TLS_OK)
        if (!step_again(w, step, until_us, err))
            return false;
    return true;
}

bool wire_open(const struct wire_target *target, int64_t until_us, struct wire **ret,
               struct error *err)
{
    int fd = -1;
    if (!connect_any(target, until_us, &fd, err))
        return false;
    struct wire *w = xcalloc(1, sizeof(*w));
    w->fd = fd;
    if (target->tls && !shake_hands(w, target, until_us, err)) {
        wire_close(w);
        return false;
    }
    *ret = w;
    return true;
}

void wire_close(struct wire *w)
{
    if (!w)
        return;
    tls_session_free(w->tls);
    close(w->fd);
    free(w);
}

static enum tls_step plain_write(struct wire *w, struct str bytes, size_t *ret_n, struct error *err)
{
    ssize_t n = send(w->fd, bytes.p, bytes.n, MSG_NOSIGNAL);
    if (n >= 0) {
        *ret_n = (size_t)n;
        return TLS_OK;
    }
    if (errno == EAGAIN || errno == EINTR)
        return TLS_WANT_WRITE;
    error_sys(err, ERR_UNREACHABLE, errno, "sending");
    return TLS_FAILED;
}

bool wire_write(struct wire *w, struct str bytes, int64_t until_us, struct error *err)
{
    while (bytes.n > 0) {
        size_t n = 0;
        enum tls_step step = w->tls ? tls_session_write(w->tls, bytes.p, bytes.n, &n, err)
                                    : plain_write(w, bytes, &n, err);
        if (step != TLS_OK && !step_again(w, step, until_us, err))
            return false;
        bytes = str_n(bytes.p + n, bytes.n - n);
    }
    return true;
}

static enum tls_step plain_read(struct wire *w, char *to, size_t n, size_t *ret_n,
                                struct error *err)
{
    ssize_t got = recv(w->fd, to, n, 0);
    if (got > 0) {
        *ret_n = (size_t)got;
        return TLS_OK;
    }
    if (got == 0)
        return TLS_EOF;
    if (errno == EAGAIN || errno == EINTR)
        return TLS_WANT_READ;
    error_sys(err, ERR_UNREACHABLE, errno, "reading");
    return TLS_FAILED;
}

bool wire_read(struct wire *w, char *to, size_t n, int64_t until_us, size_t *ret_n,
               struct error *err)
{
    enum tls_step step;
    size_t got = 0;
    while ((step = w->tls ? tls_session_read(w->tls, to, n, &got, err)
                          : plain_read(w, to, n, &got, err)) != TLS_OK) {
        w->has_ended = step == TLS_EOF;
        if (!step_again(w, step, until_us, err))
            return false;
    }
    *ret_n = got;
    return true;
}

bool wire_has_ended(const struct wire *w)
{
    return w->has_ended;
}

bool wire_is_readable(const struct wire *w)
{
    struct pollfd p = {.fd = w->fd, .events = POLLIN};
    return (w->tls && tls_session_has_pending(w->tls)) || poll(&p, 1, 0) > 0;
}

int wire_fd(const struct wire *w)
{
    return w->fd;
}
