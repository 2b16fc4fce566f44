/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a JWK Set into keys.  The key type decides how its numbers are read, and gives the default
 * algorithm.  jwt_key.c checks that the key suits the algorithm.
 *
 * An unusable key is skipped (add_key()).  A malformed set, or a set with a private key, is refused
 * as a whole (check_set()). */
#include "identity/jwks.h"

#include "crypto/base64.h"
#include "json/read.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdlib.h>

#define POINT_MAX (1 + 2 * 48) /* uncompressed point on P-384 */

static const struct js_limits set_limits = {
    .depth = 16, .keys = 256, .nodes = 1 << 16, .flags = JS_NO_DUPLICATES};

static const char *const private_members[] = {"d", "p", "q", "dp", "dq", "qi", "oth"};

struct reader {
    const struct js_doc *doc;
    struct arena *mem;
};

static struct str member_text(const struct reader *r, const struct js_node *jwk, const char *name)
{
    return js_text(r->doc, js_get(r->doc, jwk, str_of(name)), r->mem);
}

static struct str member_bytes(const struct reader *r, const struct js_node *jwk, const char *name)
{
    return base64url_decode(member_text(r, jwk, name), r->mem);
}

static EVP_PKEY *key_from(const char *type, OSSL_PARAM_BLD *build)
{
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    EVP_PKEY *key = NULL;

    if (!params || !ctx || EVP_PKEY_fromdata_init(ctx) != 1 ||
        EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    OSSL_PARAM_free(params);
    EVP_PKEY_CTX_free(ctx);
    return key;
}

static BIGNUM *number_of(struct str bytes, size_t max)
{
    return bytes.n && bytes.n <= max ? BN_bin2bn((const unsigned char *)bytes.p, (int)bytes.n, NULL)
                                     : NULL;
}

static EVP_PKEY *make_rsa(const struct reader *r, const struct js_node *jwk,
                          const char *group unused_arg, size_t bytes unused_arg)
{
    BIGNUM *n = number_of(member_bytes(r, jwk, "n"), JWT_RSA_BITS_MAX / 8 + 1);
    BIGNUM *e = number_of(member_bytes(r, jwk, "e"), 8);
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;

    if (n && e && build && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e) == 1)
        key = key_from("RSA", build);
    OSSL_PARAM_BLD_free(build);
    BN_free(n);
    BN_free(e);
    return key;
}

static EVP_PKEY *make_ec(const struct reader *r, const struct js_node *jwk, const char *group,
                         size_t bytes)
{
    struct str x = member_bytes(r, jwk, "x"), y = member_bytes(r, jwk, "y");
    unsigned char point[POINT_MAX] = {4};
    OSSL_PARAM_BLD *build;
    EVP_PKEY *key = NULL;

    if (x.n != bytes || y.n != bytes) /* full length with leading zeros (RFC 7518, 6.2.1) */
        return NULL;
    memcpy(point + 1, x.p, bytes);
    memcpy(point + 1 + bytes, y.p, bytes);
    build = OSSL_PARAM_BLD_new();
    if (build &&
        OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, group, 0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + 2 * bytes) == 1)
        key = key_from("EC", build);
    OSSL_PARAM_BLD_free(build);
    return key;
}

static EVP_PKEY *make_okp(const struct reader *r, const struct js_node *jwk,
                          const char *group unused_arg, size_t bytes)
{
    struct str x = member_bytes(r, jwk, "x");

    return x.n == bytes ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL,
                                                      (const unsigned char *)x.p, x.n)
                        : NULL;
}

static const struct kind {
    const char *kty;
    const char *crv;  /* NULL: the type has no curve */
    enum jwt_alg alg; /* default, for a key without "alg" */
    const char *group;
    size_t bytes; /* length of a coordinate */
    EVP_PKEY *(*make)(const struct reader *r, const struct js_node *jwk, const char *group,
                      size_t bytes);
} kinds[] = {
    {"RSA", NULL, JWT_RS256, NULL, 0, make_rsa},
    {"EC", "P-256", JWT_ES256, "prime256v1", 32, make_ec},
    {"EC", "P-384", JWT_ES384, "secp384r1", 48, make_ec},
    {"OKP", "Ed25519", JWT_EDDSA, NULL, 32, make_okp},
};

static const struct kind *find_kind(const struct reader *r, const struct js_node *jwk)
{
    struct str kty = member_text(r, jwk, "kty"), crv = member_text(r, jwk, "crv");

    for (size_t i = 0; i < countof(kinds); i++)
        if (str_eq(kty, str_of(kinds[i].kty)) &&
            (!kinds[i].crv || str_eq(crv, str_of(kinds[i].crv))))
            return &kinds[i];
    return NULL;
}

static bool list_has(const struct js_doc *doc, const struct js_node *list, struct str text)
{
    if (!js_type_is(list, JS_ARRAY))
        return false;
    for (const struct js_node *e = js_first(doc, list); e; e = js_next(doc, list, e))
        if (js_is(doc, e, text))
            return true;
    return false;
}

static bool is_for_signatures(const struct reader *r, const struct js_node *jwk)
{
    const struct js_node *use = js_get(r->doc, jwk, STR("use"));
    const struct js_node *ops = js_get(r->doc, jwk, STR("key_ops"));

    return (!use || js_is(r->doc, use, STR("sig"))) &&
           (!ops || list_has(r->doc, ops, STR("verify")));
}

static bool find_alg(const struct reader *r, const struct js_node *jwk, const struct kind *kind,
                     enum jwt_alg *ret)
{
    const struct js_node *alg = js_get(r->doc, jwk, STR("alg"));

    *ret = kind->alg;
    return !alg || jwt_alg_parse(js_text(r->doc, alg, r->mem), ret);
}

static bool add_key(const struct reader *r, const struct js_node *jwk, struct jwt_keys *keys,
                    struct error *err)
{
    const struct js_node *kid = js_get(r->doc, jwk, STR("kid"));
    const struct kind *kind = find_kind(r, jwk);
    enum jwt_alg alg;
    EVP_PKEY *key;

    if (!kind)
        return error_set(err, ERR_CONFIG, "its kty or crv is not supported");
    if (!is_for_signatures(r, jwk))
        return error_set(err, ERR_CONFIG, "its use or key_ops does not allow to verify signatures");
    if (!find_alg(r, jwk, kind, &alg))
        return error_set(err, ERR_CONFIG, "its alg is not supported");
    if (kid && !js_type_is(kid, JS_STRING))
        return error_set(err, ERR_CONFIG, "its kid is not a string");
    key = kind->make(r, jwk, kind->group, kind->bytes);
    ERR_clear_error();
    if (!key)
        return error_set(err, ERR_CONFIG, "its numbers are not a valid key of its kty");
    return jwt_keys_take(keys, js_text(r->doc, kid, r->mem), alg, key, err);
}

static bool check_public(const struct reader *r, const struct js_node *jwk, struct error *err)
{
    if (!js_type_is(jwk, JS_OBJECT))
        return error_set(err, ERR_CONFIG,
                         "a key in the set is not an object; publish a JWK Set (RFC 7517)");
    for (size_t i = 0; i < countof(private_members); i++)
        if (js_get(r->doc, jwk, str_of(private_members[i])))
            return error_set(err, ERR_CONFIG,
                             "the set holds a private key; replace that key and publish only "
                             "public ones");
    return true;
}

static bool check_set(const struct reader *r, const struct js_node *list, size_t n_before,
                      struct error *err)
{
    size_t n = n_before;

    if (!js_type_is(list, JS_ARRAY))
        return error_set(err, ERR_CONFIG,
                         "there is no array \"keys\" in it; publish a JWK Set (RFC 7517)");
    for (const struct js_node *e = js_first(r->doc, list); e; e = js_next(r->doc, list, e)) {
        if (!check_public(r, e, err))
            return false;
        n++;
    }
    return n <= JWT_KEYS_MAX || error_set(err, ERR_CONFIG,
                                          "there are %zu keys and at most %d are taken; publish "
                                          "fewer",
                                          n, JWT_KEYS_MAX);
}

static bool parse_set(struct str json, struct jwt_keys *keys, struct arena *mem,
                      struct jwks_report *ret_report, struct error *err)
{
    struct jwks_report report = {0};
    struct js_doc doc;
    struct js_fault fault;
    struct reader r = {&doc, mem};
    const struct js_node *list;

    if (json.n > JWKS_BYTES_MAX)
        return error_set(err, ERR_CONFIG, "it is longer than %u bytes; publish fewer keys",
                         JWKS_BYTES_MAX);
    if (!js_parse(json, &set_limits, mem, &doc, &fault))
        return error_set(err, ERR_CONFIG, "it is not JSON: line %u, column %u: %s; correct it",
                         fault.line, fault.column, fault.reason);
    list = js_get(&doc, js_root(&doc), STR("keys"));
    if (!check_set(&r, list, keys->n, err))
        return false;
    for (const struct js_node *e = js_first(&doc, list); e; e = js_next(&doc, list, e)) {
        struct error why;
        if (add_key(&r, e, keys, &why))
            report.n_taken++;
        else if (report.n_skipped++ == 0)
            report.why = why;
    }
    if (report.n_taken == 0)
        return error_set(err, ERR_CONFIG, "there is no key in it that can check a signature%s%s",
                         report.n_skipped ? "; of the first " : "; add one", report.why.text);
    *ret_report = report;
    return true;
}

bool jwks_parse(struct str json, struct jwt_keys *keys, struct jwks_report *ret_report,
                struct error *err)
{
    struct arena *mem = arena_new(SIZE_MAX);
    bool ok = parse_set(json, keys, mem, ret_report, err);

    arena_free(mem);
    return ok;
}
