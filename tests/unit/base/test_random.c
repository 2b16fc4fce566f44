/* SPDX-License-Identifier: Apache-2.0 */
/* Randomness: repeatable when faked, never shared over a fork, ids in their form. */
#include "test.h"

#include "base/clock.h"
#include "base/random.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(test_random__fake_stream_repeats_from_its_seed)
{
    uint8_t a[100], b[100];

    random_set_fake(7);
    random_bytes(a, sizeof(a));
    random_set_fake(7);
    random_bytes(b, sizeof(b));
    assert_memory_equal(a, b, sizeof(a));
    random_set_fake(8);
    random_bytes(b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
    random_set_real();
}

TEST(test_random_bytes__pool_never_hands_out_the_same_twice)
{
    static uint64_t seen[4096];

    for (size_t i = 0; i < countof(seen); i++)
        seen[i] = random_u64();
    for (size_t i = 0; i < countof(seen); i++)
        for (size_t j = i + 1; j < countof(seen); j++)
            assert_true(seen[i] != seen[j]);
}

TEST(test_random_bytes__child_of_a_fork_draws_its_own)
{
    int ends[2];
    uint64_t mine, theirs = 0;
    pid_t child;

    random_u64(); /* the pool is full before the fork */
    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        theirs = random_u64();
        _exit(write(ends[1], &theirs, sizeof(theirs)) == sizeof(theirs) ? 0 : 1);
    }
    mine = random_u64();
    assert_int_equal(read(ends[0], &theirs, sizeof(theirs)), sizeof(theirs));
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    assert_true(mine != theirs);
}

TEST(test_random_bytes__long_requests_are_filled_to_the_end)
{
    uint8_t big[4096] = {0};
    unsigned zeros = 0;

    random_bytes(big, sizeof(big));
    for (size_t i = sizeof(big) - 256; i < sizeof(big); i++)
        zeros += big[i] == 0;
    assert_true(zeros < 32);
}

TEST(test_random_below__stays_below_and_reaches_everything)
{
    unsigned seen[3] = {0};

    for (int i = 0; i < 1000; i++)
        seen[random_below(3)]++;
    assert_true(seen[0] > 200 && seen[1] > 200 && seen[2] > 200);
    assert_int_equal(random_below(1), 0);
    assert_int_equal(random_below(0), 0);
}

TEST(test_random_uuid4__has_version_and_variant)
{
    char text[UUID_TEXT];

    for (int i = 0; i < 100; i++) {
        random_uuid4(text);
        assert_int_equal(strlen(text), 36);
        assert_int_equal(text[14], '4');
        assert_non_null(strchr("89ab", text[19]));
        assert_int_equal(text[8], '-');
        assert_int_equal(text[23], '-');
    }
}

TEST(test_random_uuid7__rises_strictly_under_a_frozen_clock)
{
    char before[UUID_TEXT] = "", text[UUID_TEXT];

    clock_set_fake(1794733323456, 0);
    for (int i = 0; i < 10000; i++) {
        random_uuid7(text);
        assert_int_equal(text[14], '7');
        assert_true(strcmp(before, text) < 0);
        memcpy(before, text, sizeof(before));
    }
    clock_set_real();
}

TEST(test_random_uuid7__begins_with_the_wall_clock)
{
    char text[UUID_TEXT];

    random_set_fake(1);
    clock_set_fake(0x0123456789ab, 0);
    random_uuid7(text);
    assert_memory_equal(text, "01234567-89ab-7000-", 19);
    clock_set_fake(0x0100000000ab, 0); /* set back by years: believed */
    random_uuid7(text);
    assert_memory_equal(text, "01000000-00ab-7000-", 19);
    clock_set_real();
    random_set_real();
}

static void *draw(void *arg)
{
    for (int i = 0; i < 1000; i++)
        ((uint64_t *)arg)[i] = random_u64();
    return NULL;
}

TEST(test_random__threads_have_streams_of_their_own)
{
    static uint64_t a[1000], b[1000];
    pthread_t one, two;

    assert_int_equal(pthread_create(&one, NULL, draw, a), 0);
    assert_int_equal(pthread_create(&two, NULL, draw, b), 0);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    for (int i = 0; i < 1000; i++)
        assert_true(a[i] != b[i] && a[i] != 0);
}
