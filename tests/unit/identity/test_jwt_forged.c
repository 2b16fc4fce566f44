/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that nobody signed, or that are damaged, each by name and with the reason it is refused
 * for (threats T10). */
#include "tokens.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#define GOOD "{" TOKEN_CLAIMS "}"
#define BUT_SUB(more) "{" TOKEN_CLAIMS_BUT_SUB "," more "}"

static struct str good(struct token_issuer *t, enum jwt_alg alg)
{
    return token_issue(t, alg, STR(GOOD));
}

static struct str good_text(struct token_issuer *t, enum jwt_alg alg)
{
    return token_text(t->mem, token_header(t, alg), STR(GOOD));
}

/* The parts of a good token: header, payload, signature. */
static void good_parts(struct token_issuer *t, enum jwt_alg alg, struct str part[3])
{
    struct str rest = good(t, alg);

    for (int i = 0; i < 3; i++)
        part[i] = str_split(&rest, '.');
}

static struct str signature_of(struct token_issuer *t, enum jwt_alg alg)
{
    struct str s = token_sign(t->mem, alg, t->pairs[alg], good_text(t, alg));
    char *copy = arena_alloc(t->mem, s.n + 8);

    memset(copy + s.n, 0, 8);
    memcpy(copy, s.p, s.n);
    return str_n(copy, s.n);
}

static struct str with_signature(struct token_issuer *t, enum jwt_alg alg, struct str signature)
{
    return token_with(t->mem, good_text(t, alg), signature);
}

/* A good token of a text, `change` written over its signature from `at` on. */
static struct str overwritten(struct token_issuer *t, enum jwt_alg alg, size_t at,
                              const void *change, size_t n)
{
    struct str s = signature_of(t, alg);

    assert_true(at + n <= s.n);
    memcpy((char *)s.p + at, change, n);
    return with_signature(t, alg, s);
}

static struct str public_pem(struct token_issuer *t, EVP_PKEY *key)
{
    BIO *out = BIO_new(BIO_s_mem());
    struct str pem;
    char *p;
    long n;

    assert_int_equal(PEM_write_bio_PUBKEY(out, key), 1);
    n = BIO_get_mem_data(out, &p);
    pem = arena_dup(t->mem, str_n(p, (size_t)n));
    BIO_free(out);
    return pem;
}

static struct str hmac_token(struct token_issuer *t, const char *header, struct str secret)
{
    struct str text = token_text(t->mem, str_of(header), STR(GOOD));

    return token_with(t->mem, text, token_mac(t->mem, secret, text));
}

/* Signed by somebody else, in our issuer's name.  `more` are further members of the header;
 * `brings` puts the key there too. */
static struct str others(struct token_issuer *t, const char *more, bool brings)
{
    EVP_PKEY *key = token_key_new(JWT_ES256);
    struct str jwk = brings ? token_jwk(t->mem, key, "es256", "") : STR("0");
    struct str header = arena_printf(t->mem, "{\"alg\":\"ES256\",\"%s\":%.*s%s}",
                                     brings ? "jwk" : "x", STR_ARG(jwk), more);
    struct str token = token_make(t->mem, JWT_ES256, key, header, STR(GOOD));

    EVP_PKEY_free(key);
    return token;
}

#define FORGED(name) static struct str name(struct token_issuer *t)

FORGED(none_unsigned)
{
    struct str text = token_text(t->mem, STR("{\"alg\":\"none\"}"), STR(GOOD));
    return arena_printf(t->mem, "%.*s.", STR_ARG(text));
}
FORGED(none_of_a_key)
{
    struct str text = token_text(t->mem, STR("{\"alg\":\"none\",\"kid\":\"rs256\"}"), STR(GOOD));
    return arena_printf(t->mem, "%.*s.AAAA", STR_ARG(text));
}
FORGED(hs256_with_pem)
{
    return hmac_token(t, "{\"alg\":\"HS256\",\"kid\":\"rs256\"}",
                      public_pem(t, t->pairs[JWT_RS256]));
}
FORGED(hs256_with_pem_no_kid)
{
    return hmac_token(t, "{\"alg\":\"HS256\"}", public_pem(t, t->pairs[JWT_RS256]));
}
FORGED(hs256_with_pem_no_newline)
{
    struct str pem = public_pem(t, t->pairs[JWT_RS256]);
    return hmac_token(t, "{\"alg\":\"HS256\",\"kid\":\"hs256\"}", str_n(pem.p, pem.n - 1));
}
FORGED(hs256_with_modulus)
{
    struct str n = token_number(t->mem, t->pairs[JWT_RS256], OSSL_PKEY_PARAM_RSA_N, 0);
    return hmac_token(t, "{\"alg\":\"HS256\",\"kid\":\"rs256\"}", base64url_decode(n, t->mem));
}
FORGED(hs256_with_ed25519)
{
    unsigned char raw[32];
    size_t n = sizeof(raw);
    EVP_PKEY_get_raw_public_key(t->pairs[JWT_EDDSA], raw, &n);
    return hmac_token(t, "{\"alg\":\"HS256\",\"kid\":\"eddsa\"}", str_n((char *)raw, n));
}
FORGED(hs256_empty_key)
{
    return hmac_token(t, "{\"alg\":\"HS256\",\"kid\":\"hs256\"}", STR(""));
}
FORGED(hs256_empty_key_no_kid)
{
    return hmac_token(t, "{\"alg\":\"HS256\"}", STR(""));
}
FORGED(hs256_empty_key_of_rsa)
{
    return hmac_token(t, "{\"alg\":\"HS256\",\"kid\":\"rs256\"}", STR(""));
}
FORGED(hs256_nul_key)
{
    return hmac_token(t, "{\"alg\":\"HS256\",\"kid\":\"hs256\"}", STR("\0"));
}
FORGED(hs256_short)
{
    struct str s = signature_of(t, JWT_HS256);
    return with_signature(t, JWT_HS256, str_n(s.p, 16));
}
FORGED(hs256_one_byte)
{
    struct str s = signature_of(t, JWT_HS256);
    return with_signature(t, JWT_HS256, str_n(s.p, 1));
}
FORGED(hs256_flipped)
{
    struct str s = signature_of(t, JWT_HS256);
    ((char *)s.p)[31] ^= 1;
    return with_signature(t, JWT_HS256, s);
}
FORGED(unsigned_good)
{
    struct str text = good_text(t, JWT_RS256);
    return arena_printf(t->mem, "%.*s.", STR_ARG(text));
}
FORGED(two_parts)
{
    return good_text(t, JWT_RS256);
}
FORGED(trailing_dot)
{
    return arena_printf(t->mem, "%s.", good(t, JWT_RS256).p);
}
FORGED(leading_dot)
{
    return arena_printf(t->mem, ".%s", good(t, JWT_RS256).p);
}
FORGED(four_parts)
{
    return arena_printf(t->mem, "%s.AAAA", good(t, JWT_RS256).p);
}
FORGED(five_parts)
{
    (void)t;
    return STR(
        "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..AAAAAAAAAAAAAAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA");
}
FORGED(dots)
{
    (void)t;
    return STR("..");
}
FORGED(nothing)
{
    (void)t;
    return STR("");
}
FORGED(no_payload)
{
    struct str p[3];
    good_parts(t, JWT_RS256, p);
    return arena_printf(t->mem, "%.*s..%.*s", STR_ARG(p[0]), STR_ARG(p[2]));
}
FORGED(json_form)
{
    struct str p[3];
    good_parts(t, JWT_RS256, p);
    return arena_printf(t->mem,
                        "{\"protected\":\"%.*s\",\"payload\":\"%.*s\",\"signature\":\"%.*s\"}",
                        STR_ARG(p[0]), STR_ARG(p[1]), STR_ARG(p[2]));
}
FORGED(padded)
{
    struct str p[3];
    good_parts(t, JWT_ES256, p); /* 64 bytes: two digits short of a group */
    return arena_printf(t->mem, "%.*s.%.*s.%.*s==", STR_ARG(p[0]), STR_ARG(p[1]), STR_ARG(p[2]));
}
FORGED(standard_alphabet)
{
    struct str s = good(t, JWT_RS256);
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '-' || s.p[i] == '_')
            ((char *)s.p)[i] = s.p[i] == '-' ? '+' : '/';
    return s;
}
FORGED(stray_bits)
{
    struct str s = good(t, JWT_ES256);
    assert_int_equal(strchr("AQgw", s.p[s.n - 1]) != NULL, 1);
    ((char *)s.p)[s.n - 1]++; /* decodes to the same bytes where nobody looks */
    return s;
}
FORGED(blank_before)
{
    return arena_printf(t->mem, " %s", good(t, JWT_RS256).p);
}
FORGED(newline_behind)
{
    return arena_printf(t->mem, "%s\n", good(t, JWT_RS256).p);
}
FORGED(newline_within)
{
    struct str p[3];
    good_parts(t, JWT_RS256, p);
    return arena_printf(t->mem, "%.*s.\r\n%.*s.%.*s", STR_ARG(p[0]), STR_ARG(p[1]), STR_ARG(p[2]));
}
FORGED(nul_behind)
{
    struct str s = good(t, JWT_RS256);
    return str_n(s.p, s.n + 1);
}
FORGED(percent_encoded)
{
    return arena_printf(t->mem, "%s%%3D", good(t, JWT_RS256).p);
}
FORGED(bom_before)
{
    return arena_printf(t->mem, "\xef\xbb\xbf%s", good(t, JWT_RS256).p);
}
FORGED(other_payload)
{
    struct str p[3], payload = STR(BUT_SUB("\"sub\":\"admin\""));
    good_parts(t, JWT_RS256, p);
    payload = token_b64(t->mem, payload.p, payload.n);
    return arena_printf(t->mem, "%.*s.%.*s.%.*s", STR_ARG(p[0]), STR_ARG(payload), STR_ARG(p[2]));
}
FORGED(other_header)
{
    struct str p[3], header = STR("{\"kid\":\"rs256\",\"alg\":\"RS256\"}");
    good_parts(t, JWT_RS256, p);
    header = token_b64(t->mem, header.p, header.n);
    return arena_printf(t->mem, "%.*s.%.*s.%.*s", STR_ARG(header), STR_ARG(p[1]), STR_ARG(p[2]));
}
FORGED(es256_zero)
{
    static const char zeros[64];
    return overwritten(t, JWT_ES256, 0, zeros, 64);
}
FORGED(es384_zero)
{
    static const char zeros[96];
    return overwritten(t, JWT_ES384, 0, zeros, 96);
}
FORGED(es256_r_zero)
{
    static const char zeros[32];
    return overwritten(t, JWT_ES256, 0, zeros, 32);
}
FORGED(es256_s_zero)
{
    static const char zeros[32];
    return overwritten(t, JWT_ES256, 32, zeros, 32);
}

static const unsigned char p256_order[] = {
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51};

FORGED(es256_r_order)
{
    return overwritten(t, JWT_ES256, 0, p256_order, 32);
}
FORGED(es256_both_order)
{
    struct str s = signature_of(t, JWT_ES256);
    memcpy((char *)s.p, p256_order, 32);
    memcpy((char *)s.p + 32, p256_order, 32);
    return with_signature(t, JWT_ES256, s);
}
FORGED(es256_all_ones)
{
    char ones[64];
    memset(ones, 0xff, sizeof(ones));
    return overwritten(t, JWT_ES256, 0, ones, sizeof(ones));
}
FORGED(es256_der)
{
    struct str text = good_text(t, JWT_ES256);
    return token_with(t->mem, text,
                      token_sign_as(t->mem, JWT_ES256, t->pairs[JWT_ES256], 0, true, text));
}
FORGED(es256_long)
{
    struct str s = signature_of(t, JWT_ES256);
    return with_signature(t, JWT_ES256, str_n(s.p, 65));
}
FORGED(es256_short)
{
    struct str s = signature_of(t, JWT_ES256);
    return with_signature(t, JWT_ES256, str_n(s.p, 63));
}
FORGED(es256_halves_of_es384)
{
    struct str text = good_text(t, JWT_ES256);
    return token_with(t->mem, text, token_sign(t->mem, JWT_ES384, t->pairs[JWT_ES384], text));
}
FORGED(rsa_short)
{
    struct str s = signature_of(t, JWT_RS256);
    return with_signature(t, JWT_RS256, str_n(s.p, s.n - 1));
}
FORGED(rsa_long)
{
    struct str s = signature_of(t, JWT_RS256);
    return with_signature(t, JWT_RS256, str_n(s.p, s.n + 1));
}
FORGED(rsa_zero)
{
    static const char zeros[256];
    return with_signature(t, JWT_RS256, str_n(zeros, sizeof(zeros)));
}
FORGED(rsa_one)
{
    static const char one[256] = {[255] = 1};
    return with_signature(t, JWT_RS256, str_n(one, sizeof(one)));
}
FORGED(rsa_modulus)
{
    struct str n = token_number(t->mem, t->pairs[JWT_RS256], OSSL_PKEY_PARAM_RSA_N, 0);
    return with_signature(t, JWT_RS256, base64url_decode(n, t->mem));
}
FORGED(rsa_flipped)
{
    struct str s = signature_of(t, JWT_RS256);
    ((char *)s.p)[128] ^= 0x10;
    return with_signature(t, JWT_RS256, s);
}
FORGED(rs256_signature_on_ps256)
{
    struct str text = good_text(t, JWT_PS256);
    return token_with(t->mem, text, token_sign(t->mem, JWT_RS256, t->pairs[JWT_PS256], text));
}
FORGED(ps256_signature_on_rs256)
{
    struct str text = good_text(t, JWT_RS256);
    return token_with(t->mem, text, token_sign(t->mem, JWT_PS256, t->pairs[JWT_RS256], text));
}
FORGED(ps256_short_salt)
{
    struct str text = good_text(t, JWT_PS256);
    return token_with(t->mem, text,
                      token_sign_as(t->mem, JWT_PS256, t->pairs[JWT_PS256], 20, false, text));
}
FORGED(ps256_no_salt)
{
    struct str text = good_text(t, JWT_PS256);
    return token_with(t->mem, text,
                      token_sign_as(t->mem, JWT_PS256, t->pairs[JWT_PS256], 0, false, text));
}

/* S + L is as good as S to whoever does not look. */
FORGED(ed25519_non_canonical)
{
    static const unsigned char order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a,       0x63,
                                            0x12, 0x58, 0xd6, 0x9c, 0xf7,       0xa2,
                                            0xde, 0xf9, 0xde, 0x14, [31] = 0x10};
    struct str s = signature_of(t, JWT_EDDSA);
    unsigned char *half = (unsigned char *)s.p + 32;
    unsigned carry = 0;

    for (int i = 0; i < 32; i++) {
        carry += half[i] + order[i];
        half[i] = (unsigned char)carry;
        carry >>= 8;
    }
    return with_signature(t, JWT_EDDSA, s);
}
FORGED(ed25519_zero)
{
    static const char zeros[64];
    return overwritten(t, JWT_EDDSA, 0, zeros, 64);
}
FORGED(ed25519_short)
{
    struct str s = signature_of(t, JWT_EDDSA);
    return with_signature(t, JWT_EDDSA, str_n(s.p, 63));
}
FORGED(ed25519_long)
{
    struct str s = signature_of(t, JWT_EDDSA);
    return with_signature(t, JWT_EDDSA, str_n(s.p, 65));
}
FORGED(others_key)
{
    return others(t, ",\"kid\":\"es256\"", false);
}
FORGED(others_key_no_kid)
{
    return others(t, "", false);
}
FORGED(others_jwk)
{
    return others(t, ",\"kid\":\"es256\"", true);
}
FORGED(others_jku)
{
    return others(t, ",\"jku\":\"https://evil.example/keys\"", false);
}
FORGED(others_x5u)
{
    return others(t, ",\"x5u\":\"https://evil.example/cert\"", false);
}
FORGED(others_x5c)
{
    return others(t, ",\"x5c\":[\"MIIB\"]", true);
}
FORGED(too_long)
{
    char *text = arena_alloc(t->mem, JWT_BYTES_MAX + 1);
    memset(text, 'A', JWT_BYTES_MAX + 1);
    return str_n(text, JWT_BYTES_MAX + 1);
}

static const struct {
    const char *name;
    enum jwt_fault want;
    struct str (*make)(struct token_issuer *t);
} forged_rows[] = {
    {"alg none and no signature", JWT_PARTS, none_unsigned},
    {"alg none of a known key", JWT_ALG, none_of_a_key},
    {"HS256 with the RSA key's PEM", JWT_ALG, hs256_with_pem},
    {"HS256 with the RSA key's PEM, no kid", JWT_SIGNATURE, hs256_with_pem_no_kid},
    {"HS256 with the PEM cut, kid of the secret", JWT_SIGNATURE, hs256_with_pem_no_newline},
    {"HS256 with the modulus", JWT_ALG, hs256_with_modulus},
    {"HS256 with the Ed25519 key", JWT_ALG, hs256_with_ed25519},
    {"HS256 with an empty key", JWT_SIGNATURE, hs256_empty_key},
    {"HS256 with an empty key, no kid", JWT_SIGNATURE, hs256_empty_key_no_kid},
    {"HS256 with an empty key, kid of RSA", JWT_ALG, hs256_empty_key_of_rsa},
    {"HS256 with a key of one NUL", JWT_SIGNATURE, hs256_nul_key},
    {"HS256 cut to 16 bytes", JWT_SIGNATURE, hs256_short},
    {"HS256 cut to 1 byte", JWT_SIGNATURE, hs256_one_byte},
    {"HS256 with a bit flipped", JWT_SIGNATURE, hs256_flipped},
    {"good claims, empty signature", JWT_PARTS, unsigned_good},
    {"two parts", JWT_PARTS, two_parts},
    {"a trailing dot", JWT_PARTS, trailing_dot},
    {"a leading dot", JWT_PARTS, leading_dot},
    {"four parts", JWT_PARTS, four_parts},
    {"five parts, encrypted", JWT_PARTS, five_parts},
    {"dots alone", JWT_PARTS, dots},
    {"nothing", JWT_PARTS, nothing},
    {"no payload", JWT_PARTS, no_payload},
    {"the JSON form", JWT_PARTS, json_form},
    {"padded", JWT_BASE64, padded},
    {"the standard alphabet", JWT_BASE64, standard_alphabet},
    {"stray bits", JWT_BASE64, stray_bits},
    {"a blank before", JWT_BASE64, blank_before},
    {"a newline behind", JWT_BASE64, newline_behind},
    {"a newline within", JWT_BASE64, newline_within},
    {"a NUL behind", JWT_BASE64, nul_behind},
    {"percent encoding", JWT_BASE64, percent_encoded},
    {"a BOM before", JWT_BASE64, bom_before},
    {"another payload under the signature", JWT_SIGNATURE, other_payload},
    {"another header under the signature", JWT_SIGNATURE, other_header},
    {"ES256 all zero", JWT_SIGNATURE, es256_zero},
    {"ES384 all zero", JWT_SIGNATURE, es384_zero},
    {"ES256 r zero", JWT_SIGNATURE, es256_r_zero},
    {"ES256 s zero", JWT_SIGNATURE, es256_s_zero},
    {"ES256 r the order", JWT_SIGNATURE, es256_r_order},
    {"ES256 r and s the order", JWT_SIGNATURE, es256_both_order},
    {"ES256 all ones", JWT_SIGNATURE, es256_all_ones},
    {"ES256 in DER", JWT_SIGNATURE, es256_der},
    {"ES256 with a byte more", JWT_SIGNATURE, es256_long},
    {"ES256 with a byte less", JWT_SIGNATURE, es256_short},
    {"ES256 signed on P-384", JWT_SIGNATURE, es256_halves_of_es384},
    {"RSA with a byte less", JWT_SIGNATURE, rsa_short},
    {"RSA with a byte more", JWT_SIGNATURE, rsa_long},
    {"RSA zero", JWT_SIGNATURE, rsa_zero},
    {"RSA one", JWT_SIGNATURE, rsa_one},
    {"RSA the modulus", JWT_SIGNATURE, rsa_modulus},
    {"RSA with a bit flipped", JWT_SIGNATURE, rsa_flipped},
    {"RS256 signature where PS256 is due", JWT_SIGNATURE, rs256_signature_on_ps256},
    {"PS256 signature where RS256 is due", JWT_SIGNATURE, ps256_signature_on_rs256},
    {"PS256 with a short salt", JWT_SIGNATURE, ps256_short_salt},
    {"PS256 without salt", JWT_SIGNATURE, ps256_no_salt},
    {"Ed25519 with a non-canonical S", JWT_SIGNATURE, ed25519_non_canonical},
    {"Ed25519 all zero", JWT_SIGNATURE, ed25519_zero},
    {"Ed25519 with a byte less", JWT_SIGNATURE, ed25519_short},
    {"Ed25519 with a byte more", JWT_SIGNATURE, ed25519_long},
    {"another's key under our kid", JWT_SIGNATURE, others_key},
    {"another's key, no kid", JWT_SIGNATURE, others_key_no_kid},
    {"another's key brought in jwk", JWT_SIGNATURE, others_jwk},
    {"another's key behind jku", JWT_SIGNATURE, others_jku},
    {"another's key behind x5u", JWT_SIGNATURE, others_x5u},
    {"another's key in x5c", JWT_SIGNATURE, others_x5c},
    {"8193 bytes", JWT_TOO_LONG, too_long},
};

TEST(test_jwt_forged__forged_and_damaged_tokens_are_refused)
{
    struct token_issuer t;

    token_issuer_init(&t);
    for (size_t i = 0; i < countof(forged_rows); i++) {
        struct jwt_claims claims;
        enum jwt_fault got = token_check(&t, forged_rows[i].make(&t), &claims);
        if (got != forged_rows[i].want)
            fail_msg("%s: %s, not %s", forged_rows[i].name, jwt_fault_name(got),
                     jwt_fault_name(forged_rows[i].want));
        /* What OpenSSL leaves behind would be taken for a fault of the next TLS connection. */
        assert_int_equal(ERR_peek_error(), 0);
    }
    token_issuer_release(&t);
}
