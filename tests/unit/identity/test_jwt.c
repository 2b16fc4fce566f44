/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that hold, and where exactly they cease to: limits of size and time, what claims become.
 */
#include "tokens.h"

static enum jwt_fault claim(struct token_issuer *t, const char *claims, struct jwt_claims *ret)
{
    struct str payload = arena_printf(t->mem, "{%s}", claims);

    return token_check(t, token_issue(t, JWT_ES256, payload), ret);
}

TEST(test_jwt_check__takes_every_algorithm_with_its_own_key)
{
    struct token_issuer t;
    struct jwt_claims claims;

    token_issuer_init(&t);
    for (int alg = 0; alg < JWT_ALG_COUNT; alg++) {
        struct str token = token_issue(&t, (enum jwt_alg)alg, STR("{" TOKEN_CLAIMS "}"));
        memset(&claims, 0, sizeof(claims));
        assert_string_equal(jwt_fault_name(token_check(&t, token, &claims)), "ok");
        assert_str(claims.issuer, TOKEN_ISSUER);
        assert_str(claims.subject, "alice");
        assert_str(claims.tenant, "default");
        assert_int_equal(claims.role, ROLE_MEMBER);
        assert_int_equal(claims.expires_ms, 1800000300000);
    }
    token_issuer_release(&t);
}

TEST(test_jwt_check__takes_no_key_for_another_algorithm)
{
    struct token_issuer t;
    struct jwt_claims claims;

    token_issuer_init(&t);
    for (int key = 0; key < JWT_ALG_COUNT; key++)
        for (int alg = 0; alg < JWT_ALG_COUNT; alg++) {
            struct str header = arena_printf(t.mem, "{\"alg\":\"%s\",\"kid\":\"%s\"}",
                                             jwt_alg_name((enum jwt_alg)alg), token_kids[key]);
            struct str token = token_make(t.mem, (enum jwt_alg)key, t.pairs[key], header,
                                          STR("{" TOKEN_CLAIMS "}"));
            assert_int_equal(token_check(&t, token, &claims), key == alg ? JWT_OK : JWT_ALG);
        }
    token_issuer_release(&t);
}

TEST(test_jwt_check__kid_may_be_left_out_when_one_key_fits)
{
    struct token_issuer t;
    struct jwt_claims claims;
    struct error err;
    struct str token;

    token_issuer_init(&t);
    token = token_make(t.mem, JWT_ES256, t.pairs[JWT_ES256], STR("{\"alg\":\"ES256\"}"),
                       STR("{" TOKEN_CLAIMS "}"));
    assert_int_equal(token_check(&t, token, &claims), JWT_OK);
    assert_true(jwt_keys_take(t.keys, STR("second"), JWT_ES256, token_key_new(JWT_ES256), &err));
    assert_int_equal(token_check(&t, token, &claims), JWT_NO_KEY);
    token_issuer_release(&t);
}

TEST(test_jwt_check__headers_that_name_keys_are_not_looked_at)
{
    static const char *const headers[] = {
        "{\"alg\":\"ES256\",\"jku\":\"https://evil.example/keys\"}",
        "{\"alg\":\"ES256\",\"x5u\":\"file:///etc/passwd\"}",
        "{\"alg\":\"ES256\",\"x5c\":[\"AAAA\"],\"x5t\":\"AAAA\"}",
        "{\"alg\":\"ES256\",\"jwk\":{\"kty\":\"oct\",\"k\":\"\"}}",
        "{\"alg\":\"ES256\",\"typ\":\"jwt\"}",
        "{\"alg\":\"ES256\",\"typ\":\"AT+JWT\"}",
        "{\"alg\":\"ES256\",\"typ\":\"application/at+jwt\"}",
        " { \"alg\" : \"ES\\u003256\" } ",
    };
    struct token_issuer t;
    struct jwt_claims claims;

    token_issuer_init(&t);
    for (size_t i = 0; i < countof(headers); i++)
        assert_int_equal(token_check(&t,
                                     token_make(t.mem, JWT_ES256, t.pairs[JWT_ES256],
                                                str_of(headers[i]), STR("{" TOKEN_CLAIMS "}")),
                                     &claims),
                         JWT_OK);
    token_issuer_release(&t);
}

TEST(test_jwt_check__token_ends_at_8192_bytes)
{
    struct token_issuer t;
    struct jwt_claims claims;
    char filler[JWT_BYTES_MAX];
    bool at_limit = false;

    memset(filler, 'x', sizeof(filler));
    token_issuer_init(&t);
    /* The filler is in the payload: three of its bytes are four of the token. */
    for (int n = 5800; n < 6100; n++) {
        struct str payload = arena_printf(t.mem, "{" TOKEN_CLAIMS ",\"f\":\"%.*s\"}", n, filler);
        struct str token = token_issue(&t, JWT_HS256, payload);
        bool fits = token.n <= JWT_BYTES_MAX;
        at_limit |= token.n == JWT_BYTES_MAX;
        assert_int_equal(token_check(&t, token, &claims), fits ? JWT_OK : JWT_TOO_LONG);
    }
    assert_true(at_limit);
    token_issuer_release(&t);
}

TEST(test_jwt_check__times_have_a_minute_of_leeway_but_an_end_is_an_end)
{
    static const struct {
        const char *claims;
        enum jwt_fault want;
    } rows[] = {
        {"\"exp\":1800000001", JWT_OK},
        {"\"exp\":1800000000", JWT_EXPIRED},
        {"\"exp\":253402300799", JWT_OK},
        {"\"exp\":253402300800", JWT_EXP},
        {"\"exp\":1800000300,\"nbf\":1800000060", JWT_OK},
        {"\"exp\":1800000300,\"nbf\":1800000061", JWT_NBF},
        {"\"exp\":1800000300,\"iat\":1800000060", JWT_OK},
        {"\"exp\":1800000300,\"iat\":1800000061", JWT_IAT},
        {"\"exp\":1800000300,\"iat\":0,\"nbf\":0", JWT_OK},
    };
    struct token_issuer t;
    struct jwt_claims claims;

    token_issuer_init(&t);
    for (size_t i = 0; i < countof(rows); i++) {
        struct str text = arena_printf(
            t.mem, "\"iss\":\"" TOKEN_ISSUER "\",\"aud\":\"" TOKEN_AUDIENCE "\",\"sub\":\"a\",%s",
            rows[i].claims);
        assert_int_equal(claim(&t, text.p, &claims), rows[i].want);
    }
    token_issuer_release(&t);
}

TEST(test_jwt_check__trust_ends_with_the_token_or_after_five_minutes)
{
    struct token_issuer t;
    struct jwt_claims claims;

    token_issuer_init(&t);
    t.rules.tenant_claim = STR("");
    assert_int_equal(claim(&t,
                           "\"iss\":\"" TOKEN_ISSUER "\",\"aud\":\"" TOKEN_AUDIENCE
                           "\",\"sub\":\"a\",\"exp\":1800000010",
                           &claims),
                     JWT_OK);
    assert_int_equal(claims.trust_until_ms, claims.expires_ms);
    assert_int_equal(claim(&t,
                           "\"iss\":\"" TOKEN_ISSUER "\",\"aud\":\"" TOKEN_AUDIENCE
                           "\",\"sub\":\"a\",\"exp\":1900000000",
                           &claims),
                     JWT_OK);
    assert_int_equal(claims.trust_until_ms, TOKEN_NOW * 1000 + JWT_TRUST_MAX_MS);
    assert_int_equal(claims.expires_ms, 1900000000000);
    token_issuer_release(&t);
}

TEST(test_jwt_check__audience_may_be_one_of_several_on_either_side)
{
    static const struct str ours[] = {{"https://mcp.example", 19}, {"https://mcp.example/mcp", 23}};
    struct token_issuer t;
    struct jwt_claims claims;

    token_issuer_init(&t);
    t.rules.audiences = ours;
    t.rules.n_audiences = countof(ours);
    assert_int_equal(claim(&t,
                           "\"iss\":\"" TOKEN_ISSUER "\",\"sub\":\"a\",\"exp\":1900000000,"
                           "\"aud\":[\"x\",\"https://mcp.example/mcp\"]",
                           &claims),
                     JWT_OK);
    t.rules.n_audiences = 0;
    assert_int_equal(claim(&t, TOKEN_CLAIMS, &claims), JWT_AUD);
    token_issuer_release(&t);
}

TEST(test_jwt_check__tenant_and_role_come_from_the_claims_configured)
{
    struct token_issuer t;
    struct jwt_claims claims;

    token_issuer_init(&t);
    t.rules.tenant_claim = STR("https://holdfast.example/tenant");
    t.rules.role_claim = STR("hf_role");
    assert_int_equal(claim(&t,
                           TOKEN_CLAIMS ",\"https://holdfast.example/tenant\":\"acme\","
                                        "\"hf_role\":\"auditor\",\"tenant\":\"x\",\"role\":\"y\","
                                        "\"jti\":\"1\",\"scope\":\"a b\"",
                           &claims),
                     JWT_OK);
    assert_str(claims.tenant, "acme");
    assert_int_equal(claims.role, ROLE_AUDITOR);
    assert_str(claims.id, "1");
    assert_str(claims.scope, "a b");
    assert_int_equal(claim(&t, TOKEN_CLAIMS ",\"hf_role\":\"admin\",\"scope\":\"\"", &claims),
                     JWT_OK);
    assert_int_equal(claims.role, ROLE_ADMIN);
    assert_null(claims.scope.p);
    t.rules.tenant = STR_NONE;
    assert_int_equal(claim(&t, TOKEN_CLAIMS, &claims), JWT_TENANT);
    token_issuer_release(&t);
}

TEST(test_jwt_check__without_claims_configured_tokens_cannot_choose_tenant_or_role)
{
    struct token_issuer t;
    struct jwt_claims claims;

    token_issuer_init(&t);
    t.rules.tenant_claim = t.rules.role_claim = STR("");
    t.rules.tenant = STR("acme");
    assert_int_equal(claim(&t,
                           TOKEN_CLAIMS ",\"tenant\":\"umbrella\",\"role\":\"admin\","
                                        "\"\":\"admin\"",
                           &claims),
                     JWT_OK);
    assert_str(claims.tenant, "acme");
    assert_int_equal(claims.role, ROLE_MEMBER);
    token_issuer_release(&t);
}

TEST(test_jwt_check__subject_and_tenant_end_at_their_limits)
{
    struct token_issuer t;
    struct jwt_claims claims;
    char filler[300];

    memset(filler, 'x', sizeof(filler));
    token_issuer_init(&t);
    for (int over = 0; over < 2; over++) {
        struct str sub = arena_printf(t.mem, TOKEN_CLAIMS_BUT_SUB ",\"sub\":\"%.*s\"",
                                      JWT_SUBJECT_MAX + over, filler);
        struct str tenant =
            arena_printf(t.mem, TOKEN_CLAIMS ",\"tenant\":\"%.*s\"", JWT_NAME_MAX + over, filler);
        assert_int_equal(claim(&t, sub.p, &claims), over ? JWT_SUB : JWT_OK);
        assert_int_equal(claim(&t, tenant.p, &claims), over ? JWT_TENANT : JWT_OK);
    }
    token_issuer_release(&t);
}

TEST(test_jwt_verify__tells_the_bearer_nothing_but_to_get_a_new_one)
{
    static const char *const payloads[] = {"{}", "{" TOKEN_CLAIMS ",\"role\":\"root\"}", "[]"};
    struct token_issuer t;
    struct jwt_claims claims = {.role = ROLE_SERVICE};

    token_issuer_init(&t);
    for (size_t i = 0; i < countof(payloads); i++) {
        struct str token = token_issue(&t, JWT_HS256, str_of(payloads[i]));
        struct error err = {0};
        assert_false(jwt_verify(t.keys, &t.rules, token, TOKEN_NOW * 1000, t.mem, &claims, &err));
        assert_int_equal(err.code, ERR_UNAUTHENTICATED);
        assert_string_equal(err.text, "the token is not valid; get a new one");
        assert_int_equal(claims.role, ROLE_SERVICE);
    }
    token_issuer_release(&t);
}

TEST(test_jwt_claimed_issuer__is_read_without_a_key_and_absent_from_nonsense)
{
    struct token_issuer t;

    token_issuer_init(&t);
    assert_str(
        jwt_claimed_issuer(token_issue(&t, JWT_HS256, STR("{\"iss\":\"x\",\"a\":1}")), t.mem), "x");
    assert_null(jwt_claimed_issuer(token_issue(&t, JWT_HS256, STR("{\"iss\":1}")), t.mem).p);
    assert_null(jwt_claimed_issuer(STR("x.y.z"), t.mem).p);
    assert_null(jwt_claimed_issuer(STR(""), t.mem).p);
    token_issuer_release(&t);
}
