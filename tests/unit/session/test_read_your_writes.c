/* SPDX-License-Identifier: Apache-2.0 */
/* Stamps and the fold that reads wait for. */
#include "session/read_your_writes.h"

#include "test.h"

struct fixture {
    struct loop *loop;
    struct lanes *lanes;
    struct read_your_writes *writes;
    struct fold_wait wait;
    unsigned done;
};

static const struct touch_scope mine = {{"acme", 4}, {"user:1", 6}}, tenants = {{"acme", 4}, {0}},
                                others = {{"acme", 4}, {"user:2", 6}},
                                strangers = {{"rival", 5}, {"user:1", 6}},
                                strange_tenants = {{"rival", 5}, {0}};

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
    f->writes = read_your_writes_new(f->loop, f->lanes);
}

static void end(struct fixture *f)
{
    lanes_free(f->lanes);
    read_your_writes_free(f->writes);
    loop_free(f->loop);
}

TEST(test_stamp__moves_with_every_touch_and_by_itself_never)
{
    struct fixture f;

    begin(&f);
    uint64_t a = read_your_writes_stamp(f.writes, STR("acme"), STR("a"));
    assert_true(read_your_writes_stamp(f.writes, STR("acme"), STR("a")) == a);
    read_your_writes_touch(f.writes, touch_slots_of(mine, STR("a")), false);
    assert_true(read_your_writes_stamp(f.writes, STR("acme"), STR("a")) != a);
    end(&f);
}

TEST(test_mark__holds_until_somebody_asks)
{
    struct fixture f;
    uint64_t mark = 0, other = 0;

    begin(&f);
    assert_true(read_your_writes_move_mark(f.writes, &mark));
    assert_false(read_your_writes_move_mark(f.writes, &mark));
    assert_true(read_your_writes_move_mark(f.writes, &other));
    (void)read_your_writes_stamp(f.writes, STR("acme"), STR("a"));
    assert_true(read_your_writes_move_mark(f.writes, &mark));
    assert_false(read_your_writes_move_mark(f.writes, &mark));
    read_your_writes_touch(f.writes, touch_slots_of(mine, STR("a")), true);
    assert_false(read_your_writes_await(f.writes, &f.wait, mine, STR("a")));
    assert_true(read_your_writes_move_mark(f.writes, &mark));
    assert_true(read_your_writes_move_mark(f.writes, &other));
    while (!f.done)
        loop_turn(f.loop);
    end(&f);
}

/* As a session does it with every call: however reads fall between its touches, each sees them. */
TEST(test_mark__spares_only_touches_that_would_change_nothing)
{
    struct fixture f;
    uint64_t mark = 0;

    begin(&f);
    for (unsigned i = 0; i < 64; i++) {
        uint64_t before = read_your_writes_stamp(f.writes, STR("acme"), STR("a"));
        for (unsigned touches = 0; touches <= i % 3; touches++)
            if (read_your_writes_move_mark(f.writes, &mark))
                read_your_writes_touch(f.writes, touch_slots_of(mine, STR("a")), true);
        assert_true(read_your_writes_stamp(f.writes, STR("acme"), STR("a")) != before);
        f.done = 0;
        if (i % 2 == 0 && !read_your_writes_await(f.writes, &f.wait, mine, STR("a")))
            while (!f.done)
                loop_turn(f.loop);
        assert_true(i % 2 != 0 || read_your_writes_await(f.writes, &f.wait, mine, STR("a")));
        if (read_your_writes_move_mark(f.writes, &mark))
            read_your_writes_touch(f.writes, touch_slots_of(mine, STR("a")), true);
        assert_false(read_your_writes_await(f.writes, &f.wait, mine, STR("a")));
        for (f.done = 0; !f.done;)
            loop_turn(f.loop);
    }
    end(&f);
}

TEST(test_await__a_change_without_an_event_needs_no_fold)
{
    struct fixture f;

    begin(&f);
    read_your_writes_touch(f.writes, touch_slots_of(mine, STR("a")), false);
    assert_true(read_your_writes_await(f.writes, &f.wait, mine, STR("a")));
    assert_true(read_your_writes_await(f.writes, &f.wait, mine, STR_NONE));
    end(&f);
}

TEST(test_await__an_event_is_waited_for_once)
{
    struct fixture f;

    begin(&f);
    read_your_writes_touch(f.writes, touch_slots_of(mine, STR("a")), true);
    assert_false(read_your_writes_await(f.writes, &f.wait, mine, STR("a")));
    while (!f.done)
        loop_turn(f.loop);
    assert_int_equal(f.done, 1);
    assert_true(read_your_writes_await(f.writes, &f.wait, mine, STR("a")));
    assert_true(read_your_writes_await(f.writes, &f.wait, mine, STR_NONE));
    read_your_writes_touch(f.writes, touch_slots_of(mine, STR("a")), true);
    assert_false(read_your_writes_await(f.writes, &f.wait, mine, STR_NONE));
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
    read_your_writes_touch(f.writes, touch_slots_of(mine, STR("a")), true);
    assert_false(read_your_writes_await(f.writes, &f.wait, mine, STR("a")));
    read_your_writes_touch(f.writes, touch_slots_of(mine, STR("a")), true);
    assert_false(read_your_writes_await(f.writes, &second.wait, mine, STR("a")));
    while (!f.done)
        loop_turn(f.loop);
    assert_int_equal(second.done, 0);
    while (!second.done)
        loop_turn(f.loop);
    assert_int_equal(f.done, 1);
    end(&f);
}

/* Names share a table, so now and then two are taken for one another: not three in eight. */
TEST(test_await__is_for_the_owner_and_the_tenant_and_for_nobody_else)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    const struct touch_scope not_theirs[] = {others, strangers, strange_tenants};

    for (size_t who = 0; who < countof(not_theirs); who++) {
        struct fixture f, waits[countof(names) + 2] = {{.done = 0}};
        size_t n = 0, taken_for_another = 0;

        begin(&f);
        for (size_t i = 0; i < countof(names); i++) {
            read_your_writes_touch(f.writes, touch_slots_of(mine, str_of(names[i])), true);
            waits[n].wait.done = on_done;
            if (!read_your_writes_await(f.writes, &waits[n].wait, not_theirs[who],
                                        str_of(names[i])))
                n++, taken_for_another++;
        }
        assert_true(taken_for_another < 3);
        waits[n].wait.done = waits[n + 1].wait.done = on_done;
        assert_false(read_your_writes_await(f.writes, &waits[n].wait, mine, STR("a")));
        assert_false(read_your_writes_await(f.writes, &waits[n + 1].wait, tenants, STR("a")));
        while (!waits[n + 1].done)
            loop_turn(f.loop);
        end(&f);
    }
}
