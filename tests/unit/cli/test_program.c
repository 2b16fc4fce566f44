/* SPDX-License-Identifier: Apache-2.0 */
/* Other programs are run to their end or to the deadline, with their output where it was asked for. */
#include "test.h"

#include "cli/program.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONG_MS 60000

static enum program_end run_shell(const char *script, int64_t timeout_ms, struct buf *out,
                                  int *ret_status)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct program p = {.argv = argv, .timeout_ms = timeout_ms, .out = out, .status = 77};
    enum program_end end = program_run(&p);

    *ret_status = p.status;
    return end;
}

static void wait_gone(pid_t pid)
{
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

    if (p.fd < 0) {
        assert_int_equal(errno, ESRCH);
        return;
    }
    assert_int_equal(poll(&p, 1, LONG_MS), 1);
    close(p.fd);
}

TEST(test_program__output_and_status_are_those_of_the_program)
{
    struct buf out;
    int status;

    buf_init(&out, SIZE_MAX);
    assert_int_equal(run_shell("read x; echo out $x; echo err >&2; exit 3", LONG_MS, &out, &status),
                     PROGRAM_EXITED);
    assert_int_equal(status, 3);
    assert_string_equal(out.p, "out\nerr\n");
    assert_int_equal(run_shell("kill -9 $$", LONG_MS, NULL, &status), PROGRAM_EXITED);
    assert_int_equal(status, -1);
    buf_release(&out);
}

TEST(test_program__output_is_cut_and_the_program_ends_anyway)
{
    struct buf out;
    int status;

    buf_init(&out, SIZE_MAX);
    assert_int_equal(run_shell("head -c 1000000 /dev/zero", LONG_MS, &out, &status),
                     PROGRAM_EXITED);
    assert_int_equal(status, 0);
    assert_true(out.n >= 256 * 1024 && out.n < 300 * 1024);
    buf_release(&out);
}

TEST(test_program__standard_output_goes_to_the_descriptor)
{
    const char *argv[] = {"echo", "x", NULL};
    struct program p = {.argv = argv, .timeout_ms = LONG_MS, .out_fd = memfd_create("out", 0)};
    char text[4] = "";

    assert_int_equal(program_run(&p), PROGRAM_EXITED);
    assert_int_equal(pread(p.out_fd, text, 3, 0), 2);
    assert_string_equal(text, "x\n");
    p.is_silent = true;
    p.out_fd = 0;
    assert_int_equal(program_run(&p), PROGRAM_EXITED);
}

TEST(test_program__at_the_deadline_the_whole_group_is_killed)
{
    struct buf out;
    int status;
    long child;

    buf_init(&out, SIZE_MAX);
    assert_int_equal(run_shell("sleep 600 & echo $!; wait", 200, &out, &status), PROGRAM_LATE);
    assert_int_equal(status, -1);
    child = strtol(out.p ? out.p : "0", NULL, 10);
    if (child > 0) /* on a very busy machine the deadline came before the shell ran */
        wait_gone((pid_t)child);
    buf_release(&out);
}

TEST(test_program__a_process_that_it_left_behind_is_not_waited_for)
{
    struct buf out;
    int status;

    buf_init(&out, SIZE_MAX);
    assert_int_equal(run_shell("sleep 600 & echo $!", LONG_MS, &out, &status), PROGRAM_EXITED);
    assert_int_equal(status, 0);
    assert_int_equal(kill((pid_t)strtol(out.p, NULL, 10), SIGKILL), 0);
    buf_release(&out);
}

TEST(test_program__one_that_is_not_there_is_missing)
{
    const char *argv[] = {"no-such-program-here", NULL};
    struct program p = {.argv = argv, .timeout_ms = LONG_MS};

    assert_int_equal(program_run(&p), PROGRAM_MISSING);
}
