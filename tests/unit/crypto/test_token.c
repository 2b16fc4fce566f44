/* SPDX-License-Identifier: Apache-2.0 */
/* Minted names and base64 (vectors of RFC 4648). */
#include "test.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/random.h"
#include "crypto/token.h"

#include <stdlib.h>

TEST(test_token_handle__looks_like_one_and_nothing_else_does)
{
    char handle[HANDLE_LENGTH + 1], id[TRANSPORT_ID_LENGTH + 1];

    for (int i = 0; i < 200; i++) {
        token_handle(handle);
        token_transport_id(id);
        assert_int_equal(strlen(handle), HANDLE_LENGTH);
        assert_int_equal(strlen(id), TRANSPORT_ID_LENGTH);
        assert_true(token_looks_like_handle(str_of(handle)));
        assert_true(token_looks_like_transport_id(str_of(id)));
        assert_false(token_looks_like_handle(str_of(id)));
        assert_false(token_looks_like_transport_id(str_of(handle)));
    }
    assert_false(token_looks_like_handle(str_n(handle, HANDLE_LENGTH - 1)));
    handle[20] = '+';
    assert_false(token_looks_like_handle(str_of(handle)));
    handle[20] = '\0';
    assert_false(token_looks_like_handle(str_n(handle, HANDLE_LENGTH)));
    id[TRANSPORT_ID_LENGTH - 1] = 'B'; /* stray bits: nobody minted it */
    assert_false(token_looks_like_transport_id(str_of(id)));
    assert_false(token_looks_like_handle(STR_NONE));
}

TEST(test_token_handle__does_not_repeat_under_a_frozen_clock)
{
    enum { NAMES = 20000 };
    char(*names)[HANDLE_LENGTH + 1] = xmalloc(NAMES * sizeof(*names));
    struct map seen = {0};

    clock_set_fake(0, 0);
    for (int i = 0; i < NAMES; i++) {
        token_handle(names[i]);
        assert_null(map_put(&seen, str_of(names[i]), names[i]));
    }
    clock_set_real();
    map_release(&seen);
    free(names);
}

TEST(test_token_handle__every_digit_is_drawn_evenly)
{
    enum { NAMES = 20000 };
    char handle[HANDLE_LENGTH + 1];
    unsigned seen[256] = {0};
    double chi = 0, expected = NAMES * 42 / 64.0;

    for (int i = 0; i < NAMES; i++) {
        token_handle(handle);
        for (int j = 4; j < HANDLE_LENGTH - 1; j++)
            seen[(unsigned char)handle[j]]++;
    }
    for (int c = 0; c < 256; c++)
        if (seen[c])
            chi += (seen[c] - expected) * (seen[c] - expected) / expected;
    /* 63 degrees of freedom: more than 150 comes up once in 10^8 runs. */
    assert_true(chi < 150);
}

static void round_trip(const char *plain, const char *coded, const char *url)
{
    struct arena *mem = arena_new(1000);
    char text[32];

    assert_int_equal(base64_encode(plain, strlen(plain), text), strlen(coded));
    assert_string_equal(text, coded);
    assert_int_equal(base64url_encode(plain, strlen(plain), text), strlen(url));
    assert_string_equal(text, url);
    assert_str(base64_decode(str_of(coded), mem), plain);
    assert_str(base64url_decode(str_of(url), mem), plain);
    arena_free(mem);
}

TEST(test_base64__published_vectors)
{
    round_trip("", "", "");
    round_trip("f", "Zg==", "Zg");
    round_trip("fo", "Zm8=", "Zm8");
    round_trip("foo", "Zm9v", "Zm9v");
    round_trip("foob", "Zm9vYg==", "Zm9vYg");
    round_trip("fooba", "Zm9vYmE=", "Zm9vYmE");
    round_trip("foobar", "Zm9vYmFy", "Zm9vYmFy");
    round_trip("\xfb\xff\xfe", "+//+", "-__-");
}

TEST(test_base64_decode__is_strict)
{
    static const char *const bad[] = {"Zg",   "Zg=",  "Zg=a",  "=Zg=",   "====", "Z===",
                                      "Zh==", "Zm9=", "Zm 9v", "Zm9v\n", "-__-", "Zm9vZg==Zm9v"};
    struct arena *mem = arena_new(1000);

    for (size_t i = 0; i < countof(bad); i++)
        if (base64_decode(str_of(bad[i]), mem).p)
            fail_msg("%s was taken", bad[i]);
    assert_null(base64_decode(STR_NONE, mem).p);
    assert_null(base64_decode(str_n("Zm9\0", 4), mem).p);
    arena_free(mem);
}

TEST(test_base64url_decode__is_strict)
{
    static const char *const bad[] = {"Z",    "Zg==",  "Zm8=",   "Zh",    "Zm9", "Zm9vZ",
                                      "+//+", "Zm 9v", "Zm9v\n", "Zm9v.", "=",   "Zm9vZm9"};
    struct arena *mem = arena_new(1000);

    for (size_t i = 0; i < countof(bad); i++)
        if (base64url_decode(str_of(bad[i]), mem).p)
            fail_msg("%s was taken", bad[i]);
    assert_null(base64url_decode(STR_NONE, mem).p);
    assert_null(base64url_decode(str_n("Zm\0", 3), mem).p);
    arena_free(mem);
}
