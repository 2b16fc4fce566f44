/* SPDX-License-Identifier: Apache-2.0 */
/* The server over real loopback sockets, its client scripted byte by byte. */
#include "peer.h"

#include "base/clock.h"
#include "http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/un.h>

struct fixture {
    struct loop *loop;
    struct http_server *server;
    struct http_server_config config;
    struct conn_address at;
    struct http_request *held[128]; /* by "/hold" and "/stream" */
    unsigned n_held, n_seen, n_aborted, n_drained;
    unsigned last_uid;
    struct buf last_body;
    bool sets_no_abort;
};

static void on_abort(struct http_request *r)
{
    struct fixture *f = r->user;
    f->n_aborted++;
    assert_true(http_request_aborted(r));
    http_request_done(r);
}

/* "/hold" is answered by the test, "/stream" begins a stream, anything else is echoed. */
static void handle(void *arg, struct http_request *r)
{
    struct fixture *f = arg;

    f->n_seen++;
    f->last_uid = r->peer_uid;
    buf_reset(&f->last_body);
    buf_addstr(&f->last_body, r->body);
    if (str_eq(r->head->path, STR("/hold")) || str_eq(r->head->path, STR("/stream"))) {
        r->user = f;
        r->on_abort = f->sets_no_abort ? NULL : on_abort;
        f->held[f->n_held++] = r;
        if (str_eq(r->head->path, STR("/stream")))
            http_stream_begin(r, 200, "text/event-stream", STR_NONE, 100);
        return;
    }
    struct iovec parts[] = {
        {(char *)r->head->target.p, r->head->target.n}, {"|", 1}, {(char *)r->body.p, r->body.n}};
    http_reply_parts(r, 200, "text/plain", STR("X-Test: 1\r\n"), parts, 3);
}

static struct str format_refusal(struct http_request *r, int status, const char *reason)
{
    r->refusal_type = "text/plain";
    r->extra = STR("X-Worded: 1\r\n");
    return arena_printf(r->mem, "<%d %s>", status, reason);
}

static int gate(void *arg, struct http_request *r, struct str *ret_body)
{
    (void)arg;
    if (str_eq(r->head->path, STR("/worded")))
        r->format_refusal = format_refusal;
    if (!str_eq(r->head->path, STR("/forbidden")))
        return 0;
    *ret_body = arena_printf(r->mem, "{\"error\":\"no\"}");
    return 403;
}

static void begin(struct fixture *f)
{
    f->loop = loop_new();
    buf_init(&f->last_body, 64 * 1024 * 1024);
    f->server = http_server_new(f->loop, &f->config, gate, handle, f);
    http_server_listen(f->server, peer_listen(&f->at), NULL, false);
}

static void setup(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->config = http_server_defaults;
    begin(f);
}

static void teardown(struct fixture *f)
{
    http_server_free(f->server);
    buf_release(&f->last_body);
    loop_free(f->loop);
    clock_set_real();
}

#define HOST "Host: x\r\n"

TEST(test_server__keeps_a_connection_alive_and_copies_the_body)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "POST /a?b=1 HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
    peer_wait(&p, "/a?b=1|hello");
    assert_true(peer_has(&p, "HTTP/1.1 200 OK\r\n"));
    assert_true(peer_has(&p, "\r\nDate: "));
    assert_true(peer_has(&p, "Content-Type: text/plain\r\n"));
    assert_true(peer_has(&p, "Content-Length: 12\r\n"));
    assert_true(peer_has(&p, "X-Test: 1\r\n"));
    assert_false(peer_has(&p, "Connection"));
    buf_reset(&p.in);
    peer_say(&p, "GET /second HTTP/1.1\r\n" HOST "\r\n");
    peer_wait(&p, "/second|");
    assert_int_equal(http_server_open(f.server), 1);
    peer_close(&p);
    while (http_server_open(f.server))
        loop_turn(f.loop);
    teardown(&f);
}

TEST(test_server__answers_a_hundred_pipelined_requests_in_order)
{
    struct fixture f;
    struct peer p;
    struct buf all;
    struct str rest;
    char want[32];

    setup(&f);
    buf_init(&all, 1 << 20);
    for (int i = 0; i < 100; i++)
        buf_addf(&all, "POST /r%03d HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", i);
    peer_dial(&p, f.loop, &f.at);
    peer_say_n(&p, all.p, all.n);
    peer_wait(&p, "/r099|abc");
    assert_int_equal(peer_count(&p, "HTTP/1.1 200 OK"), 100);
    rest = buf_str(&p.in);
    for (int i = 0; i < 100; i++) {
        const char *at;
        snprintf(want, sizeof(want), "/r%03d|abc", i);
        at = memmem(rest.p, rest.n, want, strlen(want));
        assert_non_null(at);
        rest = str_n(at, rest.n - (size_t)(at - rest.p));
    }
    buf_release(&all);
    peer_close(&p);
    teardown(&f);
}

TEST(test_server__pipelined_requests_wait_for_a_held_answer)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /hold HTTP/1.1\r\n" HOST "\r\nGET /hold HTTP/1.1\r\n" HOST
                 "\r\nGET /c HTTP/1.1\r\n" HOST "\r\n");
    while (f.n_held < 1)
        loop_turn(f.loop);
    assert_int_equal(f.n_seen, 1);
    http_reply(f.held[0], 200, "text/plain", STR_NONE, STR("first"));
    assert_int_equal(f.n_seen, 1); /* the next one comes from the loop */
    while (f.n_held < 2)
        loop_turn(f.loop);
    http_reply(f.held[1], 200, "text/plain", STR_NONE, STR("second"));
    peer_wait(&p, "/c|");
    assert_true(peer_has(&p, "first"));
    assert_true(peer_has(&p, "second"));
    peer_close(&p);
    teardown(&f);
}

TEST(test_server__reading_rests_when_too_much_is_pipelined)
{
    struct fixture f;
    struct peer p;
    struct buf all;
    struct conn_address at;
    unsigned n = 20000;
    int small = 32 * 1024, fd = peer_listen(&at);

    setup(&f);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    http_server_listen(f.server, fd, NULL, false);
    buf_init(&all, 8 << 20);
    buf_addz(&all, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    for (unsigned i = 0; i < n; i++)
        buf_addz(&all, "GET /x HTTP/1.1\r\nHost: a-rather-long-host-name.example.org\r\n\r\n");
    peer_dial(&p, f.loop, &at);
    assert_int_equal(setsockopt(conn_fd(p.conn), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    peer_say_n(&p, all.p, all.n);
    /* Its bytes get stuck in the kernel: the sender's queue stops shrinking, while others are
     * served. */
    for (size_t before = 0; conn_queued(p.conn) != before || f.n_held < 1;) {
        struct peer other;
        before = conn_queued(p.conn);
        peer_dial(&other, f.loop, &f.at);
        peer_say(&other, "GET /o HTTP/1.1\r\n" HOST "\r\n");
        peer_wait(&other, "/o|");
        peer_close(&other);
    }
    assert_true(conn_queued(p.conn) > 0);
    f.n_seen = 0;
    http_reply(f.held[0], 200, "text/plain", STR_NONE, STR("first"));
    while (f.n_seen < n)
        loop_turn(f.loop);
    buf_release(&all);
    peer_close(&p);
    teardown(&f);
}

TEST(test_server__takes_chunked_bodies_and_split_heads)
{
    struct fixture f;
    struct peer p;
    const char *text = "POST /c HTTP/1.1\r\n" HOST
                       "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n"
                       "GET /next HTTP/1.1\r\n" HOST "\r\n";

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    for (const char *c = text; *c; c++) {
        peer_say_n(&p, c, 1);
        loop_turn(f.loop);
    }
    peer_wait(&p, "/next|");
    assert_true(peer_has(&p, "/c|abcdefg"));
    peer_close(&p);
    teardown(&f);
}

static void body_of(struct peer *p, const char *framing, size_t n, bool chunked)
{
    char head[256];
    char *body = malloc(n);
    memset(body, 'b', n);
    snprintf(head, sizeof(head), "POST /b HTTP/1.1\r\n" HOST "%s\r\n", framing);
    peer_say(p, head);
    if (chunked) {
        snprintf(head, sizeof(head), "%zx\r\n", n);
        peer_say(p, head);
    }
    peer_say_n(p, body, n);
    if (chunked)
        peer_say(p, "\r\n0\r\n\r\n");
    free(body);
}

TEST(test_server__body_limit_holds_at_and_one_past)
{
    for (int chunked = 0; chunked < 2; chunked++) {
        for (size_t past = 0; past < 2; past++) {
            struct fixture f = {.config = http_server_defaults};
            struct peer p;
            char framing[64];

            f.config.max_body = 1000;
            begin(&f);
            snprintf(framing, sizeof(framing),
                     chunked ? "Transfer-Encoding: chunked\r\n" : "Content-Length: %zu\r\n",
                     1000 + past);
            peer_dial(&p, f.loop, &f.at);
            body_of(&p, framing, 1000 + past, chunked);
            peer_wait(&p, past ? "HTTP/1.1 413 " : "HTTP/1.1 200 ");
            assert_int_equal(f.n_seen, past ? 0 : 1);
            if (!past)
                assert_int_equal(f.last_body.n, 1000);
            peer_close(&p);
            teardown(&f);
        }
    }
}

TEST(test_server__oversized_length_is_refused_before_the_body_comes)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5000000000\r\n\r\n");
    peer_wait_end(&p);
    assert_true(peer_has(&p, "HTTP/1.1 413 "));
    assert_true(peer_has(&p, "Connection: close\r\n"));
    assert_true(peer_has(&p, "{\"error\":\""));
    peer_close(&p);
    teardown(&f);
}

TEST(test_server__refusals_after_the_head_read_as_the_gate_wants)
{
    static const struct {
        const char *text, *body;
    } rows[] = {
        {"Content-Length: 5000000000\r\n\r\n", "<413 the body is larger"},
        {"Content-Length: 1\r\nContent-Encoding: gzip\r\n\r\nx", "<415 compressed bodies"},
        {"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "<400 "},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct fixture f;
        struct peer p;

        setup(&f);
        peer_dial(&p, f.loop, &f.at);
        peer_say(&p, "POST /worded HTTP/1.1\r\n" HOST);
        peer_say(&p, rows[i].text);
        peer_wait(&p, rows[i].body);
        assert_true(peer_has(&p, "Content-Type: text/plain\r\n"));
        assert_true(peer_has(&p, "X-Worded: 1\r\n"));
        peer_close(&p);
        teardown(&f);
    }
}

TEST(test_server__the_wording_of_one_request_is_not_the_next_ones)
{
    struct fixture f;
    struct peer p, q;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "POST /worded HTTP/1.1\r\n" HOST "Content-Length: 5000000000\r\n\r\n");
    peer_wait(&p, "<413 the body is larger");
    peer_close(&p);
    peer_dial(&q, f.loop, &f.at);
    peer_say(&q, "POST /other HTTP/1.1\r\n" HOST "Content-Length: 5000000000\r\n\r\n");
    peer_wait(&q, "{\"error\":\"the body is larger");
    assert_true(peer_has(&q, "Content-Type: application/json\r\n"));
    peer_close(&q);
    teardown(&f);
}

TEST(test_server__budget_of_all_bodies_answers_503_and_is_given_back)
{
    struct fixture f = {.config = http_server_defaults};
    struct peer p, q;

    f.config.body_budget = 1000;
    begin(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "POST /hold HTTP/1.1\r\n" HOST
                 "Content-Length: 990\r\n\r\nx"); /* promised bytes count */
    peer_dial(&q, f.loop, &f.at);
    peer_say(&q, "POST /q HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n0123456789");
    peer_wait(&q, "/q|0123456789"); /* exactly at the limit */
    buf_reset(&q.in);
    peer_say(&q, "POST /q HTTP/1.1\r\n" HOST "Content-Length: 11\r\n\r\n0123456789a");
    peer_wait(&q, "HTTP/1.1 503 ");
    assert_true(peer_has(&q, "Retry-After: 1\r\n"));
    peer_close(&p);
    while (http_server_open(f.server) > 1)
        loop_turn(f.loop);
    buf_reset(&q.in);
    peer_say(&q, "POST /q HTTP/1.1\r\n" HOST "Content-Length: 11\r\n\r\n0123456789b");
    peer_wait(&q, "/q|0123456789b");
    peer_close(&q);
    teardown(&f);
}

TEST(test_server__gate_refuses_and_a_short_unread_body_is_not_a_request)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "POST /forbidden HTTP/1.1\r\n" HOST
                 "Content-Length: 33\r\n\r\nGET /smuggled HTTP/1.1\r\n" HOST);
    peer_say(&p, "GET /after HTTP/1.1\r\n" HOST "\r\n");
    peer_wait(&p, "/after|");
    assert_true(peer_has(&p, "HTTP/1.1 403 Forbidden\r\n"));
    assert_true(peer_has(&p, "{\"error\":\"no\"}"));
    assert_int_equal(f.n_seen, 1);
    peer_close(&p);
    teardown(&f);
}

TEST(test_server__unread_body_is_discarded_up_to_64_kib_and_not_past)
{
    for (size_t past = 0; past < 2; past++) {
        struct fixture f;
        struct peer p;
        char head[128];
        char *body = calloc(1, 64 * 1024 + 1);

        setup(&f);
        peer_dial(&p, f.loop, &f.at);
        snprintf(head, sizeof(head),
                 "POST /forbidden HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n",
                 64 * 1024 + past);
        peer_say(&p, head);
        peer_say_n(&p, body, 64 * 1024 + past);
        peer_say(&p, "GET /after HTTP/1.1\r\n" HOST "\r\n");
        if (past)
            peer_wait_end(&p);
        else
            peer_wait(&p, "/after|");
        assert_true(peer_has(&p, "HTTP/1.1 403 "));
        assert_int_equal(peer_has(&p, "Connection: close"), past);
        assert_int_equal(f.n_seen, 1 - past);
        free(body);
        peer_close(&p);
        teardown(&f);
    }
}

TEST(test_server__faults_of_the_codec_are_answered_and_closed)
{
    static const struct {
        const char *text, *status;
    } rows[] = {
        {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\nHost: x\n\n", "HTTP/1.1 400 "},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: "
         "chunked\r\n\r\n0\r\n\r\nGET /probe HTTP/1.1\r\n" HOST "\r\n",
         "HTTP/1.1 400 "},
        {"POST / HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
         "HTTP/1.1 415 "},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400 "},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct fixture f;
        struct peer p;

        setup(&f);
        peer_dial(&p, f.loop, &f.at);
        peer_say(&p, rows[i].text);
        peer_wait(&p, rows[i].status);
        peer_wait(&p, "{\"error\":\"");
        assert_int_equal(f.n_seen, 0);
        assert_int_equal(peer_count(&p, "HTTP/1.1 4"), 1);
        if (!peer_has(&p, "415"))
            peer_wait_end(&p);
        peer_close(&p);
        teardown(&f);
    }
}

TEST(test_server__slow_head_is_answered_408_at_its_deadline)
{
    struct fixture f;
    struct peer p;

    clock_set_fake(1000000, 1000000);
    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET / HT");
    while (http_server_open(f.server) < 1)
        loop_turn(f.loop);
    loop_turn(f.loop);
    clock_advance_fake(9999);
    peer_say(&p, "TP/1.1\r\nHo"); /* progress does not help */
    loop_turn(f.loop);
    assert_int_equal(http_server_open(f.server), 1);
    assert_int_equal(p.in.n, 0);
    clock_advance_fake(1);
    peer_wait_end(&p);
    assert_true(peer_has(&p, "HTTP/1.1 408 "));
    peer_close(&p);
    teardown(&f);
}

TEST(test_server__idle_connection_is_closed_silently)
{
    struct fixture f;
    struct peer p;

    clock_set_fake(1000000, 1000000);
    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET / HTTP/1.1\r\n" HOST "\r\n");
    peer_wait(&p, "/|");
    buf_reset(&p.in);
    clock_advance_fake(60000);
    peer_wait_end(&p);
    assert_int_equal(p.in.n, 0);
    peer_close(&p);
    teardown(&f);
}

TEST(test_server__stalled_body_is_cut_after_its_grace)
{
    struct fixture f;
    struct peer p;

    clock_set_fake(1000000, 1000000);
    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "POST / HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\nsome");
    while (http_server_open(f.server) < 1)
        loop_turn(f.loop);
    loop_turn(f.loop);
    for (int s = 1; !p.eof; s++) {
        clock_advance_fake(1000);
        for (int i = 0; i < 3 && !p.eof; i++)
            loop_turn(f.loop);
        assert_true(s <= 7);
        if (s < 4)
            assert_false(p.eof);
    }
    assert_true(peer_has(&p, "HTTP/1.1 408 "));
    assert_int_equal(f.n_seen, 0);
    peer_close(&p);
    teardown(&f);
}

TEST(test_server__expect_continue_is_answered_only_when_the_body_is_wanted)
{
    struct fixture f;
    struct peer p, q;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "POST /e HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    peer_wait(&p, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_int_equal(f.n_seen, 0);
    peer_say(&p, "hi");
    peer_wait(&p, "/e|hi");
    peer_dial(&q, f.loop, &f.at);
    peer_say(&q, "POST /forbidden HTTP/1.1\r\n" HOST
                 "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    peer_wait_end(&q);
    assert_true(peer_has(&q, "HTTP/1.1 403 "));
    assert_false(peer_has(&q, "100 Continue"));
    peer_close(&p);
    peer_close(&q);
    teardown(&f);
}

TEST(test_server__head_gets_the_length_and_no_body)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "HEAD /abc HTTP/1.1\r\n" HOST "\r\nGET /next HTTP/1.1\r\n" HOST "\r\n");
    peer_wait(&p, "/next|");
    assert_true(peer_has(&p, "Content-Length: 5\r\n"));
    assert_false(peer_has(&p, "/abc|"));
    peer_close(&p);
    teardown(&f);
}

TEST(test_server__client_leaving_a_held_request_is_told_at_once)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    while (f.n_held < 1)
        loop_turn(f.loop);
    peer_close(&p);
    while (!f.n_aborted)
        loop_turn(f.loop);
    assert_int_equal(f.n_aborted, 1);
    assert_int_equal(http_server_open(f.server), 0);
    teardown(&f);
}

TEST(test_server__answer_after_the_client_left_is_dropped)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    f.sets_no_abort = true;
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    while (f.n_held < 1)
        loop_turn(f.loop);
    peer_close(&p);
    while (http_server_open(f.server))
        loop_turn(f.loop);
    assert_true(http_request_aborted(f.held[0]));
    http_reply(f.held[0], 200, "text/plain", STR_NONE, STR("too late"));
    teardown(&f);
}

TEST(test_server_stream__is_chunked_and_the_connection_goes_on)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    peer_wait(&p, "Transfer-Encoding: chunked\r\n");
    assert_true(http_stream_write(f.held[0], STR("data: 1\n\n")));
    assert_true(http_stream_write(f.held[0], STR("")));
    peer_wait(&p, "9\r\ndata: 1\n\n\r\n");
    http_stream_end(f.held[0]);
    peer_wait(&p, "\r\n0\r\n\r\n");
    peer_say(&p, "GET /next HTTP/1.1\r\n" HOST "\r\n");
    peer_wait(&p, "/next|");
    peer_close(&p);
    teardown(&f);
}

TEST(test_server_stream__old_clients_get_it_until_close)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /stream HTTP/1.0\r\n" HOST "\r\n");
    peer_wait(&p, "Connection: close\r\n\r\n");
    assert_true(http_stream_write(f.held[0], STR("raw")));
    http_stream_end(f.held[0]);
    peer_wait_end(&p);
    assert_false(peer_has(&p, "chunked"));
    assert_memory_equal(p.in.p + p.in.n - 7, "\r\n\r\nraw", 7);
    peer_close(&p);
    teardown(&f);
}

TEST(test_server_stream__full_queue_says_so_and_stalled_reader_is_cut)
{
    struct fixture f;
    struct peer p;
    char *big = calloc(1, 1 << 20);
    int writes = 0;

    clock_set_fake(1000000, 1000000);
    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    peer_wait(&p, "chunked");
    conn_pause(p.conn, true);
    while (http_stream_write(f.held[0], str_n(big, 1 << 20)))
        assert_true(++writes < 100);
    assert_true(http_stream_queued(f.held[0]) > 0);
    assert_false(http_stream_write(f.held[0], str_n(big, 100)));
    clock_advance_fake(30000);
    while (!f.n_aborted) {
        loop_turn(f.loop);
        clock_advance_fake(30000); /* the kernel may have taken some more meanwhile */
    }
    free(big);
    peer_close(&p);
    teardown(&f);
}

TEST(test_server_stream__a_patient_one_stands_still_for_as_many_deadlines)
{
    struct fixture f;
    struct peer p;
    char *big = calloc(1, 1 << 20);
    int writes = 0, deadlines = 0;

    clock_set_fake(1000000, 1000000);
    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    peer_wait(&p, "chunked");
    http_stream_patient(f.held[0], 4);
    conn_pause(p.conn, true);
    while (http_stream_write(f.held[0], str_n(big, 1 << 20)))
        assert_true(++writes < 100);
    while (!f.n_aborted) {
        loop_turn(f.loop);
        clock_advance_fake(30000);
        deadlines++;
    }
    assert_true(deadlines >= 4);
    free(big);
    peer_close(&p);
    teardown(&f);
}

TEST(test_server_stream__abort_closes_without_an_end)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    peer_wait(&p, "chunked");
    http_stream_abort(f.held[0]);
    peer_wait_end(&p);
    assert_false(peer_has(&p, "0\r\n\r\n"));
    assert_int_equal(f.n_aborted, 0);
    peer_close(&p);
    teardown(&f);
}

TEST(test_server__large_answer_reaches_a_slow_reader_whole)
{
    struct fixture f;
    struct peer p;
    size_t n = 9 << 20;
    char *big = malloc(n);

    memset(big, 'z', n);
    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /hold HTTP/1.1\r\n" HOST "\r\nGET /next HTTP/1.1\r\n" HOST "\r\n");
    while (f.n_held < 1)
        loop_turn(f.loop);
    http_reply(f.held[0], 200, "text/plain", STR_NONE, str_n(big, n));
    assert_int_equal(f.n_seen, 1);
    peer_wait(&p, "/next|");
    assert_true(p.in.n > n);
    free(big);
    peer_close(&p);
    teardown(&f);
}

struct noted_receipt {
    struct http_receipt pub;
    unsigned n_asked, n_sent, n_lost;
};
static struct noted_receipt noted;

static void on_receipt(struct http_receipt *receipt, bool is_sent)
{
    assert_ptr_equal(receipt, &noted.pub);
    noted.n_sent += is_sent;
    noted.n_lost += !is_sent;
}

static struct http_receipt *on_unsent(struct http_request *r)
{
    assert_non_null(r->mem); /* it is still there */
    noted.n_asked++;
    return &noted.pub;
}

TEST(test_server__a_receipt_tells_whether_a_queued_answer_was_sent)
{
    size_t n = 32 << 20; /* more than any socket buffer */
    char *big = calloc(1, n);

    for (int leaves = 0; leaves < 2; leaves++) {
        struct fixture f;
        struct peer p;
        setup(&f);
        noted = (struct noted_receipt){.pub.fn = on_receipt};
        peer_dial(&p, f.loop, &f.at);
        peer_say(&p, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
        while (f.n_held < 1)
            loop_turn(f.loop);
        f.held[0]->on_unsent = on_unsent;
        http_reply(f.held[0], 200, "text/plain", STR_NONE, str_n(big, n));
        assert_int_equal(noted.n_asked, 1);
        assert_int_equal(noted.n_sent + noted.n_lost, 0);
        if (leaves)
            peer_close(&p);
        while (noted.n_sent + noted.n_lost == 0)
            loop_turn(f.loop);
        assert_int_equal(noted.n_lost, leaves);
        if (!leaves) {
            peer_say(&p, "GET /next HTTP/1.1\r\n" HOST "\r\n");
            peer_wait(&p, "/next|");
            peer_close(&p);
        }
        teardown(&f);
        assert_int_equal(noted.n_sent + noted.n_lost, 1);
    }
    free(big);
}

TEST(test_server__no_receipt_is_asked_for_an_answer_that_was_sent_at_once)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    noted = (struct noted_receipt){.pub.fn = on_receipt};
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    while (f.n_held < 1)
        loop_turn(f.loop);
    f.held[0]->on_unsent = on_unsent;
    http_reply(f.held[0], 200, "text/plain", STR_NONE, STR("small"));
    peer_wait(&p, "small");
    assert_int_equal(noted.n_asked, 0);
    peer_close(&p);
    teardown(&f);
}

TEST(test_server_free__gives_the_receipt_of_what_is_still_queued)
{
    struct fixture f;
    struct peer p;
    size_t n = 32 << 20;
    char *big = calloc(1, n);

    setup(&f);
    noted = (struct noted_receipt){.pub.fn = on_receipt};
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    while (f.n_held < 1)
        loop_turn(f.loop);
    f.held[0]->on_unsent = on_unsent;
    http_reply(f.held[0], 200, "text/plain", STR_NONE, str_n(big, n));
    free(big);
    peer_close(&p);
    teardown(&f);
    assert_int_equal(noted.n_lost, 1);
}

TEST(test_server_drain__closes_idle_now_and_others_after_their_answer)
{
    struct fixture f;
    struct peer idle, busy;

    setup(&f);
    peer_dial(&idle, f.loop, &f.at);
    peer_say(&idle, "GET / HTTP/1.1\r\n" HOST "\r\n");
    peer_wait(&idle, "/|");
    peer_dial(&busy, f.loop, &f.at);
    peer_say(&busy, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    while (f.n_held < 1)
        loop_turn(f.loop);
    http_server_stop_listening(f.server);
    http_server_drain(f.server);
    peer_wait_end(&idle);
    assert_int_equal(http_server_open(f.server), 1);
    http_reply(f.held[0], 200, "text/plain", STR_NONE, STR("last"));
    peer_wait_end(&busy);
    assert_true(peer_has(&busy, "Connection: close\r\n"));
    assert_true(peer_has(&busy, "last"));
    assert_int_equal(http_server_open(f.server), 0);
    peer_close(&idle);
    peer_close(&busy);
    teardown(&f);
}

TEST(test_server_drain__serves_a_connection_that_was_just_accepted)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    while (http_server_open(f.server) < 1)
        loop_turn(f.loop);
    http_server_stop_listening(f.server);
    http_server_drain(f.server);
    peer_say(&p, "GET / HTTP/1.1\r\n" HOST "\r\n");
    peer_wait_end(&p);
    assert_true(peer_has(&p, "/|") && peer_has(&p, "Connection: close\r\n"));
    peer_close(&p);
    teardown(&f);
}

TEST(test_server_drain__closes_a_silent_connection_when_called_again)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    while (http_server_open(f.server) < 1)
        loop_turn(f.loop);
    http_server_drain(f.server);
    assert_int_equal(http_server_open(f.server), 1);
    http_server_drain(f.server);
    peer_wait_end(&p);
    assert_int_equal(http_server_open(f.server), 0);
    peer_close(&p);
    teardown(&f);
}

TEST(test_server_stop_listening__accepts_what_the_kernel_has_connected)
{
    struct fixture f;
    struct peer p;
    int fd;

    setup(&f);
    fd = socket(f.at.sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&f.at.sa, f.at.len), 0);
    assert_int_equal(http_server_open(f.server), 0);
    http_server_stop_listening(f.server);
    assert_int_equal(http_server_open(f.server), 1);
    peer_dial(&p, f.loop, &f.at);
    peer_wait_end(&p); /* refused */
    assert_int_equal(http_server_open(f.server), 1);
    peer_close(&p);
    close(fd);
    teardown(&f);
}

TEST(test_server_free__tells_handlers_that_still_owe)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    while (f.n_held < 1)
        loop_turn(f.loop);
    http_server_free(f.server);
    assert_int_equal(f.n_aborted, 1);
    peer_close(&p);
    buf_release(&f.last_body);
    loop_free(f.loop);
}

TEST(test_server__above_max_connections_clients_wait_their_turn)
{
    struct fixture f = {.config = http_server_defaults};
    struct peer p, q;

    f.config.max_connections = 1;
    begin(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    while (f.n_held < 1)
        loop_turn(f.loop);
    peer_dial(&q, f.loop, &f.at);
    peer_say(&q, "GET /q HTTP/1.1\r\n" HOST "\r\n");
    while (!q.opened)
        loop_turn(f.loop);
    assert_int_equal(http_server_open(f.server), 1);
    assert_int_equal(f.n_seen, 1);
    http_reply(f.held[0], 200, "text/plain", STR_NONE, STR("done"));
    peer_wait(&p, "done");
    assert_int_equal(f.n_seen, 1);
    peer_close(&p);
    peer_wait(&q, "/q|");
    peer_close(&q);
    teardown(&f);
}

TEST(test_server__running_out_of_descriptors_only_delays)
{
    struct fixture f;
    struct peer p;
    struct rlimit before, tight;
    int probe;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /late HTTP/1.1\r\n" HOST "\r\n");
    probe = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(probe);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    tight = before;
    tight.rlim_cur = (rlim_t)probe; /* the next descriptor would be this one */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    while (!p.opened)
        loop_turn(f.loop);
    loop_turn(f.loop); /* accept fails, and rests */
    assert_int_equal(http_server_open(f.server), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    peer_wait(&p, "/late|");
    peer_close(&p);
    teardown(&f);
}

TEST(test_server__unix_socket_tells_who_is_there)
{
    struct fixture f;
    struct peer p;
    struct conn_address at;
    struct error err;
    char path[64], text[80];
    int fd = -1;

    setup(&f);
    snprintf(path, sizeof(path), "/tmp/holdfast-test-%d.sock", (int)getpid());
    snprintf(text, sizeof(text), "unix:%s", path);
    unlink(path);
    assert_true(address_parse(str_of(text), &at, &err));
    assert_true(address_listen(&at, &fd, &err));
    http_server_listen(f.server, fd, NULL, true);
    peer_dial(&p, f.loop, &at);
    peer_say(&p, "GET /u HTTP/1.1\r\n" HOST "\r\n");
    peer_wait(&p, "/u|");
    assert_int_equal(f.last_uid, getuid());
    peer_close(&p);
    unlink(path);
    teardown(&f);
}

TEST(test_server__a_slim_stream_goes_on_without_its_request)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "POST /stream HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc");
    peer_wait(&p, "text/event-stream");
    http_stream_slim(f.held[0]);
    assert_null(f.held[0]->mem);
    assert_null(f.held[0]->head);
    assert_true(http_stream_write(f.held[0], STR("still here")));
    peer_wait(&p, "still here");
    http_stream_end(f.held[0]);
    peer_wait(&p, "\r\n0\r\n\r\n");
    peer_say(&p, "GET /next HTTP/1.1\r\n" HOST "\r\n");
    peer_wait(&p, "/next|");
    peer_close(&p);
    teardown(&f);
}

TEST(test_server__a_stream_that_ends_while_draining_closes_its_connection)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    peer_wait(&p, "text/event-stream");
    http_server_drain(f.server);
    http_stream_end(f.held[0]);
    peer_wait_end(&p);
    assert_true(peer_has(&p, "0\r\n\r\n"));
    peer_close(&p);
    teardown(&f);
}

static void on_drained(struct http_request *r)
{
    struct fixture *f = r->user;
    f->n_drained++;
    assert_int_equal(http_stream_queued(r), 0);
}

TEST(test_server__a_stream_is_told_when_its_queue_is_empty_again)
{
    struct fixture f;
    struct peer p;
    struct buf big;

    setup(&f);
    buf_init(&big, 64 << 20);
    for (int i = 0; i < (16 << 20) / 16; i++)
        buf_addz(&big, "0123456789abcdef");
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    peer_wait(&p, "text/event-stream");
    f.held[0]->on_drained = on_drained;
    assert_true(http_stream_write(f.held[0], buf_str(&big)));
    assert_true(http_stream_queued(f.held[0]) > 0);
    while (!f.n_drained)
        loop_turn(f.loop);
    assert_int_equal(f.n_drained, 1);
    http_stream_end(f.held[0]);
    buf_release(&big);
    peer_close(&p);
    teardown(&f);
}

TEST(test_server_detach__the_connection_lives_on_without_the_server)
{
    struct fixture f;
    struct peer p;
    char byte;
    int fd;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    while (!f.n_held)
        loop_turn(f.loop);
    fd = http_request_detach(f.held[0]);
    assert_true(fd >= 0);
    assert_int_equal(f.n_aborted, 0);
    assert_int_equal(http_server_open(f.server), 0);
    assert_int_equal(write(fd, "101", 3), 3);
    peer_wait(&p, "101");
    peer_say(&p, "x");
    while (read(fd, &byte, 1) < 0 && errno == EAGAIN)
        ;
    assert_int_equal(byte, 'x');
    close(fd);
    peer_close(&p);
    teardown(&f);
}

static struct buf upgraded; /* the bytes that came */

static void on_bytes(struct http_request *r, struct str bytes)
{
    assert_false(http_request_aborted(r));
    buf_addstr(&upgraded, bytes);
    if (bytes.p[bytes.n - 1] == '!') {
        assert_true(http_stream_write(r, STR("bye")));
        http_stream_end(r);
    }
}

static void await_upgraded(struct fixture *f, const char *want)
{
    while (!str_eq(buf_str(&upgraded), str_of(want)))
        loop_turn(f->loop);
}

TEST(test_server_upgrade__bytes_go_both_ways_also_those_that_came_early)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    buf_init(&upgraded, 1 << 20);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /hold HTTP/1.1\r\n" HOST "\r\nearly");
    while (!f.n_held)
        loop_turn(f.loop);
    f.held[0]->on_bytes = on_bytes;
    assert_true(http_upgrade(f.held[0], STR("Upgrade: x\r\nConnection: Upgrade\r\n"), 1000));
    http_stream_slim(f.held[0]);
    await_upgraded(&f, "early");
    peer_wait(&p, "\r\n\r\n");
    assert_true(peer_has(&p, "HTTP/1.1 101 Switching Protocols\r\n"));
    assert_true(peer_has(&p, "\r\nUpgrade: x\r\nConnection: Upgrade\r\n"));
    assert_false(peer_has(&p, "chunked"));
    assert_false(peer_has(&p, "Connection: close"));
    assert_true(http_stream_write(f.held[0], STR("hello")));
    peer_wait(&p, "\r\n\r\nhello");
    peer_say(&p, " late");
    await_upgraded(&f, "early late");
    peer_say(&p, "!");
    peer_wait_end(&p);
    assert_true(peer_has(&p, "hellobye"));
    assert_int_equal(f.n_aborted, 0);
    peer_close(&p);
    buf_release(&upgraded);
    teardown(&f);
}

TEST(test_server_upgrade__a_client_that_leaves_aborts_it)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    buf_init(&upgraded, 1 << 20);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    while (!f.n_held)
        loop_turn(f.loop);
    f.held[0]->on_bytes = on_bytes;
    assert_true(http_upgrade(f.held[0], STR("Upgrade: x\r\n"), 1000));
    peer_wait(&p, "\r\n\r\n");
    peer_close(&p);
    while (!f.n_aborted)
        loop_turn(f.loop);
    buf_release(&upgraded);
    teardown(&f);
}

TEST(test_server_upgrade__old_clients_cannot)
{
    struct fixture f;
    struct peer p;

    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "GET /hold HTTP/1.0\r\n" HOST "\r\n");
    while (!f.n_held)
        loop_turn(f.loop);
    f.held[0]->on_bytes = on_bytes;
    assert_false(http_upgrade(f.held[0], STR("Upgrade: x\r\n"), 1000));
    http_reply(f.held[0], 200, "text/plain", STR_NONE, STR("no"));
    peer_wait(&p, "\r\n\r\nno");
    peer_close(&p);
    teardown(&f);
}
