/* SPDX-License-Identifier: Apache-2.0 */
/* The TLS interface for io/conn.c and io/wire.c: one session over one non-blocking descriptor.
 * Private to io/. */
#ifndef HOLDFAST_IO_TLS_IMPL_H
#define HOLDFAST_IO_TLS_IMPL_H

#include "io/tls.h"

/* WANT_READ and WANT_WRITE: nothing was transferred; try again when the descriptor is readable or
 * writable. */
enum tls_step { TLS_OK, TLS_WANT_READ, TLS_WANT_WRITE, TLS_EOF, TLS_FAILED };

struct tls_session;
/* `server_name` is checked against the certificate; NULL on the accepting side. */
must_check bool tls_session_new(struct tls_context *t, int fd, const char *server_name,
                                struct tls_session **ret, struct error *err);
void tls_session_free(struct tls_session *s); /* sends close_notify if that does not block */
enum tls_step tls_session_shake(struct tls_session *s, struct error *err);
enum tls_step tls_session_read(struct tls_session *s, char *to, size_t n, size_t *ret_n,
                               struct error *err);
enum tls_step tls_session_write(struct tls_session *s, const char *from, size_t n, size_t *ret_n,
                                struct error *err);
bool tls_session_has_pending(
    const struct tls_session *s); /* bytes that the kernel will not report */
/* How many bytes can be read without touching the descriptor. */
size_t tls_session_pending(const struct tls_session *s);
/* Whether the handshake failed because the peer sent a plain HTTP request. */
bool tls_session_met_http(const struct tls_session *s);
void tls_session_close_write(struct tls_session *s);
const char *tls_session_version(const struct tls_session *s); /* "TLSv1.3" */

#endif
