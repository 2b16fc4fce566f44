/* SPDX-License-Identifier: Apache-2.0 */
/* A self-signed certificate for tests, made on the spot and written to two files. */
#ifndef HOLDFAST_TESTS_CERTIFICATE_H
#define HOLDFAST_TESTS_CERTIFICATE_H

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

struct certificate {
    char cert_file[64], key_file[64];
};

static inline void certificate_write(const char *path, X509 *cert, EVP_PKEY *key)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fchmod(fileno(out), key ? 0600 : 0644), 0);
    if (cert)
        assert_int_equal(PEM_write_X509(out, cert), 1);
    if (key)
        assert_int_equal(PEM_write_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(out);
}

/* `names` is an alternative-name list: "DNS:localhost,IP:127.0.0.1".  Valid from and until so many
 * seconds from now. */
static inline void certificate_make_for(struct certificate *c, const char *tag, const char *names,
                                        long from_s, long until_s)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_EXTENSION *san = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);

    assert_non_null(key);
    assert_non_null(san);
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), from_s);
    X509_gmtime_adj(X509_getm_notAfter(cert), until_s);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)"test", -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(cert));
    X509_set_pubkey(cert, key);
    X509_add_ext(cert, san, -1);
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    snprintf(c->cert_file, sizeof(c->cert_file), "/tmp/holdfast-test-%d-%s.crt", (int)getpid(),
             tag);
    snprintf(c->key_file, sizeof(c->key_file), "/tmp/holdfast-test-%d-%s.key", (int)getpid(), tag);
    certificate_write(c->cert_file, cert, NULL);
    certificate_write(c->key_file, NULL, key);
    X509_EXTENSION_free(san);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static inline void certificate_make(struct certificate *c, const char *tag, const char *names)
{
    certificate_make_for(c, tag, names, -3600, 3600);
}

static inline void certificate_remove(struct certificate *c)
{
    unlink(c->cert_file);
    unlink(c->key_file);
}

#endif
