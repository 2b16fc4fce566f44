/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about holds. */
#include "../store_contract.h"

#include "holds/store/family.h"
#include "holds/store/ops.h"
#include "holds/store/verbs.h"
#include "store/memory_impl.h"

/* As the program does at its start; the memory store is for tests only. */
__attribute__((constructor)) static void register_holds(void)
{
    store_family_add(&holds_store);
    memory_family_add(&holds_memory);
}

#define HOLD "00000000-0000-7000-9000-000000"
#define USER "00000000-0000-4000-a000-000000"

static void make_user(struct fixture *f, int n)
{
    struct user_row row = {.id = arena_printf(f->mem, USER "%06d", n),
                           .tenant = STR("acme"),
                           .name = arena_printf(f->mem, "user %d", n),
                           .role = ROLE_MEMBER,
                           .created_ms = NOW};
    assert_int_equal(write_one(f, (struct store_op){OP_USER_ENSURE, NULL, {.user = &row}}),
                     VERDICT_OK);
}

static void make_key(struct fixture *f, const char *id, const char *user)
{
    struct key_row row = {.id = str_of(id),
                          .tenant = STR("acme"),
                          .user_id = str_of(user),
                          .role = ROLE_MEMBER,
                          .created_ms = NOW};
    row.hash[0] = (uint8_t)id[0];
    assert_int_equal(write_one(f, (struct store_op){OP_KEY_CREATE, NULL, {.key = &row}}),
                     VERDICT_OK);
}

static enum verdict hold(struct fixture *f, int n, const char *tenant, enum hold_kind kind,
                         const char *target)
{
    struct hold_row row = {.id = arena_printf(f->mem, HOLD "%06d", n),
                           .tenant = str_of(tenant),
                           .kind = kind,
                           .target = str_of(target),
                           .reason = STR("case 7"),
                           .made_by = STR("local"),
                           .created_ms = NOW + n};
    return write_one(f, op_hold_put(&row));
}

static enum verdict release(struct fixture *f, int n, const char *tenant)
{
    struct hold_row row = {.id = arena_printf(f->mem, HOLD "%06d", n),
                           .tenant = str_of(tenant),
                           .released_ms = NOW + HOUR,
                           .released_by = STR("user:judge")};
    return write_one(f, op_hold_release(&row));
}

static size_t page(struct fixture *f, const char *tenant, bool live_only, const char *before,
                   unsigned limit, struct hold_row **ret)
{
    size_t n = 0;
    check(f, store_holds_page(f->store, tenant ? str_of(tenant) : STR_NONE, live_only,
                              before ? str_of(before) : STR_NONE, limit, f->mem, ret, &n, &f->err));
    return n;
}

static bool is_held(struct fixture *f, enum held_kind kind, const char *name)
{
    struct held_row *rows = NULL;
    size_t n = 0, found = 0;
    check(f, store_held(f->store, f->mem, &rows, &n, &f->err));
    for (size_t i = 0; i < n; i++)
        found += rows[i].kind == kind && str_eq(rows[i].name, str_of(name)) &&
                 str_eq(rows[i].tenant, STR("acme"));
    assert_true(found <= 1);
    return found;
}

static void holds_are_made_and_released(struct fixture *f)
{
    struct hold_row *rows = NULL;
    create(f, &alice, 1);
    make_user(f, 1);
    assert_int_equal(hold(f, 1, "acme", HOLD_SESSION, ID "000001"), VERDICT_OK);
    assert_int_equal(hold(f, 2, "acme", HOLD_USER, USER "000001"), VERDICT_OK);
    assert_int_equal(hold(f, 3, "acme", HOLD_SESSION, ID "000001"), VERDICT_DUPLICATE);
    assert_int_equal(hold(f, 3, "acme", HOLD_SESSION, ID "000002"), VERDICT_MISSING);
    assert_int_equal(hold(f, 3, "acme", HOLD_USER, ID "000001"), VERDICT_MISSING);
    assert_int_equal(hold(f, 3, "umbrella", HOLD_SESSION, ID "000001"), VERDICT_MISSING);
    assert_int_equal(hold(f, 3, "umbrella", HOLD_USER, USER "000001"), VERDICT_MISSING);
    assert_int_equal(page(f, "acme", true, NULL, 10, &rows), 2);
    assert_str(rows[0].id, HOLD "000002");
    assert_int_equal(rows[0].kind, HOLD_USER);
    assert_str(rows[1].tenant, "acme");
    assert_str(rows[1].target, ID "000001");
    assert_str(rows[1].reason, "case 7");
    assert_str(rows[1].made_by, "local");
    assert_int_equal(rows[1].created_ms, NOW + 1);
    assert_int_equal(rows[1].released_ms, 0);
    assert_int_equal(release(f, 1, "umbrella"), VERDICT_MISSING);
    assert_int_equal(release(f, 1, "acme"), VERDICT_OK);
    assert_int_equal(release(f, 1, "acme"), VERDICT_MISSING);
    assert_int_equal(page(f, "acme", true, NULL, 10, &rows), 1);
    assert_int_equal(page(f, NULL, false, NULL, 10, &rows), 2);
    assert_int_equal(rows[1].released_ms, NOW + HOUR);
    assert_str(rows[1].released_by, "user:judge");
    assert_int_equal(page(f, NULL, false, HOLD "000002", 10, &rows), 1);
    assert_str(rows[0].id, HOLD "000001");
    assert_int_equal(page(f, "umbrella", false, NULL, 10, &rows), 0);
    assert_int_equal(hold(f, 4, "acme", HOLD_SESSION, ID "000001"), VERDICT_OK);
}
TEST(test_hold__a_target_has_at_most_one_live_hold_and_a_released_one_stays_for_the_record)
{
    on_every_store(holds_are_made_and_released);
}

static void held_names_owners(struct fixture *f)
{
    create(f, &alice, 1);
    make_user(f, 1);
    make_user(f, 2);
    make_key(f, "abcdefghij01", USER "000001");
    make_key(f, "bbcdefghij02", USER "000002");
    assert_int_equal(hold(f, 1, "acme", HOLD_SESSION, ID "000001"), VERDICT_OK);
    assert_int_equal(hold(f, 2, "acme", HOLD_USER, USER "000001"), VERDICT_OK);
    assert_true(is_held(f, HELD_SESSION, ID "000001"));
    assert_true(is_held(f, HELD_OWNER, "user:" USER "000001"));
    assert_true(is_held(f, HELD_OWNER, "key:abcdefghij01"));
    assert_false(is_held(f, HELD_OWNER, "key:bbcdefghij02"));
    assert_int_equal(release(f, 2, "acme"), VERDICT_OK);
    assert_true(is_held(f, HELD_SESSION, ID "000001"));
    assert_false(is_held(f, HELD_OWNER, "user:" USER "000001"));
    assert_false(is_held(f, HELD_OWNER, "key:abcdefghij01"));
}
TEST(test_held__names_sessions_users_and_the_keys_of_users_while_they_are_held)
{
    on_every_store(held_names_owners);
}

static size_t reap_over(struct fixture *f)
{
    struct reap_request what = {.now_ms = NOW + HOUR, .over_ms = NOW + HOUR, .batch = 1};
    struct reaped done = {0};
    check(f, store_reap(f->store, &what, &done, &f->err));
    return done.deleted;
}

static void reaper_passes_by(struct fixture *f)
{
    const struct principal user = {STR("acme"), STR("user:" USER "000001"), ROLE_MEMBER};
    const struct principal key = {STR("acme"), STR("key:abcdefghij01"), ROLE_MEMBER};
    make_user(f, 1);
    make_key(f, "abcdefghij01", USER "000001");
    create(f, &alice, 1);
    create(f, &user, 2);
    create(f, &key, 3);
    create(f, &alice, 4);
    assert_int_equal(hold(f, 1, "acme", HOLD_SESSION, ID "000001"), VERDICT_OK);
    assert_int_equal(hold(f, 2, "acme", HOLD_USER, USER "000001"), VERDICT_OK);
    assert_int_equal(end_session(f, &alice, ID "000001"), VERDICT_OK);
    assert_int_equal(end_session(f, &user, ID "000002"), VERDICT_OK);
    assert_int_equal(end_session(f, &key, ID "000003"), VERDICT_OK);
    assert_int_equal(end_session(f, &alice, ID "000004"), VERDICT_OK);
    assert_int_equal(reap_over(f), 1);
    assert_null(get(f, &alice, ID "000004"));
    assert_int_equal(reap_over(f), 0);
    assert_non_null(get(f, &alice, ID "000001"));
    assert_non_null(get(f, &user, ID "000002"));
    assert_non_null(get(f, &key, ID "000003"));
    assert_int_equal(release(f, 1, "acme"), VERDICT_OK);
    assert_int_equal(reap_over(f), 1);
    assert_null(get(f, &alice, ID "000001"));
    assert_int_equal(release(f, 2, "acme"), VERDICT_OK);
    assert_int_equal(reap_over(f), 1);
    assert_int_equal(reap_over(f), 1);
    assert_int_equal(reap_over(f), 0);
}
TEST(test_reap__deletes_no_session_that_is_held_or_whose_owner_is)
{
    on_every_store(reaper_passes_by);
}

static void caps(struct fixture *f)
{
    struct hold_row *rows = NULL;
    make_user(f, 1);
    for (int i = 1; i <= HOLDS_MAX; i++) {
        create(f, &alice, i);
        assert_int_equal(hold(f, i, "acme", HOLD_SESSION, arena_printf(f->mem, ID "%06d", i).p),
                         VERDICT_OK);
    }
    assert_int_equal(hold(f, HOLDS_MAX + 1, "acme", HOLD_USER, USER "000001"), VERDICT_LIMIT);
    for (int i = 1; i <= HOLDS_MAX; i++)
        assert_int_equal(release(f, i, "acme"), VERDICT_OK);
    assert_int_equal(page(f, "acme", false, HOLD "000002", 10, &rows), 1);
    assert_int_equal(hold(f, HOLDS_MAX + 1, "acme", HOLD_USER, USER "000001"), VERDICT_OK);
    assert_int_equal(release(f, HOLDS_MAX + 1, "acme"), VERDICT_OK);
    assert_int_equal(page(f, "acme", false, HOLD "000002", 10, &rows), 0);
    assert_int_equal(page(f, "acme", false, HOLD "000003", 10, &rows), 1);
}
TEST(test_hold__live_holds_and_those_of_the_record_are_counted_up_to_their_caps)
{
    on_every_store(caps);
}
