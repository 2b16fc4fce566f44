/* SPDX-License-Identifier: Apache-2.0 */
/* A byte stream for threads that may block until a deadline: a unix socket, TCP, or TLS with a
 * verified peer.  Connections of the loop are in io/conn.h.
 *
 * `until_us` is a time of wire_now_us(), which ignores the fake clock of tests.  After a failure
 * only wire_close() is allowed. */
#ifndef HOLDFAST_IO_WIRE_H
#define HOLDFAST_IO_WIRE_H

#include "base/str.h"
#include "io/tls.h"

struct wire;
struct wire_target {
    const char *path; /* of a unix socket; NULL: host and port */
    const char *host; /* name or address, without brackets */
    uint16_t port;
    struct tls_context *tls; /* NULL: no TLS; must live as long as wires are opened with it */
};

int64_t wire_now_us(void);
/* Tries the addresses of the name one after the other.  Fails with ERR_UNREACHABLE or
 * ERR_TIMEOUT. */
must_check bool wire_open(const struct wire_target *target, int64_t until_us, struct wire **ret,
                          struct error *err);
void wire_close(struct wire *w); /* NULL is fine */
must_check bool wire_write(struct wire *w, struct str bytes, int64_t until_us, struct error *err);
/* Reads at least one byte; the end of the stream is ERR_UNREACHABLE. */
must_check bool wire_read(struct wire *w, char *to, size_t n, int64_t until_us, size_t *ret_n,
                          struct error *err);
/* Whether the last wire_read() failed because the other side ended the stream. */
bool wire_has_ended(const struct wire *w);
/* Whether bytes, or the end of the stream, can be read; does not block. */
bool wire_is_readable(const struct wire *w);
int wire_fd(const struct wire *w);

#endif
