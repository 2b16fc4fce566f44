/* SPDX-License-Identifier: Apache-2.0 */
/* The service manager (systemd): messages to it, and the socket that it passes.  Without one, all
 * functions do nothing.  Loop thread only. */
#ifndef HOLDFAST_IO_SERVICE_H
#define HOLDFAST_IO_SERVICE_H

#include "base/error.h"
#include "io/address.h"

struct service;
/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and LISTEN_FDS, and removes them from the environment, so that
 * no child process uses them.  Fails if the passed sockets are not one listening TCP socket. */
must_check bool service_open(struct service **ret, struct error *err);
void service_close(struct service *s); /* NULL is fine; closes the passed socket if not taken */
/* The address of the passed socket; NULL: none was passed. */
const struct conn_address *service_address(const struct service *s);
/* The passed socket, non-blocking and close-on-exec.  The caller owns it; -1: none, or taken. */
int service_take_socket(struct service *s);
/* Whether messages reach a service manager. */
bool service_is_there(const struct service *s);
/* Sends lines such as "READY=1"; lost if the service manager does not take them at once. */
void service_notify(const struct service *s, const char *fmt, ...) printf_like(2, 3);
/* RELOADING=1 with the time; a later READY=1 ends the reload. */
void service_reloading(const struct service *s);
/* Sends WATCHDOG=1 from the loop, twice in each period that the service manager wants. */
void service_watch(struct service *s, struct loop *loop);
void service_unwatch(struct service *s); /* before loop_free() */

#endif
