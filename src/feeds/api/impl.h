/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the operations on live events. */
#ifndef HOLDFAST_FEEDS_API_IMPL_H
#define HOLDFAST_FEEDS_API_IMPL_H

#include "api/api.h"

/* sse.c */
void events_sse_open(struct api_call *c);
/* socket.c */
void events_socket_open(struct api_call *c);
/* handshake.c */
bool websocket_is_asked(const struct http_head *head);
/* The lines of the 101, in c->mem.  false: the refusal was sent. */
must_check bool websocket_accept(struct api_call *c, struct str *ret_lines);

#endif
