/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses in text and in kernel form.  Numeric addresses are parsed in place.  Names are resolved
 * on the shared pool, because getaddrinfo(3) blocks.  A lookup belongs to the pool until its answer
 * is back, so cancelling only drops its callback. */
#include "io/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LISTEN_BACKLOG 1024
#define HOST_MAX 253

static bool parse_unix(struct str path, struct conn_address *ret, struct error *err)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    if (path.n == 0 || path.n >= sizeof(un.sun_path))
        return error_set(err, ERR_BAD_INPUT,
                         "a unix socket path has 1 to %zu bytes: use a shorter one",
                         sizeof(un.sun_path) - 1);
    memcpy(un.sun_path, path.p, path.n);
    memset(ret, 0, sizeof(*ret));
    memcpy(&ret->sa, &un, sizeof(un));
    ret->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.n + 1);
    return true;
}

/* Fills *ret when `host` is a numeric address or "localhost". */
static bool numeric(struct str host, uint16_t port, struct conn_address *ret)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    char text[HOST_MAX + 1];

    if (host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = str_n(host.p + 1, host.n - 2);
    if (str_ieq(host, STR("localhost")))
        host = STR("127.0.0.1");
    if (host.n == 0 || host.n > HOST_MAX)
        return false;
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        memset(ret, 0, sizeof(*ret));
        memcpy(&ret->sa, &v4, sizeof(v4));
        ret->len = sizeof(v4);
        return true;
    }
    if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1) {
        memset(ret, 0, sizeof(*ret));
        memcpy(&ret->sa, &v6, sizeof(v6));
        ret->len = sizeof(v6);
        return true;
    }
    return false;
}

bool address_parse(struct str text, struct conn_address *ret, struct error *err)
{
    struct conn_address a;
    struct str host, port;
    uint64_t number;
    size_t colon = text.n;

    if (str_starts(text, STR("unix:")))
        return parse_unix(str_n(text.p + 5, text.n - 5), ret, err);
    while (colon > 0 && text.p[colon - 1] != ':')
        colon--;
    if (colon == 0)
        return error_set(
            err, ERR_BAD_INPUT,
            "an address is HOST:PORT or unix:/path: add the port, as in 127.0.0.1:4653");
    host = str_n(text.p, colon - 1);
    port = str_n(text.p + colon, text.n - colon);
    if (!str_to_u64(port, 65535, &number))
        return error_set(err, ERR_BAD_INPUT, "the port of an address is a number from 0 to 65535");
    if (str_find(host, ':') != host.n && (host.p[0] != '[' || host.p[host.n - 1] != ']'))
        return error_set(err, ERR_BAD_INPUT, "write an IPv6 address in brackets, as in [::1]:4653");
    if (!numeric(host, (uint16_t)number, &a))
        return error_set(err, ERR_BAD_INPUT,
                         "the host of an address to listen on is numeric or localhost");
    *ret = a;
    return true;
}

bool address_is_loopback(const struct conn_address *a)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    switch (a->sa.ss_family) {
    case AF_UNIX:
        return true;
    case AF_INET:
        memcpy(&v4, &a->sa, sizeof(v4));
        return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
    case AF_INET6:
        memcpy(&v6, &a->sa, sizeof(v6));
        if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
            return v6.sin6_addr.s6_addr[12] == 127;
        return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
    default:
        return false;
    }
}

void address_format(const struct conn_address *a, char *ret_text, size_t n)
{
    char host[INET6_ADDRSTRLEN] = "";
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    size_t path_n;

    switch (a->sa.ss_family) {
    case AF_UNIX:
        path_n = a->len > offsetof(struct sockaddr_un, sun_path)
                     ? a->len - offsetof(struct sockaddr_un, sun_path)
                     : 0;
        snprintf(ret_text, n, "unix:%.*s", (int)path_n,
                 ((const struct sockaddr_un *)&a->sa)->sun_path);
        break;
    case AF_INET:
        memcpy(&v4, &a->sa, sizeof(v4));
        inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
        snprintf(ret_text, n, "%s:%u", host, ntohs(v4.sin_port));
        break;
    case AF_INET6:
        memcpy(&v6, &a->sa, sizeof(v6));
        inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
        snprintf(ret_text, n, "[%s]:%u", host, ntohs(v6.sin6_port));
        break;
    default:
        snprintf(ret_text, n, "unknown");
    }
}

struct address_lookup {
    char host[HOST_MAX + 1];
    uint16_t port;
    struct conn_address found;
    int rc; /* of getaddrinfo() */
    void (*done)(void *arg, const struct conn_address *a,
                 const struct error *e); /* NULL: cancelled */
    void *arg;
};

static void lookup_on_pool(void *arg)
{
    struct address_lookup *l = arg;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *list = NULL;
    char service[8];

    if (l->found.len)
        return;
    snprintf(service, sizeof(service), "%u", l->port);
    l->rc = getaddrinfo(l->host, service, &hints, &list);
    if (l->rc == 0) {
        memcpy(&l->found.sa, list->ai_addr, list->ai_addrlen);
        l->found.len = list->ai_addrlen;
        freeaddrinfo(list);
    }
}

static void lookup_on_done(void *arg)
{
    struct address_lookup *l = arg;
    struct error err;

    if (l->done && l->rc == 0) {
        l->done(l->arg, &l->found, NULL);
    } else if (l->done) {
        error_set(&err, ERR_UNREACHABLE,
                  "the host name does not resolve (%s): check its spelling and DNS",
                  gai_strerror(l->rc));
        l->done(l->arg, NULL, &err);
    }
    free(l);
}

struct address_lookup *address_resolve(struct loop *loop, struct str host, uint16_t port,
                                       void (*done)(void *arg, const struct conn_address *a,
                                                    const struct error *e),
                                       void *arg)
{
    struct address_lookup *l = xcalloc(1, sizeof(*l));

    l->done = done;
    l->arg = arg;
    l->port = port;
    if (!numeric(host, port, &l->found) && host.n > 0 && host.n <= HOST_MAX)
        memcpy(l->host, host.p, host.n);
    else if (!l->found.len)
        memcpy(l->host, ".", 1); /* does not resolve; the loop reports the error */
    loop_work(loop, lookup_on_pool, lookup_on_done, l);
    return l;
}

void address_resolve_cancel(struct address_lookup *l)
{
    if (l)
        l->done = NULL;
}

bool address_listen(const struct conn_address *a, int *ret_fd, struct error *err)
{
    int family = a->sa.ss_family, one = 1, saved;
    char text[128];
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    address_format(a, text, sizeof(text));
    if (fd < 0)
        return error_sys(err, ERR_UNAVAILABLE, errno, "cannot make a socket for %s", text);
    if (family == AF_UNIX) /* bind(2) gives the socket file the mode of the descriptor */
        fchmod(fd, 0600);
    else
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (const struct sockaddr *)&a->sa, a->len) == 0 && listen(fd, LISTEN_BACKLOG) == 0) {
        *ret_fd = fd;
        return true;
    }
    saved = errno;
    close(fd);
    return error_sys(err, saved == EADDRINUSE ? ERR_CONFLICT : ERR_UNAVAILABLE, saved,
                     "cannot listen on %s: free it or choose another address", text);
}
