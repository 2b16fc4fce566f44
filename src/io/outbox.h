/* SPDX-License-Identifier: Apache-2.0 */
/* Small messages that wait for the end of the loop's turn, or until there are enough of them, and
 * then leave one right after the other.  Who gets them is woken by the first and still at work when
 * the next arrives; sent one by one, with other work between, each would wake him anew, which costs
 * the sender more than the sending.
 *
 * One for each loop; used by conn.c alone. */
#ifndef HOLDFAST_IO_OUTBOX_H
#define HOLDFAST_IO_OUTBOX_H

#include "base/str.h"
#include "io/loop.h"

#include <sys/uio.h>

struct conn;
struct outbox;

struct outbox *outbox_new(struct loop *loop) must_check;
void outbox_free(struct outbox *o); /* NULL is fine */
/* Copies the message; conn_write_held() follows before the turn is over.  false: it is too long for
 * here, or the box was full and is emptied, or just being so; then the caller writes it. */
must_check bool outbox_add(struct outbox *o, struct conn *c, const struct iovec *parts, int n,
                           size_t total);
void outbox_empty(struct outbox *o);
/* Forgets what is held for this conn. */
void outbox_forget(struct outbox *o, const struct conn *c);

/* conn.c: writes what was held for it. */
void conn_write_held(struct conn *c, struct str message);

#endif
