/* SPDX-License-Identifier: Apache-2.0 */
/* The client against scripted servers: what it sends, what it takes, what it refuses to reuse. */
#include "peer.h"

#include "base/clock.h"
#include "http/client.h"

#include <errno.h>
#include <netinet/in.h>

#define MAX_PEERS 8

struct fixture {
    struct loop *loop;
    struct http_pool *pool;
    struct http_pool_config config;
    int listener;
    struct loop_fd *watch;
    struct conn_address at;
    struct peer peers[MAX_PEERS]; /* in order of accept */
    unsigned n_peers;
};

struct outcome {
    struct fixture *f;
    bool wants_stream, has_head, is_done, sent;
    bool stops_stream, cancels_in_head, chains;
    int status;
    struct error err; /* code ERR_NONE on success */
    struct buf body, streamed;
    struct http_call *call;
    struct outcome *next;
};

static void on_acceptable(void *arg, int events)
{
    struct fixture *f = arg;
    int fd = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    (void)events;
    if (fd < 0)
        return;
    assert_true(f->n_peers < MAX_PEERS);
    peer_adopt(&f->peers[f->n_peers++], f->loop, fd, NULL);
}

static void begin(struct fixture *f)
{
    struct sockaddr_in sa;

    f->loop = loop_new();
    f->listener = peer_listen(&f->at);
    f->watch = loop_fd_new(f->loop, f->listener, on_acceptable, f);
    loop_fd_want(f->watch, LOOP_READ);
    memcpy(&sa, &f->at.sa, sizeof(sa));
    f->config.host = STR("127.0.0.1");
    f->config.port = ntohs(sa.sin_port);
    f->pool = http_pool_new(f->loop, &f->config);
}

static void setup(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->config = (struct http_pool_config){
        .max_connections = 4, .connect_ms = 5000, .idle_ms = 30000, .max_body = 1000};
    begin(f);
}

static void teardown(struct fixture *f)
{
    http_pool_free(f->pool);
    for (unsigned i = 0; i < f->n_peers; i++)
        peer_close(&f->peers[i]);
    loop_fd_free(f->watch);
    close(f->listener);
    loop_free(f->loop);
    clock_set_real();
}

static void start(struct outcome *o);

static bool on_head(void *arg, const struct http_head *head)
{
    struct outcome *o = arg;
    o->has_head = true;
    o->status = head->status;
    if (o->cancels_in_head)
        http_call_cancel(o->call);
    return o->wants_stream;
}
static bool on_body(void *arg, struct str bytes)
{
    struct outcome *o = arg;
    buf_addstr(&o->streamed, bytes);
    return !o->stops_stream;
}
static void on_done(void *arg, struct str body, const struct error *err, bool sent)
{
    struct outcome *o = arg;
    assert_false(o->is_done);
    o->is_done = true;
    o->sent = sent;
    if (err)
        o->err = *err;
    else
        buf_addstr(&o->body, body);
    if (o->chains)
        start(o->next);
}
static const struct http_call_events call_events = {
    .on_head = on_head, .on_body = on_body, .on_done = on_done};

static void outcome_init(struct outcome *o, struct fixture *f)
{
    memset(o, 0, sizeof(*o));
    o->f = f;
    buf_init(&o->body, 1 << 24);
    buf_init(&o->streamed, 1 << 24);
}
static void outcome_release(struct outcome *o)
{
    buf_release(&o->body);
    buf_release(&o->streamed);
}
static void start_with(struct outcome *o, int64_t deadline_ms)
{
    struct iovec body[] = {{"{\"a\":", 5}, {"1}", 2}};
    o->call = http_call_start(o->f->pool, "POST", STR("/mcp"), STR("X-A: b\r\n"), body, 2,
                              deadline_ms, &call_events, o);
    assert_false(o->is_done);
}
static void start(struct outcome *o)
{
    start_with(o, 0);
}
static void wait_done(struct outcome *o)
{
    while (!o->is_done)
        loop_turn(o->f->loop);
}
static struct peer *peer_at(struct fixture *f, unsigned i, const char *text)
{
    while (f->n_peers <= i)
        loop_turn(f->loop);
    peer_wait(&f->peers[i], text);
    return &f->peers[i];
}

#define OK_5 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

TEST(test_client__sends_one_whole_request_and_reuses_the_connection)
{
    struct fixture f;
    struct outcome a, b;
    struct peer *p;
    char want[256];

    setup(&f);
    outcome_init(&a, &f);
    outcome_init(&b, &f);
    start(&a);
    p = peer_at(&f, 0, "{\"a\":1}");
    snprintf(
        want, sizeof(want),
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nX-A: b\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
        f.config.port);
    assert_str(buf_str(&p->in), want);
    peer_say(p, OK_5);
    wait_done(&a);
    assert_int_equal(a.err.code, ERR_NONE);
    assert_int_equal(a.status, 200);
    assert_str(buf_str(&a.body), "hello");
    buf_reset(&p->in);
    start(&b);
    peer_at(&f, 0, "{\"a\":1}");
    assert_str(buf_str(&p->in), want);
    peer_say(p, "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n");
    wait_done(&b);
    assert_int_equal(b.status, 404);
    assert_str(buf_str(&b.body), "no");
    assert_int_equal(f.n_peers, 1);
    outcome_release(&a);
    outcome_release(&b);
    teardown(&f);
}

TEST(test_client__a_call_started_in_on_done_uses_the_same_connection)
{
    struct fixture f;
    struct outcome a, b;

    setup(&f);
    outcome_init(&a, &f);
    outcome_init(&b, &f);
    a.chains = true;
    a.next = &b;
    start(&a);
    peer_say(peer_at(&f, 0, "{\"a\":1}"), OK_5);
    wait_done(&a);
    buf_reset(&f.peers[0].in);
    peer_say(peer_at(&f, 0, "{\"a\":1}"), OK_5);
    wait_done(&b);
    assert_str(buf_str(&b.body), "hello");
    assert_int_equal(f.n_peers, 1);
    outcome_release(&a);
    outcome_release(&b);
    teardown(&f);
}

TEST(test_client__reuses_the_connection_used_last)
{
    struct fixture f;
    struct outcome a, b, c;

    setup(&f);
    outcome_init(&a, &f);
    outcome_init(&b, &f);
    outcome_init(&c, &f);
    start(&a);
    start(&b);
    peer_at(&f, 0, "{\"a\":1}");
    peer_at(&f, 1, "{\"a\":1}");
    peer_say(&f.peers[1], OK_5);
    while (!a.is_done && !b.is_done)
        loop_turn(f.loop);
    peer_say(&f.peers[0], OK_5);
    wait_done(&a);
    wait_done(&b);
    buf_reset(&f.peers[0].in);
    buf_reset(&f.peers[1].in);
    start(&c);
    peer_at(&f, 0, "{\"a\":1}");
    assert_int_equal(f.peers[1].in.n, 0);
    peer_say(&f.peers[0], OK_5);
    wait_done(&c);
    outcome_release(&a);
    outcome_release(&b);
    outcome_release(&c);
    teardown(&f);
}

TEST(test_client__calls_past_max_connections_wait_and_are_served)
{
    struct fixture f = {
        .config = {.max_connections = 1, .connect_ms = 5000, .idle_ms = 30000, .max_body = 1000}};
    struct outcome o[4];

    begin(&f);
    for (int i = 0; i < 4; i++) {
        outcome_init(&o[i], &f);
        start(&o[i]);
    }
    for (int i = 0; i < 4; i++) {
        /* The third answer ends the connection: the fourth call gets a new one. */
        struct peer *p = peer_at(&f, i < 3 ? 0 : 1, "{\"a\":1}");
        assert_int_equal(peer_count(p, "POST"), 1);
        buf_reset(&p->in);
        peer_say(p, i == 2
                        ? "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
                        : OK_5);
        wait_done(&o[i]);
        assert_int_equal(o[i].err.code, ERR_NONE);
    }
    assert_int_equal(f.n_peers, 2);
    for (int i = 0; i < 4; i++)
        outcome_release(&o[i]);
    teardown(&f);
}

TEST(test_client__responses_in_single_bytes_come_out_whole)
{
    static const char *const rows[] = {
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 "
        "OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x\r\nllo\r\n0\r\nT: "
        "r\r\n\r\n",
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct fixture f;
        struct outcome a;

        setup(&f);
        outcome_init(&a, &f);
        start(&a);
        peer_at(&f, 0, "{\"a\":1}");
        for (const char *c = rows[i]; *c; c++) {
            assert_false(a.is_done);
            peer_say_n(&f.peers[0], c, 1);
            loop_turn(f.loop);
        }
        wait_done(&a);
        assert_int_equal(a.err.code, ERR_NONE);
        assert_str(buf_str(&a.body), "hello");
        outcome_release(&a);
        teardown(&f);
    }
}

TEST(test_client__odd_responses_fail_and_are_never_reused)
{
    static const struct {
        const char *text;
        enum err_code code;
        bool ends; /* the server closes after it */
    } rows[] = {
        {OK_5 "x", ERR_UPSTREAM, false},
        {OK_5 OK_5, ERR_UPSTREAM, false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", ERR_UNREACHABLE, true},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", ERR_UNREACHABLE,
         true},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx", ERR_UPSTREAM, false},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", ERR_UPSTREAM, false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: "
         "chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
         ERR_UPSTREAM, false},
        {"HTTP/1.1 204 No Content\r\n\r\nbody", ERR_UPSTREAM, false},
        {"HTTP/1.1 302 Found\r\nLocation: http://evil/\r\nContent-Length: 0\r\n\r\n", ERR_UPSTREAM,
         false},
        {"HTTP/1.1 101 Switching Protocols\r\n\r\n", ERR_UPSTREAM, false},
        {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
         ERR_UPSTREAM, false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", ERR_TOO_LARGE, false},
        {"garbage\r\n\r\n", ERR_UPSTREAM, false},
        {"HTTP/1.1 200 OK\r\nConte", ERR_UNREACHABLE, true},
        {"", ERR_UNREACHABLE, true},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct fixture f;
        struct outcome a, b;
        struct peer *p;

        setup(&f);
        outcome_init(&a, &f);
        outcome_init(&b, &f);
        start(&a);
        p = peer_at(&f, 0, "{\"a\":1}");
        peer_say(p, rows[i].text);
        if (rows[i].ends)
            conn_shutdown_write(p->conn);
        wait_done(&a);
        assert_int_equal(a.err.code, rows[i].code);
        assert_true(a.sent);
        start(&b);
        peer_say(peer_at(&f, 1, "{\"a\":1}"), OK_5);
        wait_done(&b);
        assert_str(buf_str(&b.body), "hello");
        outcome_release(&a);
        outcome_release(&b);
        teardown(&f);
    }
}

TEST(test_client__interim_heads_are_skipped_up_to_a_limit)
{
    for (int past = 0; past < 2; past++) {
        struct fixture f;
        struct outcome a;
        struct peer *p;

        setup(&f);
        outcome_init(&a, &f);
        start(&a);
        p = peer_at(&f, 0, "{\"a\":1}");
        for (int i = 0; i < 8 + past; i++)
            peer_say(p, "HTTP/1.1 100 Continue\r\n\r\n");
        peer_say(p, OK_5);
        wait_done(&a);
        assert_int_equal(a.err.code, past ? ERR_UPSTREAM : ERR_NONE);
        outcome_release(&a);
        teardown(&f);
    }
}

TEST(test_client__gathered_body_limit_holds_at_and_one_past)
{
    for (int chunked = 0; chunked < 2; chunked++) {
        for (int past = 0; past < 2; past++) {
            struct fixture f;
            struct outcome a;
            struct peer *p;
            char head[128], body[1001];

            setup(&f);
            outcome_init(&a, &f);
            memset(body, 'b', sizeof(body));
            start(&a);
            p = peer_at(&f, 0, "{\"a\":1}");
            snprintf(head, sizeof(head),
                     chunked ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n"
                             : "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n",
                     1000 + past);
            peer_say(p, head);
            peer_say_n(p, body, 500);
            loop_turn(f.loop);
            loop_turn(f.loop);
            peer_say_n(p, body, 500 + (size_t)past);
            if (chunked)
                peer_say(p, "\r\n0\r\n\r\n");
            wait_done(&a);
            assert_int_equal(a.err.code, past ? ERR_TOO_LARGE : ERR_NONE);
            assert_int_equal(a.body.n, past ? 0 : 1000);
            outcome_release(&a);
            teardown(&f);
        }
    }
}

TEST(test_client__streams_as_it_comes_past_the_gather_limit)
{
    struct fixture f;
    struct outcome a;
    struct peer *p;
    char body[800];

    setup(&f);
    outcome_init(&a, &f);
    a.wants_stream = true;
    memset(body, 's', sizeof(body));
    start(&a);
    p = peer_at(&f, 0, "{\"a\":1}");
    peer_say(
        p,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 3; i++) {
        peer_say(p, "320\r\n");
        peer_say_n(p, body, 800);
        peer_say(p, "\r\n");
        while (a.streamed.n < 800u * (unsigned)(i + 1))
            loop_turn(f.loop);
    }
    assert_false(a.is_done);
    peer_say(p, "0\r\n\r\n");
    wait_done(&a);
    assert_int_equal(a.err.code, ERR_NONE);
    assert_int_equal(a.streamed.n, 2400);
    outcome_release(&a);
    teardown(&f);
}

TEST(test_client__body_until_close_is_taken_and_the_connection_dropped)
{
    struct fixture f;
    struct outcome a;
    struct peer *p;

    setup(&f);
    outcome_init(&a, &f);
    start(&a);
    p = peer_at(&f, 0, "{\"a\":1}");
    peer_say(p, "HTTP/1.0 200 OK\r\n\r\nsome");
    peer_say(p, "thing");
    conn_shutdown_write(p->conn);
    wait_done(&a);
    assert_int_equal(a.err.code, ERR_NONE);
    assert_str(buf_str(&a.body), "something");
    outcome_release(&a);
    teardown(&f);
}

TEST(test_client__idle_connection_closed_by_the_server_costs_no_call)
{
    struct fixture f;
    struct outcome a, b;

    setup(&f);
    outcome_init(&a, &f);
    outcome_init(&b, &f);
    start(&a);
    peer_say(peer_at(&f, 0, "{\"a\":1}"), OK_5);
    wait_done(&a);
    peer_close(&f.peers[0]);
    peer_init(&f.peers[0], f.loop);
    loop_turn(f.loop); /* the end of the connection is seen */
    start(&b);
    peer_say(peer_at(&f, 1, "{\"a\":1}"), OK_5);
    wait_done(&b);
    assert_int_equal(b.err.code, ERR_NONE);
    outcome_release(&a);
    outcome_release(&b);
    teardown(&f);
}

TEST(test_client__reset_seen_only_while_sending_moves_the_call_elsewhere)
{
    struct fixture f;
    struct outcome a, b;
    struct linger hard = {.l_onoff = 1, .l_linger = 0};

    setup(&f);
    outcome_init(&a, &f);
    outcome_init(&b, &f);
    start(&a);
    peer_say(peer_at(&f, 0, "{\"a\":1}"), OK_5);
    wait_done(&a);
    /* The reset is in the kernel, the loop has not turned: the write itself finds out. */
    setsockopt(conn_fd(f.peers[0].conn), SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    peer_close(&f.peers[0]);
    peer_init(&f.peers[0], f.loop);
    start(&b);
    peer_say(peer_at(&f, 1, "{\"a\":1}"), OK_5);
    wait_done(&b);
    assert_int_equal(b.err.code, ERR_NONE);
    outcome_release(&a);
    outcome_release(&b);
    teardown(&f);
}

TEST(test_client__bytes_on_an_idle_connection_end_it)
{
    struct fixture f;
    struct outcome a, b;

    setup(&f);
    outcome_init(&a, &f);
    outcome_init(&b, &f);
    start(&a);
    peer_say(peer_at(&f, 0, "{\"a\":1}"), OK_5);
    wait_done(&a);
    peer_say(&f.peers[0], "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
    peer_wait_end(&f.peers[0]);
    start(&b);
    peer_say(peer_at(&f, 1, "{\"a\":1}"), OK_5);
    wait_done(&b);
    assert_str(buf_str(&b.body), "hello");
    outcome_release(&a);
    outcome_release(&b);
    teardown(&f);
}

TEST(test_client__refused_connect_fails_unsent)
{
    struct fixture f;
    struct outcome o[3];

    setup(&f);
    loop_fd_free(f.watch);
    close(f.listener);
    for (int i = 0; i < 3; i++) {
        outcome_init(&o[i], &f);
        start(&o[i]);
    }
    for (int i = 0; i < 3; i++) {
        wait_done(&o[i]);
        assert_int_equal(o[i].err.code, ERR_UNREACHABLE);
        assert_false(o[i].sent);
        outcome_release(&o[i]);
    }
    http_pool_free(f.pool);
    loop_free(f.loop);
}

TEST(test_client__unknown_host_fails_unsent)
{
    struct fixture f;
    struct outcome a;

    setup(&f);
    http_pool_free(f.pool);
    f.config.host = STR("no-such-host.invalid");
    f.pool = http_pool_new(f.loop, &f.config);
    outcome_init(&a, &f);
    start(&a);
    wait_done(&a);
    assert_int_equal(a.err.code, ERR_UNREACHABLE);
    assert_false(a.sent);
    outcome_release(&a);
    teardown(&f);
}

TEST(test_client__localhost_finds_a_server_on_either_address)
{
    struct fixture f;
    struct outcome a, b;
    struct conn_address at6;
    struct error err;
    char text[32];
    int fd = -1;

    setup(&f);
    snprintf(text, sizeof(text), "[::1]:%u", f.config.port);
    assert_true(address_parse(str_of(text), &at6, &err));
    if (!address_listen(&at6, &fd, &err)) { /* no IPv6 here, or the port is taken there */
        teardown(&f);
        skip_because("no IPv6 here, or the port is taken there");
    }
    http_pool_free(f.pool);
    loop_fd_free(f.watch);
    close(f.listener);
    f.listener = fd;
    f.watch = loop_fd_new(f.loop, fd, on_acceptable, &f);
    loop_fd_want(f.watch, LOOP_READ);
    f.config.host = STR("localhost");
    f.pool = http_pool_new(f.loop, &f.config);
    outcome_init(&a, &f);
    outcome_init(&b, &f);
    start(&a);
    start(&b);
    peer_say(peer_at(&f, 0, "{\"a\":1}"), OK_5);
    peer_say(peer_at(&f, 1, "{\"a\":1}"), OK_5);
    wait_done(&a);
    wait_done(&b);
    assert_int_equal(a.err.code, ERR_NONE);
    assert_int_equal(b.err.code, ERR_NONE);
    outcome_release(&a);
    outcome_release(&b);
    teardown(&f);
}

TEST(test_client__deadline_ends_a_sent_call_and_its_connection)
{
    struct fixture f;
    struct outcome a;

    clock_set_fake(1000000, 1000000);
    setup(&f);
    outcome_init(&a, &f);
    start_with(&a, 2000);
    peer_at(&f, 0, "{\"a\":1}");
    clock_advance_fake(1999);
    loop_turn(f.loop);
    assert_false(a.is_done);
    clock_advance_fake(1);
    wait_done(&a);
    assert_int_equal(a.err.code, ERR_TIMEOUT);
    assert_true(a.sent);
    peer_wait_end(&f.peers[0]);
    outcome_release(&a);
    teardown(&f);
}

TEST(test_client__a_call_told_to_end_within_a_time_ends_then_though_it_had_no_deadline)
{
    struct fixture f;
    struct outcome a;

    clock_set_fake(1000000, 1000000);
    setup(&f);
    outcome_init(&a, &f);
    start(&a);
    peer_at(&f, 0, "{\"a\":1}");
    http_call_within(a.call, 500);
    clock_advance_fake(499);
    loop_turn(f.loop);
    assert_false(a.is_done);
    clock_advance_fake(1);
    wait_done(&a);
    assert_int_equal(a.err.code, ERR_TIMEOUT);
    peer_wait_end(&f.peers[0]);
    outcome_release(&a);
    teardown(&f);
}

TEST(test_client__idle_connection_is_closed_at_its_deadline)
{
    struct fixture f;
    struct outcome a;

    clock_set_fake(1000000, 1000000);
    setup(&f);
    outcome_init(&a, &f);
    start(&a);
    peer_say(peer_at(&f, 0, "{\"a\":1}"), OK_5);
    wait_done(&a);
    clock_advance_fake(29999);
    loop_turn(f.loop);
    assert_false(f.peers[0].eof);
    clock_advance_fake(1);
    peer_wait_end(&f.peers[0]);
    outcome_release(&a);
    teardown(&f);
}

/* The living connection that has got a request. */
static struct peer *asked(struct fixture *f)
{
    for (;;) {
        for (unsigned i = 0; i < f->n_peers; i++)
            if (!f->peers[i].eof && !f->peers[i].broken && peer_has(&f->peers[i], "{\"a\":1}"))
                return &f->peers[i];
        loop_turn(f->loop);
    }
}

TEST(test_client_cancel__is_silent_in_every_phase)
{
    struct fixture f;
    struct outcome waiting, sent, head, body;
    struct peer *p;

    setup(&f);
    outcome_init(&waiting, &f);
    outcome_init(&sent, &f);
    outcome_init(&head, &f);
    outcome_init(&body, &f);
    start(&waiting);
    http_call_cancel(waiting.call);
    start(&sent);
    p = asked(&f);
    http_call_cancel(sent.call);
    peer_wait_end(p);
    head.cancels_in_head = true;
    start(&head);
    p = asked(&f);
    peer_say(p, OK_5);
    peer_wait_end(p);
    assert_true(head.has_head);
    body.wants_stream = body.stops_stream = true;
    start(&body);
    p = asked(&f);
    peer_say(p, OK_5);
    peer_wait_end(p);
    assert_str(buf_str(&body.streamed), "hello");
    assert_false(waiting.is_done || sent.is_done || head.is_done || body.is_done);
    outcome_release(&waiting);
    outcome_release(&sent);
    outcome_release(&head);
    outcome_release(&body);
    teardown(&f);
}

TEST(test_client_pool_free__fails_open_calls_as_cancelled)
{
    struct fixture f;
    struct outcome a, b;

    setup(&f);
    outcome_init(&a, &f);
    outcome_init(&b, &f);
    start(&a);
    peer_at(&f, 0, "{\"a\":1}");
    start(&b);
    http_pool_free(f.pool);
    f.pool = NULL;
    assert_int_equal(a.err.code, ERR_CANCELLED);
    assert_true(a.sent);
    assert_int_equal(b.err.code, ERR_CANCELLED);
    assert_false(b.sent);
    outcome_release(&a);
    outcome_release(&b);
    teardown(&f);
}

TEST(test_client__target_that_would_split_the_request_is_refused_unsent)
{
    struct fixture f;
    struct outcome a;

    setup(&f);
    outcome_init(&a, &f);
    a.call = http_call_start(f.pool, "GET", STR("/x HTTP/1.1\r\nX: y"), STR_NONE, NULL, 0, 0,
                             &call_events, &a);
    assert_false(a.is_done);
    wait_done(&a);
    assert_int_equal(a.err.code, ERR_BAD_INPUT);
    assert_false(a.sent);
    assert_int_equal(f.n_peers, 0);
    outcome_release(&a);
    teardown(&f);
}

TEST(test_client__get_has_no_length_and_head_no_body)
{
    struct fixture f;
    struct outcome a, b;

    setup(&f);
    outcome_init(&a, &f);
    outcome_init(&b, &f);
    a.call = http_call_start(f.pool, "GET", STR("/g"), STR_NONE, NULL, 0, 0, &call_events, &a);
    peer_at(&f, 0, "\r\n\r\n");
    assert_false(peer_has(&f.peers[0], "Content-Length"));
    peer_say(&f.peers[0], OK_5);
    wait_done(&a);
    buf_reset(&f.peers[0].in);
    b.call = http_call_start(f.pool, "HEAD", STR("/h"), STR_NONE, NULL, 0, 0, &call_events, &b);
    peer_at(&f, 0, "\r\n\r\n");
    peer_say(&f.peers[0], "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    wait_done(&b);
    assert_int_equal(b.err.code, ERR_NONE);
    assert_int_equal(b.body.n, 0);
    outcome_release(&a);
    outcome_release(&b);
    teardown(&f);
}
