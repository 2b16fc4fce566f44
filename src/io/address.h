/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: "127.0.0.1:4653", "[::1]:80", "unix:/path"; names resolved on the uv pool. */
#ifndef HOLDFAST_IO_ADDRESS_H
#define HOLDFAST_IO_ADDRESS_H

#include "base/error.h"
#include "base/str.h"
#include "io/loop.h"

#include <sys/socket.h>

struct conn_address {
    socklen_t len; /* first, next to the few bytes of `sa` that are used */
    struct sockaddr_storage sa;
};
/* Numeric hosts, "localhost" and unix: only; never blocks. */
must_check bool address_parse(struct str text, struct conn_address *ret, struct error *err);
bool address_is_loopback(const struct conn_address *a); /* true for unix sockets */
void address_format(const struct conn_address *a, char *ret_text, size_t n);
/* Resolves any host name, in brackets or not.  The loop calls `done` exactly once, unless
 * cancelled. */
struct address_lookup;
struct address_lookup *address_resolve(struct loop *loop, struct str host, uint16_t port,
                                       void (*done)(void *arg, const struct conn_address *a,
                                                    const struct error *e),
                                       void *arg) must_check;
void address_resolve_cancel(struct address_lookup *l);
/* Makes a listening socket: SO_REUSEADDR, non-blocking, close-on-exec.  The mode of unix sockets is
 * 0600. */
must_check bool address_listen(const struct conn_address *a, int *ret_fd, struct error *err);

#endif
