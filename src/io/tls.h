/* SPDX-License-Identifier: Apache-2.0 */
/* TLS contexts on OpenSSL 3: 1.2 and up, verification on towards upstreams.  Used behind conn
 * verbs. */
#ifndef HOLDFAST_IO_TLS_H
#define HOLDFAST_IO_TLS_H

#include "base/error.h"

struct tls_context;
must_check bool tls_server_new(const char *cert_file, const char *key_file,
                               struct tls_context **ret, struct error *err);
/* ca_file NULL: the system's. */
must_check bool tls_client_new(const char *ca_file, struct tls_context **ret, struct error *err);
void tls_free(struct tls_context *t);

#endif
