/* SPDX-License-Identifier: Apache-2.0 */
/* An issuer of tokens for tests: key pairs of each algorithm, made on the spot, what it publishes
 * of them, and tokens signed with them, good or bad. */
#ifndef HOLDFAST_TESTS_TOKENS_H
#define HOLDFAST_TESTS_TOKENS_H

#include "test.h"

#include "base/arena.h"
#include "crypto/base64.h"
#include "crypto/hash.h"
#include "identity/jwt.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#define TOKEN_SECRET "a secret for tests of 0123456789 bytes"

/* The private half of a key for `alg`; NULL for HS256. */
static inline EVP_PKEY *token_key_new(enum jwt_alg alg)
{
    switch (alg) {
    case JWT_RS256:
    case JWT_PS256:
        return EVP_RSA_gen(2048);
    case JWT_ES256:
        return EVP_EC_gen("P-256");
    case JWT_ES384:
        return EVP_EC_gen("P-384");
    case JWT_EDDSA:
        return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    default:
        return NULL;
    }
}

static inline struct str token_b64(struct arena *mem, const void *p, size_t n)
{
    char *text = arena_alloc(mem, n * 4 / 3 + 4);

    return str_n(text, base64url_encode(p, n, text));
}

static inline struct str token_number(struct arena *mem, EVP_PKEY *key, const char *param,
                                      size_t bytes)
{
    unsigned char raw[1024];
    BIGNUM *n = NULL;
    int length;

    assert_int_equal(EVP_PKEY_get_bn_param(key, param, &n), 1);
    length = bytes ? BN_bn2binpad(n, raw, (int)bytes) : BN_bn2bin(n, raw);
    BN_free(n);
    assert_true(length > 0);
    return token_b64(mem, raw, (size_t)length);
}

/* A JWK of the public half; `more` are further members, such as ",\"use\":\"sig\"". */
static inline struct str token_jwk(struct arena *mem, EVP_PKEY *key, const char *kid,
                                   const char *more)
{
    unsigned char raw[32];
    size_t n = sizeof(raw);
    struct str x, y;

    if (EVP_PKEY_is_a(key, "RSA")) {
        x = token_number(mem, key, OSSL_PKEY_PARAM_RSA_N, 0);
        y = token_number(mem, key, OSSL_PKEY_PARAM_RSA_E, 0);
        return arena_printf(mem, "{\"kty\":\"RSA\",\"kid\":\"%s\",\"n\":\"%.*s\",\"e\":\"%.*s\"%s}",
                            kid, STR_ARG(x), STR_ARG(y), more);
    }
    if (EVP_PKEY_is_a(key, "EC")) {
        size_t bytes = EVP_PKEY_get_bits(key) == 256 ? 32 : 48;
        x = token_number(mem, key, OSSL_PKEY_PARAM_EC_PUB_X, bytes);
        y = token_number(mem, key, OSSL_PKEY_PARAM_EC_PUB_Y, bytes);
        return arena_printf(mem,
                            "{\"kty\":\"EC\",\"kid\":\"%s\",\"crv\":\"P-%zu\",\"x\":\"%.*s\","
                            "\"y\":\"%.*s\"%s}",
                            kid, bytes * 8, STR_ARG(x), STR_ARG(y), more);
    }
    assert_int_equal(EVP_PKEY_get_raw_public_key(key, raw, &n), 1);
    x = token_b64(mem, raw, n);
    return arena_printf(mem,
                        "{\"kty\":\"OKP\",\"kid\":\"%s\",\"crv\":\"Ed25519\",\"x\":\"%.*s\"%s}",
                        kid, STR_ARG(x), more);
}

/* {"keys":[…]} */
static inline struct str token_set(struct arena *mem, struct str jwk)
{
    return arena_printf(mem, "{\"keys\":[%.*s]}", STR_ARG(jwk));
}

static inline struct str token_mac(struct arena *mem, struct str secret, struct str text)
{
    struct hmac_key *key = hmac_key_new((const uint8_t *)secret.p, secret.n);
    uint8_t *mac = arena_alloc(mem, SHA256_BYTES);

    hmac_sha256(key, &text, 1, mac);
    hmac_key_free(key);
    return str_n((const char *)mac, SHA256_BYTES);
}

/* A pair of numbers in DER as one after the other. */
static inline struct str token_pair(struct arena *mem, const unsigned char *der, size_t n,
                                    size_t half)
{
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &der, (long)n);
    unsigned char *raw = arena_alloc(mem, 2 * half);

    assert_non_null(pair);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_r(pair), raw, (int)half), half);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_s(pair), raw + half, (int)half), half);
    ECDSA_SIG_free(pair);
    return str_n((const char *)raw, 2 * half);
}

/* `salt` is that of PS256; `der` leaves a pair as OpenSSL makes it. */
static inline struct str token_sign_as(struct arena *mem, enum jwt_alg alg, EVP_PKEY *key, int salt,
                                       bool der, struct str text)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    EVP_PKEY_CTX *how = NULL;
    const char *md = alg == JWT_EDDSA ? NULL : alg == JWT_ES384 ? "SHA384" : "SHA256";
    unsigned char *raw = arena_alloc(mem, 2048);
    size_t n = 2048;

    assert_int_equal(EVP_DigestSignInit_ex(ctx, &how, md, NULL, NULL, key, NULL), 1);
    if (alg == JWT_PS256) {
        assert_int_equal(EVP_PKEY_CTX_set_rsa_padding(how, RSA_PKCS1_PSS_PADDING), 1);
        assert_int_equal(EVP_PKEY_CTX_set_rsa_pss_saltlen(how, salt), 1);
    }
    assert_int_equal(EVP_DigestSign(ctx, raw, &n, (const unsigned char *)text.p, text.n), 1);
    EVP_MD_CTX_free(ctx);
    if (!der && (alg == JWT_ES256 || alg == JWT_ES384))
        return token_pair(mem, raw, n, alg == JWT_ES256 ? 32 : 48);
    return str_n((const char *)raw, n);
}

static inline struct str token_sign(struct arena *mem, enum jwt_alg alg, EVP_PKEY *key,
                                    struct str text)
{
    if (alg == JWT_HS256)
        return token_mac(mem, STR(TOKEN_SECRET), text);
    return token_sign_as(mem, alg, key, RSA_PSS_SALTLEN_DIGEST, false, text);
}

/* header.payload */
static inline struct str token_text(struct arena *mem, struct str header, struct str payload)
{
    struct str h = token_b64(mem, header.p, header.n), p = token_b64(mem, payload.p, payload.n);

    return arena_printf(mem, "%.*s.%.*s", STR_ARG(h), STR_ARG(p));
}

static inline struct str token_with(struct arena *mem, struct str text, struct str signature)
{
    struct str s = token_b64(mem, signature.p, signature.n);

    return arena_printf(mem, "%.*s.%.*s", STR_ARG(text), STR_ARG(s));
}

static inline struct str token_make(struct arena *mem, enum jwt_alg alg, EVP_PKEY *key,
                                    struct str header, struct str payload)
{
    struct str text = token_text(mem, header, payload);

    return token_with(mem, text, token_sign(mem, alg, key, text));
}

/* The rules and the key ring that tests check by: one key for each algorithm, of which the kid is
 * its name in lower case. */
#define TOKEN_ISSUER "https://id.example"
#define TOKEN_AUDIENCE "https://mcp.example"
#define TOKEN_NOW INT64_C(1800000000)
#define TOKEN_CLAIMS_BUT_SUB                                                                       \
    "\"iss\":\"" TOKEN_ISSUER "\",\"aud\":\"" TOKEN_AUDIENCE "\",\"exp\":1800000300"
#define TOKEN_CLAIMS TOKEN_CLAIMS_BUT_SUB ",\"sub\":\"alice\""

struct token_issuer {
    struct arena *mem;
    EVP_PKEY *pairs[JWT_ALG_COUNT];
    struct jwt_keys *keys;
    struct jwt_rules rules;
};
static const char *const token_kids[JWT_ALG_COUNT] = {"rs256", "ps256", "es256",
                                                      "es384", "eddsa", "hs256"};

static inline void token_issuer_init(struct token_issuer *t)
{
    static const struct str audience = {TOKEN_AUDIENCE, sizeof(TOKEN_AUDIENCE) - 1};
    struct error err;

    *t = (struct token_issuer){.mem = arena_new(SIZE_MAX), .keys = jwt_keys_new()};
    t->rules = (struct jwt_rules){STR(TOKEN_ISSUER), &audience,   1,
                                  STR("tenant"),     STR("role"), STR("default")};
    for (int i = 0; i < JWT_HS256; i++) {
        t->pairs[i] = token_key_new((enum jwt_alg)i);
        assert_non_null(t->pairs[i]);
        EVP_PKEY_up_ref(t->pairs[i]);
        assert_true(
            jwt_keys_take(t->keys, str_of(token_kids[i]), (enum jwt_alg)i, t->pairs[i], &err));
    }
    assert_true(
        jwt_keys_add_secret(t->keys, str_of(token_kids[JWT_HS256]), STR(TOKEN_SECRET), &err));
}

static inline void token_issuer_release(struct token_issuer *t)
{
    for (int i = 0; i < JWT_ALG_COUNT; i++)
        EVP_PKEY_free(t->pairs[i]);
    jwt_keys_free(t->keys);
    arena_free(t->mem);
}

/* {"alg":"…","kid":"…"} */
static inline struct str token_header(struct token_issuer *t, enum jwt_alg alg)
{
    return arena_printf(t->mem, "{\"alg\":\"%s\",\"kid\":\"%s\"}", jwt_alg_name(alg),
                        token_kids[alg]);
}

static inline struct str token_issue(struct token_issuer *t, enum jwt_alg alg, struct str payload)
{
    return token_make(t->mem, alg, t->pairs[alg], token_header(t, alg), payload);
}

static inline enum jwt_fault token_check(struct token_issuer *t, struct str token,
                                         struct jwt_claims *ret)
{
    return jwt_check(t->keys, &t->rules, token, TOKEN_NOW * 1000, t->mem, ret);
}

#endif
