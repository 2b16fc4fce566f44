/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP over TLS, our client against our server, and handshakes that never end. */
#include "certificate.h"
#include "peer.h"

#include "base/clock.h"
#include "http/client.h"
#include "http/server.h"
#include "io/tls.h"

#include <netinet/in.h>

struct fixture {
    struct loop *loop;
    struct certificate cert;
    struct tls_context *server_tls, *client_tls;
    struct http_server *server;
    struct http_pool *pool;
    struct conn_address at;
    unsigned n_done;
    struct error err;
    struct buf body;
};

static void echo(void *arg, struct http_request *r)
{
    (void)arg;
    assert_true(r->is_tls);
    http_reply(r, 200, "text/plain", STR_NONE, r->body);
}

static void setup(struct fixture *f)
{
    struct error err;
    struct sockaddr_in sa;
    struct http_pool_config pool = {.host = STR("localhost"),
                                    .max_connections = 2,
                                    .connect_ms = 5000,
                                    .idle_ms = 30000,
                                    .max_body = 4 << 20};

    memset(f, 0, sizeof(*f));
    f->loop = loop_new();
    buf_init(&f->body, 64 << 20);
    certificate_make(&f->cert, "http", "DNS:localhost");
    assert_true(tls_server_new(f->cert.cert_file, f->cert.key_file, &f->server_tls, &err));
    assert_true(tls_client_new(f->cert.cert_file, &f->client_tls, &err));
    f->server = http_server_new(f->loop, &http_server_defaults, NULL, echo, f);
    http_server_listen(f->server, peer_listen(&f->at), f->server_tls, false);
    memcpy(&sa, &f->at.sa, sizeof(sa));
    pool.port = ntohs(sa.sin_port);
    pool.tls = f->client_tls;
    f->pool = http_pool_new(f->loop, &pool);
}

static void teardown(struct fixture *f)
{
    http_pool_free(f->pool);
    http_server_free(f->server);
    tls_free(f->server_tls);
    tls_free(f->client_tls);
    certificate_remove(&f->cert);
    buf_release(&f->body);
    loop_free(f->loop);
    clock_set_real();
}

static void on_done(void *arg, struct str body, const struct error *err, bool sent)
{
    struct fixture *f = arg;
    (void)sent;
    f->n_done++;
    buf_reset(&f->body);
    if (err)
        f->err = *err;
    else
        buf_addstr(&f->body, body);
}
static const struct http_call_events events = {.on_done = on_done};

TEST(test_https__round_trips_small_and_large_on_one_connection)
{
    struct fixture f;
    size_t sizes[] = {1, 504, 16384, 100000, 3 << 20};
    char *big = malloc(3 << 20);

    memset(big, 'q', 3 << 20);
    setup(&f);
    for (unsigned i = 0; i < countof(sizes); i++) {
        struct iovec part = {big, sizes[i]};
        struct http_call *call =
            http_call_start(f.pool, "POST", STR("/"), STR_NONE, &part, 1, 0, &events, &f);
        assert_non_null(call);
        while (f.n_done <= i)
            loop_turn(f.loop);
        assert_int_equal(f.err.code, ERR_NONE);
        assert_int_equal(f.body.n, sizes[i]);
        assert_memory_equal(f.body.p, big, sizes[i]);
    }
    assert_int_equal(http_server_open(f.server), 1);
    free(big);
    teardown(&f);
}

TEST(test_https__plain_request_is_told_to_use_https)
{
    struct fixture f;
    struct peer p;
    char *big = malloc(100000);

    memset(big, 'x', 100000);
    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "POST /mcp/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n");
    peer_say_n(&p, big, 100000);
    peer_wait_end(&p);
    assert_true(peer_has(&p, "HTTP/1.1 400 Bad Request\r\n"));
    assert_true(peer_has(&p, "use https://"));
    peer_close(&p);
    free(big);
    teardown(&f);
}

TEST(test_https__new_context_serves_new_connections_and_leaves_the_others)
{
    struct fixture f;
    struct certificate fresh;
    struct tls_context *fresh_tls;
    struct peer old, late;
    struct error err;
    const char *ask = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

    setup(&f);
    peer_dial_tls(&old, f.loop, &f.at, f.client_tls, "localhost");
    peer_say(&old, ask);
    peer_wait(&old, "HTTP/1.1 200");
    certificate_make(&fresh, "fresh", "DNS:localhost");
    assert_true(tls_server_new(fresh.cert_file, fresh.key_file, &fresh_tls, &err));
    http_server_set_tls(f.server, fresh_tls);
    tls_free(f.server_tls);
    f.server_tls = fresh_tls;
    peer_dial_tls(&late, f.loop, &f.at, f.client_tls, "localhost");
    peer_wait_end(&late);
    assert_true(late.broken); /* it knows the first certificate only */
    peer_close(&late);
    peer_say(&old, ask);
    while (peer_count(&old, "HTTP/1.1 200") < 2)
        loop_turn(f.loop);
    tls_free(f.client_tls);
    assert_true(tls_client_new(fresh.cert_file, &f.client_tls, &err));
    peer_dial_tls(&late, f.loop, &f.at, f.client_tls, "localhost");
    peer_say(&late, ask);
    peer_wait(&late, "HTTP/1.1 200");
    peer_close(&late);
    peer_close(&old);
    certificate_remove(&fresh);
    teardown(&f);
}

TEST(test_https__handshake_that_stalls_is_cut_at_the_head_deadline)
{
    struct fixture f;
    struct peer p;

    clock_set_fake(1000000, 1000000);
    setup(&f);
    peer_dial(&p, f.loop, &f.at);
    peer_say(&p, "\x16\x03\x01"); /* the first bytes of a hello */
    while (http_server_open(f.server) < 1)
        loop_turn(f.loop);
    clock_advance_fake(9999);
    loop_turn(f.loop);
    assert_false(p.eof || p.broken);
    clock_advance_fake(1);
    peer_wait_end(&p);
    peer_close(&p);
    teardown(&f);
}

TEST(test_https__server_that_never_shakes_hands_fails_the_call_unsent)
{
    struct fixture f;
    struct sockaddr_in sa;
    struct conn_address at;
    int fd = peer_listen(&at); /* accepts in the kernel, and says nothing */
    struct http_pool_config config = {.host = STR("127.0.0.1"),
                                      .max_connections = 1,
                                      .connect_ms = 5000,
                                      .idle_ms = 30000,
                                      .max_body = 1000};

    clock_set_fake(1000000, 1000000);
    setup(&f);
    memcpy(&sa, &at.sa, sizeof(sa));
    config.port = ntohs(sa.sin_port);
    config.tls = f.client_tls;
    http_pool_free(f.pool);
    f.pool = http_pool_new(f.loop, &config);
    assert_non_null(http_call_start(f.pool, "GET", STR("/"), STR_NONE, NULL, 0, 0, &events, &f));
    clock_advance_fake(4999);
    loop_turn(f.loop);
    assert_int_equal(f.n_done, 0);
    clock_advance_fake(1);
    while (!f.n_done)
        loop_turn(f.loop);
    assert_int_equal(f.err.code, ERR_TIMEOUT);
    close(fd);
    teardown(&f);
}
