/* SPDX-License-Identifier: Apache-2.0 */
/* Growable bytes: ceiling, termination, ownership. */
#include "test.h"

#include "base/buf.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(test_buf_try_add__takes_the_ceiling_and_refuses_one_more)
{
    struct buf b;

    buf_init(&b, 100);
    for (int i = 0; i < 100; i++)
        assert_true(buf_try_add(&b, "x", 1));
    assert_int_equal(b.n, 100);
    assert_false(buf_try_add(&b, "x", 1));
    assert_int_equal(b.n, 100);
    assert_int_equal(b.p[100], 0);
    assert_true(b.cap <= 101);
    buf_release(&b);
}

TEST(test_buf_try_add__a_size_near_the_top_does_not_wrap)
{
    struct buf b;

    buf_init(&b, SIZE_MAX);
    buf_addz(&b, "abc");
    assert_null(buf_room(&b, SIZE_MAX - 1));
    assert_str(buf_str(&b), "abc");
    buf_release(&b);
}

TEST(test_buf_str__is_empty_not_absent_before_anything_was_added)
{
    struct buf b = {0};

    assert_non_null(buf_str(&b).p);
    assert_int_equal(buf_str(&b).n, 0);
    buf_release(&b);
    buf_release(&b);
}

TEST(test_buf_add__every_kind_appends_and_terminates)
{
    struct buf b;

    buf_init(&b, 1000);
    buf_addstr(&b, STR("a"));
    buf_addz(&b, "bc");
    buf_addc(&b, '-');
    buf_addf(&b, "%d/%s", 42, "x");
    buf_addu(&b, 0);
    buf_addu(&b, UINT64_MAX);
    buf_addstr(&b, STR_NONE);
    assert_str(buf_str(&b), "abc-42/x018446744073709551615");
    assert_int_equal(strlen(b.p), b.n);
    buf_release(&b);
}

TEST(test_buf_consume__keeps_the_rest_in_order)
{
    struct buf b;

    buf_init(&b, 100);
    buf_addz(&b, "hello world");
    buf_consume(&b, 6);
    assert_str(buf_str(&b), "world");
    buf_consume(&b, 5);
    assert_int_equal(b.n, 0);
    assert_int_equal(b.p[0], 0);
    buf_release(&b);
}

TEST(test_buf_room__bytes_count_only_once_grown)
{
    struct buf b;
    char *room;

    buf_init(&b, 10);
    assert_null(buf_room(&b, 11));
    room = buf_room(&b, 10);
    memcpy(room, "0123456789", 10);
    assert_int_equal(b.n, 0);
    buf_grown(&b, 4);
    assert_str(buf_str(&b), "0123");
    buf_release(&b);
}

TEST(test_buf_steal__hands_over_a_string_even_when_empty)
{
    struct buf b;
    size_t n = 9;
    char *p;

    buf_init(&b, 10);
    p = buf_steal(&b, &n);
    assert_string_equal(p, "");
    assert_int_equal(n, 0);
    free(p);
    buf_addz(&b, "abc");
    p = buf_steal(&b, NULL);
    assert_string_equal(p, "abc");
    assert_int_equal(b.n, 0);
    free(p);
    buf_addz(&b, "0123456789"); /* the ceiling is kept */
    assert_false(buf_try_add(&b, "x", 1));
    buf_reset(&b);
    assert_true(buf_try_add(&b, "x", 1));
    buf_release(&b);
}

TEST(test_buf_add__past_the_ceiling_ends_the_process)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct buf b;
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        buf_init(&b, 3);
        buf_addz(&b, "four");
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
