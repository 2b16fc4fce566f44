/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines under a fake clock: when they fall due, in which order, and what they cost. */
#include "test.h"
#include "trail.h"

#include "base/clock.h"
#include "io/deadline.h"

#include <stdlib.h>

struct dated {
    struct deadline deadline;
    struct loop *loop;
    char c;
    struct dated *clears;
};

static void on_due(struct deadline *d)
{
    struct dated *x = container_of(d, struct dated, deadline);
    assert_false(deadline_is_set(d));
    mark(x->c);
    if (x->clears)
        deadline_clear(&x->clears->deadline);
    loop_stop(x->loop);
}

TEST(test_deadline__fires_when_due_and_not_before)
{
    struct loop *loop = loop_new();
    struct deadline_class minute, second;
    struct dated a = {.loop = loop, .c = 'a'}, b = {.loop = loop, .c = 'b'},
                 c = {.loop = loop, .c = 'c'};

    trail[0] = '\0';
    clock_set_fake(1000, 1000);
    deadline_class_init(&minute, loop, 60000);
    deadline_class_init(&second, loop, 1000);
    deadline_init(&a.deadline, on_due);
    deadline_init(&b.deadline, on_due);
    deadline_init(&c.deadline, on_due);
    deadline_set(&minute, &a.deadline);
    deadline_set(&second, &b.deadline);
    clock_advance_fake(999);
    deadline_set(&second, &c.deadline);
    loop_turn(loop); /* one sweep */
    assert_string_equal(trail, "");
    clock_advance_fake(1);
    loop_run(loop);
    assert_string_equal(trail, "b");
    assert_true(deadline_is_set(&c.deadline));
    deadline_clear(&c.deadline);
    clock_advance_fake(59000);
    loop_run(loop);
    assert_string_equal(trail, "ba");
    clock_set_real();
    deadline_class_release(&minute);
    deadline_class_release(&second);
    loop_free(loop);
}

TEST(test_deadline__one_may_clear_another_due_in_the_same_sweep)
{
    struct loop *loop = loop_new();
    struct deadline_class second;
    struct dated b = {.loop = loop, .c = 'b'};
    struct dated a = {.loop = loop, .c = 'a', .clears = &b};

    trail[0] = '\0';
    clock_set_fake(1000, 1000);
    deadline_class_init(&second, loop, 1000);
    deadline_init(&a.deadline, on_due);
    deadline_init(&b.deadline, on_due);
    deadline_set(&second, &a.deadline);
    deadline_set(&second, &b.deadline);
    clock_advance_fake(1000);
    loop_run(loop);
    assert_string_equal(trail, "a");
    clock_set_real();
    deadline_class_release(&second);
    loop_free(loop);
}

#define MANY 1000

struct crowd {
    struct loop *loop;
    struct deadline_class minute;
    struct deadline each[MANY];
    unsigned order[MANY], n_due; /* which fell due, in turn */
};

static struct crowd *crowd; /* of the test that runs */

static void on_one_due(struct deadline *d)
{
    crowd->order[crowd->n_due++] = (unsigned)(d - crowd->each);
    loop_stop(crowd->loop);
}

static void crowd_begin(struct crowd *c)
{
    crowd = c;
    c->n_due = 0;
    c->loop = loop_new();
    clock_set_fake(1000, 1000);
    deadline_class_init(&c->minute, c->loop, 60000);
    for (unsigned i = 0; i < MANY; i++)
        deadline_init(&c->each[i], on_one_due);
}

static void crowd_end(struct crowd *c)
{
    clock_set_real();
    deadline_class_release(&c->minute);
    loop_free(c->loop);
}

/* Every third is set again, every third is cleared, in an order that leaves gaps everywhere. */
TEST(test_deadline__many_fall_due_in_the_order_in_which_they_were_set_last)
{
    struct crowd c;
    unsigned n = 0;

    crowd_begin(&c);
    for (unsigned i = 0; i < MANY; i++)
        deadline_set(&c.minute, &c.each[i]);
    for (unsigned i = MANY; i-- > 0;)
        if (i % 3 == 1)
            deadline_clear(&c.each[i]);
    clock_advance_fake(1);
    for (unsigned i = 0; i < MANY; i += 3)
        deadline_set(&c.minute, &c.each[i]);
    clock_advance_fake(59999);
    loop_run(c.loop);
    for (unsigned i = 2; i < MANY; i += 3)
        assert_int_equal(c.order[n++], i);
    assert_int_equal(c.n_due, n);
    clock_advance_fake(1);
    loop_run(c.loop);
    for (unsigned i = 0; i < MANY; i += 3)
        assert_int_equal(c.order[n++], i);
    assert_int_equal(c.n_due, n);
    crowd_end(&c);
}

TEST(test_deadline__that_is_set_and_cleared_for_ever_takes_no_more_memory)
{
    struct crowd c;

    crowd_begin(&c);
    deadline_set(&c.minute, &c.each[0]); /* the oldest stays, so that no gap goes by itself */
    for (unsigned i = 0; i < 100 * MANY; i++) {
        deadline_set(&c.minute, &c.each[1 + i % 3]);
        if (i % 2)
            deadline_clear(&c.each[1 + i % 3]);
    }
    assert_in_range(c.minute.cap, 1, 64);
    assert_in_range(c.minute.n_set, 1, 4);
    clock_advance_fake(60000);
    loop_run(c.loop);
    assert_int_equal(c.order[0], 0);
    assert_int_equal(c.minute.n_set, 0);
    crowd_end(&c);
}

TEST(test_deadline__memory_may_go_as_soon_as_it_is_cleared)
{
    struct crowd c;
    struct deadline *shortlived[20];

    crowd_begin(&c);
    for (unsigned i = 0; i < countof(shortlived); i++) {
        shortlived[i] = xmalloc(sizeof(struct deadline));
        deadline_init(shortlived[i], on_one_due);
        deadline_set(&c.minute, &c.each[i]);
        deadline_set(&c.minute, shortlived[i]);
    }
    for (unsigned i = countof(shortlived); i-- > 0;) {
        deadline_clear(shortlived[i]);
        free(shortlived[i]);
    }
    for (unsigned i = 20; i < MANY; i++) /* the ring is made anew on the way */
        deadline_set(&c.minute, &c.each[i]);
    clock_advance_fake(60000);
    loop_run(c.loop);
    assert_int_equal(c.n_due, MANY);
    crowd_end(&c);
}

TEST(test_deadline__those_of_a_class_that_ends_are_unset)
{
    struct crowd c;

    crowd_begin(&c);
    for (unsigned i = 0; i < MANY; i++)
        deadline_set(&c.minute, &c.each[i]);
    deadline_clear(&c.each[7]);
    deadline_clear(&c.each[0]);
    deadline_clear(&c.each[1]);
    assert_ptr_equal(deadline_first(&c.minute), &c.each[2]);
    deadline_class_release(&c.minute);
    for (unsigned i = 0; i < MANY; i++) {
        assert_false(deadline_is_set(&c.each[i]));
        deadline_clear(&c.each[i]);
    }
    assert_null(deadline_first(&c.minute));
    crowd_end(&c); /* releases once more: fine */
}
