/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes against published vectors (FIPS 180-4, RFC 4231), from more than one thread. */
#include "test.h"

#include "crypto/hash.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdlib.h>

static const char *hex_of(const uint8_t digest[SHA256_BYTES])
{
    static char text[2 * SHA256_BYTES + 1];

    hex_encode(digest, SHA256_BYTES, text);
    return text;
}

static const char *sha256_hex(struct str data)
{
    uint8_t digest[SHA256_BYTES];

    sha256(data, digest);
    return hex_of(digest);
}

TEST(test_sha256__published_vectors)
{
    static char million[1000000];

    memset(million, 'a', sizeof(million));
    assert_string_equal(sha256_hex(STR("abc")),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(sha256_hex(STR("")),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(sha256_hex(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
                        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    assert_string_equal(sha256_hex(str_n(million, sizeof(million))),
                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(test_sha256_parts__is_the_hash_of_the_whole)
{
    struct str parts[] = {STR("a"), STR(""), STR_NONE, STR("bc")};
    uint8_t whole[SHA256_BYTES], pieces[SHA256_BYTES];

    sha256(STR("abc"), whole);
    sha256_parts(parts, countof(parts), pieces);
    assert_memory_equal(whole, pieces, sizeof(whole));
}

static const char *hmac_hex(const void *key, size_t n, struct str data)
{
    struct hmac_key *k = hmac_key_new(key, n);
    uint8_t digest[SHA256_BYTES];

    hmac_sha256(k, &data, 1, digest);
    hmac_key_free(k);
    return hex_of(digest);
}

TEST(test_hmac_sha256__published_vectors)
{
    uint8_t key[131];

    memset(key, 0x0b, 20);
    assert_string_equal(hmac_hex(key, 20, STR("Hi There")),
                        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    assert_string_equal(hmac_hex("Jefe", 4, STR("what do ya want for nothing?")),
                        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key)); /* longer than a block */
    assert_string_equal(
        hmac_hex(key, sizeof(key), STR("Test Using Larger Than Block-Size Key - Hash Key First")),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    assert_string_equal(hmac_hex(NULL, 0, STR("")),
                        "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(test_hmac_sha256__a_prepared_key_serves_again_and_again)
{
    struct hmac_key *k = hmac_key_new((const uint8_t *)"Jefe", 4);
    struct hmac_key *other = hmac_key_new((const uint8_t *)"jefe", 4);
    struct str parts[] = {STR("what do ya want "), STR("for nothing?")};
    uint8_t digest[SHA256_BYTES], foreign[SHA256_BYTES];

    for (int i = 0; i < 3; i++) {
        hmac_sha256(k, parts, 2, digest);
        assert_string_equal(hex_of(digest),
                            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        hmac_sha256(other, parts, 2, foreign);
        assert_memory_not_equal(digest, foreign, sizeof(digest));
    }
    hmac_key_free(k);
    hmac_key_free(other);
    hmac_key_free(NULL);
}

/* Keys and data of every length around the blocks: the judge is OpenSSL's own HMAC and digest. */
TEST(test_hmac_sha256__agrees_with_openssl_at_every_length)
{
    uint8_t bytes[200], ours[SHA256_BYTES], theirs[SHA256_BYTES];
    unsigned n = 0;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 7 + 3);
    for (size_t length = 0; length <= sizeof(bytes); length++) {
        struct str data = str_n((const char *)bytes, length);
        sha256(data, ours);
        assert_true(EVP_Digest(bytes, length, theirs, &n, EVP_sha256(), NULL));
        assert_memory_equal(ours, theirs, sizeof(ours));
        for (size_t key_n = 1; key_n <= 130; key_n += key_n < 62 || key_n > 66 ? 3 : 1) {
            struct hmac_key *k = hmac_key_new(bytes, key_n);
            hmac_sha256(k, &data, 1, ours);
            assert_non_null(HMAC(EVP_sha256(), bytes, (int)key_n, bytes, length, theirs, &n));
            assert_memory_equal(ours, theirs, sizeof(ours));
            hmac_key_free(k);
        }
    }
}

static void *hash_often(void *arg)
{
    uint8_t digest[SHA256_BYTES];

    for (int i = 0; i < 1000; i++)
        sha256(str_of(arg), digest);
    return memcpy(xmalloc(sizeof(digest)), digest, sizeof(digest));
}

TEST(test_sha256__threads_do_not_share_a_context)
{
    char one[] = "abc", two[] = "";
    pthread_t a, b;
    void *first, *second;

    assert_int_equal(pthread_create(&a, NULL, hash_often, one), 0);
    assert_int_equal(pthread_create(&b, NULL, hash_often, two), 0);
    pthread_join(a, &first);
    pthread_join(b, &second);
    assert_string_equal(hex_of(first),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(hex_of(second),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    free(first);
    free(second);
}

TEST(test_crypto_equal__sees_a_difference_anywhere)
{
    char a[32] = {0}, b[32] = {0};

    assert_true(crypto_equal(a, b, 32));
    for (int i = 0; i < 32; i++) {
        b[i] = 1;
        assert_false(crypto_equal(a, b, 32));
        b[i] = 0;
    }
    assert_true(crypto_equal(a, b, 0));
}

TEST(test_crypto_wipe__leaves_zeros)
{
    char p[8] = "secret!", zeros[8] = {0};

    crypto_wipe(p, sizeof(p));
    assert_memory_equal(p, zeros, sizeof(p));
}

TEST(test_hex_decode__takes_exactly_n_bytes_in_either_case)
{
    uint8_t out[3] = {9, 9, 9};
    static const uint8_t expected[3] = {0x00, 0xab, 0xFF};

    assert_true(hex_decode(STR("00aBfF"), out, 3));
    assert_memory_equal(out, expected, 3);
    assert_false(hex_decode(STR("00abf"), out, 3));
    assert_false(hex_decode(STR("00abff0"), out, 3));
    assert_false(hex_decode(STR("00abfg"), out, 3));
    assert_false(hex_decode(STR("0x00ab"), out, 3));
    assert_memory_equal(out, expected, 3); /* untouched by the failures */
}
