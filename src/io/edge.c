/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor that is watched as libuv does stays on the kernel's list of ready ones after it was
 * told of, and is looked at once more in the next turn, only to be found empty: for a connection
 * that carries one message at a time, twice the work.  Watched by its edges it is looked at once.
 *
 * libuv finds the handle by what stands in the set's entry, which nothing promises to be the
 * number of the descriptor.  It is so in all versions we know; the kernel shows the entries, so we
 * look before we write one.  Where it does not show them, nothing is changed. */
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
