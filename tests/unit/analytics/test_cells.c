/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "analytics/store/cells.h"

TEST(test_durations__the_middle_of_its_bucket_is_near_to_every_duration)
{
    for (int64_t us = 1; us < INT64_C(1) << 40; us += 1 + us / 97) {
        int64_t middle = duration_middle(duration_bucket(us));
        assert_true(llabs(middle - us) <= (int64_t)((double)us * DURATIONS_ERROR));
        assert_true(duration_bucket(us) <= duration_bucket(us + 1));
    }
    assert_int_equal(duration_bucket(INT64_MAX), DURATION_BUCKETS - 1);
    assert_int_equal(duration_bucket(-5), 0);
}

TEST(test_durations__quantiles_are_by_the_nearest_rank)
{
    struct durations d = {0};
    assert_int_equal(durations_quantile(&d, 50), -1);
    for (int i = 1; i <= 4; i++)
        durations_add(&d, (uint16_t)i, 1);
    assert_int_equal(durations_quantile(&d, 25), 1);
    assert_int_equal(durations_quantile(&d, 50), 2);
    assert_int_equal(durations_quantile(&d, 51), 3);
    assert_int_equal(durations_quantile(&d, 100), 4);
    durations_add(&d, 4, -1); /* a call that was taken back */
    assert_int_equal(durations_quantile(&d, 100), 3);
    durations_release(&d);
}

static struct str name(char *buf, size_t n, int i)
{
    return str_n(buf, (size_t)snprintf(buf, n, "session %d", i));
}

TEST(test_distinct__is_exact_up_to_its_limit_and_near_beyond)
{
    struct distinct d = {0};
    char text[32];
    for (int i = 0; i < 40; i++)
        distinct_add(&d, distinct_hash(name(text, sizeof(text), i % 20)), 20);
    assert_null(d.registers);
    assert_int_equal(distinct_count(&d), 20);
    distinct_add(&d, distinct_hash(STR("one more")), 20);
    assert_non_null(d.registers);
    for (int n = 100; n <= 100000; n *= 10) {
        for (int i = 0; i < n; i++)
            distinct_add(&d, distinct_hash(name(text, sizeof(text), i)), 20);
        assert_true(abs((int)distinct_count(&d) - n) < n * 3 * DISTINCT_ERROR);
    }
    distinct_release(&d);
}

TEST(test_distinct__a_sketch_depends_only_on_its_members)
{
    struct distinct once = {0}, low = {0}, high = {0};
    char text[32];
    for (int i = 0; i < 300; i++) {
        uint64_t hash = distinct_hash(name(text, sizeof(text), i));
        distinct_add(&once, hash, 0);
        distinct_add(i % 3 ? &low : &high, hash, i % 3 ? 10 : 1000);
    }
    distinct_merge(&high, &low, 20);
    assert_memory_equal(once.registers, high.registers, DISTINCT_REGISTERS);
    distinct_release(&once);
    distinct_release(&low);
    distinct_release(&high);
}

static void count(struct cells *c, int i, bool is_undone)
{
    static const struct counted_labels labels = {.tool = STR("t")};
    char text[32];
    struct counted_call call = {
        .labels = &labels,
        .session_id = name(text, sizeof(text), i / 2),
        .duration_us = 1 + i * 37,
        .request_bytes = i,
        .response_bytes = 3,
        .tokens = i % 3,
        .outcome = (uint8_t)(i % COUNTED_OUTCOMES),
        .is_undone = is_undone,
    };
    cells_count(c, &call, 8);
}

TEST(test_cells__are_the_same_when_they_are_read)
{
    struct cells c = {0}, read = {0};
    struct buf first, second;
    buf_init(&first, 1 << 20);
    buf_init(&second, 1 << 20);
    for (int i = 0; i < 500; i++)
        count(&c, i, false);
    assert_int_equal(cells_write(&c, 8, &first), 500);
    assert_true(cells_add_stored(&read, buf_str(&first), 8));
    assert_int_equal(cells_write(&read, 8, &second), 500);
    assert_int_equal(first.n, second.n);
    assert_memory_equal(first.p, second.p, first.n);
    for (size_t n = 0; n < first.n; n++) { /* a part of the bytes adds nothing */
        struct cells none = {0};
        assert_false(cells_add_stored(&none, str_n(first.p, n), 8));
        for (size_t i = 0; i < COUNTED_OUTCOMES; i++)
            assert_null(none.of[i]);
    }
    cells_release(&c);
    cells_release(&read);
    buf_release(&first);
    buf_release(&second);
}

TEST(test_cells__a_call_that_is_taken_back_leaves_nothing)
{
    struct cells c = {0};
    struct buf out;
    buf_init(&out, 4096);
    count(&c, COUNTED_INDETERMINATE, false);
    count(&c, COUNTED_INDETERMINATE, true);
    assert_int_equal(cells_write(&c, 8, &out), 0);
    count(&c, 3, true); /* what it took back is gone already */
    assert_int_equal(cells_write(&c, 8, &out), 0);
    cells_release(&c);
    buf_release(&out);
}
