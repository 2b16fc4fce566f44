/* SPDX-License-Identifier: Apache-2.0 */
/* Scanners: wide registers and single bytes find the same places, and all of them. */
#include "test.h"

#include "audit/redact.h"
#include "audit/redact_impl.h"
#include "base/buf.h"
#include "base/random.h"

static size_t places(const struct scanner *s, struct str in, bool wide, size_t *ret, size_t most)
{
    struct scan_cursor c = {0};
    size_t n = 0;

    for (size_t at = 0; (at = scanner_next(s, in, at, in.n, &c, wide)) < in.n && n < most; at++)
        ret[n++] = at;
    return n;
}

TEST(test_redact_scan__blocks_and_bytes_find_the_same)
{
    static const char letters[] = "pasecruthikodvbgilxyJPSK-_ .\\u\"1:/=AIz0";
    const struct scanner *s = redact_table_scanner();
    char body[200];
    unsigned found = 0;

    random_set_fake(11);
    for (int i = 0; i < 20000; i++) {
        size_t n = random_below(sizeof(body)), a[200], b[200];
        uint64_t most = random_below(4) ? 20 : 2;
        for (size_t k = 0; k < n; k++)
            body[k] = random_below(most) ? 'q' : letters[random_below(sizeof(letters) - 1)];
        for (size_t k = 0; n > 8 && k < 3; k++)
            memcpy(body + random_below(n - 4), random_below(2) ? "ghp_" : "pass", 4);
        size_t wide = places(s, str_n(body, n), true, a, 200);
        size_t narrow = places(s, str_n(body, n), false, b, 200);
        assert_int_equal(wide, narrow);
        assert_memory_equal(a, b, wide * sizeof(a[0]));
        found += wide > 0;
    }
    random_set_real();
    assert_true(found > 1000);
}

TEST(test_redact_scan__finds_every_window_wherever_it_stands)
{
    const struct scanner *s = redact_table_scanner();
    char body[100];

    for (size_t i = 0; i < redact_n_shapes; i++)
        for (size_t at = 0; at + redact_shapes[i].prefix.n + 2 <= sizeof(body); at++) {
            struct scan_cursor c = {0};
            memset(body, 'q', sizeof(body));
            memcpy(body + at, redact_shapes[i].prefix.p, redact_shapes[i].prefix.n);
            body[at + redact_shapes[i].prefix.n] = '0';
            size_t place = scanner_next(s, str_n(body, sizeof(body)), 0, sizeof(body), &c, true);
            if (place + 1 < at || place >= at + redact_shapes[i].prefix.n)
                fail_msg("%s at %zu: %zu", redact_shapes[i].prefix.p, at, place);
        }
}

/* Pieces of secrets in any order: with and without wide registers the result is the same. */
TEST(test_redact__does_not_depend_on_wide_registers)
{
    static const char *const pieces[] = {
        "pass",   "word",    "_",           "-",    " ",       "secret", "tokens",
        "\"",     "\":",     "{",           "}",    ",",       ":",      "=",
        "api",    "key",     "sk-",         "ghp_", "eyJ",     ".",      "a1B2c3",
        "Basic ", "Bearer ", "-----BEGIN ", "\\\"", "\\\\",    "\\n",    "://",
        "u:p@h",  "name",    "value",       "--",   "\\u0070", "AKIA",   "0123456789ABCDEF",
    };
    struct redactor *wide = redactor_new(), *narrow = redactor_new();
    unsigned changed = 0;

    redactor_be_narrow(narrow);
    random_set_fake(20261117);
    for (int round = 0; round < 20000; round++) {
        struct buf b;
        buf_init(&b, 1 << 16);
        buf_addz(&b, "[\"");
        for (uint64_t n = random_below(16); n > 0; n--)
            buf_addz(&b, pieces[random_below(countof(pieces))]);
        buf_addz(&b, "\"]");
        struct str x = redact_body(wide, NULL, buf_str(&b), true, 1 << 15);
        struct str y = redact_body(narrow, NULL, buf_str(&b), true, 1 << 15);
        if (!str_eq(x, y))
            fail_msg("%.*s became\n%.*s or\n%.*s", (int)b.n, b.p, STR_ARG(x), STR_ARG(y));
        changed += x.p != b.p;
        buf_release(&b);
    }
    random_set_real();
    assert_true(changed > 500);
    redactor_free(wide);
    redactor_free(narrow);
}
