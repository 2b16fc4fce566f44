/* SPDX-License-Identifier: Apache-2.0 */
/* Edge-triggered watching of a descriptor that libuv put into its epoll set.  For the loop alone.
 */
#ifndef HOLDFAST_IO_EDGE_H
#define HOLDFAST_IO_EDGE_H

#include "base/base.h"

/* Does the set call this descriptor by its own number, so that we may speak of it in libuv's name?
 * False when its entry is not to be seen, and then *ret_possible is not set. */
must_check bool edge_look(int epoll_fd, int fd, bool *ret_possible);
/* From now on the kernel tells of bytes and of the end once, when they come; and now, if they are
 * there. */
bool edge_arm(int epoll_fd, int fd);

#endif
