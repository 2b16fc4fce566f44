/* SPDX-License-Identifier: Apache-2.0 */
/* One connection: a socket (TCP, unix) or one end of a pipe.  Reads into a shared scratch buffer,
 * writes directly first and queues the rest within a bound, and offers the same verbs over TLS.
 * Timeouts belong to the user of the connection.
 *
 * Life: conn_adopt/conn_dial → callbacks … → conn_close (by its user, once).  After conn_close() no
 * callback comes; memory is released at the end of the turn. */
#ifndef HOLDFAST_IO_CONN_H
#define HOLDFAST_IO_CONN_H

#include "base/buf.h"
#include "base/error.h"
#include "io/loop.h"

#include <sys/uio.h>

struct conn;
struct tls_context;

struct conn_events {
    void (*on_open)(void *arg); /* connected, TLS handshake done; may be NULL when adopted */
    /* Bytes arrived; they are valid until this returns.  The callee copies the bytes that it
     * needs. */
    void (*on_bytes)(void *arg, struct str bytes);
    void (*on_eof)(void *arg);     /* peer finished writing */
    void (*on_drained)(void *arg); /* the write queue became empty; may be NULL */
    void (*on_error)(void *arg, const struct error *e); /* broken; the user calls conn_close */
    /* If set, small messages wait for the end of the turn (io/outbox.h).  If such a message cannot
     * be written, the connection is broken, and the message is returned here, instead of
     * on_error. */
    void (*on_returned)(void *arg, struct str message);
};

/* Takes over the fd and makes it non-blocking.  `tls` NULL: plain.  The end of a pipe works too: it
 * is only read or only written, as it was opened. */
struct conn *conn_adopt(struct loop *loop, int fd, struct tls_context *tls,
                        const struct conn_events *events, void *arg) must_check;
struct conn_address; /* a resolved address: io/address.h */
/* Starts connecting; on_open or on_error follows from the loop. `server_name` for TLS verification.
 */
struct conn *conn_dial(struct loop *loop, const struct conn_address *to, struct tls_context *tls,
                       const char *server_name, const struct conn_events *events,
                       void *arg) must_check;
void conn_close(struct conn *c); /* NULL is fine */
/* Writes at once as much as the kernel takes (with on_returned, small messages are written at the
 * end of the turn) and queues the rest.  Returns false if bytes are already queued and the queue
 * would exceed `max_queue`: the message is then not queued at all, and the caller decides (a full
 * stream is closed).  With an empty queue, a message of any size is accepted: its maker bounds it.
 * Bytes written to a broken connection are lost, like bytes on the wire; on_error follows. */
must_check bool conn_write(struct conn *c, const struct iovec *parts, int n);
#define CONN_MAX_PARTS 64
void conn_set_max_queue(struct conn *c, size_t bytes); /* default 8 MiB */
size_t conn_queued(const struct conn *c);
void conn_pause(struct conn *c, bool paused); /* stop/start reading: back-pressure */
void conn_shutdown_write(struct conn *c);     /* after the queue drains */
bool conn_is_broken(const struct conn *c);    /* broken; on_error was called or is pending */
bool conn_is_reached(const struct conn *c);   /* connected; the TLS handshake may not be done */
bool conn_is_tls(const struct conn *c);
/* "TLSv1.3"; "none" without TLS. */
const char *conn_tls_version(const struct conn *c);
/* For a TLS connection after on_error: if the peer had sent a plain HTTP request, sends `text` to
 * it, without TLS.  Call it once, just before conn_close(); does not block. */
void conn_tell_plain_http(struct conn *c, struct str text);
int conn_fd(const struct conn *c);
/* Bytes since the start, for stall and rate timeouts. */
uint64_t conn_bytes_in(const struct conn *c);
uint64_t conn_bytes_out(const struct conn *c);

#endif
