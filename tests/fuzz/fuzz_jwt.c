/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of tokens.  The first byte says what the rest is: a token from anybody, of which none
 * may be taken, as nobody knows the keys; header and payload, parted by a newline, which we sign,
 * so that what they say is reached; or a key set.  Whatever is taken keeps the promises of jwt.h.
 */
#include "crypto/base64.h"
#include "identity/jwks.h"
#include "identity/jwt.h"

#include <stdlib.h>

#define NOW_MS INT64_C(1800000000000)
#define SECRET "nobody but this file knows 32 bytes"

static const char public_keys[] =
    "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"rsa\",\"use\":\"sig\",\"n\":\"oLgus-rLjUGATQjS"
    "8--Sb4SYOIxr3xxl3fPGQOpJ7fs0JbL4mKBWyV9-KAa9hYHMLbk21KU-CYIL9FEGgZ5ub63h1VnksN3jCUoZ"
    "W0Hpvtz-xbneNG0h1yrXo8S1TGYHOoxzoWrjNnEmnM7TNPDNFYNClWHNoFBOOwGOXKfcHSD4BVnFUVo6Jghp"
    "A-8Iao5bOLrdBdyt7KZzwzw0Uk-njVNv8ehw_ONlsaqMUPFyxkKcgOLRBhqePrsPGfrdmfA2qfVAulYoBcrl"
    "2lNhGuoIPuNt4rLWyUOVlPRfCNYLdFGbdX72kucEOOrxHUBC5sU-Pw6lhA5rBgpf2ufa8mC1-w\",\"e\":\""
    "AQAB\"},{\"kty\":\"EC\",\"kid\":\"ec\",\"crv\":\"P-256\",\"x\":\"bBDMFRjbvJAukv2R3-5"
    "3h7oiu9sgrNA_yiNlUUMqR6c\",\"y\":\"VIOc7fgA7u-v14bGk_y1kOjFTQwtLMunUmBN5JVvvCs\",\"k"
    "ey_ops\":[\"verify\"]},{\"kty\":\"OKP\",\"kid\":\"ed\",\"crv\":\"Ed25519\",\"alg\":\""
    "EdDSA\",\"x\":\"gOmWxPfvg6DXfcQld8MsBd4LP7J7uFvjV-2Rd_gXD48\"}]}";

static const struct str audience = {"a", 1};
static const struct jwt_rules rules = {
    .issuer = {"i", 1},
    .audiences = &audience,
    .n_audiences = 1,
    .tenant_claim = {"t", 1},
    .role_claim = {"r", 1},
    .tenant = {"default", 7},
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Made once: a target runs millions of times. */
static struct jwt_keys *keys_for_all(void)
{
    static struct jwt_keys *keys;
    struct jwks_report report;
    struct error err;

    if (keys)
        return keys;
    keys = jwt_keys_new();
    check(jwks_parse(str_of(public_keys), keys, &report, &err) && report.n_taken == 3);
    check(jwt_keys_add_secret(keys, STR("k"), STR(SECRET), &err));
    return keys;
}

static void check_claims(const struct jwt_claims *c)
{
    check(str_eq(c->issuer, rules.issuer));
    check(c->subject.n >= 1 && c->subject.n <= JWT_SUBJECT_MAX &&
          !memchr(c->subject.p, 0, c->subject.n));
    check(c->tenant.n >= 1 && c->tenant.n <= JWT_NAME_MAX &&
          !memchr(c->tenant.p, '/', c->tenant.n));
    check(c->role >= ROLE_ADMIN && c->role <= ROLE_SERVICE);
    check(c->expires_ms > NOW_MS && c->trust_until_ms <= c->expires_ms);
    check(c->trust_until_ms > NOW_MS && c->trust_until_ms <= NOW_MS + JWT_TRUST_MAX_MS);
}

static void try_token(struct str text, struct arena *mem)
{
    struct jwt_claims claims;
    struct error err = {0};
    struct str bytes = base64url_decode(text, mem);
    char *again = arena_alloc(mem, text.n + 4);

    check(!jwt_verify(keys_for_all(), &rules, text, NOW_MS, mem, &claims, &err));
    check(err.code == ERR_UNAUTHENTICATED);
    jwt_claimed_issuer(text, mem);
    /* One spelling for each value, or two tokens would be one. */
    if (bytes.p)
        check(str_eq(str_n(again, base64url_encode(bytes.p, bytes.n, again)), text));
}

static struct str coded(struct str s, struct arena *mem)
{
    char *text = arena_alloc(mem, s.n * 4 / 3 + 4);

    return str_n(text, base64url_encode(s.p, s.n, text));
}

static void try_signed(struct str text, struct arena *mem)
{
    struct hmac_key *key = hmac_key_new((const uint8_t *)SECRET, sizeof(SECRET) - 1);
    struct str header = coded(str_split(&text, '\n'), mem), payload = coded(text, mem), signed_text;
    struct jwt_claims claims;
    uint8_t mac[SHA256_BYTES];

    signed_text = arena_printf(mem, "%.*s.%.*s", STR_ARG(header), STR_ARG(payload));
    hmac_sha256(key, &signed_text, 1, mac);
    hmac_key_free(key);
    header = coded(str_n((const char *)mac, sizeof(mac)), mem);
    signed_text = arena_printf(mem, "%.*s.%.*s", STR_ARG(signed_text), STR_ARG(header));
    if (jwt_check(keys_for_all(), &rules, signed_text, NOW_MS, mem, &claims) == JWT_OK)
        check_claims(&claims);
}

static void try_set(struct str text)
{
    struct jwt_keys *keys = jwt_keys_new();
    struct jwks_report report;
    struct error err = {0};

    if (jwks_parse(text, keys, &report, &err))
        check(keys->n == report.n_taken && keys->n >= 1 && keys->n <= JWT_KEYS_MAX);
    else
        check(keys->n == 0 && err.code == ERR_CONFIG && err.text[0]);
    for (size_t i = 0; i < keys->n; i++)
        check(keys->keys[i].public_key && !keys->keys[i].secret && keys->keys[i].alg != JWT_HS256);
    jwt_keys_free(keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *mem = arena_new(SIZE_MAX);
    struct str rest = {(const char *)data + 1, size - 1};

    if (size > 1 && data[0] == 't')
        try_token(rest, mem);
    else if (size > 1 && data[0] == 's')
        try_signed(rest, mem);
    else if (size > 1 && data[0] == 'k')
        try_set(rest);
    arena_free(mem);
    return 0;
}
