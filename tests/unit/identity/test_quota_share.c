/* SPDX-License-Identifier: Apache-2.0 */
/* Two nodes on one loop and one Redis: what one uses the other has less of, what one holds the
 * other counts, and what Redis lost begins with what is left. */
#include "test.h"

#include "redis_server.h"

#include "base/clock.h"
#include "base/log.h"
#include "identity/quota.h"

#include <stdio.h>

struct world {
    struct redis_server server;
    struct arena *mem;
    struct redis_target target;
    struct loop *loop;
    struct loop_timer *tick;
    struct config *config;
    struct quotas *nodes[2];
    int64_t until_ms;
    bool (*done)(struct world *w);
    struct quota_refusal refusal;
};

static const struct principal acme = {.tenant = {"acme", 4}, .owner = {"local", 5}};

static void on_tick(void *arg)
{
    struct world *w = arg;
    if (w->done(w) || clock_mono_ms() > w->until_ms)
        loop_stop(w->loop);
}

static void wait_until(struct world *w, bool (*done)(struct world *w))
{
    w->done = done;
    w->until_ms = clock_mono_ms() + 20000;
    loop_timer_start(w->tick, 0, 2);
    loop_run(w->loop);
    loop_timer_stop(w->tick);
    assert_true(done(w));
}

static bool are_shared(struct world *w)
{
    return quotas_are_shared(w->nodes[0]) && quotas_are_shared(w->nodes[1]);
}

static bool are_alone(struct world *w)
{
    return !quotas_are_shared(w->nodes[0]) && !quotas_are_shared(w->nodes[1]);
}

static void world_init(struct world *w, const char *limits)
{
    static const char *const names[] = {"node-a", "node-b"};
    struct error err;
    char text[256];

    *w = (struct world){0};
    redis_server_start(&w->server, NULL);
    log_setup(LOG_ERROR + 1, 0);
    w->mem = arena_new(65536);
    assert_true(redis_target_parse(str_of(w->server.url), w->mem, &w->target, &err));
    snprintf(text, sizeof(text), "{\"holdfast\":{\"limits\":%s}}", limits);
    assert_true(config_parse(str_of(text), STR("h.json"), NULL, &w->config, &err));
    w->loop = loop_new();
    w->tick = loop_timer_new(w->loop, on_tick, w);
    for (unsigned i = 0; i < 2; i++) {
        struct quotas_config how = {.loop = w->loop,
                                    .config = w->config,
                                    .redis = &w->target,
                                    .prefix = STR("t:"),
                                    .node = str_of(names[i])};
        assert_true(quotas_new(&how, &w->nodes[i], &err));
    }
    wait_until(w, are_shared);
}

static void world_free(struct world *w)
{
    quotas_free(w->nodes[0]);
    quotas_free(w->nodes[1]);
    loop_timer_free(w->tick);
    loop_free(w->loop);
    config_unref(w->config);
    arena_free(w->mem);
    redis_server_end(&w->server);
}

static bool request(struct world *w, unsigned node)
{
    struct quota_use use = {0};

    if (!quota_take(w->nodes[node], &acme, QUOTA_CALL, 0, &use, &w->refusal))
        return false;
    quota_release(&use);
    return true;
}

static bool second_refuses(struct world *w)
{
    return !request(w, 1);
}

static bool second_serves(struct world *w)
{
    return request(w, 1);
}

TEST(test_quota_share__what_one_node_used_another_has_less_of)
{
    struct world w;

    world_init(&w, "{\"requests\":\"8/h\"}");
    for (unsigned i = 0; i < 8; i++)
        assert_true(request(&w, 0));
    wait_until(&w, second_refuses);
    assert_int_equal(w.refusal.kind, LIMIT_REQUESTS);
    assert_non_null(strstr(w.refusal.err.text, "'acme' reached: 8 requests an hour"));
    assert_false(request(&w, 0));
    world_free(&w);
}

TEST(test_quota_share__what_one_node_holds_another_counts)
{
    struct quota_use held[2] = {0};
    struct world w;

    world_init(&w, "{\"calls\":2}");
    for (unsigned i = 0; i < 2; i++)
        assert_true(quota_take(w.nodes[0], &acme, QUOTA_CALL, 0, &held[i], &w.refusal));
    wait_until(&w, second_refuses);
    assert_int_equal(w.refusal.kind, LIMIT_CALLS);
    quota_release(&held[0]);
    wait_until(&w, second_serves);
    quota_release(&held[1]);
    world_free(&w);
}

TEST(test_quota_share__a_redis_that_comes_back_empty_gives_no_second_quota)
{
    struct world w;

    world_init(&w, "{\"requests\":\"8/h\"}");
    for (unsigned i = 0; i < 8; i++)
        assert_true(request(&w, 0));
    wait_until(&w, second_refuses);
    redis_server_order(&w.server, "kill");
    wait_until(&w, are_alone);
    assert_false(request(&w, 0));
    assert_non_null(strstr(w.refusal.err.text, "'acme' reached on this node: 8 requests"));
    redis_server_order(&w.server, "start");
    wait_until(&w, are_shared);
    assert_false(request(&w, 0));
    assert_false(request(&w, 1));
    world_free(&w);
}

TEST(test_quota_share__a_lost_redis_takes_nothing_from_who_holds)
{
    struct quota_use held = {0};
    struct world w;

    world_init(&w, "{\"calls\":1}");
    assert_true(quota_take(w.nodes[0], &acme, QUOTA_CALL, 0, &held, &w.refusal));
    wait_until(&w, second_refuses);
    redis_server_order(&w.server, "kill");
    wait_until(&w, are_alone);
    assert_true(request(&w, 1)); /* it has its own place now */
    assert_false(request(&w, 0));
    quota_release(&held);
    world_free(&w);
}
