/* SPDX-License-Identifier: Apache-2.0 */
/* Connections over socket pairs, pipes and loopback. */
#include "test.h"

#include "base/buf.h"
#include "io/address.h"
#include "io/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct side {
    struct loop *loop;
    struct conn *conn;
    struct buf in;
    bool opened, eof, drained;
    struct error err;
    bool close_on_bytes;
};

static void on_open(void *arg)
{
    ((struct side *)arg)->opened = true;
}
static void on_bytes(void *arg, struct str bytes)
{
    struct side *s = arg;
    buf_addstr(&s->in, bytes);
    if (s->close_on_bytes)
        conn_close(s->conn);
}
static void on_eof(void *arg)
{
    ((struct side *)arg)->eof = true;
}
static void on_drained(void *arg)
{
    ((struct side *)arg)->drained = true;
}
static void on_error(void *arg, const struct error *e)
{
    ((struct side *)arg)->err = *e;
}
static const struct conn_events events = {.on_open = on_open,
                                          .on_bytes = on_bytes,
                                          .on_eof = on_eof,
                                          .on_drained = on_drained,
                                          .on_error = on_error};

static void side_init(struct side *s, struct loop *loop, int fd)
{
    memset(s, 0, sizeof(*s));
    s->loop = loop;
    buf_init(&s->in, 64 * 1024 * 1024);
    if (fd >= 0)
        s->conn = conn_adopt(loop, fd, NULL, &events, s);
}

static void side_release(struct side *s)
{
    conn_close(s->conn);
    buf_release(&s->in);
}

static void pair_init(struct side *a, struct side *b, struct loop *loop)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    side_init(a, loop, fds[0]);
    side_init(b, loop, fds[1]);
}

static bool say(struct conn *c, const char *text)
{
    struct iovec part = {(char *)text, strlen(text)};
    return conn_write(c, &part, 1);
}

TEST(test_conn__bytes_arrive_in_parts_order_and_eof_follows)
{
    struct loop *loop = loop_new();
    struct side a, b;
    struct iovec parts[] = {{"one ", 4}, {"two ", 4}, {"three", 5}};

    pair_init(&a, &b, loop);
    assert_true(conn_write(a.conn, parts, 3));
    conn_shutdown_write(a.conn);
    while (!b.eof)
        loop_turn(loop);
    assert_str(buf_str(&b.in), "one two three");
    assert_int_equal(conn_bytes_in(b.conn), 13);
    assert_int_equal(conn_bytes_out(a.conn), 13);
    assert_true(say(b.conn, "back"));
    while (a.in.n < 4)
        loop_turn(loop);
    assert_str(buf_str(&a.in), "back");
    side_release(&a);
    side_release(&b);
    loop_free(loop);
}

TEST(test_conn__large_writes_queue_and_drain_whole)
{
    struct loop *loop = loop_new();
    struct side a, b;
    size_t n = 5 * 1024 * 1024;
    char *big = malloc(n);

    for (size_t i = 0; i < n; i++)
        big[i] = (char)(i * 7 + i / 251);
    pair_init(&a, &b, loop);
    assert_true(conn_write(a.conn, &(struct iovec){big, n}, 1));
    assert_true(conn_queued(a.conn) > 0);
    conn_shutdown_write(a.conn);
    while (!b.eof)
        loop_turn(loop);
    assert_true(a.drained);
    assert_int_equal(b.in.n, n);
    assert_memory_equal(b.in.p, big, n);
    free(big);
    side_release(&a);
    side_release(&b);
    loop_free(loop);
}

TEST(test_conn_write__refuses_past_the_queue_limit_and_adds_nothing)
{
    struct loop *loop = loop_new();
    struct side a, b;
    char *big = calloc(1, 1024 * 1024);
    size_t queued;

    pair_init(&a, &b, loop);
    conn_set_max_queue(a.conn, 4);
    assert_true(conn_write(a.conn, &(struct iovec){big, 1024 * 1024}, 1)); /* nothing waited */
    queued = conn_queued(a.conn);
    assert_true(queued > 4);
    assert_false(say(a.conn, "x"));
    assert_int_equal(conn_queued(a.conn), queued);
    conn_set_max_queue(a.conn, queued + 4);
    assert_false(say(a.conn, "12345"));
    assert_true(say(a.conn, "1234"));
    assert_int_equal(conn_queued(a.conn), queued + 4);
    free(big);
    side_release(&a);
    side_release(&b);
    loop_free(loop);
}

TEST(test_conn_pause__holds_bytes_until_resumed)
{
    struct loop *loop = loop_new();
    struct side a, b, c, d;

    pair_init(&a, &b, loop);
    pair_init(&c, &d, loop);
    conn_pause(b.conn, true);
    assert_true(say(a.conn, "held"));
    assert_true(say(c.conn, "free"));
    while (d.in.n < 4)
        loop_turn(loop);
    assert_int_equal(b.in.n, 0);
    conn_pause(b.conn, false);
    while (b.in.n < 4)
        loop_turn(loop);
    assert_str(buf_str(&b.in), "held");
    side_release(&a);
    side_release(&b);
    side_release(&c);
    side_release(&d);
    loop_free(loop);
}

TEST(test_conn_close__inside_a_callback_is_safe_and_final)
{
    struct loop *loop = loop_new();
    struct side a, b;

    pair_init(&a, &b, loop);
    b.close_on_bytes = true;
    assert_true(say(a.conn, "x"));
    while (!a.eof)
        loop_turn(loop);
    assert_str(buf_str(&b.in), "x");
    assert_false(b.eof);
    b.conn = NULL;
    side_release(&a);
    side_release(&b);
    loop_free(loop);
}

TEST(test_conn_write__to_a_vanished_peer_reports_from_the_loop)
{
    struct loop *loop = loop_new();
    struct side a;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    side_init(&a, loop, fds[0]);
    close(fds[1]);
    assert_true(say(a.conn, "x"));
    assert_true(conn_is_broken(a.conn));
    assert_int_equal(a.err.code, ERR_NONE);
    assert_int_equal(conn_bytes_out(a.conn), 0);
    while (a.err.code == ERR_NONE)
        loop_turn(loop);
    assert_int_equal(a.err.code, ERR_UNREACHABLE);
    side_release(&a);
    loop_free(loop);
}

TEST(test_conn__pipe_ends_work_one_way)
{
    struct loop *loop = loop_new();
    struct side in, out;
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    side_init(&in, loop, fds[0]);
    side_init(&out, loop, fds[1]);
    assert_true(say(out.conn, "line\n"));
    conn_shutdown_write(out.conn);
    while (!in.eof)
        loop_turn(loop);
    assert_str(buf_str(&in.in), "line\n");
    side_release(&in);
    side_release(&out);
    loop_free(loop);
}

static int listen_on(struct conn_address *ret)
{
    struct error err;
    int fd = -1;
    assert_true(address_parse(STR("127.0.0.1:0"), ret, &err));
    assert_true(address_listen(ret, &fd, &err));
    ret->len = sizeof(ret->sa);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&ret->sa, &ret->len), 0);
    return fd;
}

TEST(test_conn_dial__opens_from_the_loop_and_sends_what_was_written_before)
{
    struct loop *loop = loop_new();
    struct conn_address at;
    int fd = listen_on(&at), peer;
    struct side a;
    char got[8];

    side_init(&a, loop, -1);
    a.conn = conn_dial(loop, &at, NULL, NULL, &events, &a);
    assert_true(say(a.conn, "early"));
    assert_false(a.opened);
    while (!a.opened)
        loop_turn(loop);
    while ((peer = accept(fd, NULL, NULL)) < 0)
        assert_int_equal(errno, EAGAIN);
    assert_int_equal(recv(peer, got, 5, MSG_WAITALL), 5);
    assert_memory_equal(got, "early", 5);
    close(peer);
    close(fd);
    side_release(&a);
    loop_free(loop);
}

TEST(test_conn_dial__refused_is_reported_from_the_loop)
{
    struct loop *loop = loop_new();
    struct conn_address at;
    int fd = listen_on(&at);
    struct side a;

    close(fd);
    side_init(&a, loop, -1);
    a.conn = conn_dial(loop, &at, NULL, NULL, &events, &a);
    assert_int_equal(a.err.code, ERR_NONE);
    while (a.err.code == ERR_NONE)
        loop_turn(loop);
    assert_int_equal(a.err.code, ERR_UNREACHABLE);
    assert_false(a.opened);
    side_release(&a);
    loop_free(loop);
}

TEST(test_conn__reset_behind_bytes_is_reported_after_them)
{
    struct linger at_once = {.l_onoff = 1};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0), peer = socket(AF_INET, SOCK_STREAM, 0);
    struct loop *loop = loop_new();
    struct side s;

    assert_int_equal(bind(listener, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &n), 0);
    assert_int_equal(connect(peer, (struct sockaddr *)&at, n), 0);
    side_init(&s, loop, accept(listener, NULL, NULL));
    assert_int_equal(send(peer, "half an ans", 11, 0), 11);
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(peer);
    while (s.err.code == ERR_NONE)
        loop_turn(loop);
    assert_int_equal(s.err.code, ERR_UNREACHABLE);
    assert_str(buf_str(&s.in), "half an ans");
    side_release(&s);
    close(listener);
    loop_free(loop);
}
