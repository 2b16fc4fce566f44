/* SPDX-License-Identifier: Apache-2.0 */
/* A Holdfast at a URL: http:// or https://, a name or an address.  The certificate is always
 * verified, by the system's authorities, SSL_CERT_FILE or a file of the caller. */
#ifndef HOLDFAST_CLI_REMOTE_H
#define HOLDFAST_CLI_REMOTE_H

#include "base/buf.h"
#include "base/error.h"

struct remote;
/* ERR_USAGE if `url` is not a URL or has a path.  `ca_file` may be NULL. */
must_check bool remote_open(struct str url, const char *ca_file, struct remote **ret,
                            struct error *err);
void remote_close(struct remote *r);             /* NULL is fine */
const char *remote_host(const struct remote *r); /* "host:port", for the Host header */
bool remote_is_tls(const struct remote *r);
/* Whether what is sent can be read on a network: http:// to another host. */
bool remote_is_clear(const struct remote *r);
/* Sends the request and reads up to the end of the stream, or until `in` is full (ERR_TOO_LARGE).
 * The caller checks that the answer is complete. */
must_check bool remote_exchange(struct remote *r, struct str request, int64_t deadline_ms,
                                struct buf *in, struct error *err);

/* The same for an answer of any size: hands the bytes to `take` as they come, until it returns false
 * with *err set.  `idle_ms` limits the wait for the next bytes. */
must_check bool remote_stream(struct remote *r, struct str request, int64_t idle_ms,
                              bool (*take)(void *arg, struct str bytes, struct error *err),
                              void *arg, struct error *err);

#endif
