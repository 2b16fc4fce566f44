/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 and HMAC on OpenSSL.  Every event is digested and sealed, so this uses OpenSSL's SHA-256
 * functions directly instead of EVP, which allocates and copies contexts and costs more than
 * hashing a short message.  A prepared HMAC key is the state after its inner and outer block (RFC
 * 2104); each use starts from copies on the stack.
 *
 * None of these can fail: they allocate nothing, except hmac_key_new(), which aborts. */
#define OPENSSL_SUPPRESS_DEPRECATED /* since 3.0, in favour of EVP; see above */
#include "crypto/hash.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdlib.h>

struct hmac_key {
    SHA256_CTX inner, outer; /* state after one block each */
};

static void add(SHA256_CTX *c, const struct str *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        SHA256_Update(c, parts[i].p, parts[i].n);
}

void sha256_parts(const struct str *parts, size_t n, uint8_t ret[SHA256_BYTES])
{
    SHA256_CTX c;

    SHA256_Init(&c);
    add(&c, parts, n);
    SHA256_Final(ret, &c);
}

void sha256(struct str data, uint8_t ret[SHA256_BYTES])
{
    sha256_parts(&data, 1, ret);
}

void sha1(struct str data, uint8_t ret[SHA1_BYTES])
{
    SHA1((const uint8_t *)data.p, data.n, ret);
}

static void begin_with(SHA256_CTX *c, const uint8_t key[SHA256_CBLOCK], uint8_t pad)
{
    uint8_t block[SHA256_CBLOCK];

    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = key[i] ^ pad;
    SHA256_Init(c);
    SHA256_Update(c, block, sizeof(block));
    crypto_wipe(block, sizeof(block));
}

struct hmac_key *hmac_key_new(const uint8_t *key, size_t n)
{
    struct hmac_key *k = xcalloc(1, sizeof(*k));
    uint8_t block[SHA256_CBLOCK] = {0};

    if (n > sizeof(block))
        sha256(str_n((const char *)key, n), block);
    else if (n > 0)
        memcpy(block, key, n);
    begin_with(&k->inner, block, 0x36);
    begin_with(&k->outer, block, 0x5c);
    crypto_wipe(block, sizeof(block));
    return k;
}

void hmac_key_free(struct hmac_key *k)
{
    if (!k)
        return;
    crypto_wipe(k, sizeof(*k));
    free(k);
}

void hmac_sha256(const struct hmac_key *k, const struct str *parts, size_t n,
                 uint8_t ret[SHA256_BYTES])
{
    SHA256_CTX c = k->inner;
    uint8_t inside[SHA256_BYTES];

    add(&c, parts, n);
    SHA256_Final(inside, &c); /* also wipes its block */
    c = k->outer;
    SHA256_Update(&c, inside, sizeof(inside));
    SHA256_Final(ret, &c);
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
