/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about tenants' keys and what they seal. */
#include "store_contract.h"

#define KEY "30000000-0000-7000-8000-000000"

static struct tenant_key_row key(const char *id, const char *tenant)
{
    return (struct tenant_key_row){.id = str_of(id),
                                   .tenant = str_of(tenant),
                                   .master_id = STR("aaaa0001"),
                                   .wrapped = str_n("\0w\xff", 3),
                                   .created_ms = NOW};
}

static enum verdict put(struct fixture *f, const char *id, const char *tenant)
{
    struct tenant_key_row row = key(id, tenant);
    return write_one(f, (struct store_op){OP_TENANT_KEY_PUT, NULL, {.tenant_key = &row}});
}

static struct tenant_key_row *key_of(struct fixture *f, const char *tenant, struct str id)
{
    struct tenant_key_row *row = NULL;
    check(f, store_tenant_key_get(f->store, str_of(tenant), id, f->mem, &row, &f->err));
    return row;
}

static void keys_are_the_tenants(struct fixture *f)
{
    assert_null(key_of(f, "acme", STR_NONE));
    assert_int_equal(put(f, KEY "000002", "acme"), VERDICT_OK);
    assert_int_equal(put(f, KEY "000001", "acme"), VERDICT_OK);
    assert_int_equal(put(f, KEY "000003", "umbrella"), VERDICT_OK);
    assert_int_equal(put(f, KEY "000001", "umbrella"), VERDICT_DUPLICATE);
    struct tenant_key_row *row = key_of(f, "acme", STR_NONE);
    assert_str(row->id, KEY "000002");
    assert_str(row->tenant, "acme");
    assert_str(row->master_id, "aaaa0001");
    assert_true(str_eq(row->wrapped, str_n("\0w\xff", 3)));
    assert_int_equal(row->created_ms, NOW);
    assert_str(key_of(f, "acme", STR(KEY "000001"))->id, KEY "000001");
    assert_null(key_of(f, "acme", STR(KEY "000003")));
    assert_null(key_of(f, "acme", STR(KEY "000009")));
}
TEST(test_tenant_key_get__gives_the_one_named_or_the_newest_of_that_tenant)
{
    on_every_store(keys_are_the_tenants);
}

static void keys_in_pages(struct fixture *f)
{
    struct tenant_key_row *rows = NULL;
    size_t n = 0;
    assert_int_equal(put(f, KEY "000002", "acme"), VERDICT_OK);
    assert_int_equal(put(f, KEY "000003", "umbrella"), VERDICT_OK);
    assert_int_equal(put(f, KEY "000001", "acme"), VERDICT_OK);
    check(f, store_tenant_keys_page(f->store, STR_NONE, 2, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 2);
    assert_str(rows[0].id, KEY "000001");
    assert_str(rows[1].id, KEY "000002");
    check(f, store_tenant_keys_page(f->store, rows[1].id, 2, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 1);
    assert_str(rows[0].tenant, "umbrella");
    assert_false(
        store_tenant_keys_page(f->store, STR_NONE, STORE_PAGE_MAX + 1, f->mem, &rows, &n, &f->err));
    assert_int_equal(f->err.code, ERR_BAD_INPUT);
}
TEST(test_tenant_keys_page__goes_by_id_over_all_tenants)
{
    on_every_store(keys_in_pages);
}

static enum verdict wrap(struct fixture *f, const char *id, const char *tenant)
{
    struct tenant_key_row row = key(id, tenant);
    row.master_id = STR("bbbb0002");
    row.wrapped = STR("again");
    row.created_ms = NOW + 5;
    return write_one(f, (struct store_op){OP_TENANT_KEY_WRAP, NULL, {.tenant_key = &row}});
}

static void keys_are_wrapped_again(struct fixture *f)
{
    assert_int_equal(put(f, KEY "000001", "acme"), VERDICT_OK);
    assert_int_equal(wrap(f, KEY "000001", "umbrella"), VERDICT_MISSING);
    assert_int_equal(wrap(f, KEY "000002", "acme"), VERDICT_MISSING);
    assert_str(key_of(f, "acme", STR_NONE)->master_id, "aaaa0001");
    assert_int_equal(wrap(f, KEY "000001", "acme"), VERDICT_OK);
    assert_str(key_of(f, "acme", STR_NONE)->master_id, "bbbb0002");
    assert_str(key_of(f, "acme", STR_NONE)->wrapped, "again");
    assert_int_equal(key_of(f, "acme", STR_NONE)->created_ms, NOW);
}
TEST(test_tenant_key_wrap__changes_nothing_but_how_it_is_sealed)
{
    on_every_store(keys_are_wrapped_again);
}

static void create_sealed(struct fixture *f, const struct principal *who, int n, const char *sealed)
{
    struct session_row row = session_row(f, n);
    row.sealed_auth = sealed ? str_of(sealed) : STR_NONE;
    assert_int_equal(create_row(f, who, &row, -1), VERDICT_OK);
}

static void sealed_in_pages(struct fixture *f)
{
    struct session_row *rows = NULL;
    size_t n = 0;
    create_sealed(f, &alice, 1, "one");
    create_sealed(f, &bob, 2, NULL);
    create_sealed(f, &alice_elsewhere, 3, "three");
    create_sealed(f, &bob, 4, "four");
    assert_int_equal(end_session(f, &bob, ID "000004"), VERDICT_OK);
    struct session_row told = session_row(f, 5);
    told.sealed_context = STR("five");
    assert_int_equal(create_row(f, &bob, &told, -1), VERDICT_OK);
    check(f, store_sealed_page(f->store, STR_NONE, 2, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 2);
    assert_str(rows[0].id, ID "000001");
    assert_str(rows[0].sealed_auth, "one");
    assert_str(rows[1].id, ID "000003");
    assert_str(rows[1].tenant, "umbrella");
    check(f, store_sealed_page(f->store, rows[1].id, 2, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 2);
    assert_str(rows[0].sealed_auth, "four");
    assert_null(rows[1].sealed_auth.p);
    assert_str(rows[1].sealed_context, "five");
    assert_false(
        store_sealed_page(f->store, STR_NONE, STORE_PAGE_MAX + 1, f->mem, &rows, &n, &f->err));
}
TEST(test_sealed_page__has_every_session_that_holds_a_secret)
{
    on_every_store(sealed_in_pages);
}

static enum verdict reseal(struct fixture *f, int n, const char *tenant, int64_t version)
{
    struct session_row row = {.id = arena_printf(f->mem, ID "%06d", n),
                              .tenant = str_of(tenant),
                              .sealed_auth = STR("fresh"),
                              .version = version};
    return write_one(f, (struct store_op){OP_SESSION_RESEAL, NULL, {.session = &row}});
}

static void sealed_again(struct fixture *f)
{
    create_sealed(f, &alice, 1, "one");
    create_sealed(f, &alice, 2, NULL);
    create_sealed(f, &alice, 3, "three");
    assert_int_equal(reseal(f, 1, "umbrella", 1), VERDICT_MISSING);
    assert_int_equal(reseal(f, 2, "acme", 1), VERDICT_MISSING);
    assert_int_equal(reseal(f, 9, "acme", 1), VERDICT_MISSING);
    assert_int_equal(reseal(f, 1, "acme", 2), VERDICT_STALE);
    assert_str(get(f, &alice, ID "000001")->sealed_auth, "one");
    assert_int_equal(reseal(f, 1, "acme", 1), VERDICT_OK);
    assert_str(get(f, &alice, ID "000001")->sealed_auth, "fresh");
    assert_int_equal(get(f, &alice, ID "000001")->version, 1);
    assert_int_equal(end_session(f, &alice, ID "000003"), VERDICT_OK);
    int64_t version = get(f, &alice, ID "000003")->version;
    assert_int_equal(reseal(f, 3, "acme", version), VERDICT_OK);
    assert_str(get(f, &alice, ID "000003")->sealed_auth, "fresh");
}

static void context_sealed_again(struct fixture *f)
{
    struct session_row row = session_row(f, 1);
    row.sealed_auth = STR("auth");
    row.sealed_context = STR("context");
    assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    row = (struct session_row){.id = STR(ID "000001"),
                               .tenant = STR("acme"),
                               .sealed_context = STR("newer"),
                               .version = 1};
    assert_int_equal(write_one(f, (struct store_op){OP_SESSION_RESEAL, NULL, {.session = &row}}),
                     VERDICT_OK);
    assert_str(get(f, &alice, ID "000001")->sealed_auth, "auth");
    assert_str(get(f, &alice, ID "000001")->sealed_context, "newer");
}
TEST(test_session_reseal__leaves_what_is_not_given)
{
    on_every_store(context_sealed_again);
}
TEST(test_session_reseal__keeps_the_version_and_gives_way_to_newer_ones)
{
    on_every_store(sealed_again);
}

/* Secrets of the configuration. */

static enum verdict secret_put(struct fixture *f, const char *name, const char *sealed, int64_t at,
                               int64_t most)
{
    struct secret_row row = {
        .name = str_of(name), .sealed = str_of(sealed), .created_ms = at, .updated_ms = at};
    return write_one(f,
                     (struct store_op){.kind = OP_SECRET_PUT, .secret = &row, .max_counted = most});
}

static enum verdict secret_remove(struct fixture *f, const char *name)
{
    struct secret_row row = {.name = str_of(name)};
    return write_one(f, (struct store_op){.kind = OP_SECRET_REMOVE, .secret = &row});
}

static void secrets_are_put_and_removed(struct fixture *f)
{
    struct secret_row *rows = NULL;
    size_t n = 9;
    check(f, store_secrets_page(f->store, STR_NONE, 10, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 0);
    assert_int_equal(secret_put(f, "b_key", "one", NOW, -1), VERDICT_OK);
    assert_int_equal(secret_put(f, "a.key", "two", NOW + 1, -1), VERDICT_OK);
    assert_int_equal(secret_put(f, "b_key", "three", NOW + 2, -1), VERDICT_OK);
    check(f, store_secrets_page(f->store, STR_NONE, 10, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 2);
    assert_str(rows[0].name, "a.key");
    assert_str(rows[0].sealed, "two");
    assert_str(rows[1].name, "b_key");
    assert_str(rows[1].sealed, "three");
    assert_int_equal(rows[1].created_ms, NOW);
    assert_int_equal(rows[1].updated_ms, NOW + 2);
    check(f, store_secrets_page(f->store, STR("a.key"), 10, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 1);
    assert_str(rows[0].name, "b_key");
    check(f, store_secrets_page(f->store, STR_NONE, 1, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 1);
    assert_int_equal(secret_remove(f, "a.key"), VERDICT_OK);
    assert_int_equal(secret_remove(f, "a.key"), VERDICT_MISSING);
    check(f, store_secrets_page(f->store, STR_NONE, 10, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 1);
}
TEST(test_secret_put__makes_or_replaces_and_remove_removes)
{
    on_every_store(secrets_are_put_and_removed);
}

static void secrets_have_a_limit(struct fixture *f)
{
    assert_int_equal(secret_put(f, "a", "1", NOW, 2), VERDICT_OK);
    assert_int_equal(secret_put(f, "b", "1", NOW, 2), VERDICT_OK);
    assert_int_equal(secret_put(f, "c", "1", NOW, 2), VERDICT_LIMIT);
    assert_int_equal(secret_put(f, "b", "2", NOW, 2), VERDICT_OK);
    assert_int_equal(secret_remove(f, "a"), VERDICT_OK);
    assert_int_equal(secret_put(f, "c", "1", NOW, 2), VERDICT_OK);
}
TEST(test_secret_put__a_new_one_above_the_limit_is_refused)
{
    on_every_store(secrets_have_a_limit);
}
