/* SPDX-License-Identifier: Apache-2.0 */
/* Ed25519 on OpenSSL.  Signing fails only without memory or with a broken OpenSSL; then the process
 * ends, and no export pretends to be signed. */
#include "export/sign.h"

#include "crypto/hash.h"

#include <openssl/evp.h>
#include <stdlib.h>

struct export_key {
    EVP_PKEY *key;
    uint8_t public_half[EXPORT_KEY_BYTES];
};

static never_returns void broken(void)
{
    die("OpenSSL does not do Ed25519; check its installation and FIPS settings");
}

struct export_key *export_key_new(const uint8_t seed[32])
{
    struct export_key *k = xcalloc(1, sizeof(*k));
    size_t n = sizeof(k->public_half);

    k->key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, 32);
    if (!k->key || EVP_PKEY_get_raw_public_key(k->key, k->public_half, &n) != 1)
        broken();
    return k;
}

void export_key_free(struct export_key *k)
{
    if (!k)
        return;
    EVP_PKEY_free(k->key);
    free(k);
}

const uint8_t *export_key_public(const struct export_key *k)
{
    return k->public_half;
}

void export_sign(const struct export_key *k, struct str text, uint8_t ret[EXPORT_SIGNATURE_BYTES])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t n = EXPORT_SIGNATURE_BYTES;

    if (!ctx || EVP_DigestSignInit(ctx, NULL, NULL, NULL, k->key) != 1 ||
        EVP_DigestSign(ctx, ret, &n, (const uint8_t *)text.p, text.n) != 1)
        broken();
    EVP_MD_CTX_free(ctx);
}

bool export_signature_is_of(const uint8_t public_key[EXPORT_KEY_BYTES], struct str text,
                            const uint8_t signature[EXPORT_SIGNATURE_BYTES])
{
    EVP_PKEY *key =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, EXPORT_KEY_BYTES);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = key && ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
              EVP_DigestVerify(ctx, signature, EXPORT_SIGNATURE_BYTES, (const uint8_t *)text.p,
                               text.n) == 1;

    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return ok;
}

void export_fingerprint(const uint8_t public_key[EXPORT_KEY_BYTES],
                        char ret[EXPORT_FINGERPRINT_TEXT])
{
    uint8_t digest[SHA256_BYTES];

    sha256(str_n((const char *)public_key, EXPORT_KEY_BYTES), digest);
    hex_encode(digest, 8, ret);
}
