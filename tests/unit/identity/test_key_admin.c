/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/buf.h"
#include "identity/key_admin.h"
#include "identity/scopes.h"

#define NOW INT64_C(1800000000000)

TEST(test_key_request__names_have_200_bytes_tenants_64_and_lives_ten_years)
{
    char name[KEY_NAME_MAX + 1];
    struct error err;

    memset(name, 'n', sizeof(name));
    struct key_request r = {.name = str_n(name, KEY_NAME_MAX),
                            .tenant = str_n(name, 64),
                            .expires_in_ms = KEY_LIFE_MAX_MS};
    assert_true(key_request_check(&r, &err));
    r.name.n++;
    assert_false(key_request_check(&r, &err));
    r.name.n--;
    r.tenant.n++;
    assert_false(key_request_check(&r, &err));
    r.tenant.n--;
    r.expires_in_ms++;
    assert_false(key_request_check(&r, &err));
}

TEST(test_key_new__makes_tenant_user_and_key_together)
{
    struct arena *mem = arena_new(1024 * 1024);
    struct key_request r = {.user = STR("bob"), .expires_in_ms = 5000};
    struct store *store = NULL;
    struct key_new made;
    struct key_row *row = NULL;
    struct user_row *user = NULL;
    struct error err;

    assert_true(store_open_memory(&store, &err));
    key_new_fill(&r, NOW, mem, &made);
    if (!store_write(store, made.ops, made.n, &err))
        fail_msg("%s", err.text);
    assert_true(store_key_get(store, str_of(made.text.id), mem, &row, &err));
    assert_true(key_check(row, str_of(made.text.text), NOW + 4999, &err));
    assert_false(key_check(row, str_of(made.text.text), NOW + 5000, &err));
    assert_str(row->tenant, "default");
    assert_true(store_user_get(store, row->user_id, mem, &user, &err));
    assert_str(user->name, "bob");
    assert_null(user->issuer.p);
    store_close(store);
    arena_free(mem);
}

TEST(test_key_user__same_names_in_two_tenants_are_two_users)
{
    char a[UUID_TEXT], b[UUID_TEXT], c[UUID_TEXT];

    key_user_id(STR("acme"), STR("bob"), a);
    key_user_id(STR("acm"), STR("ebob"), b);
    key_user_id(STR("acme"), STR("bob"), c);
    assert_string_equal(a, c);
    assert_string_not_equal(a, b);
}

TEST(test_key_write__never_shows_a_hash)
{
    struct key_row row = {.id = STR("abc"), .tenant = STR("t"), .name = STR("n")};
    struct js_writer w;
    struct buf out;

    memset(row.hash, 0xab, sizeof(row.hash));
    buf_init(&out, 65536);
    js_begin(&w, &out);
    js_object(&w);
    key_write(&w, &row);
    js_object_end(&w);
    assert_non_null(strstr(out.p, "\"id\":\"abc\""));
    assert_null(strstr(out.p, "hash"));
    assert_null(strstr(out.p, "abab"));
    buf_release(&out);
}
