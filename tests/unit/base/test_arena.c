/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: alignment, ceiling, hooks, resizing. */
#include "test.h"

#include "base/arena.h"

#include <pthread.h>

TEST(test_arena_alloc__is_aligned_and_apart)
{
    struct arena *a = arena_new(1 << 20);
    char *before = NULL;

    for (size_t n = 0; n < 200; n++) {
        char *p = arena_alloc(a, n);
        assert_int_equal((uintptr_t)p % 16, 0);
        memset(p, 0xa5, n);
        assert_true(p != before);
        before = p;
    }
    arena_free(a);
}

TEST(test_arena_alloc__big_and_small_mix)
{
    struct arena *a = arena_new(1 << 20);
    char *big, *small;

    small = arena_zalloc(a, 10);
    big = arena_zalloc(a, 1 << 20);
    assert_int_equal(small[9], 0);
    assert_int_equal(big[(1 << 20) - 1], 0);
    memset(big, 1, 1 << 20);
    assert_int_equal(small[9], 0);
    arena_free(a);
}

TEST(test_arena_try_alloc__gives_the_ceiling_and_refuses_one_more)
{
    struct arena *a = arena_new(1000);

    assert_non_null(arena_try_alloc(a, 600));
    assert_null(arena_try_alloc(a, 401));
    assert_non_null(arena_try_alloc(a, 400));
    assert_int_equal(arena_used(a), 1000);
    assert_null(arena_try_alloc(a, 1));
    assert_null(arena_try_alloc(a, SIZE_MAX));
    arena_free(a);
}

TEST(test_arena_dup__terminates_and_keeps_absence)
{
    struct arena *a = arena_new(1000);
    struct str copy = arena_dup(a, str_n("abcdef", 3));

    assert_str(copy, "abc");
    assert_int_equal(copy.p[3], 0);
    assert_null(arena_dup(a, STR_NONE).p);
    assert_non_null(arena_dup(a, STR("")).p);
    assert_str(arena_printf(a, "%d-%s", 7, "x"), "7-x");
    arena_free(a);
}

static int order[2], n_order;

static void note(void *arg)
{
    order[n_order++] = *(int *)arg;
}

TEST(test_arena_free__runs_hooks_last_added_first_while_memory_lives)
{
    struct arena *a = arena_new(1000);
    int *one = arena_alloc(a, sizeof(int)), *two = arena_alloc(a, sizeof(int));

    *one = 1;
    *two = 2;
    n_order = 0;
    arena_on_free(a, note, one);
    arena_on_free(a, note, two);
    arena_free(a);
    arena_free(NULL);
    assert_int_equal(n_order, 2);
    assert_int_equal(order[0], 2);
    assert_int_equal(order[1], 1);
}

TEST(test_arena_try_resize__keeps_bytes_through_every_growth)
{
    struct arena *a = arena_new(64 << 20);
    size_t n = 16;
    char *p = arena_try_resize(a, NULL, 0, n);

    memset(p, 'a', n);
    while (n < (4 << 20)) {
        p = arena_try_resize(a, p, n, n * 2);
        assert_non_null(p);
        assert_int_equal(p[0], 'a');
        assert_int_equal(p[n - 1], 'a');
        memset(p, 'a', n * 2);
        n *= 2;
    }
    assert_int_equal(arena_used(a), n);
    p = arena_try_resize(a, p, n, 100);
    assert_int_equal(p[99], 'a');
    assert_int_equal(arena_used(a), 100);
    memset(arena_alloc(a, 500), 'b', 500);
    assert_int_equal(p[99], 'a');
    arena_free(a);
}

TEST(test_arena_try_resize__moves_what_is_no_longer_last)
{
    struct arena *a = arena_new(1 << 20);
    char *p = arena_alloc(a, 10), *other, *moved;

    memset(p, 'a', 10);
    other = arena_alloc(a, 10);
    memset(other, 'b', 10);
    moved = arena_try_resize(a, p, 10, 20);
    assert_ptr_not_equal(moved, p);
    assert_int_equal(moved[9], 'a');
    memset(moved, 'c', 20);
    assert_int_equal(other[0], 'b');
    arena_free(a);
}

TEST(test_arena_try_resize__past_the_ceiling_changes_nothing)
{
    struct arena *a = arena_new(100);
    char *p = arena_try_alloc(a, 50);

    p[0] = 'x';
    assert_null(arena_try_resize(a, p, 50, 101));
    assert_int_equal(p[0], 'x');
    assert_int_equal(arena_used(a), 50);
    p = arena_try_resize(a, p, 50, 100);
    assert_non_null(p);
    arena_free(a);
}

static void count_hook(void *arg)
{
    ++*(int *)arg;
}

TEST(test_arena_reset__runs_hooks_and_gives_the_ceiling_back)
{
    struct arena *a = arena_new(10000);
    int ran = 0;

    for (int round = 1; round <= 3; round++) {
        arena_on_free(a, count_hook, &ran);
        assert_non_null(arena_try_alloc(a, 9000));
        assert_null(arena_try_alloc(a, 9000));
        arena_reset(a);
        assert_int_equal(ran, round);
        assert_int_equal(arena_used(a), 0);
    }
    arena_free(a);
    assert_int_equal(ran, 3);
}

static void *make_and_free(void *arg unused_arg)
{
    struct arena *some[4];
    for (size_t i = 0; i < countof(some); i++)
        some[i] = arena_new(1 << 20);
    for (size_t i = 0; i < countof(some); i++)
        arena_free(some[i]);
    return NULL;
}

/* The leak checker is the judge. */
TEST(test_arena__a_thread_that_ends_leaves_no_chunk_behind)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, make_and_free, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST(test_arena__a_chunk_used_again_is_as_good_as_new)
{
    for (int round = 0; round < 3; round++) {
        struct arena *a = arena_new(5000);
        assert_int_equal(arena_used(a), 0);
        char *p = arena_alloc(a, 3000);
        memset(p, 'x', 3000);
        assert_null(arena_try_alloc(a, 2001));
        assert_non_null(arena_try_alloc(a, 2000));
        arena_free(a);
    }
}
