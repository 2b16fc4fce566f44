/* SPDX-License-Identifier: Apache-2.0 */
/* TLS behind the verbs of a connection: round trips, names and authorities that do not match,
 * back-pressure, endings. */
#include "certificate.h"
#include "peer.h"

#include "io/tls.h"

struct fixture {
    struct loop *loop;
    struct certificate cert;
    struct tls_context *server, *client;
    struct conn_address at;
    int listener;
    struct peer near, far; /* the dialling and the accepting side */
};

static void setup(struct fixture *f, const char *names)
{
    struct error err;

    memset(f, 0, sizeof(*f));
    f->loop = loop_new();
    certificate_make(&f->cert, "tls", names);
    assert_true(tls_server_new(f->cert.cert_file, f->cert.key_file, &f->server, &err));
    assert_true(tls_client_new(f->cert.cert_file, &f->client, &err));
    f->listener = peer_listen(&f->at);
}

static void dial(struct fixture *f, const char *name)
{
    int fd;

    peer_dial_tls(&f->near, f->loop, &f->at, f->client, name);
    while ((fd = accept(f->listener, NULL, NULL)) < 0)
        loop_turn(f->loop);
    peer_adopt(&f->far, f->loop, fd, f->server);
}

static void teardown(struct fixture *f)
{
    peer_close(&f->near);
    peer_close(&f->far);
    close(f->listener);
    tls_free(f->server);
    tls_free(f->client);
    certificate_remove(&f->cert);
    loop_free(f->loop);
}

TEST(test_tls__bytes_go_both_ways_and_end_cleanly)
{
    struct fixture f;
    struct iovec parts[] = {{"in ", 3}, {"parts", 5}};

    setup(&f, "DNS:localhost,IP:127.0.0.1");
    dial(&f, "localhost");
    peer_say(&f.near, "before the handshake ");
    while (!f.near.opened || !f.far.opened)
        loop_turn(f.loop);
    assert_true(conn_is_tls(f.near.conn));
    assert_true(conn_write(f.near.conn, parts, 2));
    peer_wait(&f.far, "before the handshake in parts");
    peer_say(&f.far, "answer");
    peer_wait(&f.near, "answer");
    conn_shutdown_write(f.near.conn);
    peer_wait_end(&f.far);
    assert_true(f.far.eof);
    assert_false(f.far.broken);
    teardown(&f);
}

TEST(test_tls__numeric_hosts_are_checked_as_addresses)
{
    struct fixture f;

    setup(&f, "IP:127.0.0.1");
    dial(&f, "127.0.0.1");
    while (!f.near.opened && !f.near.broken)
        loop_turn(f.loop);
    assert_true(f.near.opened);
    teardown(&f);
}

TEST(test_tls__wrong_name_is_refused)
{
    static const char *const names[] = {"other.example", "127.0.0.2", "sub.localhost"};

    for (size_t i = 0; i < countof(names); i++) {
        struct fixture f;
        setup(&f, "DNS:localhost,IP:127.0.0.1");
        dial(&f, names[i]);
        while (!f.near.opened && !f.near.broken)
            loop_turn(f.loop);
        assert_true(f.near.broken);
        assert_non_null(strstr(f.near.err.text, names[i]));
        assert_non_null(strstr(f.near.err.text, "mismatch"));
        teardown(&f);
    }
}

TEST(test_tls__unknown_authority_is_refused)
{
    struct fixture f;
    struct certificate other;
    struct error err;

    setup(&f, "DNS:localhost");
    certificate_make(&other, "other", "DNS:localhost");
    tls_free(f.client);
    assert_true(tls_client_new(other.cert_file, &f.client, &err));
    dial(&f, "localhost");
    while (!f.near.opened && !f.near.broken)
        loop_turn(f.loop);
    assert_true(f.near.broken);
    assert_string_equal(f.near.err.text,
                        "the certificate of localhost is refused (self-signed certificate): set "
                        "\"tls\": {\"ca\": FILE} of this server to this certificate, if it is the "
                        "right one");
    certificate_remove(&other);
    teardown(&f);
}

TEST(test_tls__megabytes_pass_while_the_reader_pauses)
{
    struct fixture f;
    size_t n = 6 << 20;
    char *big = malloc(n);

    for (size_t i = 0; i < n; i++)
        big[i] = (char)(i * 31 + i / 977);
    setup(&f, "DNS:localhost");
    dial(&f, "localhost");
    while (!f.near.opened || !f.far.opened)
        loop_turn(f.loop);
    peer_say_n(&f.near, big, n);
    peer_say_n(&f.near, "end", 3);
    assert_true(conn_queued(f.near.conn) > 0);
    while (f.far.in.n < n + 3) {
        conn_pause(f.far.conn, true);
        conn_pause(f.far.conn, false);
        loop_turn(f.loop);
    }
    assert_memory_equal(f.far.in.p, big, n);
    assert_memory_equal(f.far.in.p + n, "end", 3);
    free(big);
    teardown(&f);
}

TEST(test_tls__garbage_instead_of_a_handshake_breaks_the_connection)
{
    struct fixture f;
    int fd;

    setup(&f, "DNS:localhost");
    peer_dial(&f.near, f.loop, &f.at);
    while ((fd = accept(f.listener, NULL, NULL)) < 0)
        loop_turn(f.loop);
    peer_adopt(&f.far, f.loop, fd, f.server);
    peer_say(&f.near, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    while (!f.far.broken)
        loop_turn(f.loop);
    assert_false(f.far.opened);
    teardown(&f);
}

TEST(test_tls__connection_cut_without_goodbye_is_an_error_not_an_end)
{
    struct fixture f;

    setup(&f, "DNS:localhost");
    dial(&f, "localhost");
    while (!f.near.opened || !f.far.opened)
        loop_turn(f.loop);
    shutdown(conn_fd(f.far.conn), SHUT_RDWR);
    peer_wait_end(&f.near);
    assert_true(f.near.broken);
    assert_false(f.near.eof);
    teardown(&f);
}

TEST(test_tls_new__missing_or_mixed_files_are_named)
{
    struct certificate a, b;
    struct tls_context *t = NULL;
    struct error err;

    certificate_make(&a, "a", "DNS:a");
    certificate_make(&b, "b", "DNS:b");
    assert_false(tls_server_new("/nonexistent.crt", a.key_file, &t, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, "there is no file /nonexistent.crt"));
    assert_false(tls_server_new(a.cert_file, b.key_file, &t, &err));
    assert_non_null(strstr(err.text, b.key_file));
    assert_non_null(strstr(err.text, "does not belong to the certificate"));
    assert_false(tls_server_new(a.key_file, a.key_file, &t, &err));
    assert_non_null(strstr(err.text, "cannot use the certificate"));
    assert_false(tls_server_new(a.cert_file, a.cert_file, &t, &err));
    assert_non_null(strstr(err.text, "can be read by every user"));
    assert_false(tls_server_new("/", a.key_file, &t, &err));
    assert_non_null(strstr(err.text, "not a regular file"));
    assert_false(tls_client_new("/nonexistent.pem", &t, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_false(tls_client_new(a.key_file, &t, &err));
    assert_non_null(strstr(err.text, "cannot use the certificate authorities"));
    assert_null(t);
    certificate_remove(&a);
    certificate_remove(&b);
}

TEST(test_tls_server_new__key_that_others_can_read_is_refused)
{
    static const struct {
        mode_t mode;
        bool ok;
    } rows[] = {{0600, true}, {0400, true}, {0640, true}, {0644, false}, {0602, false}};
    struct tls_context *t = NULL;
    struct certificate c;
    struct error err;

    certificate_make(&c, "modes", "DNS:a");
    for (size_t i = 0; i < countof(rows); i++) {
        assert_int_equal(chmod(c.key_file, rows[i].mode), 0);
        assert_int_equal(tls_server_new(c.cert_file, c.key_file, &t, &err), rows[i].ok);
        if (rows[i].ok)
            tls_free(t);
        else
            assert_non_null(strstr(err.text, "chmod o= /tmp/"));
    }
    certificate_remove(&c);
}

TEST(test_tls_server_new__certificate_out_of_its_time_is_refused)
{
    static const struct {
        long from_s, until_s;
        const char *text;
    } rows[] = {{-7200, -60, "has expired on"}, {3600, 7200, "is not valid before"}};

    for (size_t i = 0; i < countof(rows); i++) {
        struct tls_context *t = NULL;
        struct certificate c;
        struct error err;

        certificate_make_for(&c, "dates", "DNS:a", rows[i].from_s, rows[i].until_s);
        assert_false(tls_server_new(c.cert_file, c.key_file, &t, &err));
        assert_int_equal(err.code, ERR_CONFIG);
        assert_non_null(strstr(err.text, rows[i].text));
        certificate_remove(&c);
    }
}

TEST(test_tls_server_new__key_with_a_passphrase_is_refused_without_asking_for_it)
{
    struct tls_context *t = NULL;
    struct certificate c;
    struct error err;
    EVP_PKEY *key = EVP_EC_gen("P-256");

    certificate_make(&c, "locked", "DNS:a");
    FILE *out = fopen(c.key_file, "w");
    assert_int_equal(
        PEM_write_PrivateKey(out, key, EVP_aes_128_cbc(), (unsigned char *)"pass", 4, NULL, NULL),
        1);
    fclose(out);
    assert_false(tls_server_new(c.cert_file, c.key_file, &t, &err));
    assert_non_null(strstr(err.text, "has a passphrase"));
    EVP_PKEY_free(key);
    certificate_remove(&c);
}

TEST(test_tls__context_may_go_before_its_connections)
{
    struct fixture f;

    setup(&f, "DNS:localhost");
    dial(&f, "localhost");
    tls_free(f.server);
    tls_free(f.client);
    f.server = f.client = NULL;
    while (!f.near.opened || !f.far.opened)
        loop_turn(f.loop);
    peer_say(&f.near, "still here");
    peer_wait(&f.far, "still here");
    teardown(&f);
}
