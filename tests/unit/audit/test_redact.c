/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a body: secrets gone, everything else byte for byte, never past the cap, always
 * JSON. */
#include "test.h"

#include "audit/redact.h"
#include "base/buf.h"
#include "base/clock.h"
#include "json/read.h"

#define CAP 16384
#define JWT "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"

static const struct {
    const char *in, *out; /* out NULL: unchanged */
} table[] = {
    {"{\"city\":\"Bonn\"}", NULL},
    {"{ \"a\" : [1, 2.50e3 ,\"x\\u00e9\\n\" ] }", NULL},
    {"null", NULL},
    /* by key */
    {"{\"password\":\"hunter2\"}", "{\"password\":\"[redacted]\"}"},
    {"{\"PassWord\" : \"hunter2\" ,\"a\":1}", "{\"PassWord\" : \"[redacted]\" ,\"a\":1}"},
    {"{\"db_passwd\":\"x\"}", "{\"db_passwd\":\"[redacted]\"}"},
    {"{\"client_secret\":123}", "{\"client_secret\":\"[redacted]\"}"},
    {"{\"x-api-key\":\"k\"}", "{\"x-api-key\":\"[redacted]\"}"},
    {"{\"apiKey\":\"k\"}", "{\"apiKey\":\"[redacted]\"}"},
    {"{\"Authorization\":\"Basic eA==\"}", "{\"Authorization\":\"[redacted]\"}"},
    {"{\"Set-Cookie\":\"a=b\"}", "{\"Set-Cookie\":\"[redacted]\"}"},
    {"{\"credentials\":{\"user\":\"u\",\"list\":[1,\"}\"]},\"z\":1}",
     "{\"credentials\":\"[redacted]\",\"z\":1}"},
    {"{\"private_key\":[\"a\",\"]\"]}", "{\"private_key\":\"[redacted]\"}"},
    {"{\"passthrough_auth\":{}}", "{\"passthrough_auth\":\"[redacted]\"}"},
    {"{\"pass\\u0077ord\":\"hunter2\"}", "{\"pass\\u0077ord\":\"[redacted]\"}"},
    {"{\"a\":{\"token\":\"t\"}}", "{\"a\":{\"token\":\"[redacted]\"}}"},
    {"{\"access_token\":\"a\\\"b\",\"c\":2}", "{\"access_token\":\"[redacted]\",\"c\":2}"},
    {"{\"password\":null,\"secret\":true,\"token\":false}", NULL},
    {"{\"note\":\"password\"}", NULL},
    /* counts and progress */
    {"{\"_meta\":{\"progressToken\":\"abc\"}}", NULL},
    {"{\"progressToken\":7}", NULL},
    {"{\"max_tokens\":4096,\"totalTokens\":1,\"tokensUsed\":3}", NULL},
    {"{\"completion_tokens_details\":{\"reasoning_tokens\":0}}", NULL},
    {"{\"tokens\":[\"abc\"]}", "{\"tokens\":\"[redacted]\"}"},
    {"{\"tokens\":\"abc\"}", "{\"tokens\":\"[redacted]\"}"},
    /* by shape */
    {"{\"h\":\"Bearer abcdef0123456789\"}", "{\"h\":\"Bearer [redacted]\"}"},
    {"[\"use sk-abcdefghijklmnop1234 now\"]", "[\"use [redacted] now\"]"},
    {"[\"a task-abcdefghijklmnopqrst\"]", NULL},
    {"[\"line\\nsk-abcdefghijklmnop1234\"]", "[\"line\\n[redacted]\"]"},
    {"[\"\\u000ask-abcdefghijklmnop1234\"]", "[\"\\u000a[redacted]\"]"},
    {"[\"ghp_0123456789abcdefghijABCDEFGHIJ\"]", "[\"[redacted]\"]"},
    {"[\"github_pat_0123456789abcdefghij_x\"]", "[\"[redacted]\"]"},
    {"[\"<" JWT ">\"]", "[\"<[redacted]>\"]"},
    {"{\"" JWT "\":1}", "{\"[redacted]\":1}"},
    {"[\"eyJust.two\"]", NULL},
    {"[\"sk-short\",\"ghp_short\",\"Bearer of bad news\"]", NULL},
    {"[\"k:\\n-----BEGIN PRIVATE KEY-----\\nMIIB\\n-----END PRIVATE KEY-----\\nrest\"]",
     "[\"k:\\n[redacted]\\nrest\"]"},
    {"[\"-----BEGIN RSA PRIVATE KEY-----\\nMIIB\"]", "[\"[redacted]\"]"},
    /* JSON quoted into a string, at any depth */
    {"{\"text\":\"{\\\"user\\\":\\\"u\\\",\\\"password\\\":\\\"hunter2\\\",\\\"n\\\":1}\"}",
     "{\"text\":\"{\\\"user\\\":\\\"u\\\",\\\"password\\\":\\\"[redacted]\\\",\\\"n\\\":1}\"}"},
    {"{\"text\":\"{\\\"secret\\\": 42, \\\"n\\\": 1}\"}",
     "{\"text\":\"{\\\"secret\\\": [redacted], \\\"n\\\": 1}\"}"},
    {"{\"t\":\"{\\\"i\\\":\\\"{\\\\\\\"token\\\\\\\":\\\\\\\"abc\\\\\\\"}\\\"}\"}",
     "{\"t\":\"{\\\"i\\\":\\\"{\\\\\\\"token\\\\\\\":\\\\\\\"[redacted]\\\\\\\"}\\\"}\"}"},
    {"{\"text\":\"{\\\"max_tokens\\\":5}\"}", NULL},
    /* no JSON: kept as a string */
    {"hello \"world", "\"hello \\\"world\""},
    {"", "\"\""},
    {"{\"password\":\"hunter2", "\"{\\\"password\\\":\\\"[redacted]\\\"\""},
    {"key sk-abcdefghijklmnop1234\n", "\"key [redacted]\\u000a\""},
    {"\xff\x01", "\"\\ufffd\\u0001\""},
};

static bool is_json(struct str s)
{
    struct arena *mem = arena_new(1 << 24);
    struct js_doc doc;
    bool ok = js_parse(s, &js_limits_upstream, mem, &doc, NULL);
    arena_free(mem);
    return ok;
}

TEST(test_redact__replaces_what_the_table_says_and_nothing_else)
{
    struct redactor *r = redactor_new();
    for (size_t i = 0; i < countof(table); i++) {
        struct str in = str_of(table[i].in);
        struct str out = redact_body(r, NULL, in, true, CAP);
        struct str want = str_of(table[i].out ? table[i].out : table[i].in);
        if (!str_eq(out, want))
            fail_msg("%s\nbecame  %.*s\nwanted  %s", table[i].in, STR_ARG(out), want.p);
        assert_true(is_json(out));
        if (!table[i].out)
            assert_ptr_equal(out.p, in.p);
    }
    redactor_free(r);
}

TEST(test_redact__full_mode_keeps_secrets)
{
    struct redactor *r = redactor_new();
    struct str in = STR("{\"password\":\"hunter2\"}");
    assert_ptr_equal(redact_body(r, NULL, in, false, CAP).p, in.p);
    redactor_free(r);
}

TEST(test_redact__absent_stays_absent)
{
    struct redactor *r = redactor_new();
    assert_null(redact_body(r, NULL, STR_NONE, true, CAP).p);
    redactor_free(r);
}

TEST(test_redact__a_cap_too_small_for_words_keeps_nothing)
{
    struct redactor *r = redactor_new();
    assert_null(redact_body(r, NULL, STR("{}"), true, REDACT_LEAST_CAP - 1).p);
    assert_str(redact_body(r, NULL, STR("{}"), true, REDACT_LEAST_CAP), "{}");
    redactor_free(r);
}

/* A JSON string of exactly n bytes, quotes included, of `c`. */
static void fill(struct buf *b, size_t n, const char *c)
{
    buf_reset(b);
    buf_addc(b, '"');
    while (b->n + strlen(c) < n)
        buf_addz(b, c);
    while (b->n + 1 < n)
        buf_addc(b, ' ');
    buf_addc(b, '"');
}

TEST(test_redact__at_the_cap_whole_past_it_cut_and_said)
{
    struct redactor *r = redactor_new();
    struct buf b;
    buf_init(&b, 1 << 20);
    static const char *const fillers[] = {"a", "\\n", "\\\"", "\xc3\xa9", "\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < countof(fillers); i++) {
        for (size_t cap = REDACT_LEAST_CAP; cap < REDACT_LEAST_CAP + 40; cap++) {
            fill(&b, cap, fillers[i]);
            assert_ptr_equal(redact_body(r, NULL, buf_str(&b), true, cap).p, b.p);
            fill(&b, cap + 1, fillers[i]);
            struct str out = redact_body(r, NULL, buf_str(&b), true, cap);
            assert_true(out.n <= cap && is_json(out));
            assert_true(str_starts(out, STR("{\"holdfast/cut\":{\"length\":")));
        }
    }
    buf_release(&b);
    redactor_free(r);
}

TEST(test_redact__a_cut_body_tells_its_length_and_begins_as_it_did)
{
    struct redactor *r = redactor_new();
    struct buf b;
    buf_init(&b, 1 << 20);
    fill(&b, 1000, "a");
    struct str out = redact_body(r, NULL, buf_str(&b), true, 200);
    struct str head = STR("{\"holdfast/cut\":{\"length\":1000,\"kept\":103},\"head\":\"\\\"aaaa");
    assert_true(str_starts(out, head));
    buf_release(&b);
    redactor_free(r);
}

TEST(test_redact__a_secret_across_the_cut_does_not_show)
{
    struct redactor *r = redactor_new();
    struct buf b;
    buf_init(&b, 1 << 20);
    for (size_t lead = 1; lead < 300; lead++) {
        buf_reset(&b);
        buf_addz(&b, "{\"a\":\"");
        for (size_t i = 0; i < lead; i++)
            buf_addc(&b, ' ');
        buf_addz(&b, "sk-CANARYCANARYCANARY\",\"password\":\"CANARY\",\"z\":\"");
        for (size_t i = 0; i < 400; i++)
            buf_addc(&b, 'z');
        buf_addz(&b, "\"}");
        struct str out = redact_body(r, NULL, buf_str(&b), true, 256);
        assert_true(is_json(out));
        assert_null(memmem(out.p, out.n, "CANARY", 6));
    }
    buf_release(&b);
    redactor_free(r);
}

TEST(test_redact__a_body_that_shrinks_under_the_cap_is_not_cut)
{
    struct redactor *r = redactor_new();
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_addz(&b, "{\"secret\":\"");
    for (size_t i = 0; i < 5000; i++)
        buf_addc(&b, 'x');
    buf_addz(&b, "\"}");
    assert_str(redact_body(r, NULL, buf_str(&b), true, 256), "{\"secret\":\"[redacted]\"}");
    buf_release(&b);
    redactor_free(r);
}

/* Of a long name that part is read which the word stands in. */
TEST(test_redact__a_word_is_found_in_a_name_of_any_length)
{
    struct redactor *r = redactor_new();
    struct buf b;
    buf_init(&b, 1 << 20);
    for (size_t n = 0; n <= 4 * REDACT_KEY_MAX; n += REDACT_KEY_MAX / 4) {
        for (size_t after = 0; after <= 2 * REDACT_KEY_MAX; after += REDACT_KEY_MAX) {
            buf_reset(&b);
            buf_addz(&b, "{\"");
            for (size_t i = 0; i < n; i++)
                buf_addc(&b, 'k');
            buf_addz(&b, "_password_");
            for (size_t i = 0; i < after; i++)
                buf_addc(&b, 'k');
            buf_addz(&b, "\":\"CANARY\"}");
            struct str out = redact_body(r, NULL, buf_str(&b), true, CAP);
            assert_null(memmem(out.p, out.n, "CANARY", 6));
        }
    }
    buf_release(&b);
    redactor_free(r);
}

/* Beginnings of tokens without an end, over and over: a quadratic look ahead would take minutes. */
TEST(test_redact__a_mebibyte_of_beginnings_takes_no_longer_than_other_bytes)
{
    static const char *const lures[] = {
        "eyJ-",        "eyJ.",          "eyJ.a.",       "-----BEGIN",
        "sk-",         "Bearer ",       "\\\"token",    "\\\"",
        "{\"token\":", "token=(",       "://a:",        "password",
        "token: ",     "\\\\\\\\token", "--token",      "\"name\":\"password\",\"a\":",
        "Basic AAAA",  "[\"--token\",", "123456789:AA", "%3D"};
    struct redactor *r = redactor_new();
    struct buf b;
    buf_init(&b, 8 << 20);
    for (size_t i = 0; i < countof(lures); i++) {
        buf_reset(&b);
        buf_addc(&b, '"');
        while (b.n < 1 << 20)
            buf_addz(&b, lures[i]);
        int64_t began = clock_mono_ms();
        assert_true(redact_body(r, NULL, buf_str(&b), true, CAP).n <= CAP);
        assert_true(redact_body(r, NULL, buf_str(&b), true, 1 << 20).n <= 1 << 20);
        assert_true(clock_mono_ms() - began < 20000);
    }
    buf_release(&b);
    redactor_free(r);
}

/* Text is copied eight bytes at a time: a byte that needs an escape is seen wherever it stands. */
TEST(test_redact__a_cut_body_is_json_whatever_byte_stands_where)
{
    struct redactor *r = redactor_new();
    struct arena *mem = arena_new(1 << 20);
    char body[300];
    for (unsigned at = 0; at < 16; at++)
        for (unsigned c = 0; c < 256; c++) {
            struct js_doc doc;
            memset(body, 'q', sizeof(body));
            body[at] = (char)c;
            struct str out = redact_body(r, NULL, str_n(body, sizeof(body)), true, 256);
            assert_true(js_parse(out, &js_limits_upstream, mem, &doc, NULL));
            struct str head = js_text(&doc, js_get(&doc, js_root(&doc), STR("head")), mem);
            assert_true(head.n > 100);
            if (c < 0x80)
                assert_memory_equal(head.p, body, 100);
            arena_reset(mem);
        }
    arena_free(mem);
    redactor_free(r);
}
