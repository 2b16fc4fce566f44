/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that must be refused, each by name and with the reason it is refused for (threats T10).
 * They are truly signed, so that only what they say is wrong; test_jwt_forged.c has the others. */
#include "tokens.h"

#define RS256 "{\"alg\":\"RS256\",\"kid\":\"rs256\"}"
#define GOOD "{" TOKEN_CLAIMS "}"
#define WITH(more) "{" TOKEN_CLAIMS "," more "}"
#define BUT_SUB(more) "{" TOKEN_CLAIMS_BUT_SUB "," more "}"
#define BUT_EXP(more)                                                                              \
    "{\"iss\":\"" TOKEN_ISSUER "\",\"aud\":\"" TOKEN_AUDIENCE "\",\"sub\":\"alice\"" more "}"
#define BUT_AUD(more) "{\"iss\":\"" TOKEN_ISSUER "\",\"sub\":\"alice\",\"exp\":1800000300" more "}"
#define BUT_ISS(more)                                                                              \
    "{\"aud\":\"" TOKEN_AUDIENCE "\",\"sub\":\"alice\",\"exp\":1800000300" more "}"
#define TEN "0123456789"
#define FIFTY TEN TEN TEN TEN TEN
#define DEEP "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]"

static const struct {
    const char *name;
    enum jwt_fault want;
    const char *header, *payload;
} signed_rows[] = {
    {"alg none", JWT_ALG, "{\"alg\":\"none\"}", GOOD},
    {"alg None", JWT_ALG, "{\"alg\":\"None\"}", GOOD},
    {"alg NONE", JWT_ALG, "{\"alg\":\"NONE\"}", GOOD},
    {"alg nOnE with kid", JWT_ALG, "{\"alg\":\"nOnE\",\"kid\":\"rs256\"}", GOOD},
    {"alg none, escaped", JWT_ALG, "{\"alg\":\"\\u006eone\"}", GOOD},
    {"alg none and NUL", JWT_ALG, "{\"alg\":\"none\\u0000\"}", GOOD},
    {"alg blank none", JWT_ALG, "{\"alg\":\" none\"}", GOOD},
    {"alg empty", JWT_ALG, "{\"alg\":\"\"}", GOOD},
    {"alg missing", JWT_ALG, "{\"kid\":\"rs256\"}", GOOD},
    {"alg null", JWT_ALG, "{\"alg\":null,\"kid\":\"rs256\"}", GOOD},
    {"alg a list", JWT_ALG, "{\"alg\":[\"RS256\"],\"kid\":\"rs256\"}", GOOD},
    {"alg a number", JWT_ALG, "{\"alg\":256,\"kid\":\"rs256\"}", GOOD},
    {"alg lower case", JWT_ALG, "{\"alg\":\"rs256\",\"kid\":\"rs256\"}", GOOD},
    {"alg with a blank", JWT_ALG, "{\"alg\":\"RS256 \",\"kid\":\"rs256\"}", GOOD},
    {"alg and NUL", JWT_ALG, "{\"alg\":\"RS256\\u0000\",\"kid\":\"rs256\"}", GOOD},
    {"alg under another case", JWT_ALG, "{\"Alg\":\"RS256\",\"kid\":\"rs256\"}", GOOD},
    {"alg RS384", JWT_ALG, "{\"alg\":\"RS384\",\"kid\":\"rs256\"}", GOOD},
    {"alg RS512", JWT_ALG, "{\"alg\":\"RS512\",\"kid\":\"rs256\"}", GOOD},
    {"alg ES256K", JWT_ALG, "{\"alg\":\"ES256K\",\"kid\":\"rs256\"}", GOOD},
    {"alg HS512", JWT_ALG, "{\"alg\":\"HS512\",\"kid\":\"rs256\"}", GOOD},
    {"alg RSA1_5 of encryption", JWT_ALG, "{\"alg\":\"RSA1_5\",\"kid\":\"rs256\"}", GOOD},
    {"alg dir of encryption", JWT_ALG, "{\"alg\":\"dir\",\"kid\":\"rs256\"}", GOOD},
    {"alg PS256 of an RS256 key", JWT_ALG, "{\"alg\":\"PS256\",\"kid\":\"rs256\"}", GOOD},
    {"alg twice", JWT_HEADER, "{\"alg\":\"RS256\",\"alg\":\"none\",\"kid\":\"rs256\"}", GOOD},
    {"alg twice, escaped", JWT_HEADER,
     "{\"alg\":\"RS256\",\"\\u0061lg\":\"none\",\"kid\":\"rs256\"}", GOOD},
    {"kid a path", JWT_NO_KEY, "{\"alg\":\"RS256\",\"kid\":\"../../../../etc/passwd\"}", GOOD},
    {"kid /dev/null", JWT_NO_KEY, "{\"alg\":\"RS256\",\"kid\":\"/dev/null\"}", GOOD},
    {"kid SQL", JWT_NO_KEY, "{\"alg\":\"RS256\",\"kid\":\"' OR 1=1 --\"}", GOOD},
    {"kid UNION", JWT_NO_KEY, "{\"alg\":\"RS256\",\"kid\":\"x' UNION SELECT 'a'; --\"}", GOOD},
    {"kid a command", JWT_NO_KEY, "{\"alg\":\"RS256\",\"kid\":\"rs256|id\"}", GOOD},
    {"kid a URL", JWT_NO_KEY, "{\"alg\":\"RS256\",\"kid\":\"https://evil.example/k\"}", GOOD},
    {"kid upper case", JWT_NO_KEY, "{\"alg\":\"RS256\",\"kid\":\"RS256\"}", GOOD},
    {"kid and NUL", JWT_NO_KEY, "{\"alg\":\"RS256\",\"kid\":\"rs256\\u0000\"}", GOOD},
    {"kid NUL first", JWT_NO_KEY, "{\"alg\":\"RS256\",\"kid\":\"\\u0000\"}", GOOD},
    {"kid and blank", JWT_NO_KEY, "{\"alg\":\"RS256\",\"kid\":\"rs256 \"}", GOOD},
    {"kid a prefix", JWT_NO_KEY, "{\"alg\":\"RS256\",\"kid\":\"rs\"}", GOOD},
    {"kid a star", JWT_NO_KEY, "{\"alg\":\"RS256\",\"kid\":\"*\"}", GOOD},
    {"kid of 255 bytes", JWT_NO_KEY,
     "{\"alg\":\"RS256\",\"kid\":\"" FIFTY FIFTY FIFTY FIFTY FIFTY "12345\"}", GOOD},
    {"kid of 256 bytes", JWT_KID,
     "{\"alg\":\"RS256\",\"kid\":\"" FIFTY FIFTY FIFTY FIFTY FIFTY "123456\"}", GOOD},
    {"kid empty", JWT_KID, "{\"alg\":\"RS256\",\"kid\":\"\"}", GOOD},
    {"kid a list", JWT_KID, "{\"alg\":\"RS256\",\"kid\":[\"rs256\"]}", GOOD},
    {"kid an object", JWT_KID, "{\"alg\":\"RS256\",\"kid\":{\"rs256\":1}}", GOOD},
    {"kid a number", JWT_KID, "{\"alg\":\"RS256\",\"kid\":0}", GOOD},
    {"kid null", JWT_KID, "{\"alg\":\"RS256\",\"kid\":null}", GOOD},
    {"kid true", JWT_KID, "{\"alg\":\"RS256\",\"kid\":true}", GOOD},
    {"kid twice", JWT_HEADER, "{\"alg\":\"RS256\",\"kid\":\"rs256\",\"kid\":\"es256\"}", GOOD},
    {"kid of another algorithm", JWT_ALG, "{\"alg\":\"RS256\",\"kid\":\"es256\"}", GOOD},
    {"kid of a secret", JWT_ALG, "{\"alg\":\"RS256\",\"kid\":\"hs256\"}", GOOD},
    {"crit", JWT_CRIT, "{\"alg\":\"RS256\",\"kid\":\"rs256\",\"crit\":[\"exp\"]}", GOOD},
    {"crit empty", JWT_CRIT, "{\"alg\":\"RS256\",\"kid\":\"rs256\",\"crit\":[]}", GOOD},
    {"crit null", JWT_CRIT, "{\"alg\":\"RS256\",\"kid\":\"rs256\",\"crit\":null}", GOOD},
    {"b64 false", JWT_CRIT, "{\"alg\":\"RS256\",\"kid\":\"rs256\",\"b64\":false}", GOOD},
    {"zip", JWT_CRIT, "{\"alg\":\"RS256\",\"kid\":\"rs256\",\"zip\":\"DEF\"}", GOOD},
    {"enc", JWT_CRIT, "{\"alg\":\"RS256\",\"kid\":\"rs256\",\"enc\":\"A256GCM\"}", GOOD},
    {"cty JWT", JWT_CRIT, "{\"alg\":\"RS256\",\"kid\":\"rs256\",\"cty\":\"JWT\"}", GOOD},
    {"typ JWE", JWT_TYP, "{\"alg\":\"RS256\",\"kid\":\"rs256\",\"typ\":\"JWE\"}", GOOD},
    {"typ of a proof", JWT_TYP, "{\"alg\":\"RS256\",\"kid\":\"rs256\",\"typ\":\"dpop+jwt\"}", GOOD},
    {"typ of a logout", JWT_TYP, "{\"alg\":\"RS256\",\"kid\":\"rs256\",\"typ\":\"logout+jwt\"}",
     GOOD},
    {"typ null", JWT_TYP, "{\"alg\":\"RS256\",\"kid\":\"rs256\",\"typ\":null}", GOOD},
    {"typ a list", JWT_TYP, "{\"alg\":\"RS256\",\"kid\":\"rs256\",\"typ\":[\"JWT\"]}", GOOD},
    {"header a list", JWT_HEADER, "[" RS256 "]", GOOD},
    {"header a string", JWT_HEADER, "\"RS256\"", GOOD},
    {"header with BOM", JWT_HEADER, "\xef\xbb\xbf" RS256, GOOD},
    {"header with more behind", JWT_HEADER, RS256 "{}", GOOD},
    {"header cut", JWT_HEADER, "{\"alg\":\"RS256\",\"kid\":\"rs256\"", GOOD},
    {"header with a comment", JWT_HEADER, "{/**/\"alg\":\"RS256\",\"kid\":\"rs256\"}", GOOD},
    {"header not UTF-8", JWT_HEADER, "{\"alg\":\"RS256\",\"kid\":\"rs256\xff\"}", GOOD},
    {"header nested too deep", JWT_HEADER, "{\"alg\":\"RS256\",\"kid\":\"rs256\",\"x\":" DEEP "}",
     GOOD},

    {"payload a list", JWT_PAYLOAD, RS256, "[" GOOD "]"},
    {"payload a string", JWT_PAYLOAD, RS256, "\"alice\""},
    {"payload null", JWT_PAYLOAD, RS256, "null"},
    {"payload a blank", JWT_PAYLOAD, RS256, " "},
    {"payload with BOM", JWT_PAYLOAD, RS256, "\xef\xbb\xbf" GOOD},
    {"payload with more behind", JWT_PAYLOAD, RS256, GOOD GOOD},
    {"payload with a trailing comma", JWT_PAYLOAD, RS256, "{" TOKEN_CLAIMS ",}"},
    {"payload in single quotes", JWT_PAYLOAD, RS256, "{'sub':'alice'}"},
    {"payload not UTF-8", JWT_PAYLOAD, RS256, WITH("\"x\":\"\xc3\x28\"")},
    {"payload with an overlong letter", JWT_PAYLOAD, RS256, WITH("\"x\":\"\xc0\xaf\"")},
    {"payload with a lone surrogate", JWT_PAYLOAD, RS256, WITH("\"x\":\"\\ud800\"")},
    {"payload with a raw newline in a string", JWT_PAYLOAD, RS256, WITH("\"x\":\"a\nb\"")},
    {"payload with NaN", JWT_PAYLOAD, RS256, WITH("\"x\":NaN")},
    {"payload nested too deep", JWT_PAYLOAD, RS256, WITH("\"x\":" DEEP)},
    {"payload a token", JWT_PAYLOAD, RS256, "eyJhbGciOiJub25lIn0.e30.AAAA"},
    {"sub twice", JWT_PAYLOAD, RS256, WITH("\"sub\":\"bob\"")},
    {"sub twice, escaped", JWT_PAYLOAD, RS256, WITH("\"s\\u0075b\":\"bob\"")},
    {"exp twice", JWT_PAYLOAD, RS256, WITH("\"exp\":1900000000")},
    {"aud twice", JWT_PAYLOAD, RS256, WITH("\"aud\":\"x\"")},
    {"something inside twice", JWT_PAYLOAD, RS256, WITH("\"x\":{\"a\":1,\"a\":2}")},

    {"iss missing", JWT_ISS, RS256, BUT_ISS("")},
    {"iss of another", JWT_ISS, RS256, BUT_ISS(",\"iss\":\"https://evil.example\"")},
    {"iss with a slash", JWT_ISS, RS256, BUT_ISS(",\"iss\":\"" TOKEN_ISSUER "/\"")},
    {"iss in another case", JWT_ISS, RS256, BUT_ISS(",\"iss\":\"https://ID.example\"")},
    {"iss a prefix", JWT_ISS, RS256, BUT_ISS(",\"iss\":\"https://id\"")},
    {"iss and NUL", JWT_ISS, RS256, BUT_ISS(",\"iss\":\"" TOKEN_ISSUER "\\u0000\"")},
    {"iss a list", JWT_ISS, RS256, BUT_ISS(",\"iss\":[\"" TOKEN_ISSUER "\"]")},
    {"iss null", JWT_ISS, RS256, BUT_ISS(",\"iss\":null")},
    {"aud missing", JWT_AUD, RS256, BUT_AUD("")},
    {"aud of another", JWT_AUD, RS256, BUT_AUD(",\"aud\":\"https://other.example\"")},
    {"aud with a slash", JWT_AUD, RS256, BUT_AUD(",\"aud\":\"" TOKEN_AUDIENCE "/\"")},
    {"aud with more behind", JWT_AUD, RS256, BUT_AUD(",\"aud\":\"" TOKEN_AUDIENCE ".evil\"")},
    {"aud empty", JWT_AUD, RS256, BUT_AUD(",\"aud\":\"\"")},
    {"aud an empty list", JWT_AUD, RS256, BUT_AUD(",\"aud\":[]")},
    {"aud others", JWT_AUD, RS256, BUT_AUD(",\"aud\":[\"a\",\"b\"]")},
    {"aud ours and a number", JWT_AUD, RS256, BUT_AUD(",\"aud\":[\"" TOKEN_AUDIENCE "\",1]")},
    {"aud a list in a list", JWT_AUD, RS256, BUT_AUD(",\"aud\":[[\"" TOKEN_AUDIENCE "\"]]")},
    {"aud an object", JWT_AUD, RS256, BUT_AUD(",\"aud\":{\"" TOKEN_AUDIENCE "\":1}")},
    {"aud null", JWT_AUD, RS256, BUT_AUD(",\"aud\":null")},
    {"aud true", JWT_AUD, RS256, BUT_AUD(",\"aud\":true")},
    {"expired an hour ago", JWT_EXPIRED, RS256, BUT_EXP(",\"exp\":1799996400")},
    {"expired now", JWT_EXPIRED, RS256, BUT_EXP(",\"exp\":1800000000")},
    {"exp zero", JWT_EXPIRED, RS256, BUT_EXP(",\"exp\":0")},
    {"exp missing", JWT_EXP, RS256, BUT_EXP("")},
    {"exp a string", JWT_EXP, RS256, BUT_EXP(",\"exp\":\"1800000300\"")},
    {"exp negative", JWT_EXP, RS256, BUT_EXP(",\"exp\":-1")},
    {"exp minus zero point", JWT_EXP, RS256, BUT_EXP(",\"exp\":-0.5")},
    {"exp a fraction", JWT_EXP, RS256, BUT_EXP(",\"exp\":1800000300.5")},
    {"exp with an exponent", JWT_EXP, RS256, BUT_EXP(",\"exp\":1.9e9")},
    {"exp 1e400", JWT_EXP, RS256, BUT_EXP(",\"exp\":1e400")},
    {"exp past 64 bits", JWT_EXP, RS256, BUT_EXP(",\"exp\":18446744073709551617")},
    {"exp 2^63-1", JWT_EXP, RS256, BUT_EXP(",\"exp\":9223372036854775807")},
    {"exp in milliseconds", JWT_EXP, RS256, BUT_EXP(",\"exp\":1800000300000")},
    {"exp of 200 digits", JWT_EXP, RS256, BUT_EXP(",\"exp\":1" FIFTY FIFTY FIFTY FIFTY)},
    {"exp null", JWT_EXP, RS256, BUT_EXP(",\"exp\":null")},
    {"exp true", JWT_EXP, RS256, BUT_EXP(",\"exp\":true")},
    {"exp a list", JWT_EXP, RS256, BUT_EXP(",\"exp\":[1800000300]")},
    {"nbf in an hour", JWT_NBF, RS256, WITH("\"nbf\":1800003600")},
    {"nbf a string", JWT_NBF, RS256, WITH("\"nbf\":\"0\"")},
    {"nbf null", JWT_NBF, RS256, WITH("\"nbf\":null")},
    {"nbf negative", JWT_NBF, RS256, WITH("\"nbf\":-9223372036854775808")},
    {"iat in an hour", JWT_IAT, RS256, WITH("\"iat\":1800003600")},
    {"iat a string", JWT_IAT, RS256, WITH("\"iat\":\"now\"")},
    {"iat 1e400", JWT_IAT, RS256, WITH("\"iat\":1e400")},
    {"sub missing", JWT_SUB, RS256, "{" TOKEN_CLAIMS_BUT_SUB "}"},
    {"sub empty", JWT_SUB, RS256, BUT_SUB("\"sub\":\"\"")},
    {"sub a number", JWT_SUB, RS256, BUT_SUB("\"sub\":1")},
    {"sub null", JWT_SUB, RS256, BUT_SUB("\"sub\":null")},
    {"sub a list", JWT_SUB, RS256, BUT_SUB("\"sub\":[\"alice\"]")},
    {"sub with NUL", JWT_SUB, RS256, BUT_SUB("\"sub\":\"alice\\u0000bob\"")},
    {"sub with a newline", JWT_SUB, RS256, BUT_SUB("\"sub\":\"alice\\nX: 1\"")},
    {"sub with DEL", JWT_SUB, RS256, BUT_SUB("\"sub\":\"alice\\u007f\"")},
    {"sub of 256 bytes", JWT_SUB, RS256,
     BUT_SUB("\"sub\":\"" FIFTY FIFTY FIFTY FIFTY FIFTY "123456\"")},
    {"tenant a number", JWT_TENANT, RS256, WITH("\"tenant\":1")},
    {"tenant null", JWT_TENANT, RS256, WITH("\"tenant\":null")},
    {"tenant empty", JWT_TENANT, RS256, WITH("\"tenant\":\"\"")},
    {"tenant several", JWT_TENANT, RS256, WITH("\"tenant\":[\"acme\"]")},
    {"tenant a path", JWT_TENANT, RS256, WITH("\"tenant\":\"../acme\"")},
    {"tenant SQL", JWT_TENANT, RS256, WITH("\"tenant\":\"a' OR '1'='1\"")},
    {"tenant with NUL", JWT_TENANT, RS256, WITH("\"tenant\":\"acme\\u0000\"")},
    {"tenant with a star", JWT_TENANT, RS256, WITH("\"tenant\":\"*\"")},
    {"role unknown", JWT_ROLE, RS256, WITH("\"role\":\"root\"")},
    {"role in another case", JWT_ROLE, RS256, WITH("\"role\":\"Admin\"")},
    {"role several", JWT_ROLE, RS256, WITH("\"role\":[\"admin\"]")},
    {"role a number", JWT_ROLE, RS256, WITH("\"role\":0")},
    {"role null", JWT_ROLE, RS256, WITH("\"role\":null")},
    {"role and NUL", JWT_ROLE, RS256, WITH("\"role\":\"admin\\u0000\"")},
    {"jti a number", JWT_CLAIM, RS256, WITH("\"jti\":1")},
    {"scope a list", JWT_CLAIM, RS256, WITH("\"scope\":[\"a\"]")},
};

TEST(test_jwt_corpus__truly_signed_tokens_that_say_the_wrong_thing_are_refused)
{
    struct token_issuer t;

    token_issuer_init(&t);
    for (size_t i = 0; i < countof(signed_rows); i++) {
        struct str token =
            token_make(t.mem, JWT_RS256, t.pairs[JWT_RS256], str_of(signed_rows[i].header),
                       str_of(signed_rows[i].payload));
        struct jwt_claims claims;
        enum jwt_fault got = token_check(&t, token, &claims);
        if (got != signed_rows[i].want)
            fail_msg("%s: %s, not %s", signed_rows[i].name, jwt_fault_name(got),
                     jwt_fault_name(signed_rows[i].want));
    }
    assert_true(countof(signed_rows) >= 60);
    token_issuer_release(&t);
}
