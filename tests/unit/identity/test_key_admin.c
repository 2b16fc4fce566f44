/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/buf.h"
#include "identity/key_admin.h"
#include "identity/scopes.h"

#define NOW INT64_C(1800000000000)

static bool parses(const char *json, struct arena *mem)
{
    struct key_request r;
    struct error err;
    return key_request_parse(str_of(json), mem, &r, &err);
}

TEST(test_key_request__comes_back_as_it_was_written)
{
    struct arena *mem = arena_new(1024 * 1024);
    struct str tools[] = {STR("a__b")};
    struct key_request r = {.tenant = STR("acme"),
                            .name = STR("x \"y\""),
                            .role = ROLE_AUDITOR,
                            .user = STR("bob"),
                            .scopes = {.tools = tools, .n_tools = 1, .review = true},
                            .expires_in_ms = 5000},
                       back;
    struct error err;

    assert_true(key_request_parse(key_request_write(&r, mem), mem, &back, &err));
    assert_str(back.tenant, "acme");
    assert_str(back.name, "x \"y\"");
    assert_true(back.role == ROLE_AUDITOR);
    assert_str(back.user, "bob");
    assert_str(back.scopes.tools[0], "a__b");
    assert_true(back.scopes.review && !back.scopes.read_only);
    assert_int_equal(back.expires_in_ms, 5000);
    arena_free(mem);
}

TEST(test_key_request__what_makes_no_sense_is_refused)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"role\":\"boss\"}",
        "{\"role\":1}",
        "{\"tenant\":\"\"}",
        "{\"tenant\":\"a b\"}",
        "{\"tenant\":\"a/b\"}",
        "{\"name\":\"\"}",
        "{\"name\":\"a\\nb\"}",
        "{\"user\":\"\"}",
        "{\"scopes\":[]}",
        "{\"scopes\":{\"server\":[]}}",
        "{\"expires_in\":999}",
        "{\"expires_in\":-1}",
        "{\"id\":\"x\"}",
    };
    struct arena *mem = arena_new(1024 * 1024);

    assert_true(parses("{}", mem));
    assert_true(parses("{\"expires_in\":1000}", mem));
    for (size_t i = 0; i < countof(bad); i++)
        if (parses(bad[i], mem))
            fail_msg("taken: %s", bad[i]);
    arena_free(mem);
}

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

TEST(test_keys_write__never_shows_a_hash)
{
    struct key_row row = {.id = STR("abc"), .tenant = STR("t"), .name = STR("n")};
    struct buf out;

    memset(row.hash, 0xab, sizeof(row.hash));
    buf_init(&out, 65536);
    keys_write(&out, &row, 1, 1);
    assert_non_null(strstr(out.p, "\"next\":\"abc\""));
    assert_null(strstr(out.p, "hash"));
    assert_null(strstr(out.p, "abab"));
    buf_release(&out);
}
