/* SPDX-License-Identifier: Apache-2.0 */
/* One socket (TCP, unix) or pair of pipes: read into a shared scratch, try-write first with a
 * bounded queue behind it, the same verbs over TLS.  Deadlines belong to whoever uses the conn.
 *
 * Life: conn_adopt/conn_dial → callbacks … → conn_close (by its user, once).  After conn_close no
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
    void (*on_open)(void *arg); /* dialled (and TLS shaken); may be NULL when adopted */
    /* Bytes arrived; they are gone when this returns.  The callee copies what it needs. */
    void (*on_bytes)(void *arg, struct str bytes);
    void (*on_eof)(void *arg);     /* peer finished writing */
    void (*on_drained)(void *arg); /* the write queue became empty; may be NULL */
    void (*on_error)(void *arg, const struct error *e); /* dead; the user still calls conn_close */
    /* Who sets this lets small messages wait for the end of the turn (io/outbox.h).  When one then
     * cannot be written the conn is dead, and the message comes back here, instead of on_error. */
    void (*on_returned)(void *arg, struct str message);
};

/* Takes the fd (made non-blocking).  `tls` NULL for plain.  The end of a pipe works too: it is only
 * read or only written, as it was opened. */
struct conn *conn_adopt(struct loop *loop, int fd, struct tls_context *tls,
                        const struct conn_events *events, void *arg) must_check;
struct conn_address; /* resolved: io/address.h */
/* Starts connecting; on_open or on_error follows from the loop. `server_name` for TLS verification.
 */
struct conn *conn_dial(struct loop *loop, const struct conn_address *to, struct tls_context *tls,
                       const char *server_name, const struct conn_events *events,
                       void *arg) must_check;
void conn_close(struct conn *c); /* NULL is fine */
/* Writes now what fits (with on_returned: when the turn ends, if it is small), queues the rest.
 * false when bytes wait already and the queue would pass `max_queue`: the message is then not
 * queued at all and the caller decides (a full stream is closed).  With nothing waiting a message
 * of any size is taken: its maker bounds it.  What is written to a broken conn is lost, as bytes on
 * the wire are; on_error follows. */
must_check bool conn_write(struct conn *c, const struct iovec *parts, int n);
#define CONN_MAX_PARTS 64
void conn_set_max_queue(struct conn *c, size_t bytes); /* default 8 MiB */
size_t conn_queued(const struct conn *c);
void conn_pause(struct conn *c, bool paused); /* stop/start reading: back-pressure */
void conn_shutdown_write(struct conn *c);     /* after the queue drains */
bool conn_is_broken(const struct conn *c);    /* an error was met, reported or about to be */
bool conn_is_reached(const struct conn *c);   /* the other side took the connection, if no more */
bool conn_is_tls(const struct conn *c);
/* "TLSv1.3"; "none" on a plain one. */
const char *conn_tls_version(const struct conn *c);
/* For a TLS conn that on_error ended: when the other side had sent an HTTP request in the clear,
 * says `text` to it, in the clear too.  Once, without waiting, just before conn_close(). */
void conn_tell_plain_http(struct conn *c, struct str text);
int conn_fd(const struct conn *c);
/* Bytes since the start, for rate deadlines. */
uint64_t conn_bytes_in(const struct conn *c);
uint64_t conn_bytes_out(const struct conn *c);

#endif
