/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 and HMAC on OpenSSL.  Fetching an algorithm and making a context both cost more than
 * hashing a short message, so the algorithm is fetched once for the process, the digest context is
 * kept per thread (freed with it), and a prepared HMAC key keeps its inner and outer state.
 *
 * None of these can fail but for memory or a broken OpenSSL: that ends the process rather than
 * letting something unhashed pass. */
#include "crypto/hash.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <pthread.h>
#include <stdlib.h>

struct hmac_key {
    EVP_MAC_CTX *ctx;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t ctx_of_thread; /* frees what digest_ctx holds when a thread ends */
static _Thread_local EVP_MD_CTX *digest_ctx;
static EVP_MD *sha256_md;
static EVP_MAC *hmac_mac;

static never_returns void broken(const char *what)
{
    die("OpenSSL does not do %s; check its installation and FIPS settings", what);
}

static void free_ctx(void *ctx)
{
    EVP_MD_CTX_free(ctx);
}

static void fetch(void)
{
    sha256_md = EVP_MD_fetch(NULL, "SHA256", NULL);
    hmac_mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    if (!sha256_md || !hmac_mac || pthread_key_create(&ctx_of_thread, free_ctx) != 0)
        broken("SHA-256");
}

static EVP_MD_CTX *thread_ctx(void)
{
    if (likely(digest_ctx != NULL))
        return digest_ctx;
    pthread_once(&once, fetch);
    digest_ctx = EVP_MD_CTX_new();
    if (!digest_ctx || pthread_setspecific(ctx_of_thread, digest_ctx) != 0)
        broken("SHA-256");
    return digest_ctx;
}

void sha256_parts(const struct str *parts, size_t n, uint8_t ret[SHA256_BYTES])
{
    EVP_MD_CTX *ctx = thread_ctx();
    bool ok = EVP_DigestInit_ex2(ctx, sha256_md, NULL);

    for (size_t i = 0; ok && i < n; i++)
        ok = EVP_DigestUpdate(ctx, parts[i].p, parts[i].n);
    if (!ok || !EVP_DigestFinal_ex(ctx, ret, NULL))
        broken("SHA-256");
}

void sha256(struct str data, uint8_t ret[SHA256_BYTES])
{
    sha256_parts(&data, 1, ret);
}

struct hmac_key *hmac_key_new(const uint8_t *key, size_t n)
{
    static const uint8_t nothing;
    char name[] = "SHA256";
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
                           OSSL_PARAM_construct_end()};
    struct hmac_key *k = xcalloc(1, sizeof(*k));

    pthread_once(&once, fetch);
    k->ctx = EVP_MAC_CTX_new(hmac_mac);
    /* A NULL key would mean "the one before": an empty one still needs an address. */
    if (!k->ctx || !EVP_MAC_init(k->ctx, n ? key : &nothing, n, params))
        broken("HMAC-SHA-256");
    return k;
}

void hmac_key_free(struct hmac_key *k)
{
    if (!k)
        return;
    EVP_MAC_CTX_free(k->ctx); /* cleanses the key */
    free(k);
}

void hmac_sha256(struct hmac_key *k, const struct str *parts, size_t n, uint8_t ret[SHA256_BYTES])
{
    bool ok = EVP_MAC_init(k->ctx, NULL, 0, NULL);
    size_t length = 0;

    for (size_t i = 0; ok && i < n; i++)
        ok = EVP_MAC_update(k->ctx, (const unsigned char *)parts[i].p, parts[i].n);
    if (!ok || !EVP_MAC_final(k->ctx, ret, &length, SHA256_BYTES) || length != SHA256_BYTES)
        broken("HMAC-SHA-256");
}

bool crypto_equal(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}

void crypto_wipe(void *p, size_t n)
{
    OPENSSL_cleanse(p, n);
}

void hex_encode(const void *p, size_t n, char *ret_text)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *bytes = p;

    for (size_t i = 0; i < n; i++) {
        ret_text[2 * i] = digits[bytes[i] >> 4];
        ret_text[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret_text[2 * n] = '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool hex_decode(struct str hex, uint8_t *ret, size_t n)
{
    if (hex.n != 2 * n)
        return false;
    for (size_t i = 0; i < hex.n; i++)
        if (hex_digit(hex.p[i]) < 0)
            return false;
    for (size_t i = 0; i < n; i++)
        ret[i] = (uint8_t)((unsigned)hex_digit(hex.p[2 * i]) << 4 |
                           (unsigned)hex_digit(hex.p[2 * i + 1]));
    return true;
}
