/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "crypto/seal.h"

#include <string.h>

static const struct str bound[] = {STR("acme"), STR("user:alice"), STR("session-1")};

static struct seal_key *key_of(uint8_t fill)
{
    uint8_t key[SEAL_KEY_BYTES];
    memset(key, fill, sizeof(key));
    return seal_key_new(key);
}

TEST(test_seal__opens_to_the_same_bytes)
{
    static const struct str plains[] = {STR(""), STR("x"), STR("sixteen bytes .."),
                                        STR("a\0b and some more than one block of it")};
    struct seal_key *k = key_of(7);
    for (size_t i = 0; i < countof(plains); i++) {
        uint8_t sealed[128], plain[128] = {0};
        size_t n = plains[i].n + SEAL_OVERHEAD;
        seal(k, bound, countof(bound), plains[i], sealed);
        assert_true(unseal(k, bound, countof(bound), str_n((const char *)sealed, n), plain));
        assert_memory_equal(plain, plains[i].p, plains[i].n);
        if (plains[i].n > 1)
            assert_null(memmem(sealed, n, plains[i].p, plains[i].n));
    }
    seal_key_free(k);
}

TEST(test_seal__never_gives_the_same_bytes_twice)
{
    struct seal_key *k = key_of(7);
    uint8_t a[64], b[64];
    seal(k, bound, countof(bound), STR("the same"), a);
    seal(k, bound, countof(bound), STR("the same"), b);
    assert_memory_not_equal(a + 1, b + 1, 12);
    assert_memory_not_equal(a + 13, b + 13, 8);
    seal_key_free(k);
}

TEST(test_unseal__refuses_every_changed_byte_and_every_shorter_length)
{
    struct seal_key *k = key_of(7);
    uint8_t sealed[64], plain[64];
    size_t n = 9 + SEAL_OVERHEAD;
    seal(k, bound, countof(bound), STR("some text"), sealed);
    for (size_t i = 0; i < n; i++) {
        sealed[i] ^= 0x40;
        assert_false(unseal(k, bound, countof(bound), str_n((const char *)sealed, n), plain));
        sealed[i] ^= 0x40;
        assert_false(unseal(k, bound, countof(bound), str_n((const char *)sealed, i), plain));
    }
    assert_true(unseal(k, bound, countof(bound), str_n((const char *)sealed, n), plain));
    seal_key_free(k);
}

TEST(test_unseal__leaves_no_plain_text_behind_when_it_refuses)
{
    struct seal_key *k = key_of(7);
    uint8_t sealed[64], plain[9] = {0}, zero[9] = {0};
    seal(k, bound, countof(bound), STR("some text"), sealed);
    sealed[9 + SEAL_OVERHEAD - 1] ^= 1; /* the tag: the text itself was already deciphered */
    assert_false(
        unseal(k, bound, countof(bound), str_n((const char *)sealed, 9 + SEAL_OVERHEAD), plain));
    assert_memory_equal(plain, zero, sizeof(plain));
    seal_key_free(k);
}

TEST(test_unseal__refuses_another_key_and_other_bound_parts)
{
    static const struct str moved[] = {STR("acmeu"), STR("ser:alice"), STR("session-1")};
    static const struct str other[] = {STR("acme"), STR("user:alice"), STR("session-2")};
    struct seal_key *k = key_of(7), *wrong = key_of(8);
    uint8_t sealed[64], plain[64];
    struct str bytes = str_n((const char *)sealed, 4 + SEAL_OVERHEAD);
    seal(k, bound, countof(bound), STR("text"), sealed);
    assert_false(unseal(wrong, bound, countof(bound), bytes, plain));
    assert_false(unseal(k, moved, countof(moved), bytes, plain));
    assert_false(unseal(k, other, countof(other), bytes, plain));
    assert_false(unseal(k, bound, 2, bytes, plain));
    assert_true(unseal(k, bound, countof(bound), bytes, plain));
    seal_key_free(k);
    seal_key_free(wrong);
}
