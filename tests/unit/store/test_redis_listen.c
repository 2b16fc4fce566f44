/* SPDX-License-Identifier: Apache-2.0 */
/* What is published is heard on the loop, also after Redis was away. */
#include "test.h"

#include "redis_server.h"

#include "base/log.h"
#include "io/wire.h"
#include "store/redis_listen.h"

struct world {
    struct redis_server server;
    struct arena *mem;
    struct redis_target target;
    struct loop *loop;
    struct redis_listen *listen;
    struct redis *redis;
    struct loop_timer *limit;
    unsigned on_message, wanted, news;
    bool late;
    struct error err;
};

static void on_heard(void *arg, unsigned news)
{
    struct world *w = arg;
    w->news = news;
    if (++w->on_message == w->wanted)
        loop_stop(w->loop);
}

static void on_late(void *arg)
{
    struct world *w = arg;
    w->late = true;
    loop_stop(w->loop);
}

/* Turns the loop until so many were heard in all. */
static void hear(struct world *w, unsigned wanted)
{
    w->wanted = wanted;
    if (w->on_message >= wanted)
        return;
    loop_timer_start(w->limit, 20000, 0);
    loop_run(w->loop);
    loop_timer_stop(w->limit);
    assert_false(w->late);
}

static void publish_text(struct world *w, const char *text)
{
    struct str args[] = {STR("PUBLISH"), STR("t:changes"), str_of(text)};
    struct redis_command command = {args, countof(args)};
    struct redis_reply *reply = NULL;
    assert_true(redis_call(w->redis, &command, 1, w->mem, &reply, &w->err));
    assert_int_equal(reply->number, 1); /* somebody was there */
}

static void publish(struct world *w)
{
    publish_text(w, "ask");
}

static void world_init(struct world *w)
{
    memset(w, 0, sizeof(*w));
    log_setup(LOG_ERROR + 1, 0);
    redis_server_start(&w->server, NULL);
    w->mem = arena_new(1 << 20);
    w->loop = loop_new();
    w->limit = loop_timer_new(w->loop, on_late, w);
    assert_true(redis_target_parse(str_of(w->server.url), w->mem, &w->target, &w->err));
    struct redis_config config = {.target = &w->target, .deadline_ms = 5000};
    assert_true(redis_new(&config, &w->redis, &w->err));
    struct redis_listen_config listen = {.loop = w->loop,
                                         .target = &w->target,
                                         .channel = STR("t:changes"),
                                         .own = STR("events own"),
                                         .on_message = on_heard,
                                         .arg = w};
    assert_true(redis_listen_new(&listen, &w->listen, &w->err));
}

static void world_release(struct world *w)
{
    redis_listen_free(w->listen);
    redis_free(w->redis);
    loop_timer_free(w->limit);
    loop_free(w->loop);
    arena_free(w->mem);
    redis_server_end(&w->server);
}

TEST(test_redis_listen__the_beginning_and_each_message_are_heard)
{
    struct world w;
    world_init(&w);
    hear(&w, 1);
    publish(&w);
    hear(&w, 2);
    publish(&w);
    hear(&w, 3);
    world_release(&w);
}

TEST(test_redis_listen__what_was_said_is_heard_and_the_own_events_are_not)
{
    struct world w;
    world_init(&w);
    hear(&w, 1);
    assert_int_equal(w.news, REDIS_CHANGES | REDIS_EVENTS);
    publish_text(&w, "events own");
    publish_text(&w, "events other");
    hear(&w, 2);
    assert_int_equal(w.news, REDIS_EVENTS);
    publish_text(&w, "events own");
    publish(&w);
    hear(&w, 3);
    assert_int_equal(w.news, REDIS_CHANGES);
    world_release(&w);
}

TEST(test_redis_listen__after_a_loss_it_is_heard_once_that_some_may_have_been_missed)
{
    struct world w;
    world_init(&w);
    hear(&w, 1);
    redis_server_order(&w.server, "kill");
    redis_server_order(&w.server, "start");
    hear(&w, 2);
    publish(&w);
    hear(&w, 3);
    world_release(&w);
}

TEST(test_redis_listen__it_ends_at_once_whether_redis_is_there_or_not)
{
    struct world w;
    world_init(&w);
    hear(&w, 1);
    redis_server_order(&w.server, "kill");
    int64_t began_us = wire_now_us();
    redis_listen_free(w.listen);
    w.listen = NULL;
    assert_true(wire_now_us() - began_us < 5 * 1000000);
    world_release(&w);
}
