/* SPDX-License-Identifier: Apache-2.0 */
/* The relay between pipes that the test holds and a peer in a thread. */
#include "test.h"

#include "cli/relay.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
    int channel, peer; /* a socket pair */
    int in[2], out[2], stop[2];
    size_t heard;  /* by the peer */
    size_t answer; /* bytes it says at the end */
    bool leaves_at_once;
    pthread_t thread;
};

static void *run_peer(void *arg)
{
    struct fixture *f = arg;
    char bytes[4096];
    ssize_t n;

    while (!f->leaves_at_once && (n = read(f->peer, bytes, sizeof(bytes))) > 0)
        f->heard += (size_t)n;
    memset(bytes, 'a', sizeof(bytes));
    for (size_t left = f->answer; left; left -= (size_t)n) {
        n = write(f->peer, bytes, left < sizeof(bytes) ? left : sizeof(bytes));
        assert_true(n > 0);
    }
    close(f->peer);
    return NULL;
}

static void setup(struct fixture *f)
{
    int pair[2];

    signal(SIGPIPE, SIG_IGN);
    memset(f, 0, sizeof(*f));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    f->channel = pair[0];
    f->peer = pair[1];
    assert_int_equal(pipe(f->in) | pipe(f->out) | pipe(f->stop), 0);
}

static enum relay_end run(struct fixture *f)
{
    assert_int_equal(pthread_create(&f->thread, NULL, run_peer, f), 0);
    enum relay_end end = relay_run(&(struct relay_ends){.channel = f->channel,
                                                        .in = f->in[0],
                                                        .out = f->out[1],
                                                        .stop = f->stop[0],
                                                        .logs = -1,
                                                        .err = -1});
    pthread_join(f->thread, NULL);
    return end;
}

static void teardown(struct fixture *f)
{
    int fds[] = {f->channel, f->in[0], f->in[1], f->out[0], f->out[1], f->stop[0], f->stop[1]};
    for (size_t i = 0; i < countof(fds); i++)
        close(fds[i]);
}

TEST(test_relay__the_end_of_input_lets_the_answer_come)
{
    struct fixture f;
    char bytes[32] = "";

    setup(&f);
    assert_int_equal(write(f.in[1], "hello\n", 6), 6);
    close(f.in[1]);
    f.answer = 7;
    assert_int_equal(run(&f), RELAY_ENDED);
    assert_int_equal(f.heard, 6);
    assert_int_equal(read(f.out[0], bytes, sizeof(bytes)), 7);
    teardown(&f);
}

TEST(test_relay__a_channel_that_ends_first_is_a_loss)
{
    struct fixture f;
    char bytes[32] = "";

    setup(&f);
    f.leaves_at_once = true;
    f.answer = 3;
    assert_int_equal(run(&f), RELAY_LOST);
    assert_int_equal(read(f.out[0], bytes, sizeof(bytes)), 3);
    teardown(&f);
}

TEST(test_relay__stop_ends_our_side_as_the_end_of_input_does)
{
    struct fixture f;

    setup(&f);
    assert_int_equal(write(f.stop[1], "s", 1), 1);
    assert_int_equal(run(&f), RELAY_ENDED);
    teardown(&f);
}

TEST(test_relay__a_client_that_no_longer_reads_ends_our_side)
{
    struct fixture f;

    setup(&f);
    close(f.out[0]);
    f.out[0] = -1;
    f.leaves_at_once = true;
    f.answer = 1 << 20;
    assert_int_equal(run(&f), RELAY_ENDED);
    teardown(&f);
}

static void *drain_out(void *arg)
{
    struct fixture *f = arg;
    static char bytes[65536];
    ssize_t n;

    f->heard = 0;
    while ((n = read(f->out[0], bytes, sizeof(bytes))) > 0)
        f->heard += (size_t)n;
    return NULL;
}

TEST(test_relay__a_large_answer_arrives_whole)
{
    struct fixture f;
    pthread_t reader;

    setup(&f);
    f.leaves_at_once = true;
    f.answer = 5 << 20;
    assert_int_equal(pthread_create(&reader, NULL, drain_out, &f), 0);
    assert_int_equal(run(&f), RELAY_LOST);
    close(f.out[1]);
    f.out[1] = -1;
    pthread_join(reader, NULL);
    assert_int_equal(f.heard, 5 << 20);
    teardown(&f);
}
