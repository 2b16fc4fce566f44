/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>

#include "analytics/report.h"

#define HOUR_MS (INT64_C(60) * 60 * 1000)
#define NOW_MS (INT64_C(1000000) * HOUR_MS)

/* Adds a call of each of n clients in each of the last `hours` hours.  *ret_bytes: what the report takes
 * then. */
static bool count(size_t n, int hours, size_t max_bytes, size_t *ret_bytes, struct error *err)
{
    struct arena *mem = arena_new(64 << 20);
    struct report r;
    struct buf bytes;
    struct cells cells = {0};
    struct counted_call call = {.duration_us = 5, .session_id = STR("a")};
    bool ok = true;

    buf_init(&bytes, 1 << 20);
    cells_count(&cells, &call, 20);
    assert_int_equal(cells_write(&cells, 20, &bytes), 1);
    cells_release(&cells);
    assert_true(
        report_init(&r, REPORT_CLIENT, STEP_1H, NOW_MS - 24 * HOUR_MS, NOW_MS, NOW_MS, mem, err));
    assert_int_equal(r.max_bytes, REPORT_BYTES_MAX);
    r.max_bytes = max_bytes;
    report_begin(&r, STR("acme"));
    for (size_t i = 0; ok && i < n * (size_t)hours; i++) {
        struct rollup_row row = {
            .span = (NOW_MS - (int64_t)(1 + i % (size_t)hours) * HOUR_MS) / SPAN_MS,
            .client = arena_printf(mem, "client %zu", i / (size_t)hours),
            .cells = buf_str(&bytes),
        };
        ok = report_add(&r, &row, 1, err);
    }
    *ret_bytes = r.bytes;
    report_release(&r);
    buf_release(&bytes);
    arena_free(mem);
    return ok;
}

TEST(test_report__takes_its_limit_of_memory_and_no_more)
{
    struct error err;
    size_t all = 0, taken = 0;

    assert_true(count(50, 24, SIZE_MAX, &all, &err));
    assert_true(all > 50 * 24 * 100);
    assert_true(count(50, 24, all, &taken, &err));
    assert_int_equal(taken, all);
    assert_false(count(50, 24, all - 1, &taken, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    assert_non_null(strstr(err.text, "shorter time"));
}
