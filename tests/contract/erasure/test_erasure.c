/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about erasures. */
#include "../store_contract.h"

#include "erasure/store/family.h"
#include "erasure/store/ops.h"
#include "erasure/store/verbs.h"
#include "holds/store/family.h"
#include "holds/store/ops.h"
#include "store/memory_impl.h"

/* As the program does at its start; the memory store is for tests only. */
__attribute__((constructor)) static void register_erasures(void)
{
    store_family_add(&holds_store);
    memory_family_add(&holds_memory);
    store_family_add(&erasure_store);
    memory_family_add(&erasure_memory);
}

#define ERASURE "00000000-0000-7000-9000-000000"
#define USER "00000000-0000-4000-a000-000000"
#define ADA USER "000001"

static const struct principal ada = {STR("acme"), STR("user:" ADA), ROLE_MEMBER};
static const struct principal ada_key = {STR("acme"), STR("key:laptop"), ROLE_MEMBER};

static void make_user(struct fixture *f, int n)
{
    struct user_row row = {.id = arena_printf(f->mem, USER "%06d", n),
                           .tenant = STR("acme"),
                           .name = arena_printf(f->mem, "user %d", n),
                           .role = ROLE_MEMBER,
                           .password = STR("hashed"),
                           .created_ms = NOW};
    assert_int_equal(write_one(f, (struct store_op){OP_USER_CREATE, NULL, {.user = &row}}),
                     VERDICT_OK);
}

static void make_key(struct fixture *f, const char *id, const char *user)
{
    struct key_row row = {.id = str_of(id),
                          .tenant = STR("acme"),
                          .user_id = str_of(user),
                          .name = STR("Ada's laptop"),
                          .role = ROLE_MEMBER,
                          .created_ms = NOW};
    row.hash[0] = (uint8_t)id[0];
    assert_int_equal(write_one(f, (struct store_op){OP_KEY_CREATE, NULL, {.key = &row}}),
                     VERDICT_OK);
}

/* Ada with a key, and somebody else; sessions 1 and 2 are Ada's, 3 is of the key, 4 of bob. */
static void make_people(struct fixture *f)
{
    make_user(f, 1);
    make_user(f, 2);
    make_key(f, "laptop", ADA);
    create(f, &ada, 1);
    create(f, &ada, 2);
    create(f, &ada_key, 3);
    create(f, &bob, 4);
}

static struct erasure_row erasure(struct fixture *f, int n, const char *tenant)
{
    return (struct erasure_row){.id = arena_printf(f->mem, ERASURE "%06d", n),
                                .tenant = str_of(tenant),
                                .user_id = STR(ADA),
                                .made_by = STR("user:admin"),
                                .reason = STR("asked for it"),
                                .names = STR("[\"user 1\"]"),
                                .created_ms = NOW,
                                .moved_ms = NOW};
}

static enum verdict begin(struct fixture *f, int n, const char *tenant)
{
    struct erasure_row row = erasure(f, n, tenant);
    struct store_op op = op_erasure_begin(&row);
    struct error err;
    if (!store_write(f->store, &op, 1, &err))
        assert_int_equal(err.code, ERR_CONFLICT);
    return op.verdict;
}

static struct erasure_left left(struct fixture *f)
{
    struct erasure_left *row = NULL;
    check(f, store_erasure_left(f->store, STR("acme"), STR(ADA), f->mem, &row, &f->err));
    assert_non_null(row);
    return *row;
}

static struct erasure_row *only(struct fixture *f, bool open_only)
{
    struct erasure_row *rows = NULL;
    size_t n = 0;
    check(f, store_erasures_page(f->store, STR("acme"), open_only, STR_NONE, 10, f->mem, &rows, &n,
                                 &f->err));
    assert_true(n <= 1);
    return n ? rows : NULL;
}

static enum verdict hold(struct fixture *f, int n, enum hold_kind kind, const char *target)
{
    struct hold_row row = {.id = arena_printf(f->mem, ID "%06d", 900 + n),
                           .tenant = STR("acme"),
                           .kind = kind,
                           .target = str_of(target),
                           .made_by = STR("local"),
                           .created_ms = NOW};
    return write_one(f, op_hold_put(&row));
}

static void drop(struct fixture *f, int64_t most)
{
    struct erasure_rows rows = {
        .id = STR(ERASURE "000001"), .tenant = STR("acme"), .user_id = STR(ADA), .most = most};
    assert_int_equal(write_one(f, op_erasure_rows(&rows)), VERDICT_OK);
}

static void begin_ends_access(struct fixture *f)
{
    struct user_row *user = NULL;
    struct key_row *key = NULL;
    make_people(f);
    assert_int_equal(begin(f, 1, "umbrella"), VERDICT_MISSING);
    assert_int_equal(left(f).keys, 1);
    assert_int_equal(begin(f, 1, "acme"), VERDICT_OK);
    assert_int_equal(begin(f, 2, "acme"), VERDICT_DUPLICATE);
    assert_int_equal(left(f).keys, 0);
    check(f, store_user_get(f->store, STR(ADA), f->mem, &user, &f->err));
    assert_true(user->ended_ms > 0);
    assert_null(user->password.p);
    check(f, store_key_get(f->store, STR("laptop"), f->mem, &key, &f->err));
    assert_true(key->revoked_ms > 0);
    struct erasure_row *row = only(f, true);
    assert_str(row->made_by, "user:admin");
    assert_str(row->reason, "asked for it");
    assert_str(row->names, "[\"user 1\"]");
    assert_int_equal(row->done_ms, 0);
}
TEST(test_erasure_begin__ends_the_access_of_the_person)
{
    on_every_store(begin_ends_access);
}

static void held_stays(struct fixture *f)
{
    make_people(f);
    assert_int_equal(hold(f, 1, HOLD_USER, ADA), VERDICT_OK);
    assert_int_equal(begin(f, 1, "acme"), VERDICT_NOT_ACTIVE);
    assert_true(left(f).is_held);
    struct hold_row release = {.id = STR(ID "000901"),
                               .tenant = STR("acme"),
                               .released_ms = NOW,
                               .released_by = STR("local")};
    assert_int_equal(write_one(f, op_hold_release(&release)), VERDICT_OK);
    assert_int_equal(hold(f, 2, HOLD_SESSION, ID "000002"), VERDICT_OK);
    assert_int_equal(begin(f, 1, "acme"), VERDICT_OK);
    drop(f, 10);
    assert_null(get(f, &ada, ID "000001"));
    assert_non_null(get(f, &ada, ID "000002"));
    assert_int_equal(left(f).held, 1);
    assert_int_equal(left(f).live, 0);
}
TEST(test_erasure__leaves_what_is_held)
{
    on_every_store(held_stays);
}

static void rows_go_in_steps(struct fixture *f)
{
    make_people(f);
    assert_int_equal(begin(f, 1, "acme"), VERDICT_OK);
    assert_int_equal(end_session(f, &ada, ID "000001"), VERDICT_OK);
    assert_int_equal(left(f).live, 2);
    assert_int_equal(left(f).over, 1);
    drop(f, 2);
    assert_int_equal(left(f).live + left(f).over, 1);
    assert_int_equal(only(f, true)->sessions, 2);
    drop(f, 2);
    drop(f, 2);
    assert_int_equal(left(f).live + left(f).over, 0);
    assert_int_equal(only(f, true)->sessions, 3);
    assert_null(get(f, &ada_key, ID "000003"));
    assert_non_null(get(f, &bob, ID "000004"));
}
TEST(test_erasure_rows__go_some_at_a_time_and_are_counted)
{
    on_every_store(rows_go_in_steps);
}

static void one_process_moves(struct fixture *f)
{
    struct erasure_move m = {
        .id = STR(ERASURE "000001"), .from = 0, .to = 7, .bodies = 3, .body_bytes = 100};
    struct store_op op = op_erasure_move(&m);
    struct error err;
    make_people(f);
    assert_int_equal(begin(f, 1, "acme"), VERDICT_OK);
    check(f, store_write(f->store, &op, 1, &f->err));
    assert_false(store_write(f->store, &op, 1, &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(op.verdict, VERDICT_STALE);
    struct erasure_row *row = only(f, true);
    assert_int_equal(row->next_id, 7);
    assert_int_equal(row->bodies, 3);
    assert_int_equal(row->body_bytes, 100);
}
TEST(test_erasure_move__is_stale_for_a_second_process)
{
    on_every_store(one_process_moves);
}

static void names_go(struct fixture *f)
{
    struct erasure_row row = erasure(f, 1, "acme");
    struct user_row *user = NULL;
    struct key_row *key = NULL;
    make_people(f);
    assert_int_equal(begin(f, 1, "acme"), VERDICT_OK);
    assert_int_equal(write_one(f, op_erasure_names(&row)), VERDICT_OK);
    assert_null(only(f, true)->names.p);
    row.held = 4;
    assert_int_equal(write_one(f, op_erasure_done(&row)), VERDICT_OK);
    assert_null(only(f, true));
    assert_true(only(f, false)->done_ms > 0);
    assert_int_equal(only(f, false)->held, 4);
    check(f, store_user_get(f->store, STR(ADA), f->mem, &user, &f->err));
    assert_str(user->name, "erased-" ADA);
    check(f, store_key_get(f->store, STR("laptop"), f->mem, &key, &f->err));
    assert_null(key->name.p);
    assert_int_equal(begin(f, 2, "acme"), VERDICT_OK);
}
TEST(test_erasure_names__are_replaced_by_the_id)
{
    on_every_store(names_go);
}

static void owners_are_known(struct fixture *f)
{
    struct erasure_owner *rows = NULL;
    size_t n = 0;
    bool clean = false;
    make_people(f);
    check(f, store_erasure_owners(f->store, STR(ADA), f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 2);
    assert_str(rows[0].owner, "user:" ADA);
    assert_str(rows[1].owner, "key:laptop");
    check(f, store_erasure_clean(f->store, &clean, &f->err));
    assert_true(clean);
}
TEST(test_erasure_owners__are_the_user_and_the_keys_of_the_user)
{
    on_every_store(owners_are_known);
}
