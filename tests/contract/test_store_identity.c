/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about tenants, users, keys and remembered answers. */
#include "store_contract.h"

#define USER "20000000-0000-8000-8000-000000"

static enum verdict ensure_tenant(struct fixture *f, const char *id, int64_t created_ms)
{
    struct tenant_row row = {.id = str_of(id), .created_ms = created_ms};
    return write_one(f, (struct store_op){OP_TENANT_ENSURE, NULL, {.tenant = &row}});
}

static struct tenant_row *get_tenant(struct fixture *f, const char *id)
{
    struct tenant_row *row = NULL;
    check(f, store_tenant_get(f->store, str_of(id), f->mem, &row, &f->err));
    return row;
}

static void tenants_are_made_once(struct fixture *f)
{
    assert_null(get_tenant(f, "acme"));
    assert_non_null(get_tenant(f, "default"));
    assert_int_equal(ensure_tenant(f, "acme", NOW), VERDICT_OK);
    assert_int_equal(ensure_tenant(f, "acme", NOW + 5), VERDICT_OK);
    assert_str(get_tenant(f, "acme")->id, "acme");
    assert_int_equal(get_tenant(f, "acme")->created_ms, NOW);
    assert_null(get_tenant(f, "Acme"));
    create(f, &alice_elsewhere, 1); /* the first session makes its own */
    assert_int_equal(get_tenant(f, "umbrella")->created_ms, NOW);
}
TEST(test_tenant_ensure__makes_one_where_there_is_none)
{
    on_every_store(tenants_are_made_once);
}

static void tenants_count(struct fixture *f)
{
    for (int i = 1; i <= 3; i++) {
        struct session_row row = session_row(f, i);
        row.counted = i != 1;
        row.expires_ms = i == 3 ? NOW + 10 : row.expires_ms;
        assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    }
    assert_int_equal(get_tenant(f, "acme")->counted_sessions, 2);
    clock_advance_fake(10);
    assert_int_equal(get_tenant(f, "acme")->counted_sessions, 1);
    assert_int_equal(end_session(f, &alice, ID "000002"), VERDICT_OK);
    assert_int_equal(get_tenant(f, "acme")->counted_sessions, 0);
}
TEST(test_tenant_get__tells_how_many_live_sessions_count)
{
    on_every_store(tenants_count);
}

static void tenants_in_pages(struct fixture *f)
{
    struct tenant_row *rows = NULL;
    size_t n = 0;
    assert_int_equal(ensure_tenant(f, "zeta", NOW), VERDICT_OK);
    assert_int_equal(ensure_tenant(f, "beta", NOW), VERDICT_OK);
    check(f, store_tenants_page(f->store, STR_NONE, 2, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 2);
    assert_str(rows[0].id, "beta");
    assert_str(rows[1].id, "default");
    check(f, store_tenants_page(f->store, rows[1].id, 2, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 1);
    assert_str(rows[0].id, "zeta");
    assert_false(
        store_tenants_page(f->store, STR_NONE, STORE_PAGE_MAX + 1, f->mem, &rows, &n, &f->err));
    assert_int_equal(f->err.code, ERR_BAD_INPUT);
    check(f, store_tenants_page(f->store, STR_NONE, STORE_PAGE_MAX, f->mem, &rows, &n, &f->err));
}
TEST(test_tenants_page__goes_by_id)
{
    on_every_store(tenants_in_pages);
}

static struct user_row user(struct fixture *f, int n)
{
    return (struct user_row){
        .id = arena_printf(f->mem, USER "%06d", n),
        .tenant = STR("acme"),
        .name = arena_printf(f->mem, "user %d", n),
        .role = ROLE_AUDITOR,
        .created_ms = NOW,
    };
}

static enum verdict ensure_user(struct fixture *f, struct user_row row)
{
    return write_one(f, (struct store_op){OP_USER_ENSURE, NULL, {.user = &row}});
}

static struct user_row *get_user(struct fixture *f, const char *id)
{
    struct user_row *row = NULL;
    check(f, store_user_get(f->store, str_of(id), f->mem, &row, &f->err));
    return row;
}

static void users_survive(struct fixture *f)
{
    struct user_row row = user(f, 1);
    row.issuer = STR("https://issuer.example");
    assert_null(get_user(f, USER "000001"));
    assert_int_equal(ensure_user(f, row), VERDICT_OK);
    struct user_row *got = get_user(f, USER "000001");
    assert_str(got->id, USER "000001");
    assert_str(got->tenant, "acme");
    assert_str(got->name, "user 1");
    assert_str(got->issuer, "https://issuer.example");
    assert_int_equal(got->role, ROLE_AUDITOR);
    assert_int_equal(got->created_ms, NOW);
    assert_int_equal(got->ended_ms, 0);
    row.role = ROLE_ADMIN;
    row.name = STR("somebody");
    row.created_ms = NOW + 5;
    assert_int_equal(ensure_user(f, row), VERDICT_OK);
    got = get_user(f, USER "000001");
    assert_int_equal(got->role, ROLE_ADMIN);
    assert_str(got->name, "user 1");
    assert_int_equal(got->created_ms, NOW);
}
TEST(test_user_ensure__makes_one_and_from_then_on_only_its_role_follows)
{
    on_every_store(users_survive);
}

static void users_are_told_apart(struct fixture *f)
{
    struct user_row one = user(f, 1), two = user(f, 2), other = user(f, 1);
    assert_int_equal(ensure_user(f, one), VERDICT_OK);
    two.name = one.name;
    assert_int_equal(ensure_user(f, two), VERDICT_DUPLICATE); /* a name of our own */
    two.issuer = STR("https://issuer.example");
    assert_int_equal(ensure_user(f, two), VERDICT_OK);
    other.tenant = STR("umbrella");
    other.role = ROLE_ADMIN;
    assert_int_equal(ensure_user(f, other), VERDICT_DUPLICATE);
    assert_int_equal(get_user(f, USER "000001")->role, ROLE_AUDITOR);
}
TEST(test_user_ensure__an_id_stays_in_its_tenant_and_a_name_with_its_user)
{
    on_every_store(users_are_told_apart);
}

static struct key_row key(struct fixture *f, int n)
{
    struct key_row row = {
        .id = arena_printf(f->mem, "abcdefghij%02d", n),
        .tenant = STR("acme"),
        .role = ROLE_SERVICE,
        .created_ms = NOW,
    };
    memset(row.hash, n, sizeof(row.hash));
    return row;
}

static enum verdict on_key(struct fixture *f, enum op_kind kind, struct key_row row)
{
    return write_one(f, (struct store_op){kind, NULL, {.key = &row}});
}

static struct key_row *get_key(struct fixture *f, const char *id)
{
    struct key_row *row = NULL;
    check(f, store_key_get(f->store, str_of(id), f->mem, &row, &f->err));
    return row;
}

static void keys_survive(struct fixture *f)
{
    struct key_row row = key(f, 1);
    assert_int_equal(ensure_user(f, user(f, 1)), VERDICT_OK);
    row.user_id = STR(USER "000001");
    row.name = STR("ci \xc3\xbc");
    row.scopes = STR("{\"servers\":[\"a\"]}");
    row.expires_ms = NOW + HOUR;
    assert_int_equal(on_key(f, OP_KEY_CREATE, row), VERDICT_OK);
    struct key_row *got = get_key(f, "abcdefghij01");
    assert_str(got->id, "abcdefghij01");
    assert_str(got->tenant, "acme");
    assert_str(got->user_id, USER "000001");
    assert_str(got->name, "ci \xc3\xbc");
    assert_str(got->scopes, "{\"servers\":[\"a\"]}");
    assert_int_equal(got->role, ROLE_SERVICE);
    assert_memory_equal(got->hash, row.hash, sizeof(row.hash));
    assert_int_equal(got->created_ms, NOW);
    assert_int_equal(got->expires_ms, NOW + HOUR);
    assert_int_equal(got->revoked_ms, 0);
    assert_int_equal(got->last_used_ms, 0);
    assert_int_equal(on_key(f, OP_KEY_CREATE, key(f, 2)), VERDICT_OK);
    got = get_key(f, "abcdefghij02");
    assert_null(got->user_id.p);
    assert_null(got->name.p);
    assert_null(got->scopes.p);
    assert_int_equal(got->expires_ms, 0);
    assert_null(get_key(f, "abcdefghij03"));
}
TEST(test_key_create__every_column_survives)
{
    on_every_store(keys_survive);
}

static void keys_are_refused(struct fixture *f)
{
    struct key_row row = key(f, 1);
    assert_int_equal(on_key(f, OP_KEY_CREATE, row), VERDICT_OK);
    assert_non_null(get_tenant(f, "acme"));
    row.tenant = STR("umbrella");
    assert_int_equal(on_key(f, OP_KEY_CREATE, row), VERDICT_DUPLICATE);
    assert_str(get_key(f, "abcdefghij01")->tenant, "acme");
    assert_int_equal(ensure_user(f, user(f, 1)), VERDICT_OK);
    row = key(f, 2);
    row.user_id = STR(USER "000002");
    assert_int_equal(on_key(f, OP_KEY_CREATE, row), VERDICT_MISSING);
    row.user_id = STR(USER "000001");
    row.tenant = STR("umbrella");
    assert_int_equal(on_key(f, OP_KEY_CREATE, row), VERDICT_MISSING);
    assert_null(get_key(f, "abcdefghij02"));
}
TEST(test_key_create__refuses_a_taken_id_and_a_user_of_another_tenant)
{
    on_every_store(keys_are_refused);
}

static void keys_are_revoked(struct fixture *f)
{
    struct key_row row = key(f, 1);
    row.revoked_ms = NOW + 5;
    assert_int_equal(on_key(f, OP_KEY_REVOKE, row), VERDICT_MISSING);
    assert_int_equal(on_key(f, OP_KEY_CREATE, key(f, 1)), VERDICT_OK);
    row.tenant = STR("umbrella");
    assert_int_equal(on_key(f, OP_KEY_REVOKE, row), VERDICT_MISSING);
    assert_int_equal(get_key(f, "abcdefghij01")->revoked_ms, 0);
    row.tenant = STR("acme");
    assert_int_equal(on_key(f, OP_KEY_REVOKE, row), VERDICT_OK);
    row.revoked_ms = NOW + 6;
    assert_int_equal(on_key(f, OP_KEY_REVOKE, row), VERDICT_MISSING);
    assert_int_equal(get_key(f, "abcdefghij01")->revoked_ms, NOW + 5);
}
TEST(test_key_revoke__once_and_in_its_own_tenant)
{
    on_every_store(keys_are_revoked);
}

static void keys_are_used(struct fixture *f)
{
    struct key_row row = key(f, 1);
    row.last_used_ms = NOW + 5;
    assert_int_equal(on_key(f, OP_KEY_USED, row), VERDICT_MISSING);
    assert_int_equal(on_key(f, OP_KEY_CREATE, key(f, 1)), VERDICT_OK);
    assert_int_equal(on_key(f, OP_KEY_USED, row), VERDICT_OK);
    row.last_used_ms = NOW + 4;
    assert_int_equal(on_key(f, OP_KEY_USED, row), VERDICT_OK);
    assert_int_equal(get_key(f, "abcdefghij01")->last_used_ms, NOW + 5);
}
TEST(test_key_used__never_goes_back)
{
    on_every_store(keys_are_used);
}

static void keys_in_pages(struct fixture *f)
{
    struct key_row *rows = NULL;
    size_t n = 0;
    for (int i = 5; i >= 1; i--) {
        struct key_row row = key(f, i);
        row.tenant = i == 3 ? STR("umbrella") : STR("acme");
        assert_int_equal(on_key(f, OP_KEY_CREATE, row), VERDICT_OK);
    }
    check(f, store_keys_page(f->store, STR("acme"), STR_NONE, 3, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 3);
    assert_str(rows[0].id, "abcdefghij01");
    assert_str(rows[2].id, "abcdefghij04");
    check(f, store_keys_page(f->store, STR("acme"), rows[2].id, 3, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 1);
    assert_str(rows[0].id, "abcdefghij05");
    check(f,
          store_keys_page(f->store, STR_NONE, STR("abcdefghij01"), 10, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 4);
    assert_str(rows[1].tenant, "umbrella");
    check(f, store_keys_page(f->store, STR("nobody"), STR_NONE, 10, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 0);
}
TEST(test_keys_page__goes_by_id_in_one_tenant_or_in_all)
{
    on_every_store(keys_in_pages);
}

static enum verdict put_answer(struct fixture *f, const struct principal *who, const char *name,
                               int status, int64_t expires_ms)
{
    struct idempotency_row row = {.key = str_of(name),
                                  .status = status,
                                  .headers = STR("Location: /x\r\n"),
                                  .body = STR("{\"a\":\"\\u0000\"}"),
                                  .created_ms = NOW,
                                  .expires_ms = expires_ms};
    memset(row.request_sha, 7, sizeof(row.request_sha));
    return write_one(f, (struct store_op){OP_IDEMPOTENCY_PUT, who, {.idempotency = &row}});
}

static struct idempotency_row *get_answer(struct fixture *f, const struct principal *who,
                                          const char *name)
{
    struct idempotency_row *row = NULL;
    check(f, store_idempotency_get(f->store, who, str_of(name), f->mem, &row, &f->err));
    return row;
}

static void answers_are_kept(struct fixture *f)
{
    assert_null(get_answer(f, &alice, "k"));
    assert_int_equal(put_answer(f, &alice, "k", 201, NOW + HOUR), VERDICT_OK);
    assert_int_equal(put_answer(f, &alice, "k", 500, NOW + HOUR), VERDICT_DUPLICATE);
    struct idempotency_row *row = get_answer(f, &alice, "k");
    assert_str(row->tenant, "acme");
    assert_str(row->owner, "user:alice");
    assert_str(row->key, "k");
    assert_int_equal(row->status, 201);
    assert_str(row->headers, "Location: /x\r\n");
    assert_str(row->body, "{\"a\":\"\\u0000\"}");
    assert_int_equal(row->request_sha[31], 7);
    assert_int_equal(row->created_ms, NOW);
    assert_int_equal(row->expires_ms, NOW + HOUR);
    assert_null(get_answer(f, &bob, "k"));
    assert_null(get_answer(f, &alice_elsewhere, "k"));
    assert_int_equal(put_answer(f, &bob, "k", 202, NOW + HOUR), VERDICT_OK);
    assert_int_equal(get_answer(f, &alice, "k")->status, 201);
}
TEST(test_idempotency__an_answer_is_its_owners_and_stays_as_it_was_first)
{
    on_every_store(answers_are_kept);
}

static void answers_end(struct fixture *f)
{
    size_t n;
    assert_int_equal(put_answer(f, &alice, "k", 201, NOW + 10), VERDICT_OK);
    assert_int_equal(put_answer(f, &alice, "l", 201, NOW + 10), VERDICT_OK);
    clock_advance_fake(9);
    assert_non_null(get_answer(f, &alice, "k"));
    assert_int_equal(put_answer(f, &alice, "k", 202, NOW + HOUR), VERDICT_DUPLICATE);
    clock_advance_fake(1);
    assert_null(get_answer(f, &alice, "k"));
    assert_int_equal(put_answer(f, &alice, "k", 202, NOW + HOUR), VERDICT_OK);
    assert_int_equal(get_answer(f, &alice, "k")->status, 202);
    check(f, reap_at(f->store, NOW + 10, 10, &n, &f->err));
    clock_set_fake(NOW, 2000); /* what was not cleaned up would be there again */
    assert_null(get_answer(f, &alice, "l"));
    assert_non_null(get_answer(f, &alice, "k"));
}
TEST(test_idempotency__past_its_end_an_answer_is_none_and_is_cleaned_up)
{
    on_every_store(answers_end);
}

static void required_together(struct fixture *f)
{
    struct idempotency_row answer = {
        .key = STR("k"), .status = 201, .created_ms = NOW, .expires_ms = NOW + HOUR};
    struct session_row row = session_row(f, 1);
    row.counted = true;
    struct store_op ops[] = {
        {OP_IDEMPOTENCY_PUT, &alice, {.idempotency = &answer}, .required = true},
        {OP_SESSION_CREATE, &alice, {.session = &row}, .max_counted = 0, .required = true},
    };
    assert_false(store_write(f->store, ops, 2, &f->err));
    assert_int_equal(f->err.code, ERR_CONFLICT);
    assert_int_equal(ops[0].verdict, VERDICT_FAILED);
    assert_int_equal(ops[1].verdict, VERDICT_LIMIT);
    assert_null(get_answer(f, &alice, "k"));
    ops[1].max_counted = 1;
    check(f, store_write(f->store, ops, 2, &f->err));
    assert_false(store_write(f->store, ops, 2, &f->err));
    assert_int_equal(ops[0].verdict, VERDICT_DUPLICATE);
    assert_int_equal(ops[1].verdict, VERDICT_FAILED);
}
TEST(test_required__an_answer_is_kept_only_with_what_it_answers)
{
    on_every_store(required_together);
}

static void no_changes(struct fixture *f)
{
    struct change_row *rows = NULL;
    size_t n = 9;
    check(f, store_changes(f->store, -1, 10, f->mem, &rows, &n, &f->err));
    assert_true(n <= 1);
    n = 9;
    check(f, store_changes(f->store, 0, 10, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 0);
}
TEST(test_changes__there_are_none_at_first)
{
    on_every_store(no_changes);
}
