/* SPDX-License-Identifier: Apache-2.0 */
/* Stamps and the fold that reads wait for. */
#include "session/fresh.h"

#include "test.h"

struct fixture {
    struct loop *loop;
    struct lanes *lanes;
    struct fresh *fresh;
    struct fold_wait wait;
    unsigned done;
};

static void on_done(struct fold_wait *w)
{
    container_of(w, struct fixture, wait)->done++;
}

static void begin(struct fixture *f)
{
    struct store *store;
    struct error err;

    *f = (struct fixture){.wait.done = on_done};
    assert_true(store_open_memory(&store, &err));
    struct lanes_config config = {.write = store, .lookup = store, .query = store};
    f->loop = loop_new();
    f->lanes = lanes_new(f->loop, &config);
    f->fresh = fresh_new(f->loop, f->lanes);
}

static void end(struct fixture *f)
{
    lanes_free(f->lanes);
    fresh_free(f->fresh);
    loop_free(f->loop);
}

TEST(test_stamp__moves_with_every_touch_and_by_itself_never)
{
    struct fixture f;

    begin(&f);
    uint64_t a = fresh_stamp(f.fresh, STR("a"));
    assert_true(fresh_stamp(f.fresh, STR("a")) == a);
    fresh_touch(f.fresh, STR("a"), false);
    assert_true(fresh_stamp(f.fresh, STR("a")) != a);
    end(&f);
}

TEST(test_await__a_change_without_an_event_needs_no_fold)
{
    struct fixture f;

    begin(&f);
    fresh_touch(f.fresh, STR("a"), false);
    assert_true(fresh_await(f.fresh, &f.wait, STR("a")));
    assert_true(fresh_await(f.fresh, &f.wait, STR_NONE));
    end(&f);
}

TEST(test_await__an_event_is_waited_for_once)
{
    struct fixture f;

    begin(&f);
    fresh_touch(f.fresh, STR("a"), true);
    assert_false(fresh_await(f.fresh, &f.wait, STR("a")));
    while (!f.done)
        loop_turn(f.loop);
    assert_int_equal(f.done, 1);
    assert_true(fresh_await(f.fresh, &f.wait, STR("a")));
    assert_true(fresh_await(f.fresh, &f.wait, STR_NONE));
    fresh_touch(f.fresh, STR("a"), true);
    assert_false(fresh_await(f.fresh, &f.wait, STR_NONE));
    while (f.done < 2)
        loop_turn(f.loop);
    end(&f);
}

/* The barrier under way was handed in before the event, and says nothing of it. */
TEST(test_await__an_event_after_the_barrier_waits_for_the_next)
{
    struct fixture f;
    struct fixture second = {.wait.done = on_done};

    begin(&f);
    fresh_touch(f.fresh, STR("a"), true);
    assert_false(fresh_await(f.fresh, &f.wait, STR("a")));
    fresh_touch(f.fresh, STR("a"), true);
    assert_false(fresh_await(f.fresh, &second.wait, STR("a")));
    while (!f.done)
        loop_turn(f.loop);
    assert_int_equal(second.done, 0);
    while (!second.done)
        loop_turn(f.loop);
    assert_int_equal(f.done, 1);
    end(&f);
}
