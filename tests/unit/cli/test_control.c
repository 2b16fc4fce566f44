/* SPDX-License-Identifier: Apache-2.0 */
/* The commands' client against a scripted peer: one accepted connection, one prepared answer. */
#include "cli/control.h"
#include "base/buf.h"
#include "test.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_ANSWER (64u * 1024 * 1024)

struct peer {
    int listener;
    pthread_t thread;
    struct str answer; /* absent: says nothing until the client goes */
    char request[512];
    char dir[64], socket[96];
    struct control *control;
    struct arena *mem;
    struct error err;
};

static void write_all(int fd, struct str s)
{
    while (s.n) {
        ssize_t n = send(fd, s.p, s.n, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        s = str_n(s.p + n, s.n - (size_t)n);
    }
}

static void *serve_one(void *arg)
{
    struct peer *p = arg;
    int fd = accept(p->listener, NULL, NULL);
    size_t n = 0;
    char rest[64];

    while (n < sizeof(p->request) - 1 && !strstr(p->request, "\r\n\r\n")) {
        ssize_t got = recv(fd, p->request + n, sizeof(p->request) - 1 - n, 0);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    if (p->answer.p) {
        write_all(fd, p->answer);
        shutdown(fd, SHUT_WR);
    }
    while (recv(fd, rest, sizeof(rest), 0) > 0)
        ;
    close(fd);
    return NULL;
}

static void peer_listen_unix(struct peer *p)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};

    snprintf(p->dir, sizeof(p->dir), "/tmp/holdfast-control-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->socket, sizeof(p->socket), "%s/holdfast.sock", p->dir);
    memcpy(sa.sun_path, p->socket, strlen(p->socket) + 1);
    p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(p->listener, 4), 0);
}

static void peer_start(struct peer *p, struct str answer)
{
    memset(p, 0, sizeof(*p));
    p->answer = answer;
    p->mem = arena_new(SIZE_MAX / 4);
    peer_listen_unix(p);
    assert_int_equal(pthread_create(&p->thread, NULL, serve_one, p), 0);
    assert_true(control_open_socket(str_of(p->dir), &p->control, &p->err));
}

static void peer_end(struct peer *p)
{
    pthread_join(p->thread, NULL);
    close(p->listener);
    control_close(p->control);
    arena_free(p->mem);
    if (p->dir[0]) {
        unlink(p->socket);
        rmdir(p->dir);
    }
}

/* What one answer makes of a GET: its body, or absent and *ret_err filled. */
static bool body_is(struct str answer, const char *expected)
{
    struct peer p;
    struct str body = STR_NONE;

    peer_start(&p, answer);
    bool ok = control_get(p.control, STR("/x"), p.mem, &body, &p.err);
    bool same = ok && str_eq(body, str_of(expected));
    peer_end(&p);
    return same;
}

static struct error error_of(struct str answer)
{
    struct peer p;
    struct str body = STR_NONE;

    peer_start(&p, answer);
    assert_false(control_get(p.control, STR("/x"), p.mem, &body, &p.err));
    assert_null(body.p);
    peer_end(&p);
    return p.err;
}

TEST(test_control_get__asks_once_and_closes)
{
    struct peer p;
    struct str body;

    peer_start(&p, STR("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"));
    assert_true(control_get(p.control, STR("/api/v1/audit?limit=1"), p.mem, &body, &p.err));
    assert_str(body, "hi");
    peer_end(&p);
    assert_string_equal(p.request, "GET /api/v1/audit?limit=1 HTTP/1.1\r\nHost: localhost\r\n"
                                   "Connection: close\r\n\r\n");
}

TEST(test_control_get__takes_every_framing)
{
    assert_true(body_is(STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), ""));
    assert_true(body_is(STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
                        "abcde"));
    assert_true(body_is(STR("HTTP/1.1 200 OK\r\n\r\nto the end"), "to the end"));
    assert_true(body_is(STR("HTTP/1.1 100 Continue\r\n\r\n"
                            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
                        "x"));
}

TEST(test_control_get__refuses_cut_answers)
{
    static const struct str cut[] = {
        {"", 0},
        {"HTTP/1.1 200", 12},
        STR("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi"),
        STR("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nhi"),
        STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
        STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nmore"),
        STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        STR("SSH-2.0-OpenSSH_9.2\r\n"),
    };
    for (size_t i = 0; i < countof(cut); i++)
        assert_int_equal(error_of(cut[i]).code, ERR_UNREACHABLE);
}

TEST(test_control_get__says_what_the_daemon_said)
{
    struct error err = error_of(STR("HTTP/1.1 404 Not Found\r\n\r\n"
                                    "{\"code\":\"not_found\",\"detail\":\"no such call\"}"));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_string_equal(err.text, "Holdfast answered 404: no such call");
    err = error_of(STR("HTTP/1.1 400 Bad Request\r\n\r\n{\"error\":\"limit is no number\"}"));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    assert_string_equal(err.text, "Holdfast answered 400: limit is no number");
    err = error_of(STR("HTTP/1.1 503 Service Unavailable\r\n\r\n<html>"));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_string_equal(err.text, "Holdfast answered 503: Service Unavailable");
    assert_int_equal(error_of(STR("HTTP/1.1 403 Forbidden\r\n\r\n")).code, ERR_DENIED);
    assert_int_equal(error_of(STR("HTTP/1.1 302 Found\r\nLocation: /y\r\n\r\n")).code,
                     ERR_BAD_INPUT);
}

TEST(test_control_get__ends_at_its_deadline)
{
    struct peer p;
    struct str body = STR_NONE;

    peer_start(&p, STR_NONE);
    control_set_deadline(p.control, 30);
    assert_false(control_get(p.control, STR("/x"), p.mem, &body, &p.err));
    assert_int_equal(p.err.code, ERR_UNREACHABLE);
    assert_non_null(strstr(p.err.text, "did not answer in time"));
    peer_end(&p);
}

static struct str big_answer(struct buf *b, size_t total)
{
    static const char head[] = "HTTP/1.1 200 OK\r\n\r\n";
    buf_init(b, SIZE_MAX / 4);
    buf_addz(b, head);
    memset(buf_room(b, total - b->n), 'x', total - b->n);
    buf_grown(b, total - b->n);
    return buf_str(b);
}

TEST(test_control_get__takes_64_mib_and_not_a_byte_more)
{
    struct peer p;
    struct str body = STR_NONE;
    struct buf b;

    peer_start(&p, big_answer(&b, MAX_ANSWER));
    assert_true(control_get(p.control, STR("/x"), p.mem, &body, &p.err));
    assert_int_equal(body.n, MAX_ANSWER - strlen("HTTP/1.1 200 OK\r\n\r\n"));
    peer_end(&p);
    buf_release(&b);
    peer_start(&p, big_answer(&b, MAX_ANSWER + 1));
    assert_false(control_get(p.control, STR("/x"), p.mem, &body, &p.err));
    assert_int_equal(p.err.code, ERR_TOO_LARGE);
    peer_end(&p);
    buf_release(&b);
}

TEST(test_control_get__nobody_there_is_unreachable)
{
    struct control *control;
    struct error err;
    struct arena *mem = arena_new(1 << 20);
    struct str body;

    assert_true(control_open_socket(STR("/nonexistent"), &control, &err));
    assert_false(control_get(control, STR("/x"), mem, &body, &err));
    assert_int_equal(err.code, ERR_UNREACHABLE);
    control_close(control);
    arena_free(mem);
}

TEST(test_control_open_url__reaches_loopback_over_tcp)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    struct peer p = {.answer = STR("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")};
    struct str body;
    char host[64];

    p.mem = arena_new(1 << 20);
    p.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p.listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(p.listener, 4), 0);
    assert_int_equal(getsockname(p.listener, (struct sockaddr *)&sa, &len), 0);
    assert_int_equal(pthread_create(&p.thread, NULL, serve_one, &p), 0);
    struct str url = arena_printf(p.mem, "http://127.0.0.1:%u", ntohs(sa.sin_port));
    assert_true(control_open_url(url, NULL, &p.control, &p.err));
    assert_true(control_get(p.control, STR("/x"), p.mem, &body, &p.err));
    assert_str(body, "hi");
    peer_end(&p);
    snprintf(host, sizeof(host), "Host: 127.0.0.1:%u\r\n", ntohs(sa.sin_port));
    assert_non_null(strstr(p.request, host));
}

TEST(test_control_open_url__refuses_what_it_cannot_reach)
{
    static const char *const bad[] = {
        "127.0.0.1:4653",
        "ftp://127.0.0.1:4653",
        "http://127.0.0.1:4653/mcp",
        "https://user:key@example.com",
        "http://127.0.0.1:99999",
        "",
    };
    struct control *control = NULL;
    struct error err;

    for (size_t i = 0; i < countof(bad); i++) {
        assert_false(control_open_url(str_of(bad[i]), NULL, &control, &err));
        assert_int_equal(err.code, ERR_USAGE);
        assert_non_null(strstr(err.text, "--url"));
    }
    assert_null(control);
    assert_true(control_open_url(STR("http://[::1]:4653"), NULL, &control, &err));
    assert_false(control_is_clear(control));
    control_close(control);
    assert_true(control_open_url(STR("http://localhost:4653/"), NULL, &control, &err));
    assert_false(control_is_clear(control));
    control_close(control);
    assert_true(control_open_url(STR("http://holdfast.example"), NULL, &control, &err));
    assert_true(control_is_clear(control));
    control_close(control);
    assert_true(control_open_url(STR("https://holdfast.example"), NULL, &control, &err));
    assert_false(control_is_clear(control));
    control_close(control);
    control = NULL;
    assert_false(control_open_url(STR("http://localhost"), "ca.pem", &control, &err));
    assert_int_equal(err.code, ERR_USAGE);
    assert_false(control_open_url(STR("https://localhost"), "/nonexistent", &control, &err));
    assert_non_null(strstr(err.text, "/nonexistent"));
    control_close(NULL);
}
