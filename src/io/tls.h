/* SPDX-License-Identifier: Apache-2.0 */
/* TLS contexts on OpenSSL 3: 1.2 and up, no compression, no renegotiation, ALPN http/1.1.  Towards
 * upstreams the certificate, its chain and the host name or address are always verified: there is
 * no switch for it.  Used behind conn verbs. */
#ifndef HOLDFAST_IO_TLS_H
#define HOLDFAST_IO_TLS_H

#include "base/error.h"

/* May be freed while connections made from it go on: they keep what they need. */
struct tls_context;
/* Refuses (ERR_CONFIG, the file named) what would fail every client later: files that cannot be
 * read, a key that others can read, has a passphrase or belongs to another certificate, and a
 * certificate whose time is over or has not come. */
must_check bool tls_server_new(const char *cert_file, const char *key_file,
                               struct tls_context **ret, struct error *err);
/* Trusts the authorities in `ca_file` and no others; NULL: the system's, or those that
 * SSL_CERT_FILE and SSL_CERT_DIR name. */
must_check bool tls_client_new(const char *ca_file, struct tls_context **ret, struct error *err);
/* For the advice about a certificate that is refused, in place of words for a server's entry in the
 * configuration: "set SSL_CERT_FILE" (… to its authority), "REDIS_URL" (write a name into …).
 * Literals. */
void tls_client_words(struct tls_context *t, const char *set_ca, const char *url);
void tls_free(struct tls_context *t); /* NULL is fine */
/* When the certificate of a server context ends, such as "Nov 15 12:00:00 2026 GMT". */
#define TLS_DATE_TEXT 64
void tls_server_until(const struct tls_context *t, char ret_date[TLS_DATE_TEXT]);

#endif
