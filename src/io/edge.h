/* SPDX-License-Identifier: Apache-2.0 */
/* Edge-triggered watching of a descriptor that libuv put into its epoll set.  For the loop alone.
 */
#ifndef HOLDFAST_IO_EDGE_H
#define HOLDFAST_IO_EDGE_H

#include "base/base.h"

/* Checks whether the epoll entry of this descriptor carries the descriptor's number, so that
 * edge_arm() may replace the entry that libuv made.  Returns false when the kernel does not show
 * the entry; *ret_possible is then not set. */
must_check bool edge_look(int epoll_fd, int fd, bool *ret_possible);
/* Makes the descriptor edge-triggered: the kernel reports new bytes and the end of the stream once,
 * when they come, and now if they are already there. */
bool edge_arm(int epoll_fd, int fd);

#endif
