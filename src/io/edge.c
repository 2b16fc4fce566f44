/* SPDX-License-Identifier: Apache-2.0 */
/* A level-triggered descriptor, as libuv registers it, stays on the kernel's ready list after it
 * was reported.  The kernel checks it again in the next turn and finds it empty: twice the work for
 * a connection that carries one message at a time.  An edge-triggered descriptor is checked once.
 *
 * libuv finds its handle by the data in the epoll entry, which libuv does not document to be the
 * descriptor's number.  It is in all versions we know.  The kernel shows the entries, so we check
 * before we replace one.  Where the kernel does not show them, nothing is changed. */
#include "io/edge.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/epoll.h>

bool edge_look(int epoll_fd, int fd, bool *ret_possible)
{
    char line[256];
    int entry = -1;
    uint64_t data = 0;
    bool is_found = false;

    snprintf(line, sizeof(line), "/proc/self/fdinfo/%d", epoll_fd);
    FILE *file = fopen(line, "re");
    if (!file)
        return false;
    while (!is_found && fgets(line, sizeof(line), file))
        is_found =
            sscanf(line, "tfd: %d events: %*x data: %" SCNx64, &entry, &data) == 2 && entry == fd;
    fclose(file);
    if (is_found)
        *ret_possible = (uint32_t)data == (uint32_t)fd;
    return is_found;
}

bool edge_arm(int epoll_fd, int fd)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.fd = fd};

    return epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &e) == 0;
}
