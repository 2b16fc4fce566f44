/* SPDX-License-Identifier: Apache-2.0 */
/* Key sets: which keys are taken for which algorithm, which are passed over, and which sets are
 * refused whole. */
#include "tokens.h"

#include "identity/jwks.h"

#include <stdio.h>

struct fixture {
    struct arena *mem;
    struct jwt_keys *keys;
    struct jwks_report report;
    struct error err;
};

static void setup(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->mem = arena_new(SIZE_MAX);
    f->keys = jwt_keys_new();
}

static void teardown(struct fixture *f)
{
    jwt_keys_free(f->keys);
    arena_free(f->mem);
}

static bool parse(struct fixture *f, struct str json)
{
    jwt_keys_free(f->keys);
    f->keys = jwt_keys_new();
    memset(&f->report, 0, sizeof(f->report));
    return jwks_parse(json, f->keys, &f->report, &f->err);
}

/* One key, with `more` behind its members: taken for `alg`, or passed over (JWT_ALG_COUNT). */
static void one(struct fixture *f, EVP_PKEY *key, const char *more, enum jwt_alg alg)
{
    struct str json = token_set(f->mem, token_jwk(f->mem, key, "k", more));

    if (alg == JWT_ALG_COUNT) {
        if (parse(f, json))
            fail_msg("%s: taken", more);
        assert_int_equal(f->keys->n, 0);
        assert_int_equal(f->err.code, ERR_CONFIG);
        return;
    }
    if (!parse(f, json))
        fail_msg("%s: %s", more, f->err.text);
    assert_int_equal(f->keys->n, 1);
    assert_int_equal(f->keys->keys[0].alg, alg);
    assert_str(f->keys->keys[0].kid, "k");
}

TEST(test_jwks__a_key_is_for_one_algorithm)
{
    EVP_PKEY *rsa = token_key_new(JWT_RS256), *p256 = token_key_new(JWT_ES256);
    EVP_PKEY *p384 = token_key_new(JWT_ES384), *ed = token_key_new(JWT_EDDSA);
    struct fixture f;

    setup(&f);
    one(&f, rsa, "", JWT_RS256);
    one(&f, rsa, ",\"alg\":\"RS256\"", JWT_RS256);
    one(&f, rsa, ",\"alg\":\"PS256\"", JWT_PS256);
    one(&f, rsa, ",\"alg\":\"RS512\"", JWT_ALG_COUNT);
    one(&f, rsa, ",\"alg\":\"RSA-OAEP\"", JWT_ALG_COUNT);
    one(&f, rsa, ",\"alg\":\"HS256\"", JWT_ALG_COUNT);
    one(&f, rsa, ",\"alg\":\"none\"", JWT_ALG_COUNT);
    one(&f, rsa, ",\"alg\":\"ES256\"", JWT_ALG_COUNT);
    one(&f, rsa, ",\"alg\":1", JWT_ALG_COUNT);
    one(&f, p256, "", JWT_ES256);
    one(&f, p256, ",\"alg\":\"ES384\"", JWT_ALG_COUNT);
    one(&f, p256, ",\"alg\":\"RS256\"", JWT_ALG_COUNT);
    one(&f, p384, "", JWT_ES384);
    one(&f, p384, ",\"alg\":\"ES256\"", JWT_ALG_COUNT);
    one(&f, ed, "", JWT_EDDSA);
    one(&f, ed, ",\"alg\":\"EdDSA\"", JWT_EDDSA);
    one(&f, ed, ",\"alg\":\"HS256\"", JWT_ALG_COUNT);
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(p256);
    EVP_PKEY_free(p384);
    EVP_PKEY_free(ed);
    teardown(&f);
}

TEST(test_jwks__keys_for_other_uses_are_passed_over)
{
    EVP_PKEY *key = token_key_new(JWT_ES256);
    struct fixture f;

    setup(&f);
    one(&f, key, ",\"use\":\"sig\",\"key_ops\":[\"verify\"]", JWT_ES256);
    one(&f, key, ",\"key_ops\":[\"sign\",\"verify\"]", JWT_ES256);
    one(&f, key, ",\"use\":\"enc\"", JWT_ALG_COUNT);
    one(&f, key, ",\"use\":\"\"", JWT_ALG_COUNT);
    one(&f, key, ",\"use\":null", JWT_ALG_COUNT);
    one(&f, key, ",\"use\":[\"sig\"]", JWT_ALG_COUNT);
    one(&f, key, ",\"key_ops\":[\"sign\"]", JWT_ALG_COUNT);
    one(&f, key, ",\"key_ops\":[]", JWT_ALG_COUNT);
    one(&f, key, ",\"key_ops\":\"verify\"", JWT_ALG_COUNT);
    one(&f, key, ",\"x5c\":[\"MIIB\"],\"x5t\":\"AAAA\",\"ext\":true", JWT_ES256);
    EVP_PKEY_free(key);
    teardown(&f);
}

TEST(test_jwks__unknown_kinds_are_passed_over_beside_good_ones)
{
    EVP_PKEY *key = token_key_new(JWT_ES256);
    struct fixture f;
    struct str jwk;

    setup(&f);
    jwk = token_jwk(f.mem, key, "k", "");
    assert_true(parse(
        &f, arena_printf(f.mem,
                         "{\"keys\":[{\"kty\":\"oct\",\"kid\":\"o\",\"k\":\"AAAA\"},"
                         "{\"kty\":\"EC\",\"crv\":\"secp256k1\",\"x\":\"AA\",\"y\":\"AA\"},"
                         "{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"AA\"},{\"kty\":\"ML-DSA\"},"
                         "{},{\"kty\":7},%.*s],\"more\":1}",
                         STR_ARG(jwk))));
    assert_int_equal(f.report.n_taken, 1);
    assert_int_equal(f.report.n_skipped, 6);
    assert_string_equal(f.report.why.text, "its kty or crv is not supported");
    assert_int_equal(f.keys->n, 1);
    EVP_PKEY_free(key);
    teardown(&f);
}

TEST(test_jwks__a_second_key_of_the_same_kid_is_passed_over)
{
    EVP_PKEY *a = token_key_new(JWT_ES256), *b = token_key_new(JWT_ES256);
    EVP_PKEY *other = token_key_new(JWT_EDDSA);
    struct fixture f;
    struct str x, y, z;

    setup(&f);
    x = token_jwk(f.mem, a, "k", "");
    y = token_jwk(f.mem, b, "k", "");
    z = token_jwk(f.mem, other, "k", "");
    assert_true(parse(&f, arena_printf(f.mem, "{\"keys\":[%.*s,%.*s,%.*s]}", STR_ARG(x), STR_ARG(y),
                                       STR_ARG(z))));
    assert_int_equal(f.report.n_taken, 2);
    assert_int_equal(f.report.n_skipped, 1);
    EVP_PKEY_free(a);
    EVP_PKEY_free(b);
    EVP_PKEY_free(other);
    teardown(&f);
}

TEST(test_jwks__weak_rsa_keys_are_passed_over)
{
    EVP_PKEY *key = EVP_RSA_gen(1024), *enough = EVP_RSA_gen(2048);
    struct str n;
    struct fixture f;

    setup(&f);
    one(&f, key, "", JWT_ALG_COUNT);
    n = token_number(f.mem, enough, OSSL_PKEY_PARAM_RSA_N, 0);
    /* Exponents: 65537, 3; and 1, 2, 0, 65536, 2^64-1, none. */
    for (int i = 0; i < 8; i++) {
        static const char *const e[] = {"AQAB", "Aw", "AQ", "Ag", "AA", "AQAA", "__________8", ""};
        struct str json = arena_printf(
            f.mem, "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"%.*s\",\"e\":\"%s\"}]}", STR_ARG(n), e[i]);
        if (parse(&f, json) != (i < 2))
            fail_msg("exponent %s", e[i]);
    }
    EVP_PKEY_free(key);
    EVP_PKEY_free(enough);
    teardown(&f);
}

TEST(test_jwks__rsa_keys_end_at_8192_bits)
{
    struct fixture f;

    setup(&f);
    for (size_t over = 0; over < 2; over++) {
        unsigned char n[JWT_RSA_BITS_MAX / 8 + 1];
        size_t bytes = JWT_RSA_BITS_MAX / 8 + over;
        struct str text;
        memset(n, 0xff, sizeof(n)); /* odd and as long as it looks; nobody needs its factors */
        text = token_b64(f.mem, n, bytes);
        assert_int_equal(
            parse(&f, arena_printf(f.mem,
                                   "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"%.*s\",\"e\":\"AQAB\"}]}",
                                   STR_ARG(text))),
            !over);
    }
    teardown(&f);
}

TEST(test_jwks__points_must_be_whole_and_on_the_curve)
{
    static const char *const bad[] = {
        /* P-256's own generator, then: y changed, x short, x long, no y, zeros, padded, standard */
        "\"x\":\"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY\","
        "\"y\":\"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfQ\"",
        "\"x\":\"F9Hy4SxCR_i85uVjpEDydwN9gS3rM6D0oTlF2JjClg\","
        "\"y\":\"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU\"",
        "\"x\":\"AGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKW\","
        "\"y\":\"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU\"",
        "\"x\":\"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY\"",
        "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
        "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"",
        "\"x\":\"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY=\","
        "\"y\":\"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU=\"",
        "\"x\":\"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY\","
        "\"y\":\"T+NC4v4af5uO5+tKfA+eFivOM1drMV7Oy7ZAaDe/UfU\"",
    };
    struct fixture f;

    setup(&f);
    assert_true(parse(&f, STR("{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\","
                              "\"x\":\"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY\","
                              "\"y\":\"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU\"}]}")));
    for (size_t i = 0; i < countof(bad); i++)
        if (parse(&f, arena_printf(f.mem, "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",%s}]}",
                                   bad[i])))
            fail_msg("%s was taken", bad[i]);
    teardown(&f);
}

TEST(test_jwks__sets_that_cannot_be_right_are_refused_whole)
{
    EVP_PKEY *key = token_key_new(JWT_ES256);
    struct fixture f;
    struct str jwk;

    setup(&f);
    jwk = token_jwk(f.mem, key, "k", "");
    assert_false(parse(
        &f, arena_printf(f.mem, "{\"keys\":[%.*s,{\"kty\":\"EC\",\"d\":\"AA\"}]}", STR_ARG(jwk))));
    assert_non_null(strstr(f.err.text, "private key"));
    assert_int_equal(f.keys->n, 0);
    assert_false(parse(
        &f, arena_printf(f.mem, "{\"keys\":[%.*s],\"keys\":[%.*s]}", STR_ARG(jwk), STR_ARG(jwk))));
    assert_false(parse(&f, arena_printf(f.mem, "{\"keys\":[%.*s,1]}", STR_ARG(jwk))));
    assert_false(parse(&f, arena_printf(f.mem, "{\"keys\":[%.*s],}", STR_ARG(jwk))));
    assert_false(parse(&f, arena_printf(f.mem, "[%.*s]", STR_ARG(jwk))));
    assert_false(parse(&f, jwk));
    assert_false(parse(&f, STR("{\"keys\":{}}")));
    assert_false(parse(&f, STR("{\"keys\":[]}")));
    assert_false(parse(&f, STR("")));
    assert_false(parse(&f, STR("<html>")));
    EVP_PKEY_free(key);
    teardown(&f);
}

TEST(test_jwks__every_private_member_is_seen)
{
    static const char *const members[] = {"d", "p", "q", "dp", "dq", "qi", "oth", "\\u0064"};
    EVP_PKEY *key = token_key_new(JWT_ES256);
    struct fixture f;

    setup(&f);
    for (size_t i = 0; i < countof(members); i++) {
        struct str more = arena_printf(f.mem, ",\"%s\":\"AA\"", members[i]);
        one(&f, key, more.p, JWT_ALG_COUNT);
        assert_non_null(strstr(f.err.text, "private key"));
    }
    EVP_PKEY_free(key);
    teardown(&f);
}

TEST(test_jwks__takes_64_keys_and_not_65)
{
    EVP_PKEY *key = token_key_new(JWT_EDDSA);
    struct fixture f;

    setup(&f);
    for (unsigned over = 0; over < 2; over++) {
        struct str all = STR("");
        for (unsigned i = 0; i < JWT_KEYS_MAX + over; i++) {
            char kid[16];
            struct str jwk;
            snprintf(kid, sizeof(kid), "%u", i);
            jwk = token_jwk(f.mem, key, kid, "");
            all = arena_printf(f.mem, "%.*s%s%.*s", STR_ARG(all), i ? "," : "", STR_ARG(jwk));
        }
        assert_int_equal(parse(&f, token_set(f.mem, all)), !over);
        assert_int_equal(f.keys->n, over ? 0 : JWT_KEYS_MAX);
    }
    EVP_PKEY_free(key);
    teardown(&f);
}

TEST(test_jwks__kids_end_at_255_bytes)
{
    EVP_PKEY *key = token_key_new(JWT_EDDSA);
    struct fixture f;
    char kid[JWT_KID_MAX + 2];

    setup(&f);
    for (unsigned over = 0; over < 2; over++) {
        memset(kid, 'k', sizeof(kid));
        kid[JWT_KID_MAX + over] = '\0';
        assert_int_equal(parse(&f, token_set(f.mem, token_jwk(f.mem, key, kid, ""))), !over);
    }
    EVP_PKEY_free(key);
    teardown(&f);
}

TEST(test_jwt_keys__secrets_have_32_bytes_that_differ)
{
    struct fixture f;

    setup(&f);
    assert_true(
        jwt_keys_add_secret(f.keys, STR("a"), STR("0123456789abcdef0123456789abcdef"), &f.err));
    assert_false(
        jwt_keys_add_secret(f.keys, STR("b"), STR("0123456789abcdef0123456789abcde"), &f.err));
    assert_false(jwt_keys_add_secret(f.keys, STR("c"), STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
                                     &f.err));
    assert_false(jwt_keys_add_secret(f.keys, STR("d"), STR(""), &f.err));
    assert_int_equal(f.keys->n, 1);
    teardown(&f);
}
