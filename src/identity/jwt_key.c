/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and signatures with OpenSSL's EVP.  A key is validated when it is added, so a check only has
 * to verify the signature.
 *
 * Invariant: every function leaves OpenSSL's error queue empty, as TLS connections on the same
 * thread require. */
#include "identity/jwt_key.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdlib.h>

#define SECRET_DISTINCT_MIN 8
#define EXPONENT_BITS_MAX 33 /* longer exponents only cost time */

struct alg_row {
    const char *name;
    const char *type;       /* OpenSSL's name of the key type; NULL: a secret */
    const char *group;      /* OpenSSL's name of the curve */
    const char *digest;     /* NULL: part of the algorithm */
    size_t signature_bytes; /* 0: as long as the modulus */
    const char *wanted;     /* for messages */
};
static const struct alg_row alg_rows[JWT_ALG_COUNT] = {
    [JWT_RS256] = {"RS256", "RSA", NULL, "SHA256", 0, "an RSA key"},
    [JWT_PS256] = {"PS256", "RSA", NULL, "SHA256", 0, "an RSA key"},
    [JWT_ES256] = {"ES256", "EC", "prime256v1", "SHA256", 64, "a key on the curve P-256"},
    [JWT_ES384] = {"ES384", "EC", "secp384r1", "SHA384", 96, "a key on the curve P-384"},
    [JWT_EDDSA] = {"EdDSA", "ED25519", NULL, NULL, 64, "an Ed25519 key"},
    [JWT_HS256] = {"HS256", NULL, NULL, NULL, SHA256_BYTES, "a secret"},
};

const char *jwt_alg_name(enum jwt_alg alg)
{
    return alg_rows[alg].name;
}

bool jwt_alg_parse(struct str name, enum jwt_alg *ret)
{
    for (int i = 0; i < JWT_ALG_COUNT; i++) {
        if (!str_eq(name, str_of(alg_rows[i].name)))
            continue;
        *ret = (enum jwt_alg)i;
        return true;
    }
    return false;
}

struct jwt_keys *jwt_keys_new(void)
{
    struct jwt_keys *k = xcalloc(1, sizeof(*k));

    k->mem = arena_new(SIZE_MAX);
    k->keys = xcalloc(JWT_KEYS_MAX, sizeof(*k->keys));
    return k;
}

void jwt_keys_free(struct jwt_keys *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->n; i++) {
        EVP_PKEY_free(k->keys[i].public_key);
        hmac_key_free(k->keys[i].secret);
    }
    arena_free(k->mem);
    free(k->keys);
    free(k);
}

/* With an exponent of 1 every text is its own signature.  An even exponent is invalid. */
static bool check_exponent(EVP_PKEY *key, struct error *err)
{
    BIGNUM *e = NULL;
    bool ok = EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &e) == 1 && BN_is_odd(e) &&
              !BN_is_one(e) && BN_num_bits(e) <= EXPONENT_BITS_MAX;

    BN_free(e);
    return ok || error_set(err, ERR_CONFIG,
                           "an RSA key needs an odd exponent of 3 or more, such as 65537; use "
                           "another key");
}

static bool check_rsa(EVP_PKEY *key, struct error *err)
{
    int bits = EVP_PKEY_get_bits(key);

    if (bits < JWT_RSA_BITS_MIN || bits > JWT_RSA_BITS_MAX)
        return error_set(err, ERR_CONFIG,
                         "RSA keys need %d to %d bits, this one has %d; use another key",
                         JWT_RSA_BITS_MIN, JWT_RSA_BITS_MAX, bits);
    return check_exponent(key, err);
}

static bool is_on_curve(EVP_PKEY *key, const char *group)
{
    char name[64];
    EVP_PKEY_CTX *ctx;
    bool ok;

    if (EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, name, sizeof(name), NULL) !=
            1 ||
        strcmp(name, group) != 0)
        return false;
    ctx = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    ok = ctx && EVP_PKEY_public_check(ctx) == 1;
    EVP_PKEY_CTX_free(ctx);
    return ok;
}

static bool check_suits(EVP_PKEY *key, enum jwt_alg alg, struct error *err)
{
    const struct alg_row *row = &alg_rows[alg];

    if (!row->type || !EVP_PKEY_is_a(key, row->type) ||
        (row->group && !is_on_curve(key, row->group)))
        return error_set(err, ERR_CONFIG, "%s needs %s; use another key or algorithm", row->name,
                         row->wanted);
    return strcmp(row->type, "RSA") != 0 || check_rsa(key, err);
}

static bool check_place(const struct jwt_keys *k, struct str kid, enum jwt_alg alg,
                        struct error *err)
{
    if (k->n == JWT_KEYS_MAX)
        return error_set(err, ERR_CONFIG, "there are more than %d keys; remove some", JWT_KEYS_MAX);
    if (kid.n > JWT_KID_MAX)
        return error_set(err, ERR_CONFIG, "a kid has at most %d bytes; shorten it", JWT_KID_MAX);
    for (size_t i = 0; i < k->n; i++)
        if (kid.n && k->keys[i].alg == alg && str_eq(k->keys[i].kid, kid))
            return error_set(err, ERR_CONFIG, "two keys for %s have the same kid; rename one",
                             jwt_alg_name(alg));
    return true;
}

static void keep(struct jwt_keys *k, struct str kid, enum jwt_alg alg, EVP_PKEY *public_key,
                 struct hmac_key *secret)
{
    k->keys[k->n++] = (struct jwt_key){
        .kid = kid.n ? arena_dup(k->mem, kid) : STR_NONE,
        .alg = alg,
        .public_key = public_key,
        .secret = secret,
    };
}

bool jwt_keys_take(struct jwt_keys *k, struct str kid, enum jwt_alg alg, EVP_PKEY *public_key,
                   struct error *err)
{
    bool ok = check_place(k, kid, alg, err) && check_suits(public_key, alg, err);

    ERR_clear_error();
    if (ok)
        keep(k, kid, alg, public_key, NULL);
    else
        EVP_PKEY_free(public_key);
    return ok;
}

bool jwt_keys_add_pem(struct jwt_keys *k, struct str kid, enum jwt_alg alg, struct str pem,
                      struct error *err)
{
    EVP_PKEY *key;
    BIO *in;

    if (memmem(pem.p, pem.n, "PRIVATE KEY", 11))
        return error_set(err, ERR_CONFIG,
                         "it holds a private key; give only the public one (openssl pkey -pubout)");
    in = BIO_new_mem_buf(pem.p, (int)pem.n);
    key = in ? PEM_read_bio_PUBKEY(in, NULL, NULL, NULL) : NULL;
    BIO_free(in);
    ERR_clear_error();
    if (!key)
        return error_set(err, ERR_CONFIG,
                         "it holds no public key in PEM; it must begin with -----BEGIN PUBLIC "
                         "KEY-----");
    return jwt_keys_take(k, kid, alg, key, err);
}

static size_t count_distinct(struct str s)
{
    bool seen[256] = {false};
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        n += !seen[(unsigned char)s.p[i]];
        seen[(unsigned char)s.p[i]] = true;
    }
    return n;
}

bool jwt_keys_add_secret(struct jwt_keys *k, struct str kid, struct str secret, struct error *err)
{
    if (secret.n < JWT_SECRET_MIN || count_distinct(secret) < SECRET_DISTINCT_MIN)
        return error_set(err, ERR_CONFIG,
                         "a secret needs at least %d random bytes; make one with openssl rand "
                         "-base64 48",
                         JWT_SECRET_MIN);
    if (!check_place(k, kid, JWT_HS256, err))
        return false;
    keep(k, kid, JWT_HS256, NULL, hmac_key_new((const uint8_t *)secret.p, secret.n));
    return true;
}

static bool verify_secret(const struct jwt_key *key, struct str text, struct str signature)
{
    uint8_t mac[SHA256_BYTES];

    hmac_sha256(key->secret, &text, 1, mac);
    return signature.n == sizeof(mac) && crypto_equal(mac, signature.p, sizeof(mac));
}

/* The salt is as long as the digest (RFC 7518, 3.5). */
static bool use_pss(EVP_PKEY_CTX *ctx)
{
    return EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING) == 1 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, RSA_PSS_SALTLEN_DIGEST) == 1 &&
           EVP_PKEY_CTX_set_rsa_mgf1_md_name(ctx, "SHA256", NULL) == 1;
}

static bool verify_public(const struct jwt_key *key, struct str text, const unsigned char *sig,
                          size_t sig_n)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    EVP_PKEY_CTX *how = NULL;
    bool ok = ctx &&
              EVP_DigestVerifyInit_ex(ctx, &how, alg_rows[key->alg].digest, NULL, NULL,
                                      key->public_key, NULL) == 1 &&
              (key->alg != JWT_PS256 || use_pss(how)) &&
              EVP_DigestVerify(ctx, sig, sig_n, (const unsigned char *)text.p, text.n) == 1;

    EVP_MD_CTX_free(ctx);
    return ok;
}

/* A token holds the two numbers side by side; OpenSSL needs them in DER.  OpenSSL checks their
 * range. */
static bool verify_pair(const struct jwt_key *key, struct str text, struct str signature)
{
    const unsigned char *raw = (const unsigned char *)signature.p;
    int half = (int)signature.n / 2;
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(raw, half, NULL), *s = BN_bin2bn(raw + half, half, NULL);
    unsigned char *der = NULL;
    int der_n = -1;
    bool ok;

    if (pair && r && s && ECDSA_SIG_set0(pair, r, s) == 1) {
        r = s = NULL;
        der_n = i2d_ECDSA_SIG(pair, &der);
    }
    ok = der_n > 0 && verify_public(key, text, der, (size_t)der_n);
    OPENSSL_free(der);
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(pair);
    return ok;
}

bool jwt_key_verify(const struct jwt_key *key, struct str text, struct str signature)
{
    size_t bytes = alg_rows[key->alg].signature_bytes;
    bool ok;

    if (key->alg == JWT_HS256)
        return verify_secret(key, text, signature);
    if (signature.n != (bytes ? bytes : (size_t)EVP_PKEY_get_size(key->public_key)))
        return false;
    if (key->alg == JWT_ES256 || key->alg == JWT_ES384)
        ok = verify_pair(key, text, signature);
    else
        ok = verify_public(key, text, (const unsigned char *)signature.p, signature.n);
    ERR_clear_error();
    return ok;
}
