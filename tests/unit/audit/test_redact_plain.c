/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "audit/redact.h"
#include "audit/redact_impl.h"
#include "base/buf.h"
#include "base/random.h"

TEST(test_redact_plain__ordinary_bodies_are_plain)
{
    assert_true(
        redact_is_plain(STR("{\"name\":\"echo\",\"arguments\":{\"text\":\"hello, world\"}}")));
    assert_true(redact_is_plain(
        STR("{\"content\":[{\"type\":\"text\",\"text\":\"ok: 42\"}],\"isError\":false}")));
    assert_true(redact_is_plain(STR("")));
}

TEST(test_redact_plain__whatever_a_rule_could_touch_is_not)
{
    static const char *const bodies[] = {
        "{\"password\":1}",
        "{\"PASS_word\":1}",
        "{\"x-api-key\":1}",
        "{\"a.p.i.k.e.y\":1}",
        "{\"private key\":1}",
        "{\"max_tokens\":1}",
        "{\"Cookie\":1}",
        "\"Bearer abcdefgh\"",
        "\"sk-0123456789abcdef\"",
        "\"sk_live_0123456789abcdef\"",
        "\"ghp_x\"",
        "\"ghs_x\"",
        "\"github_pat_x\"",
        "\"glpat-x\"",
        "\"xoxb-x\"",
        "\"xoxp-x\"",
        "\"eyJhbGciOi\"",
        "\"-----BEGIN X\"",
        "{\"\\u0070assword\":1}",
        "{\"sec\\ret\":1}",
        "{\"passthrough_auth\":1}",
        "{\"credentials\":1}",
        "{\"Authorization\":1}",
    };
    for (size_t i = 0; i < countof(bodies); i++)
        if (redact_is_plain(str_of(bodies[i])))
            fail_msg("taken for plain: %s", bodies[i]);
}

TEST(test_redact_plain__a_name_of_the_limit_is_plain_and_one_longer_is_not)
{
    char body[REDACT_KEY_MAX + 16];
    for (int more = 0; more < 2; more++) {
        size_t n = REDACT_KEY_MAX - 1 + (size_t)more;
        memset(body, 'n', sizeof(body));
        body[0] = '"';
        body[n + 1] = '"';
        body[n + 2] = ':';
        assert_int_equal(redact_is_plain(str_n(body, n + 3)), !more);
        assert_true(redact_is_plain(str_n(body, n + 2))); /* a text, not a name */
    }
}

/* What is called plain comes out of the full walk untouched.  The walk is forced by an escape at
 * the end, which it keeps as it is. */
TEST(test_redact_plain__never_disagrees_with_the_walk)
{
    static const char *const pieces[] = {
        "pass",
        "word",
        "Pass",
        "_",
        "-",
        ".",
        " ",
        "secret",
        "sec",
        "ret",
        "tok",
        "en",
        "tokens",
        "\"",
        "\":",
        "\"a\":\"b\",",
        "{",
        "}",
        ",",
        ":",
        "api",
        "key",
        "auth",
        "orization",
        "sk",
        "gh",
        "p",
        "eyJ",
        "ey",
        "J",
        "abcdefghijklmnopqrstuvwx",
        "0123456789",
        "Bearer ",
        "bear",
        "-----",
        "BEGIN ",
        "\\\"",
        "\\\\",
        "\\n",
        "\\r",
        "cookie",
        "coo",
        "kie",
        "priv",
        "ate",
        "xox",
        "b-",
        "glpat",
        "git",
        "hub_pat_",
        "x",
        "1",
        "true",
    };
    struct redactor *r = redactor_new();
    unsigned plain = 0;

    random_set_fake(20261115);
    for (int round = 0; round < 40000; round++) {
        struct buf b;
        buf_init(&b, 1 << 16);
        buf_addz(&b, "[\"");
        for (uint64_t n = random_below(12); n > 0; n--)
            buf_addz(&b, pieces[random_below(countof(pieces))]);
        if (redact_is_plain(buf_str(&b))) {
            size_t length = b.n;
            plain++;
            buf_addz(&b, "\",\"\\u0041\"]");
            struct str kept = redact_body(r, buf_str(&b), true, 1 << 15);
            if (memmem(kept.p, kept.n, "[redacted]", 10))
                fail_msg("plain, yet redacted: %.*s", (int)length, b.p);
        }
        buf_release(&b);
    }
    random_set_real();
    assert_true(plain > 1000);
    redactor_free(r);
}

/* Wide registers only skip places at which the answer is no. */
TEST(test_redact_scan__blocks_and_bytes_find_the_same)
{
    static const char letters[] = "pasecruthikodvbgilxyJPSK-_ .\\u\"1";
    char body[200];
    unsigned found = 0;
    random_set_fake(11);
    for (int i = 0; i < 20000; i++) {
        size_t n = random_below(sizeof(body));
        uint64_t most = random_below(4) ? 60 : 3;
        for (size_t k = 0; k < n; k++)
            body[k] = random_below(most) ? 'q' : letters[random_below(sizeof(letters) - 1)];
        bool blocks = redact_scan_with(str_n(body, n), true);
        if (blocks != redact_scan_with(str_n(body, n), false))
            fail_msg("told otherwise: %.*s", (int)n, body);
        found += blocks;
    }
    assert_true(found > 100 && found < 19900);
}

/* Every beginning at every place of a block, with separators between its letters or without. */
TEST(test_redact_scan__finds_every_beginning_wherever_it_stands)
{
    static const char *const words[] = {
        "pass", "secr", "auth",    "apik",      "cook",    "cred",   "priv",   "toke", "bear",
        "gith", "glpa", "xoxb",    "xoxp",      "sk-",     "sk_",    "ghx_",   "eyJ",  "--",
        "\\u",  "PASS", "p-a-s-s", "s__e..c r", "t- -oke", "au\\th", "xo---xb"};
    char body[100];
    for (size_t i = 0; i < countof(words); i++)
        for (size_t at = 0; at + strlen(words[i]) <= sizeof(body); at++) {
            memset(body, 'q', sizeof(body));
            memcpy(body + at, words[i], strlen(words[i]));
            assert_true(redact_scan(str_n(body, sizeof(body))));
            assert_false(redact_scan(str_n(body, at + 1)));
        }
}
