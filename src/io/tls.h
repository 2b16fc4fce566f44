/* SPDX-License-Identifier: Apache-2.0 */
/* TLS contexts on OpenSSL 3: TLS 1.2 and up, no compression, no renegotiation, ALPN http/1.1.  For
 * upstreams the certificate, its chain and the host name or address are always verified; this
 * cannot be switched off.  Used through conn.h. */
#ifndef HOLDFAST_IO_TLS_H
#define HOLDFAST_IO_TLS_H

#include "base/error.h"

#include <stdint.h>

/* May be freed while its connections are open: they hold references. */
struct tls_context;
/* Rejects (ERR_CONFIG, naming the file) anything that would fail every client later: unreadable
 * files; a key that other users can read, that has a passphrase, or that does not match the
 * certificate; a certificate that has expired or is not yet valid. */
must_check bool tls_server_new(const char *cert_file, const char *key_file,
                               struct tls_context **ret, struct error *err);
/* Trusts only the authorities in `ca_file`; NULL: the system's authorities, or those named by
 * SSL_CERT_FILE and SSL_CERT_DIR. */
must_check bool tls_client_new(const char *ca_file, struct tls_context **ret, struct error *err);
/* Sets the words of the advice for a rejected certificate, instead of words for a server's entry in
 * the configuration: "set SSL_CERT_FILE" (… to its authority), "REDIS_URL" (write a name into …).
 * Literals. */
void tls_client_hints(struct tls_context *t, const char *set_ca, const char *url);
void tls_free(struct tls_context *t); /* NULL is fine */
/* The expiry of a server context's certificate, such as "Nov 15 12:00:00 2026 GMT". */
#define TLS_DATE_TEXT 64
void tls_server_until(const struct tls_context *t, char ret_date[TLS_DATE_TEXT]);
/* The same in seconds since 1970. */
int64_t tls_server_until_s(const struct tls_context *t);

#endif
