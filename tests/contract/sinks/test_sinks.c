/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about sinks. */
#include "../store_contract.h"

#include "sinks/store/family.h"
#include "sinks/store/ops.h"
#include "sinks/store/verbs.h"
#include "store/memory_impl.h"

/* As the program does at its start; the memory store is for tests only. */
__attribute__((constructor)) static void register_sinks(void)
{
    store_family_add(&sinks_store);
    memory_family_add(&sinks_memory);
}

static enum verdict take(struct fixture *f, int64_t writer, int64_t lease_ms, int64_t now_ms)
{
    struct sink_claim c = {
        .name = STR("audit"), .writer = writer, .lease_ms = lease_ms, .now_ms = now_ms};
    return write_one(f, op_sink_take(&c));
}

static enum verdict save(struct fixture *f, int64_t writer, const char *position, int64_t lease_ms)
{
    struct sink_claim c = {.name = STR("audit"),
                           .writer = writer,
                           .position = position ? str_of(position) : STR_NONE,
                           .lease_ms = lease_ms,
                           .now_ms = NOW + 1};
    return write_one(f, op_sink_save(&c));
}

static struct sink_row *sink(struct fixture *f)
{
    struct sink_row *row = NULL;
    check(f, store_sink(f->store, STR("audit"), f->mem, &row, &f->err));
    return row;
}

static void one_process_sends(struct fixture *f)
{
    assert_null(sink(f));
    assert_int_equal(save(f, 1, "1.1", HOUR), VERDICT_MISSING);
    assert_int_equal(take(f, 1, HOUR, NOW), VERDICT_OK);
    assert_null(sink(f)->position.p);
    assert_int_equal(sink(f)->writer, 1);
    assert_int_equal(take(f, 2, HOUR, NOW), VERDICT_DUPLICATE);
    assert_int_equal(save(f, 2, "9.9", HOUR), VERDICT_MISSING);
    assert_int_equal(save(f, 1, "1.120,3.4", HOUR), VERDICT_OK);
    assert_int_equal(take(f, 1, HOUR, NOW), VERDICT_OK); /* its own lease is no obstacle */
    assert_int_equal(save(f, 1, NULL, HOUR), VERDICT_OK);
    assert_str(sink(f)->position, "1.120,3.4");
    assert_str(sink(f)->name, "audit");
    assert_true(sink(f)->saved_ms > 0);
}
TEST(test_sink__one_process_sends_and_only_it_saves)
{
    on_every_store(one_process_sends);
}

static void a_released_sink_is_free(struct fixture *f)
{
    assert_int_equal(take(f, 1, HOUR, NOW), VERDICT_OK);
    assert_int_equal(save(f, 1, "1.5", 0), VERDICT_OK);
    assert_int_equal(sink(f)->writer, 0);
    assert_int_equal(save(f, 1, "1.6", HOUR), VERDICT_MISSING);
    assert_int_equal(take(f, 2, HOUR, NOW), VERDICT_OK);
    assert_str(sink(f)->position, "1.5");
}
TEST(test_sink__a_released_sink_goes_on_in_another_process_where_it_was)
{
    on_every_store(a_released_sink_is_free);
}

/* PostgreSQL goes by its own clock, so the others get the wall clock here. */
static void a_lapsed_lease_is_free(struct fixture *f)
{
    enum verdict got = VERDICT_DUPLICATE;
    int64_t now_ms = NOW;
    assert_int_equal(take(f, 1, 20, now_ms), VERDICT_OK);
    while (got == VERDICT_DUPLICATE)
        got = take(f, 2, HOUR, now_ms++);
    assert_int_equal(got, VERDICT_OK);
    assert_true(now_ms > NOW + 1);
    assert_int_equal(save(f, 1, "1.7", HOUR), VERDICT_MISSING);
    assert_null(sink(f)->position.p);
}
TEST(test_sink__a_lapsed_lease_passes_to_the_next_and_the_late_one_saves_nothing)
{
    on_every_store(a_lapsed_lease_is_free);
}

static void a_process_alone_takes_it(struct fixture *f)
{
    struct sink_claim c = {
        .name = STR("audit"), .writer = 2, .lease_ms = HOUR, .now_ms = NOW, .is_alone = true};
    assert_int_equal(take(f, 1, HOUR, NOW), VERDICT_OK);
    assert_int_equal(write_one(f, op_sink_take(&c)), VERDICT_OK);
    assert_int_equal(sink(f)->writer, 2);
}
TEST(test_sink__a_process_that_is_alone_does_not_wait_for_the_lease_of_a_dead_one)
{
    on_every_store(a_process_alone_takes_it);
}

static void an_ended_writer_holds_nothing(struct fixture *f)
{
    struct writer_row first = {.uuid = STR("00000000-0000-7000-8000-00000000000a"),
                               .node = STR("a"),
                               .started_ms = NOW,
                               .lease_until_ms = NOW + HOUR};
    check(f, store_writer_start(f->store, &first, false, &f->err));
    assert_int_equal(take(f, first.number, HOUR, NOW), VERDICT_OK);
    assert_int_equal(take(f, first.number + 1, HOUR, NOW), VERDICT_DUPLICATE);
    first.ended_ms = NOW + 1;
    (void)write_one(f, (struct store_op){OP_WRITER_END, NULL, {.writer = &first}});
    assert_int_equal(take(f, first.number + 1, HOUR, NOW), VERDICT_OK);
}
TEST(test_sink__the_lease_of_an_ended_writer_is_void)
{
    on_every_store(an_ended_writer_holds_nothing);
}
