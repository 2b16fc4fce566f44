/* SPDX-License-Identifier: Apache-2.0 */
/* One connection against a real Redis, and against peers that lie. */
#include "test.h"

#include "certificate.h"
#include "redis_server.h"

#include "io/wire.h"
#include "store/redis_conn.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

struct fixture {
    struct arena *mem;
    struct redis_target target;
    struct redis *redis;
    struct error err;
};

static void open_to(struct fixture *f, const char *url, const char *ca_file, int64_t deadline_ms)
{
    memset(f, 0, sizeof(*f));
    f->mem = arena_new(64 << 20);
    assert_true(redis_target_parse(str_of(url), f->mem, &f->target, &f->err));
    struct redis_config config = {
        .target = &f->target, .ca_file = ca_file, .deadline_ms = deadline_ms, .connect_ms = 2000};
    assert_true(redis_new(&config, &f->redis, &f->err));
}

static void close_it(struct fixture *f)
{
    redis_free(f->redis);
    arena_free(f->mem);
}

static struct redis_reply *ask(struct fixture *f, struct str a, struct str b, struct str c)
{
    struct str args[] = {a, b, c};
    struct redis_command command = {args, c.p ? 3 : b.p ? 2 : 1};
    struct redis_reply *reply = NULL;
    return redis_call(f->redis, &command, 1, f->mem, &reply, &f->err) ? reply : NULL;
}

/* Until it connects again: the back-off is short and has an end. */
static struct redis_reply *ask_until(struct fixture *f)
{
    struct redis_reply *reply = NULL;
    int64_t until_us = wire_now_us() + 10 * 1000000;
    while (!(reply = ask(f, STR("PING"), STR_NONE, STR_NONE)) && wire_now_us() < until_us)
        poll(NULL, 0, 10);
    return reply;
}

TEST(test_redis_conn__bytes_of_any_kind_come_back_as_they_went)
{
    struct fixture f;
    struct redis_server server;
    static const char *const args[] = {"--tcp", NULL};
    redis_server_start(&server, args);
    open_to(&f, server.url, NULL, 2000);
    struct str odd = str_n("a\r\nFLUSHALL\r\n\0b", 15);
    assert_str(ask(&f, STR("SET"), odd, odd)->text, "OK");
    struct redis_reply *got = ask(&f, STR("GET"), odd, STR_NONE);
    assert_int_equal(got->kind, REDIS_TEXT);
    assert_true(str_eq(got->text, odd));
    assert_int_equal(ask(&f, STR("DBSIZE"), STR_NONE, STR_NONE)->number, 1);
    got = ask(&f, STR("MGET"), odd, STR("none"));
    assert_int_equal(got->n, 2);
    assert_int_equal(got->items[1]->kind, REDIS_NONE);
    assert_int_equal(ask(&f, STR("INCR"), odd, STR_NONE)->kind, REDIS_REFUSAL);
    assert_int_equal(redis_connects(f.redis), 1);
    close_it(&f);
    redis_server_end(&server);
}

TEST(test_redis_conn__a_password_is_used_and_a_wrong_one_is_not_shown)
{
    static const char *const args[] = {"--", "requirepass=canary right", NULL};
    struct redis_server server;
    struct fixture f;
    char url[300];
    redis_server_start(&server, args);
    snprintf(url, sizeof(url), "unix://:canary%%20right@%s?db=3", server.url + 7);
    open_to(&f, url, NULL, 2000);
    assert_non_null(ask(&f, STR("SET"), STR("k"), STR("v")));
    close_it(&f);
    snprintf(url, sizeof(url), "unix://:canary%%20wrong@%s", server.url + 7);
    open_to(&f, url, NULL, 2000);
    assert_null(ask(&f, STR("GET"), STR("k"), STR_NONE));
    assert_int_equal(f.err.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(f.err.text, "REDIS_URL"));
    assert_null(strstr(f.err.text, "canary"));
    close_it(&f);
    redis_server_end(&server);
}

TEST(test_redis_conn__over_tls_the_certificate_is_verified)
{
    struct certificate cert, other;
    struct redis_server server;
    struct fixture f;
    certificate_make(&cert, "redis", "DNS:localhost");
    certificate_make(&other, "redis-other", "DNS:localhost");
    const char *const args[] = {"--tls", cert.cert_file, cert.key_file, NULL};
    redis_server_start(&server, args);
    open_to(&f, server.url, cert.cert_file, 2000);
    assert_non_null(ask(&f, STR("PING"), STR_NONE, STR_NONE));
    assert_str(ask(&f, STR("SET"), STR("k"), STR("v"))->text, "OK");
    close_it(&f);
    open_to(&f, server.url, other.cert_file, 2000);
    assert_null(ask(&f, STR("PING"), STR_NONE, STR_NONE));
    assert_non_null(strstr(f.err.text, "certificate"));
    assert_non_null(strstr(f.err.text, "set SSL_CERT_FILE to"));
    assert_null(strstr(f.err.text, "of this server"));
    close_it(&f);
    redis_server_end(&server);
    certificate_remove(&cert);
    certificate_remove(&other);
}

TEST(test_redis_conn__a_lost_server_is_refused_at_once_and_found_again)
{
    struct redis_server server;
    struct fixture f;
    redis_server_start(&server, NULL);
    open_to(&f, server.url, NULL, 2000);
    assert_non_null(ask(&f, STR("PING"), STR_NONE, STR_NONE));
    redis_server_order(&server, "kill");
    assert_null(ask(&f, STR("PING"), STR_NONE, STR_NONE));
    assert_null(ask(&f, STR("PING"), STR_NONE, STR_NONE));
    assert_int_equal(f.err.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(f.err.text, "tried again soon"));
    redis_server_order(&server, "start");
    assert_non_null(ask_until(&f));
    assert_int_equal(redis_connects(f.redis), 2);
    close_it(&f);
    redis_server_end(&server);
}

TEST(test_redis_conn__a_stopped_server_costs_one_deadline)
{
    struct redis_server server;
    struct fixture f;
    redis_server_start(&server, NULL);
    open_to(&f, server.url, NULL, 50);
    assert_non_null(ask(&f, STR("PING"), STR_NONE, STR_NONE));
    redis_server_order(&server, "stop");
    int64_t began_us = wire_now_us();
    assert_null(ask(&f, STR("PING"), STR_NONE, STR_NONE));
    assert_true(wire_now_us() - began_us >= 50000);
    assert_non_null(strstr(f.err.text, "in time"));
    assert_null(ask(&f, STR("PING"), STR_NONE, STR_NONE));
    assert_non_null(strstr(f.err.text, "tried again soon"));
    redis_server_order(&server, "cont");
    assert_non_null(ask_until(&f));
    close_it(&f);
    redis_server_end(&server);
}

/* A peer that answers whatever it is asked with the same bytes. */
struct liar {
    int fd;
    char url[128], path[108];
    struct str answer;
    pthread_t thread;
};

static void *lie(void *arg)
{
    struct liar *l = arg;
    char room[4096];
    int fd = accept(l->fd, NULL, NULL);
    if (read(fd, room, sizeof(room)) > 0)
        for (size_t at = 0; at < l->answer.n;) {
            ssize_t n = send(fd, l->answer.p + at, l->answer.n - at, MSG_NOSIGNAL);
            if (n <= 0)
                break;
            at += (size_t)n;
        }
    while (read(fd, room, sizeof(room)) > 0)
        ;
    close(fd);
    return NULL;
}

static void liar_start(struct liar *l, struct str answer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    l->answer = answer;
    snprintf(l->path, sizeof(l->path), "/tmp/holdfast-liar-%d", (int)getpid());
    snprintf(l->url, sizeof(l->url), "unix://%s", l->path);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", l->path);
    unlink(l->path);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(l->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(l->fd, 4), 0);
    assert_int_equal(pthread_create(&l->thread, NULL, lie, l), 0);
}

/* What PING is answered when these bytes come back; false: it failed. */
static bool told(struct str answer, struct redis_reply *ret, struct error *ret_err)
{
    struct liar l;
    struct fixture f;
    liar_start(&l, answer);
    open_to(&f, l.url, NULL, 5000);
    struct redis_reply *reply = ask(&f, STR("PING"), STR_NONE, STR_NONE);
    if (reply)
        *ret = *reply;
    *ret_err = f.err;
    close_it(&f);
    pthread_join(l.thread, NULL);
    close(l.fd);
    unlink(l.path);
    return reply != NULL;
}

TEST(test_redis_conn__what_is_not_redis_is_said)
{
    struct redis_reply reply;
    struct error err;
    assert_false(told(STR("HTTP/1.1 400 Bad Request\r\n\r\n"), &reply, &err));
    assert_non_null(strstr(err.text, "like Redis"));
}

static bool told_list_of(unsigned n)
{
    struct redis_reply reply = {0};
    struct error err;
    static char out[REDIS_REPLY_ITEMS_MAX * 4 + 64];
    int at = sprintf(out, "*%u\r\n", n);
    for (unsigned i = 0; i < n; i++)
        at += sprintf(out + at, ":1\r\n");
    return told(str_n(out, (size_t)at), &reply, &err) && reply.n == n;
}

TEST(test_redis_conn__a_list_has_a_limit)
{
    struct redis_reply reply;
    struct error err;
    assert_true(told_list_of(REDIS_REPLY_ITEMS_MAX));
    assert_false(told_list_of(REDIS_REPLY_ITEMS_MAX + 1));
    assert_false(told(STR("*2147483647\r\n"), &reply, &err));
}

static bool told_text_of(size_t total)
{
    static char bytes[REDIS_REPLY_BYTES_MAX + 64];
    struct redis_reply reply;
    struct error err;
    int head = sprintf(bytes, "$%zu\r\n", total);
    size_t n = total - (size_t)head - 2;
    head = sprintf(bytes, "$%zu\r\n", n);
    memset(bytes + head, 'x', n);
    memcpy(bytes + head + n, "\r\n", 2);
    return told(str_n(bytes, total), &reply, &err);
}

TEST(test_redis_conn__a_reply_has_a_limit)
{
    assert_true(told_text_of(REDIS_REPLY_BYTES_MAX));
    assert_false(told_text_of(REDIS_REPLY_BYTES_MAX + 1));
}
