/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "crypto/hash.h"
#include "identity/key.h"

static struct key_row row_of(const struct key_text *k)
{
    struct key_row row = {.id = str_of(k->id), .tenant = STR("acme"), .role = ROLE_MEMBER};
    memcpy(row.hash, k->hash, sizeof(row.hash));
    return row;
}

TEST(test_key__made_ones_have_the_form_and_differ)
{
    struct key_text a, b;
    struct str id;

    key_make(&a);
    key_make(&b);
    assert_int_equal(strlen(a.text), KEY_LENGTH);
    assert_string_not_equal(a.text, b.text);
    assert_string_not_equal(a.id, b.id);
    assert_true(key_parse(str_of(a.text), &id));
    assert_true(str_eq(id, str_of(a.id)));
}

TEST(test_key__every_other_form_is_none)
{
    struct key_text k;
    struct str id;
    char text[KEY_LENGTH + 2];

    key_make(&k);
    assert_false(key_parse(str_n(k.text, KEY_LENGTH - 1), &id));
    memcpy(text, k.text, KEY_LENGTH);
    text[KEY_LENGTH] = 'A';
    assert_false(key_parse(str_n(text, KEY_LENGTH + 1), &id));
    static const struct {
        size_t at;
        char c;
    } bad[] = {{0, 'H'},  {2, '-'},  {3, 'A'},  {14, '_'},
               {15, '-'}, {16, '+'}, {58, '='}, {20, '\0'}};
    for (size_t i = 0; i < countof(bad); i++) {
        memcpy(text, k.text, KEY_LENGTH);
        text[bad[i].at] = bad[i].c;
        if (key_parse(str_n(text, KEY_LENGTH), &id))
            fail_msg("taken with %d at %zu", bad[i].c, bad[i].at);
    }
}

TEST(test_key__holds_only_with_the_whole_text)
{
    struct key_text k;
    struct error err, unknown;

    key_make(&k);
    struct key_row row = row_of(&k);
    assert_true(key_check(&row, str_of(k.text), 1000, &err));
    assert_false(key_check(NULL, str_of(k.text), 1000, &unknown));
    k.text[KEY_LENGTH - 1] = k.text[KEY_LENGTH - 1] == 'A' ? 'B' : 'A';
    assert_false(key_check(&row, str_of(k.text), 1000, &err));
    assert_int_equal(err.code, ERR_UNAUTHENTICATED);
    assert_string_equal(err.text, unknown.text);
}

TEST(test_key__ends_at_its_end_and_when_revoked)
{
    struct key_text k;
    struct error err;

    key_make(&k);
    struct key_row row = row_of(&k);
    row.expires_ms = 5000;
    assert_true(key_check(&row, str_of(k.text), 4999, &err));
    assert_false(key_check(&row, str_of(k.text), 5000, &err));
    assert_non_null(strstr(err.text, "expired"));
    row.revoked_ms = 1;
    assert_false(key_check(&row, str_of(k.text), 1, &err));
    assert_non_null(strstr(err.text, "revoked"));
}

TEST(test_key__that_may_do_less_than_its_user_is_an_owner_of_its_own)
{
    static const char *const narrow[] = {
        "{\"servers\":[\"files\"]}",
        "{\"tools\":[\"files__read\"]}",
        "{\"folders\":[\"Lens\"],\"review\":true}",
        "{\"read_only\":true}",
    };
    struct arena *mem = arena_new(65536);
    struct principal who;
    struct key_text k;
    struct error err;

    key_make(&k);
    struct key_row row = row_of(&k);
    row.user_id = STR("0190a5b8-0000-7000-8000-000000000001");
    for (size_t i = 0; i < countof(narrow); i++) {
        row.scopes = str_of(narrow[i]);
        assert_true(key_principal(&row, mem, &who, &err));
        assert_true(str_eq(who.owner, who.credential));
        assert_true(str_eq(who.user_id, row.user_id)); /* who it was remains known */
        assert_null(principal_user(&who).p);
    }
    arena_free(mem);
}

TEST(test_key__proves_its_user_or_itself)
{
    struct arena *mem = arena_new(65536);
    struct principal who;
    struct key_text k;
    struct error err;

    key_make(&k);
    struct key_row row = row_of(&k);
    assert_true(key_principal(&row, mem, &who, &err));
    assert_str(who.tenant, "acme");
    assert_true(str_starts(who.owner, STR("key:")));
    assert_true(str_eq(who.owner, who.credential));
    assert_null(who.scopes);
    assert_false(who.tenant_wide);
    row.user_id = STR("0190a5b8-0000-7000-8000-000000000001");
    row.scopes = STR("{\"review\":true,\"limits\":{\"calls\":2}}");
    assert_true(key_principal(&row, mem, &who, &err));
    assert_str(who.owner, "user:0190a5b8-0000-7000-8000-000000000001");
    assert_true(str_eq(principal_user(&who), row.user_id));
    assert_true(str_starts(who.credential, STR("key:")));
    assert_true(who.scopes->review);
    row.scopes = STR("{\"servers\":\"files\"}");
    assert_false(key_principal(&row, mem, &who, &err));
    arena_free(mem);
}
