/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapper that fails on demand fails exactly the calls it was told to, and they leave no trace.
 */
#include "test.h"

#include "store/store.h"

static struct store *open_failing(void)
{
    struct store *s = NULL;
    struct error err;
    assert_true(store_open_memory(&s, &err));
    return store_failing(s);
}

static bool append(struct store *s, int64_t id)
{
    struct error err = {0};
    struct event_row e = {.id = id, .tenant = STR("t"), .body_len = -1};
    struct store_op op = {OP_EVENT_APPEND, NULL, {.event = &e}};
    bool ok = store_write(s, &op, 1, &err);
    assert_int_equal(op.verdict, ok ? VERDICT_OK : VERDICT_FAILED);
    assert_int_equal(err.code, ok ? ERR_NONE : ERR_UNAVAILABLE);
    return ok;
}

static int64_t events(struct store *s)
{
    struct store_counts c;
    struct error err;
    assert_true(store_counts(s, &c, &err));
    return c.events;
}

TEST(test_failing__fails_the_nth_call_and_those_after)
{
    struct store *s = open_failing();
    assert_true(append(s, 1));
    store_failing_set(s, 2, false);
    assert_true(append(s, 2));
    assert_false(append(s, 3));
    assert_false(append(s, 4));
    store_failing_set(s, 0, false);
    assert_int_equal(events(s), 2);
    store_close(s);
}

TEST(test_failing__once_fails_only_the_nth_call)
{
    struct store *s = open_failing();
    store_failing_set(s, 1, true);
    assert_false(append(s, 1));
    assert_true(append(s, 1));
    assert_true(append(s, 2));
    assert_int_equal(events(s), 2);
    store_close(s);
}
