/* SPDX-License-Identifier: Apache-2.0 */
/* TLS contexts and sessions on OpenSSL 3.  A session works on the connection's own descriptor
 * (SSL_set_fd), so bytes are not copied through memory BIOs; every wish for readiness comes out as
 * a tls_step and io/conn.c turns it into loop_fd_want().
 *
 * The library's error queue is per thread and must be empty before each call, or an old complaint
 * is taken for a new one: every verb here clears it first. */
#include "io/tls.h"
#include "io/tls_impl.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

struct tls_context {
    SSL_CTX *ctx;
    bool is_client;
};

struct tls_session {
    SSL *ssl;
    bool is_shaken, is_broken;
};

/* The newest complaint of the library, or `otherwise`. */
static const char *complaint(const char *otherwise)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;

    return reason ? reason : otherwise;
}

/* NULL, with *err filled, when the library refuses. */
static struct tls_context *context_new(const SSL_METHOD *method, bool is_client, struct error *err)
{
    struct tls_context *t;
    SSL_CTX *ctx;

    ERR_clear_error();
    ctx = SSL_CTX_new(method);
    if (!ctx) {
        error_set(err, ERR_INTERNAL, "OpenSSL refuses a context (%s): check its configuration",
                  complaint("no reason given"));
        return NULL;
    }
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    t = xcalloc(1, sizeof(*t));
    t->ctx = ctx;
    t->is_client = is_client;
    return t;
}

bool tls_server_new(const char *cert_file, const char *key_file, struct tls_context **ret,
                    struct error *err)
{
    struct tls_context *t = context_new(TLS_server_method(), false, err);

    if (!t)
        return false;
    SSL_CTX_set_options(t->ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
    if (SSL_CTX_use_certificate_chain_file(t->ctx, cert_file) != 1)
        error_set(err, ERR_CONFIG,
                  "cannot use the certificate %s (%s): give a PEM file with the whole chain",
                  cert_file, complaint("unreadable"));
    else if (SSL_CTX_use_PrivateKey_file(t->ctx, key_file, SSL_FILETYPE_PEM) != 1)
        error_set(err, ERR_CONFIG,
                  "cannot use the key %s (%s): give the PEM key of the certificate", key_file,
                  complaint("unreadable"));
    else {
        *ret = t;
        return true;
    }
    tls_free(t);
    return false;
}

bool tls_client_new(const char *ca_file, struct tls_context **ret, struct error *err)
{
    struct tls_context *t = context_new(TLS_client_method(), true, err);
    int ok;

    if (!t)
        return false;
    SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
    ok = ca_file ? SSL_CTX_load_verify_locations(t->ctx, ca_file, NULL)
                 : SSL_CTX_set_default_verify_paths(t->ctx);
    if (ok == 1) {
        *ret = t;
        return true;
    }
    error_set(err, ERR_CONFIG, "cannot use the certificate authorities in %s (%s): give a PEM file",
              ca_file ? ca_file : "the system's store", complaint("unreadable"));
    tls_free(t);
    return false;
}

void tls_free(struct tls_context *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    free(t);
}

/* A numeric host is checked as an address, and not sent as SNI, which knows names only. */
static bool expect_name(SSL *ssl, const char *name)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    unsigned char numeric[16];

    if (inet_pton(AF_INET, name, numeric) == 1 || inet_pton(AF_INET6, name, numeric) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(param, name, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, name) == 1;
}

bool tls_session_new(struct tls_context *t, int fd, const char *server_name,
                     struct tls_session **ret, struct error *err)
{
    struct tls_session *s;
    SSL *ssl;

    ERR_clear_error();
    ssl = SSL_new(t->ctx);
    if (!ssl || SSL_set_fd(ssl, fd) != 1 ||
        (t->is_client && (!server_name || !expect_name(ssl, server_name)))) {
        SSL_free(ssl);
        return error_set(err, ERR_INTERNAL, "cannot begin TLS (%s): check the host name",
                         complaint("no host name to verify"));
    }
    if (t->is_client)
        SSL_set_connect_state(ssl);
    else
        SSL_set_accept_state(ssl);
    s = xcalloc(1, sizeof(*s));
    s->ssl = ssl;
    *ret = s;
    return true;
}

void tls_session_free(struct tls_session *s)
{
    if (!s)
        return;
    tls_session_close_write(s);
    SSL_free(s->ssl);
    free(s);
}

void tls_session_close_write(struct tls_session *s)
{
    ERR_clear_error();
    if (s->is_shaken && !s->is_broken && !(SSL_get_shutdown(s->ssl) & SSL_SENT_SHUTDOWN))
        SSL_shutdown(s->ssl);
}

static enum tls_step failed(struct tls_session *s, struct error *err)
{
    long verdict = SSL_get_verify_result(s->ssl);

    s->is_broken = true;
    if (!s->is_shaken && verdict != X509_V_OK)
        error_set(
            err, ERR_UNREACHABLE,
            "the certificate of the other side is not trusted (%s): check its name and authority",
            X509_verify_cert_error_string(verdict));
    else
        error_set(err, ERR_UNREACHABLE,
                  "TLS failed (%s): check that the other side speaks TLS 1.2 or 1.3",
                  complaint("the connection broke off"));
    return TLS_FAILED;
}

static enum tls_step step_of(struct tls_session *s, int rc, struct error *err)
{
    switch (SSL_get_error(s->ssl, rc)) {
    case SSL_ERROR_NONE:
        return TLS_OK;
    case SSL_ERROR_WANT_READ:
        return TLS_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return TLS_WANT_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_EOF;
    default:
        return failed(s, err);
    }
}

enum tls_step tls_session_shake(struct tls_session *s, struct error *err)
{
    enum tls_step step;

    ERR_clear_error();
    step = step_of(s, SSL_do_handshake(s->ssl), err);
    if (step == TLS_EOF)
        return failed(s, err);
    if (step == TLS_OK)
        s->is_shaken = true;
    return step;
}

enum tls_step tls_session_read(struct tls_session *s, char *to, size_t n, size_t *ret_n,
                               struct error *err)
{
    ERR_clear_error();
    if (SSL_read_ex(s->ssl, to, n, ret_n) == 1)
        return TLS_OK;
    return step_of(s, 0, err);
}

enum tls_step tls_session_write(struct tls_session *s, const char *from, size_t n, size_t *ret_n,
                                struct error *err)
{
    ERR_clear_error();
    if (SSL_write_ex(s->ssl, from, n, ret_n) == 1)
        return TLS_OK;
    return step_of(s, 0, err);
}

bool tls_session_has_pending(const struct tls_session *s)
{
    return SSL_has_pending(s->ssl) == 1;
}
