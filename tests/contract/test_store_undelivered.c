/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about results that did not reach their client. */
#include "store_contract.h"

static struct undelivered_row result_row(int64_t id)
{
    struct undelivered_row row = {
        .id = id,
        .session_id = STR(ID "000001"),
        .exec = 77,
        .created_ms = NOW,
        .expires_ms = NOW + HOUR,
        .sealed = STR("\x01\x00sealed\xff"),
    };
    memset(row.digest, (int)id, sizeof(row.digest));
    return row;
}

static enum verdict put(struct fixture *f, const struct principal *who,
                        const struct undelivered_row *row)
{
    return write_one(f, (struct store_op){OP_UNDELIVERED_PUT, who, {.undelivered = row}});
}

static enum verdict take(struct fixture *f, const struct principal *who, int64_t id)
{
    struct undelivered_row row = {.id = id};
    return write_one(f, (struct store_op){OP_UNDELIVERED_TAKE, who, {.undelivered = &row}});
}

static struct undelivered_row *find(struct fixture *f, const struct principal *who, int64_t id)
{
    struct undelivered_row *row = NULL;
    check(f, store_undelivered_get(f->store, who, id, f->mem, &row, &f->err));
    return row;
}

static size_t page(struct fixture *f, int64_t after, unsigned limit, struct undelivered_row **ret)
{
    size_t n = 0;
    check(f, store_undelivered_page(f->store, after, limit, f->mem, ret, &n, &f->err));
    return n;
}

static void every_column_survives(struct fixture *f)
{
    struct undelivered_row row = result_row(5);
    create(f, &alice, 1);
    assert_int_equal(put(f, &alice, &row), VERDICT_OK);
    struct undelivered_row *got = find(f, &alice, 5);
    assert_non_null(got);
    assert_int_equal(got->id, 5);
    assert_str(got->tenant, "acme");
    assert_str(got->owner, "user:alice");
    assert_str(got->session_id, ID "000001");
    assert_memory_equal(got->digest, row.digest, 32);
    assert_int_equal(got->exec, 77);
    assert_int_equal(got->created_ms, NOW);
    assert_int_equal(got->expires_ms, NOW + HOUR);
    assert_true(str_eq(got->sealed, row.sealed));
    assert_int_equal(got->sealed_len, row.sealed.n);
}
TEST(test_undelivered_put__every_column_survives)
{
    on_every_store(every_column_survives);
}

static void wants_a_session_of_its_owner(struct fixture *f)
{
    struct undelivered_row row = result_row(5);
    assert_int_equal(put(f, &alice, &row), VERDICT_MISSING);
    create(f, &bob, 1);
    assert_int_equal(put(f, &alice, &row), VERDICT_MISSING);
    assert_int_equal(put(f, &bob, &row), VERDICT_OK);
    assert_int_equal(put(f, &bob, &row), VERDICT_DUPLICATE);
}
TEST(test_undelivered_put__wants_a_session_of_its_owner_and_a_new_id)
{
    on_every_store(wants_a_session_of_its_owner);
}

static void is_for_one(struct fixture *f)
{
    struct undelivered_row row = result_row(5);
    create(f, &alice, 1);
    assert_int_equal(put(f, &alice, &row), VERDICT_OK);
    assert_int_equal(take(f, &bob, 5), VERDICT_MISSING);
    assert_int_equal(take(f, &alice_elsewhere, 5), VERDICT_MISSING);
    assert_int_equal(take(f, &alice, 6), VERDICT_MISSING);
    assert_null(find(f, &bob, 5));
    assert_null(find(f, &alice_elsewhere, 5));
    assert_int_equal(take(f, &alice, 5), VERDICT_OK);
    assert_int_equal(take(f, &alice, 5), VERDICT_MISSING);
    assert_null(find(f, &alice, 5));
}
TEST(test_undelivered_take__is_for_its_owner_and_once)
{
    on_every_store(is_for_one);
}

static void ends(struct fixture *f)
{
    struct undelivered_row row = result_row(5), *rows = NULL;
    create(f, &alice, 1);
    assert_int_equal(put(f, &alice, &row), VERDICT_OK);
    clock_set_fake(NOW + HOUR - 1, 1000);
    assert_non_null(find(f, &alice, 5));
    assert_int_equal(page(f, 0, 10, &rows), 1);
    clock_set_fake(NOW + HOUR, 1000);
    assert_null(find(f, &alice, 5));
    assert_int_equal(page(f, 0, 10, &rows), 0);
    assert_int_equal(take(f, &alice, 5), VERDICT_MISSING);
}
TEST(test_undelivered__is_missing_from_its_end_on)
{
    on_every_store(ends);
}

static void lists_by_id(struct fixture *f)
{
    static const int64_t ids[] = {9, 3, 6};
    struct undelivered_row *rows = NULL;
    create(f, &alice, 1);
    for (size_t i = 0; i < countof(ids); i++) {
        struct undelivered_row row = result_row(ids[i]);
        assert_int_equal(put(f, &alice, &row), VERDICT_OK);
    }
    assert_int_equal(page(f, 0, 2, &rows), 2);
    assert_int_equal(rows[0].id, 3);
    assert_int_equal(rows[1].id, 6);
    assert_null(rows[0].sealed.p);
    assert_int_equal(rows[0].sealed_len, result_row(3).sealed.n);
    assert_str(rows[0].session_id, ID "000001");
    assert_int_equal(page(f, 6, 2, &rows), 1);
    assert_int_equal(rows[0].id, 9);
    size_t n;
    assert_false(
        store_undelivered_page(f->store, 0, STORE_PAGE_MAX + 1, f->mem, &rows, &n, &f->err));
}
TEST(test_undelivered_page__lists_by_id_without_the_bytes)
{
    on_every_store(lists_by_id);
}

/* Rows past their end are invisible, so the clock goes back to see which are gone. */
static void reaps_the_oldest(struct fixture *f)
{
    struct undelivered_row *rows = NULL;
    size_t n;
    create(f, &alice, 1);
    for (int64_t id = 1; id <= 4; id++) {
        struct undelivered_row row = result_row(id);
        row.expires_ms = NOW + 10 * (5 - id);
        assert_int_equal(put(f, &alice, &row), VERDICT_OK);
    }
    check(f, reap_at(f->store, NOW + 30, 2, &n, &f->err));
    assert_int_equal(page(f, 0, 10, &rows), 2);
    assert_int_equal(rows[0].id, 1);
    assert_int_equal(rows[1].id, 2);
    check(f, reap_at(f->store, NOW + 30, 2, &n, &f->err));
    assert_int_equal(page(f, 0, 10, &rows), 1);
    assert_int_equal(rows[0].id, 1);
}
TEST(test_reap__deletes_undelivered_results_past_their_end_a_batch_at_a_time)
{
    on_every_store(reaps_the_oldest);
}

static void goes_with_its_batch(struct fixture *f)
{
    struct undelivered_row row = result_row(5);
    struct event_row e = intent(event_id(1, 1), ID "000001"), other = e;
    create(f, &alice, 1);
    assert_int_equal(write_one(f, (struct store_op){OP_EVENT_APPEND, NULL, {.event = &e}}),
                     VERDICT_OK);
    other.mac[5] ^= 1; /* another event under a taken id: the batch fails whole */
    struct store_op ops[] = {{OP_UNDELIVERED_PUT, &alice, {.undelivered = &row}},
                             {OP_EVENT_APPEND, NULL, {.event = &other}}};
    assert_false(store_write(f->store, ops, 2, &f->err));
    assert_null(find(f, &alice, 5));
}
TEST(test_undelivered_put__is_rolled_back_with_its_batch)
{
    on_every_store(goes_with_its_batch);
}
