/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about the list of writers. */
#include "../store_contract.h"

#include "feeds/store/family.h"
#include "feeds/store/verbs.h"
#include "store/memory_impl.h"

__attribute__((constructor)) static void register_feeds(void)
{
    store_family_add(&feeds_store);
    memory_family_add(&feeds_memory);
}

static int64_t start_writer(struct fixture *f, int n, int64_t lease_until_ms)
{
    struct writer_row row = {.uuid = arena_printf(f->mem, "00000000-0000-7000-8000-%012d", n),
                             .node = STR("test"),
                             .started_ms = NOW + n,
                             .lease_until_ms = lease_until_ms};
    check(f, store_writer_start(f->store, &row, false, &f->err));
    return row.number;
}

static size_t list(struct fixture *f, int64_t after, int64_t since_ms, unsigned limit,
                   struct event_writer **ret)
{
    size_t n = 0;
    check(f, store_event_writers(f->store, after, since_ms, limit, f->mem, ret, &n, &f->err));
    return n;
}

static void writers_and_their_ends(struct fixture *f)
{
    struct event_writer *rows = NULL;
    int64_t first = start_writer(f, 1, NOW + 15000), second = start_writer(f, 2, NOW + 1000);
    int64_t third = start_writer(f, 3, NOW + 15000);
    struct writer_row end = {.number = third, .ended_ms = NOW + 500};
    write_one(f, (struct store_op){.kind = OP_WRITER_END, .writer = &end});
    append(f, intent(event_id(first, 1), ID "000001"));
    append(f, outcome(event_id(first, 2), event_id(first, 1), ID "000001", "ok"));
    append(f, intent(event_id(third, 1), ID "000001"));

    assert_int_equal(list(f, 0, 0, 10, &rows), 3);
    assert_int_equal(rows[0].number, first);
    assert_int_equal(rows[0].started_ms, NOW + 1);
    assert_int_equal(rows[0].lease_until_ms, NOW + 15000);
    assert_int_equal(rows[0].ended_ms, 0);
    assert_int_equal(rows[1].number, second);
    assert_int_equal(rows[2].number, third);
    assert_int_equal(rows[2].ended_ms, NOW + 500);
    if (rows[0].last_id != EVENT_WRITER_UNREAD) {
        assert_int_equal(rows[0].last_id, event_id(first, 2));
        assert_int_equal(rows[1].last_id, 0);
        assert_int_equal(rows[2].last_id, event_id(third, 1));
    }
    assert_int_equal(list(f, first, 0, 10, &rows), 2);
    assert_int_equal(rows[0].number, second);
    assert_int_equal(list(f, 0, 0, 1, &rows), 1);
    /* Lapsed before, ended before, and at that very time. */
    assert_int_equal(list(f, 0, NOW + 1001, 10, &rows), 1);
    assert_int_equal(rows[0].number, first);
    assert_int_equal(list(f, 0, NOW + 1000, 10, &rows), 2);
    assert_int_equal(list(f, 0, NOW + 500, 10, &rows), 3);
}

TEST(test_event_writers__every_store_lists_writers_and_their_ends)
{
    on_every_store(writers_and_their_ends);
}
