/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (vectors of RFC 4648). */
#include "test.h"

#include "crypto/base64.h"

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
