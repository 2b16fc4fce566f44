/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis lane: a commit does not wait for Redis, and the own process never reads a row that is
 * older than its own commit. */
#include "model_store.h"
#include "redis_server.h"

#include "base/log.h"
#include "io/wire.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define ID "00000000-0000-7000-8000-00000000000a"
#define HANG_MS 2000

static const struct principal alice = {STR("acme"), STR("user:alice"), ROLE_MEMBER};

/* A node: the write lane's store and the lookup lane's, with one cache. */
struct node {
    struct arena *mem;
    struct redis_target target;
    struct session_row row;
    struct cache *cache;
    struct store *write, *lookup;
    struct model_store *writes, *reads;
    struct error err;
};

static void node_start(struct node *n, const char *url, int64_t deadline_ms)
{
    memset(n, 0, sizeof(*n));
    log_setup(LOG_ERROR + 1, 0);
    n->mem = arena_new(256 << 20);
    n->row = (struct session_row){.id = STR(ID),
                                  .handle = STR("ses_a"),
                                  .tenant = STR("acme"),
                                  .owner = STR("user:alice"),
                                  .edge_mcp_id = STR("node"),
                                  .created_ms = 5,
                                  .expires_ms = clock_life_ms() + 3600000,
                                  .version = 1};
    assert_true(redis_target_parse(str_of(url), n->mem, &n->target, &n->err));
    struct cache_config config = {.target = &n->target,
                                  .prefix = STR("t:"),
                                  .ttl_ms = 60000,
                                  .deadline_ms = deadline_ms,
                                  .tells_events = true};
    assert_true(cache_new(&config, &n->cache, &n->err));
    n->writes = model_store_new(&n->row);
    n->reads = model_store_new(&n->row);
    assert_true(store_cached_with_lane(n->cache, &n->writes->base, &n->write, &n->err));
    assert_true(store_cached(n->cache, &n->reads->base, &n->lookup, &n->err));
}

static void node_stop(struct node *n)
{
    store_close(n->lookup);
    store_close(n->write);
    cache_free(n->cache);
    arena_free(n->mem);
}

static void patch(struct node *n)
{
    struct session_row change = {.id = STR(ID)};
    struct store_op op = {OP_SESSION_PATCH, &alice, {.session = &change}};
    assert_true(store_write(n->write, &op, 1, &n->err));
    assert_int_equal(op.verdict, VERDICT_OK);
}

static int64_t read_version(struct node *n)
{
    struct session_row *row = NULL;
    assert_true(store_session_by_id(n->lookup, &alice, STR(ID), n->mem, &row, &n->err));
    assert_non_null(row);
    return row->version;
}

/* Accepts connections, as the kernel does for a process that hangs, and never answers. */
static int hung_redis(char ret_url[64])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    snprintf(ret_url, 64, "redis://127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

TEST(test_cached_lane__a_hung_redis_does_not_delay_a_commit)
{
    struct node n;
    char url[64];
    int fd = hung_redis(url);
    node_start(&n, url, HANG_MS);
    int64_t began_us = wire_now_us();
    for (int i = 0; i < 100; i++)
        patch(&n);
    assert_true(wire_now_us() - began_us < HANG_MS * 1000 / 2);
    assert_int_equal(n.row.version, 101);
    node_stop(&n);
    close(fd);
}

/* More writes than the lane's queue holds, so that some are never announced. */
TEST(test_cached_lane__reads_are_right_while_redis_hangs)
{
    struct node n;
    char url[64];
    int fd = hung_redis(url);
    node_start(&n, url, 50);
    for (int i = 0; i < 1000; i++)
        patch(&n);
    for (int i = 0; i < 20; i++) {
        patch(&n);
        assert_int_equal(read_version(&n), n.row.version);
    }
    node_stop(&n);
    close(fd);
}

TEST(test_cached_lane__a_read_after_a_commit_gives_the_committed_row)
{
    struct redis_server server;
    struct node n;
    redis_server_start(&server, NULL);
    node_start(&n, server.url, 2000);
    for (int i = 0; i < 500; i++) {
        read_version(&n); /* may leave an entry */
        patch(&n);
        assert_int_equal(read_version(&n), n.row.version);
    }
    node_stop(&n);
    redis_server_end(&server);
}

static bool is_cached(struct node *n)
{
    unsigned before = n->reads->reads;
    read_version(n);
    return n->reads->reads == before;
}

static void await_cached(struct node *n)
{
    int64_t until_us = wire_now_us() + 20 * 1000000;
    while (!is_cached(n)) {
        assert_true(wire_now_us() < until_us);
        poll(NULL, 0, 5);
    }
}

TEST(test_cached_lane__the_cache_is_used_again_once_redis_has_learned_of_the_write)
{
    struct redis_server server;
    struct node n;
    redis_server_start(&server, NULL);
    node_start(&n, server.url, 2000);
    await_cached(&n);
    patch(&n);
    await_cached(&n);
    assert_int_equal(read_version(&n), 2);
    node_stop(&n);
    redis_server_end(&server);
}

TEST(test_cached_lane__a_row_that_the_fold_changed_is_read_anew)
{
    struct redis_server server;
    struct node n;
    bool left = true;
    redis_server_start(&server, NULL);
    node_start(&n, server.url, 2000);
    await_cached(&n);
    for (int i = 0; i < 200; i++) {
        struct event_row event = {.id = i + 1, .tenant = STR("acme"), .session_id = STR(ID)};
        struct store_op op = {OP_EVENT_APPEND, NULL, {.event = &event}};
        struct session_row *row = NULL;
        assert_true(store_write(n.write, &op, 1, &n.err));
        assert_true(store_fold(n.write, 100, &left, &n.err));
        assert_true(store_session_by_id(n.lookup, &alice, STR(ID), n.mem, &row, &n.err));
        assert_int_equal(row->tool_count, n.row.tool_count);
    }
    node_stop(&n);
    redis_server_end(&server);
}

static void append(struct node *n, int64_t id)
{
    struct event_row event = {.id = id, .tenant = STR("acme")};
    struct store_op op = {OP_EVENT_APPEND, NULL, {.event = &event}};
    assert_true(store_write(n->write, &op, 1, &n->err));
}

TEST(test_cached_lane__other_nodes_are_told_of_the_last_events_and_seldom_of_those_before)
{
    struct redis_server server;
    struct node n;
    struct redis *redis = NULL;
    struct str args[] = {STR("SUBSCRIBE"), STR("t:changes")};
    struct redis_command command = {args, countof(args)};
    struct redis_reply *reply = NULL;
    unsigned told = 0;
    redis_server_start(&server, NULL);
    node_start(&n, server.url, 2000);
    struct redis_config config = {.target = &n.target, .deadline_ms = 5000};
    assert_true(redis_new(&config, &redis, &n.err));
    assert_true(redis_call(redis, &command, 1, n.mem, &reply, &n.err));
    for (int i = 0; i < 500; i++)
        append(&n, i + 1);
    int fd = eventfd(0, EFD_CLOEXEC);
    do { /* quiet for half a second: the last message has come */
        assert_true(redis_receive(redis, fd, told ? 500 : 20000, n.mem, &reply, &n.err));
        told += reply != NULL;
        assert_true(!reply || str_eq(reply->items[2]->text, cache_events_text(n.cache)));
    } while (reply);
    assert_in_range(told, 1, 400);
    close(fd);
    redis_free(redis);
    node_stop(&n);
    redis_server_end(&server);
}
