/* SPDX-License-Identifier: Apache-2.0 */
/* TLS contexts and sessions on OpenSSL 3.  A session works on the connection's own descriptor
 * (SSL_set_fd), so bytes are not copied through memory BIOs.  A tls_step names the event to wait
 * for, and io/conn.c turns it into loop_fd_want().
 *
 * Certificates and keys are checked when a context is made, at start and at reload, where an
 * operator reads the message.
 *
 * OpenSSL's error queue is per thread and must be empty before each call, or an old error is taken
 * for a new one: every function here clears it first. */
#include "io/tls.h"
#include "io/tls_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* Names of the settings to mention in advice. */
struct words {
    const char *ca, *url;
};

struct tls_context {
    SSL_CTX *ctx;
    bool is_client;
    struct words words;
};

struct tls_session {
    SSL *ssl;
    char *name; /* expected name of the peer; NULL on the accepting side */
    struct words words;
    bool is_shaken, is_broken, met_http;
};

static const unsigned char alpn_http[] = "\x08http/1.1";
#define ALPN_HTTP_N (sizeof(alpn_http) - 1)

/* Returns OpenSSL's newest error, or `otherwise`. */
static const char *complaint(const char *otherwise)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;

    return reason ? reason : otherwise;
}

/* Returns NULL, with *err filled, when OpenSSL fails. */
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
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CLEANSE_PLAINTEXT); /* plaintext may contain secrets */
    t = xcalloc(1, sizeof(*t));
    t->ctx = ctx;
    t->is_client = is_client;
    t->words = (struct words){"set \"tls\": {\"ca\": FILE} of this server", "\"url\""};
    return t;
}

/* Fails the handshake if the client's ALPN list does not include http/1.1. */
static int choose_protocol(SSL *ssl unused_arg, const unsigned char **out, unsigned char *n,
                           const unsigned char *offered, unsigned n_offered, void *arg unused_arg)
{
    unsigned char *chosen;

    if (SSL_select_next_proto(&chosen, n, alpn_http, ALPN_HTTP_N, offered, n_offered) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* Reports why a file cannot be used, more precisely than OpenSSL would. */
static bool check_file(const char *what, const char *file, bool is_secret, struct error *err)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* does not block on a FIFO */
    struct stat st = {0};
    bool is_regular;

    if (fd < 0 && errno == ENOENT)
        return error_set(err, ERR_CONFIG,
                         "there is no file %s for the %s: correct the path, best an absolute one",
                         file, what);
    if (fd < 0)
        return error_set(err, ERR_CONFIG,
                         "cannot read the %s %s (%s): let the user that runs Holdfast read it",
                         what, file, strerror(errno));
    is_regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    close(fd);
    if (!is_regular)
        return error_set(err, ERR_CONFIG, "the %s %s is not a regular file: give a PEM file", what,
                         file);
    if (is_secret && (st.st_mode & S_IRWXO))
        return error_set(err, ERR_CONFIG, "the %s %s can be read by every user: run chmod o= %s",
                         what, file, file);
    return true;
}

/* Keys with a passphrase are rejected: the server cannot ask for it. */
static int no_passphrase(char *to unused_arg, int n unused_arg, int is_writing unused_arg,
                         void *arg)
{
    *(bool *)arg = true;
    return -1;
}

static bool use_key(SSL_CTX *ctx, const char *cert_file, const char *key_file, struct error *err)
{
    bool is_locked = false, ok;
    int reason;

    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, &is_locked);
    ok = SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
    if (ok)
        return true;
    reason = ERR_GET_REASON(ERR_peek_last_error());
    if (is_locked)
        return error_set(err, ERR_CONFIG,
                         "the key %s has a passphrase: give one without, readable by Holdfast only",
                         key_file);
    if (reason == X509_R_KEY_VALUES_MISMATCH || reason == X509_R_KEY_TYPE_MISMATCH)
        return error_set(err, ERR_CONFIG,
                         "the key %s does not belong to the certificate %s: give the key it was "
                         "made with, and the server's certificate first in its file",
                         key_file, cert_file);
    return error_set(err, ERR_CONFIG,
                     "cannot use the key %s (%s): give the PEM key of the certificate", key_file,
                     complaint("unreadable"));
}

static void print_date(const ASN1_TIME *date, char ret[TLS_DATE_TEXT])
{
    BIO *out = BIO_new(BIO_s_mem());
    int n = out && ASN1_TIME_print(out, date) == 1 ? BIO_read(out, ret, TLS_DATE_TEXT - 1) : 0;

    ret[n > 0 ? n : 0] = '\0';
    BIO_free(out);
}

void tls_server_until(const struct tls_context *t, char ret_date[TLS_DATE_TEXT])
{
    print_date(X509_get0_notAfter(SSL_CTX_get0_certificate(t->ctx)), ret_date);
}

int64_t tls_server_until_s(const struct tls_context *t)
{
    struct tm until = {0};

    return ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(t->ctx)), &until) == 1
               ? (int64_t)timegm(&until)
               : 0;
}

static bool check_dates(const X509 *cert, const char *file, struct error *err)
{
    char date[TLS_DATE_TEXT];

    if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0) {
        print_date(X509_get0_notAfter(cert), date);
        return error_set(err, ERR_CONFIG, "the certificate %s has expired on %s: have it renewed",
                         file, date);
    }
    if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0) {
        print_date(X509_get0_notBefore(cert), date);
        return error_set(err, ERR_CONFIG,
                         "the certificate %s is not valid before %s: check the clock, or wait",
                         file, date);
    }
    return true;
}

static bool use_files(SSL_CTX *ctx, const char *cert_file, const char *key_file, struct error *err)
{
    if (!check_file("certificate", cert_file, false, err) ||
        !check_file("key", key_file, true, err))
        return false;
    if (SSL_CTX_use_certificate_chain_file(ctx, cert_file) != 1)
        return error_set(err, ERR_CONFIG,
                         "cannot use the certificate %s (%s): give a PEM file with the whole chain",
                         cert_file, complaint("unreadable"));
    return use_key(ctx, cert_file, key_file, err) &&
           check_dates(SSL_CTX_get0_certificate(ctx), cert_file, err);
}

bool tls_server_new(const char *cert_file, const char *key_file, struct tls_context **ret,
                    struct error *err)
{
    struct tls_context *t = context_new(TLS_server_method(), false, err);

    if (!t)
        return false;
    SSL_CTX_set_options(t->ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
    if (SSL_CTX_set_cipher_list(t->ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
        die("OpenSSL has no forward-secret cipher for TLS 1.2; install one that does");
    SSL_CTX_set_session_cache_mode(t->ctx, SSL_SESS_CACHE_OFF); /* tickets need no memory of ours */
    SSL_CTX_set_alpn_select_cb(t->ctx, choose_protocol, NULL);
    if (!use_files(t->ctx, cert_file, key_file, err)) {
        tls_free(t);
        return false;
    }
    *ret = t;
    return true;
}

bool tls_client_new(const char *ca_file, struct tls_context **ret, struct error *err)
{
    struct tls_context *t = context_new(TLS_client_method(), true, err);
    int ok;

    if (!t)
        return false;
    if (ca_file && !check_file("authorities", ca_file, false, err)) {
        tls_free(t);
        return false;
    }
    SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_alpn_protos(t->ctx, alpn_http, ALPN_HTTP_N);
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

void tls_client_hints(struct tls_context *t, const char *set_ca, const char *url)
{
    t->words = (struct words){set_ca, url};
}

void tls_free(struct tls_context *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    free(t);
}

/* A numeric host is verified as an address, and not sent as SNI, which allows names only. */
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
    s->words = t->words;
    if (server_name)
        s->name = memcpy(xmalloc(strlen(server_name) + 1), server_name, strlen(server_name) + 1);
    *ret = s;
    return true;
}

void tls_session_free(struct tls_session *s)
{
    if (!s)
        return;
    tls_session_close_write(s);
    SSL_free(s->ssl);
    free(s->name);
    free(s);
}

const char *tls_session_version(const struct tls_session *s)
{
    return SSL_get_version(s->ssl);
}

void tls_session_close_write(struct tls_session *s)
{
    ERR_clear_error();
    if (s->is_shaken && !s->is_broken && !(SSL_get_shutdown(s->ssl) & SSL_SENT_SHUTDOWN))
        SSL_shutdown(s->ssl);
}

/* Advice for rejected certificates.  THEN_URL: the name of the setting with the address follows.
 * AFTER_CA: the name of the setting with the authorities comes first. */
static const struct {
    long verdict;
    const char *advice;
    enum { ALONE, THEN_URL, AFTER_CA } shape;
} advices[] = {
    {X509_V_ERR_CERT_HAS_EXPIRED, "have it renewed", ALONE},
    {X509_V_ERR_CERT_NOT_YET_VALID, "check the clocks of both machines", ALONE},
    {X509_V_ERR_HOSTNAME_MISMATCH, "write a name it is made for into ", THEN_URL},
    {X509_V_ERR_IP_ADDRESS_MISMATCH, "write a name or address it is made for into ", THEN_URL},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, " to this certificate, if it is the right one",
     AFTER_CA},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, " to its authority, if that is a private one", AFTER_CA},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
     " to its authority, or have the server send its whole chain", AFTER_CA},
    {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
     " to its authority, or have the server send its whole chain", AFTER_CA},
};

static void refused_certificate(const struct tls_session *s, long verdict, struct error *err)
{
    const char *advice = "have it replaced", *before = "", *after = "";

    for (size_t i = 0; i < countof(advices); i++)
        if (advices[i].verdict == verdict) {
            advice = advices[i].advice;
            before = advices[i].shape == AFTER_CA ? s->words.ca : "";
            after = advices[i].shape == THEN_URL ? s->words.url : "";
        }
    error_set(err, ERR_UNREACHABLE, "the certificate of %s is refused (%s): %s%s%s",
              s->name ? s->name : "the other side", X509_verify_cert_error_string(verdict), before,
              advice, after);
}

static enum tls_step failed(struct tls_session *s, struct error *err)
{
    long verdict = SSL_get_verify_result(s->ssl);
    int reason = ERR_GET_REASON(ERR_peek_last_error());

    s->is_broken = true;
    s->met_http = !s->is_shaken && reason == SSL_R_HTTP_REQUEST;
    if (!s->is_shaken && verdict != X509_V_OK)
        refused_certificate(s, verdict, err);
    else if (!s->is_shaken && s->name && reason == SSL_R_WRONG_VERSION_NUMBER)
        error_set(err, ERR_UNREACHABLE,
                  "%s does not speak TLS there: write http:// into %s, or correct the port",
                  s->name, s->words.url);
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

size_t tls_session_pending(const struct tls_session *s)
{
    return (size_t)SSL_pending(s->ssl);
}

bool tls_session_met_http(const struct tls_session *s)
{
    return s->met_http;
}
