/* SPDX-License-Identifier: Apache-2.0 */
/* Edge-triggered connections: the kernel reports new bytes once, so the loop must miss none. */
#include "test.h"

#include "base/buf.h"
#include "io/address.h"
#include "io/conn.h"

#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct side {
    struct conn *conn;
    struct buf in;
    bool eof, drained, is_broken;
};

static void on_bytes(void *arg, struct str bytes)
{
    buf_addstr(&((struct side *)arg)->in, bytes);
}
static void on_eof(void *arg)
{
    ((struct side *)arg)->eof = true;
}
static void on_drained(void *arg)
{
    ((struct side *)arg)->drained = true;
}
static void on_error(void *arg, const struct error *e unused_arg)
{
    ((struct side *)arg)->is_broken = true;
}
static const struct conn_events events = {
    .on_bytes = on_bytes, .on_eof = on_eof, .on_drained = on_drained, .on_error = on_error};

struct world {
    struct loop *loop;
    struct side a;
    int peer; /* the other end, by hand */
};

/* Is the descriptor edge-triggered in any epoll set of this process? */
static bool is_armed(int fd)
{
    bool armed = false;
    DIR *dir = opendir("/proc/self/fdinfo");
    for (struct dirent *d; (d = readdir(dir));) {
        char line[256];
        snprintf(line, sizeof(line), "/proc/self/fdinfo/%.20s", d->d_name);
        FILE *file = fopen(line, "re");
        int entry;
        unsigned mask;
        while (file && fgets(line, sizeof(line), file))
            if (sscanf(line, "tfd: %d events: %x", &entry, &mask) == 2 && entry == fd)
                armed |= (mask & EPOLLET) != 0;
        if (file)
            fclose(file);
    }
    closedir(dir);
    return armed;
}

static void send_all(int fd, const char *bytes, size_t n)
{
    assert_int_equal(send(fd, bytes, n, 0), n);
}

static void await(struct world *w, size_t n)
{
    while (w->a.in.n < n)
        loop_turn(w->loop);
}

/* The other end takes so many bytes while the loop turns. */
static void take(struct world *w, size_t n)
{
    char some[65536];
    for (size_t got = 0; got < n;) {
        ssize_t done = recv(w->peer, some, sizeof(some), MSG_DONTWAIT);
        if (done < 0)
            loop_turn(w->loop);
        else
            got += (size_t)done;
    }
}

static int listen_at(struct sockaddr_in *ret)
{
    socklen_t len = sizeof(*ret);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    *ret = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(listener, (struct sockaddr *)ret, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)ret, &len), 0);
    return listener;
}

static void world_open(struct world *w)
{
    struct sockaddr_in at;
    int listener = listen_at(&at);
    w->peer = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(w->peer, (struct sockaddr *)&at, sizeof(at)), 0);
    w->loop = loop_new();
    w->a = (struct side){0};
    buf_init(&w->a.in, 64 * 1024 * 1024);
    w->a.conn = conn_adopt(w->loop, accept(listener, NULL, NULL), NULL, &events, &w->a);
    close(listener);
}

/* A connection that has been used twice. */
static void world_init(struct world *w)
{
    world_open(w);
    for (size_t i = 1; i <= 2; i++) {
        send_all(w->peer, "x", 1);
        await(w, i);
    }
    buf_reset(&w->a.in);
}

static void world_release(struct world *w)
{
    conn_close(w->a.conn);
    buf_release(&w->a.in);
    if (w->peer >= 0)
        close(w->peer);
    loop_free(w->loop);
}

TEST(test_edge__a_connection_in_use_is_reported_for_new_bytes)
{
    struct world w;
    world_init(&w);
    assert_true(is_armed(conn_fd(w.a.conn)));
    for (size_t i = 1; i <= 100; i++) {
        send_all(w.peer, "hello", 5);
        await(&w, 5 * i);
    }
    assert_true(is_armed(conn_fd(w.a.conn)));
    world_release(&w);
}

TEST(test_edge__more_than_one_read_takes_arrives_whole)
{
    struct world w;
    world_init(&w);
    for (size_t n = LOOP_SCRATCH - 1; n <= 4 * LOOP_SCRATCH + 1; n += LOOP_SCRATCH / 2 + 1) {
        char *big = malloc(n);
        size_t sent = 0;
        for (size_t i = 0; i < n; i++)
            big[i] = (char)(i * 7 + i / 251);
        buf_reset(&w.a.in);
        while (sent < n) { /* as much as the kernel takes, before anything is read */
            ssize_t done = send(w.peer, big + sent, n - sent, MSG_DONTWAIT);
            if (done < 0)
                loop_turn(w.loop);
            else
                sent += (size_t)done;
        }
        await(&w, n);
        assert_memory_equal(w.a.in.p, big, n);
        free(big);
    }
    assert_true(is_armed(conn_fd(w.a.conn)));
    world_release(&w);
}

TEST(test_edge__the_end_right_behind_bytes_is_heard)
{
    struct world w;
    world_init(&w);
    send_all(w.peer, "last", 4);
    shutdown(w.peer, SHUT_WR);
    while (!w.a.eof)
        loop_turn(w.loop);
    assert_str(buf_str(&w.a.in), "last");
    world_release(&w);
}

TEST(test_edge__a_reset_behind_bytes_is_heard)
{
    struct world w;
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    world_init(&w);
    send_all(w.peer, "last", 4);
    setsockopt(w.peer, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(w.peer);
    w.peer = -1;
    while (!w.a.is_broken)
        loop_turn(w.loop);
    assert_str(buf_str(&w.a.in), "last");
    world_release(&w);
}

TEST(test_edge__what_came_during_a_pause_is_read_after_it)
{
    struct world w;
    world_init(&w);
    conn_pause(w.a.conn, true);
    send_all(w.peer, "held", 4);
    conn_pause(w.a.conn, false);
    await(&w, 4);
    conn_pause(w.a.conn, true);
    send_all(w.peer, "held", 4);
    shutdown(w.peer, SHUT_WR);
    conn_pause(w.a.conn, false);
    while (!w.a.eof)
        loop_turn(w.loop);
    assert_str(buf_str(&w.a.in), "heldheld");
    world_release(&w);
}

/* A connection that also wants to write is level-triggered meanwhile. */
TEST(test_edge__reading_goes_on_beside_a_write_that_has_to_wait)
{
    struct world w;
    size_t n = 16 * 1024 * 1024;
    char *big = calloc(1, n);
    world_init(&w);
    assert_true(conn_write(w.a.conn, &(struct iovec){big, n}, 1));
    assert_true(conn_queued(w.a.conn) > 0);
    send_all(w.peer, "beside", 6);
    await(&w, 6);
    take(&w, n);
    assert_true(w.a.drained);
    send_all(w.peer, "after", 5);
    await(&w, 11);
    send_all(w.peer, "!", 1);
    shutdown(w.peer, SHUT_WR);
    while (!w.a.eof)
        loop_turn(w.loop);
    assert_str(buf_str(&w.a.in), "besideafter!");
    free(big);
    world_release(&w);
}

TEST(test_edge__a_connection_is_edge_triggered_again_after_a_write_that_had_to_wait)
{
    struct world w;
    size_t n = 16 * 1024 * 1024;
    char *big = calloc(1, n);
    world_open(&w);
    send_all(w.peer, "x", 1);
    await(&w, 1);
    assert_true(conn_write(w.a.conn, &(struct iovec){big, n}, 1));
    take(&w, n);
    assert_true(w.a.drained);
    for (size_t i = 2; i <= 4; i++) {
        send_all(w.peer, "x", 1);
        await(&w, i);
    }
    assert_true(is_armed(conn_fd(w.a.conn)));
    free(big);
    world_release(&w);
}

TEST(test_edge__a_dialled_connection_too)
{
    struct sockaddr_in at;
    int listener = listen_at(&at);
    struct conn_address to = {.len = sizeof(at)};
    struct world w = {.loop = loop_new()};
    memcpy(&to.sa, &at, sizeof(at));
    buf_init(&w.a.in, 1024);
    w.a.conn = conn_dial(w.loop, &to, NULL, NULL, &events, &w.a);
    w.peer = accept(listener, NULL, NULL);
    close(listener);
    for (size_t i = 1; i <= 3; i++) {
        send_all(w.peer, "x", 1);
        await(&w, i);
    }
    assert_true(is_armed(conn_fd(w.a.conn)));
    send_all(w.peer, "last", 4);
    shutdown(w.peer, SHUT_WR);
    while (!w.a.eof)
        loop_turn(w.loop);
    assert_str(buf_str(&w.a.in), "xxxlast");
    world_release(&w);
}

/* One read takes one message of these, however many there are. */
TEST(test_edge__not_for_sockets_of_messages)
{
    int fds[2];
    struct world w = {.loop = loop_new()};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    buf_init(&w.a.in, 1024);
    w.a.conn = conn_adopt(w.loop, fds[0], NULL, &events, &w.a);
    w.peer = fds[1];
    for (size_t i = 1; i <= 10; i++) {
        send_all(w.peer, "one", 3);
        send_all(w.peer, "two", 3);
        await(&w, 6 * i);
    }
    world_release(&w);
}
