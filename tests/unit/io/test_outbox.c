/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that wait for the end of the turn: they leave in order and whole, before anything else
 * of their conn happens, and what cannot leave comes back. */
#include "test.h"

#include "base/buf.h"
#include "io/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG_MESSAGE 5000 /* longer than what is held */

struct side {
    struct conn *conn;
    int peer;
    struct buf returned;
    struct buf in;
    bool failed, closes_when_returned;
};

static void on_bytes(void *arg, struct str bytes)
{
    buf_addstr(&((struct side *)arg)->in, bytes);
}
static void on_eof(void *arg)
{
    (void)arg;
}
static void on_error(void *arg, const struct error *e)
{
    (void)e;
    ((struct side *)arg)->failed = true;
}
static void on_returned(void *arg, struct str message)
{
    struct side *s = arg;
    buf_addstr(&s->returned, message);
    if (s->closes_when_returned)
        conn_close(s->conn);
}
static const struct conn_events events = {
    .on_bytes = on_bytes, .on_eof = on_eof, .on_error = on_error, .on_returned = on_returned};

static void enter(struct side *s, struct loop *loop)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    *s = (struct side){.peer = fds[1]};
    buf_init(&s->returned, 1 << 20);
    buf_init(&s->in, 1 << 20);
    s->conn = conn_adopt(loop, fds[0], NULL, &events, s);
}

static void leave(struct side *s)
{
    conn_close(s->conn);
    if (s->peer >= 0)
        close(s->peer);
    buf_release(&s->returned);
    buf_release(&s->in);
}

static void say(struct side *s, const char *text)
{
    /* in parts, as requests are */
    struct iovec parts[] = {{(char *)text, 1}, {(char *)text + 1, strlen(text) - 1}};
    assert_true(conn_write(s->conn, parts, 2));
}

/* What has arrived at the peer, -1: nothing yet. */
static ssize_t arrived(struct side *s, char *to, size_t room)
{
    ssize_t n = recv(s->peer, to, room - 1, MSG_DONTWAIT);
    to[n < 0 ? 0 : n] = 0;
    return n;
}

TEST(test_outbox__messages_leave_at_the_end_of_the_turn_in_order)
{
    struct loop *loop = loop_new();
    struct side a, b;
    char text[64];
    enter(&a, loop);
    enter(&b, loop);
    say(&a, "one ");
    say(&b, "other");
    say(&a, "two");
    assert_int_equal(arrived(&a, text, sizeof(text)), -1);
    assert_int_equal(conn_bytes_out(a.conn), 0);
    loop_turn(loop);
    assert_int_equal(arrived(&a, text, sizeof(text)), 7);
    assert_string_equal(text, "one two");
    assert_int_equal(arrived(&b, text, sizeof(text)), 5);
    assert_int_equal(conn_bytes_out(a.conn), 7);
    leave(&a);
    leave(&b);
    loop_free(loop);
}

TEST(test_outbox__the_seventeenth_leaves_at_once_behind_those_before_it)
{
    struct loop *loop = loop_new();
    struct side sides[17];
    char text[16];
    for (size_t i = 0; i < countof(sides); i++)
        enter(&sides[i], loop);
    for (size_t i = 0; i < 16; i++)
        say(&sides[i], "ping");
    assert_int_equal(arrived(&sides[0], text, sizeof(text)), -1);
    say(&sides[16], "ping");
    for (size_t i = 0; i < countof(sides); i++)
        assert_int_equal(arrived(&sides[i], text, sizeof(text)), 4);
    for (size_t i = 0; i < countof(sides); i++)
        leave(&sides[i]);
    loop_free(loop);
}

TEST(test_outbox__a_long_message_stays_behind_a_short_one)
{
    struct loop *loop = loop_new();
    struct side a;
    char big[LONG_MESSAGE + 1], text[2 * LONG_MESSAGE];
    enter(&a, loop);
    memset(big, 'x', LONG_MESSAGE);
    big[LONG_MESSAGE] = 0;
    say(&a, "short");
    say(&a, big);
    say(&a, "last");
    loop_turn(loop);
    assert_int_equal(arrived(&a, text, sizeof(text)), LONG_MESSAGE + 9);
    assert_memory_equal(text, "shortxxx", 8);
    assert_string_equal(text + 5 + LONG_MESSAGE, "last");
    leave(&a);
    loop_free(loop);
}

TEST(test_outbox__closing_unsays_and_shutting_says)
{
    struct loop *loop = loop_new();
    struct side a, b;
    char text[16];
    enter(&a, loop);
    enter(&b, loop);
    say(&a, "never");
    say(&b, "said");
    conn_close(a.conn);
    conn_shutdown_write(b.conn);
    assert_int_equal(arrived(&b, text, sizeof(text)), 4);
    assert_int_equal(arrived(&b, text, sizeof(text)), 0);
    loop_turn(loop);
    assert_int_equal(arrived(&a, text, sizeof(text)), 0);
    a.conn = NULL; /* released with the turn */
    leave(&a);
    leave(&b);
    loop_free(loop);
}

TEST(test_outbox__what_cannot_leave_comes_back_instead_of_an_error)
{
    struct loop *loop = loop_new();
    struct side a, b;
    enter(&a, loop);
    enter(&b, loop);
    b.closes_when_returned = true;
    say(&a, "hello");
    say(&b, "there");
    say(&b, "again"); /* but nothing comes after conn_close() */
    close(a.peer);
    close(b.peer);
    a.peer = b.peer = -1;
    loop_turn(loop);
    assert_str(buf_str(&a.returned), "hello");
    assert_str(buf_str(&b.returned), "there");
    assert_true(conn_is_broken(a.conn));
    assert_false(a.failed || b.failed);
    b.conn = NULL;
    leave(&a);
    leave(&b);
    loop_free(loop);
}

TEST(test_outbox__a_long_message_after_one_that_came_back_is_lost_like_it)
{
    struct loop *loop = loop_new();
    struct side a;
    char big[LONG_MESSAGE + 1];
    enter(&a, loop);
    memset(big, 'x', LONG_MESSAGE);
    big[LONG_MESSAGE] = 0;
    say(&a, "short");
    close(a.peer);
    a.peer = -1;
    say(&a, big);
    assert_str(buf_str(&a.returned), "short");
    loop_turn(loop);
    leave(&a);
    loop_free(loop);
}

TEST(test_outbox__a_full_socket_keeps_the_rest_in_order)
{
    struct loop *loop = loop_new();
    struct side a;
    char chunk[4000];
    size_t sent = 0, got = 0;
    enter(&a, loop);
    for (int behind = 0; behind<8; behind += conn_queued(a.conn)> 0) {
        memset(chunk, 'a' + (int)(sent / sizeof(chunk) % 26), sizeof(chunk));
        assert_true(conn_write(a.conn, &(struct iovec){chunk, sizeof(chunk)}, 1));
        sent += sizeof(chunk);
    }
    assert_true(sent > 12 * sizeof(chunk));
    while (got < sent) {
        char text[65536];
        ssize_t n = arrived(&a, text, sizeof(text));
        for (ssize_t i = 0; i < n; i++, got++)
            assert_int_equal(text[i], 'a' + (int)(got / sizeof(chunk) % 26));
        if (n <= 0)
            loop_turn(loop);
    }
    assert_int_equal(got, sent);
    leave(&a);
    loop_free(loop);
}
