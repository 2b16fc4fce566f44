/* SPDX-License-Identifier: Apache-2.0 */
/* Small messages that wait until the end of the loop's turn, or until the box is full, and are then
 * written one right after the other.  The first message wakes the receiver, which is still running
 * when the next one arrives.  Messages sent one by one, with other work in between, would wake the
 * receiver each time, which costs the sender more than the sending.
 *
 * One outbox per loop; only conn.c uses it. */
#ifndef HOLDFAST_IO_OUTBOX_H
#define HOLDFAST_IO_OUTBOX_H

#include "base/str.h"
#include "io/loop.h"

#include <sys/uio.h>

struct conn;
struct outbox;

struct outbox *outbox_new(struct loop *loop) must_check;
void outbox_free(struct outbox *o); /* NULL is fine */
/* Copies the message; conn_write_held() writes it before the turn ends.  Returns false if the
 * message is too long, if the box was full and has been emptied, or if it is being emptied; the
 * caller then writes the message itself. */
must_check bool outbox_add(struct outbox *o, struct conn *c, const struct iovec *parts, int n,
                           size_t total);
void outbox_empty(struct outbox *o);
/* Drops the messages held for this connection. */
void outbox_forget(struct outbox *o, const struct conn *c);

/* In conn.c: writes a held message. */
void conn_write_held(struct conn *c, struct str message);

#endif
