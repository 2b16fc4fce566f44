/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about users with passwords and where they are signed in. */
#include "store_contract.h"

#include "base/buf.h"

#define USER "20000000-0000-8000-8000-000000"
#define LOGIN "30000000-0000-7000-8000-000000"
#define DAY (24 * HOUR)

static struct user_row user(int n)
{
    static char id[3][40], name[3][16];
    snprintf(id[n], sizeof(id[n]), USER "%06d", n);
    snprintf(name[n], sizeof(name[n]), "user %d", n);
    return (struct user_row){.id = str_of(id[n]),
                             .tenant = STR("acme"),
                             .name = str_of(name[n]),
                             .role = ROLE_MEMBER,
                             .password = STR("$argon2id$one"),
                             .created_ms = NOW};
}

static enum verdict on_user(struct fixture *f, enum op_kind kind, struct user_row row)
{
    return write_one(f, (struct store_op){kind, NULL, {.user = &row}});
}

static struct user_row *named(struct fixture *f, const char *name)
{
    struct user_row *row = NULL;
    check(f, store_user_by_name(f->store, STR("acme"), str_of(name), f->mem, &row, &f->err));
    return row;
}

static void add_user(struct fixture *f, int n, const char *tenant, const char *name)
{
    struct user_row row = {.id = arena_printf(f->mem, USER "%06d", n),
                           .tenant = str_of(tenant),
                           .name = str_of(name),
                           .role = ROLE_AUDITOR,
                           .password = STR("$argon2id$one"),
                           .created_ms = NOW};
    assert_int_equal(on_user(f, OP_USER_CREATE, row), VERDICT_OK);
}

/* The page as "tenant/name tenant/name". */
static void assert_page(struct fixture *f, const char *tenant, const char *after_tenant,
                        const char *after_name, unsigned limit, const char *expected)
{
    struct user_row *rows = NULL;
    struct buf text;
    size_t n = 0;

    check(f, store_users_page(f->store, str_of(tenant), str_of(after_tenant), str_of(after_name),
                              limit, f->mem, &rows, &n, &f->err));
    buf_init(&text, 4096);
    for (size_t i = 0; i < n; i++)
        buf_addf(&text, "%s%.*s/%.*s", i ? " " : "", STR_ARG(rows[i].tenant),
                 STR_ARG(rows[i].name));
    assert_str(buf_str(&text), expected);
    buf_release(&text);
}

static void users_in_pages(struct fixture *f)
{
    struct user_row *rows = NULL;
    size_t n = 0;

    assert_page(f, NULL, NULL, NULL, 10, "");
    add_user(f, 1, "acme", "bob");
    add_user(f, 2, "acme", "Zoe");
    add_user(f, 3, "acme", "\xc3\xa9ve");
    add_user(f, 4, "acme-2", "ada");
    add_user(f, 5, "Beta", "ada");
    struct user_row foreign = {.id = STR(USER "000006"),
                               .tenant = STR("acme"),
                               .name = STR("carl"),
                               .role = ROLE_MEMBER,
                               .issuer = STR("https://issuer.example"),
                               .created_ms = NOW};
    assert_int_equal(on_user(f, OP_USER_ENSURE, foreign), VERDICT_OK);
    assert_page(f, NULL, NULL, NULL, 10, "Beta/ada acme/Zoe acme/bob acme/\xc3\xa9ve acme-2/ada");
    assert_page(f, "acme", NULL, NULL, 10, "acme/Zoe acme/bob acme/\xc3\xa9ve");
    assert_page(f, "acme", NULL, NULL, 2, "acme/Zoe acme/bob");
    assert_page(f, "acme", "acme", "bob", 2, "acme/\xc3\xa9ve");
    assert_page(f, "acme", "acme", "\xc3\xa9ve", 2, "");
    assert_page(f, NULL, "Beta", "ada", 2, "acme/Zoe acme/bob");
    assert_page(f, NULL, "acme", "bob", 2, "acme/\xc3\xa9ve acme-2/ada");
    assert_page(f, "nobody", NULL, NULL, 10, "");
    check(f, store_users_page(f->store, STR("Beta"), STR_NONE, STR_NONE, 1, f->mem, &rows, &n,
                              &f->err));
    assert_int_equal(n, 1);
    assert_str(rows[0].id, USER "000005");
    assert_int_equal(rows[0].role, ROLE_AUDITOR);
    assert_int_equal(rows[0].created_ms, NOW);
    assert_false(store_users_page(f->store, STR_NONE, STR_NONE, STR_NONE, STORE_PAGE_MAX + 1,
                                  f->mem, &rows, &n, &f->err));
    assert_int_equal(f->err.code, ERR_BAD_INPUT);
}
TEST(test_users_page__goes_by_tenant_and_name)
{
    on_every_store(users_in_pages);
}

static struct login_row login(struct fixture *f, int n)
{
    struct login_row row = {
        .id = arena_printf(f->mem, LOGIN "%06d", n),
        .tenant = STR("acme"),
        .user_id = STR(USER "000001"),
        .device_info = STR("{\"user_agent\":\"curl\"}"),
        .ip_address = STR("192.0.2.1"),
        .created_ms = clock_life_ms(),
        .expires_ms = clock_life_ms() + 30 * DAY,
        .last_activity_ms = clock_life_ms(),
        .password = STR("$argon2id$one"),
    };
    row.refresh_hash[0] = (uint8_t)n;
    row.refresh_hash[31] = 1;
    return row;
}

static enum verdict on_login(struct fixture *f, enum op_kind kind, struct login_row row)
{
    return write_one(f, (struct store_op){kind, NULL, {.login = &row}, .max_counted = 3});
}

static struct login_row *get_login(struct fixture *f, int n)
{
    struct login_row *row = NULL;
    check(f,
          store_login_get(f->store, arena_printf(f->mem, LOGIN "%06d", n), f->mem, &row, &f->err));
    return row;
}

static struct login_row *by_hash(struct fixture *f, int n)
{
    struct login_row *row = NULL, wanted = login(f, n);
    check(f, store_login_by_hash(f->store, wanted.refresh_hash, f->mem, &row, &f->err));
    return row;
}

static size_t count(struct fixture *f)
{
    struct login_row *rows = NULL;
    size_t n = 0;
    check(f, store_logins_page(f->store, STR("acme"), STR(USER "000001"), STR_NONE, 10, f->mem,
                               &rows, &n, &f->err));
    return n;
}

/* Token `from` of the device becomes `to`; the row of the used one is named by 100 + from. */
static enum verdict rotate(struct fixture *f, int from, int to, int64_t arrived_ms)
{
    struct login_row row = login(f, from), next = login(f, to);
    row.id = arena_printf(f->mem, LOGIN "%06d", 100 + from);
    row.ip_address = STR("192.0.2.7");
    memcpy(row.next_hash, next.refresh_hash, 32);
    row.arrived_ms = arrived_ms;
    return on_login(f, OP_LOGIN_ROTATE, row);
}

static void users_are_created(struct fixture *f)
{
    struct user_row one = user(1), two = user(2);
    assert_null(named(f, "user 1"));
    assert_int_equal(on_user(f, OP_USER_CREATE, one), VERDICT_OK);
    struct user_row *got = named(f, "user 1");
    assert_str(got->id, USER "000001");
    assert_str(got->password, "$argon2id$one");
    assert_int_equal(got->role, ROLE_MEMBER);
    assert_int_equal(got->failed_logins, 0);
    assert_int_equal(got->locked_until_ms, 0);
    assert_int_equal(on_user(f, OP_USER_CREATE, one), VERDICT_DUPLICATE);
    two.name = one.name;
    assert_int_equal(on_user(f, OP_USER_CREATE, two), VERDICT_DUPLICATE);
    one.tenant = STR("umbrella");
    assert_int_equal(on_user(f, OP_USER_CREATE, one), VERDICT_DUPLICATE);
}
TEST(test_user_create__a_name_is_given_once)
{
    on_every_store(users_are_created);
}

static void users_of_keys(struct fixture *f)
{
    struct user_row one = user(1);
    struct user_row plain = one;
    plain.password = STR_NONE;
    plain.role = ROLE_SERVICE;
    assert_int_equal(on_user(f, OP_USER_ENSURE, plain), VERDICT_OK);
    assert_null(named(f, "user 1")->password.p);
    assert_int_equal(on_user(f, OP_USER_CREATE, one), VERDICT_OK);
    assert_int_equal(named(f, "user 1")->role, ROLE_MEMBER);
    plain.role = ROLE_ADMIN;
    assert_int_equal(on_user(f, OP_USER_ENSURE, plain), VERDICT_OK);
    assert_int_equal(named(f, "user 1")->role, ROLE_MEMBER);
    assert_str(named(f, "user 1")->password, "$argon2id$one");
}
TEST(test_user_create__gives_a_password_to_the_user_of_a_key_whose_role_then_is_its_own)
{
    on_every_store(users_of_keys);
}

static void others_are_not_ours(struct fixture *f)
{
    struct user_row one = user(1);
    one.issuer = STR("https://issuer");
    one.password = STR_NONE;
    assert_int_equal(on_user(f, OP_USER_ENSURE, one), VERDICT_OK);
    assert_null(named(f, "user 1"));
    assert_int_equal(on_user(f, OP_USER_CREATE, user(1)), VERDICT_DUPLICATE);
    assert_int_equal(on_user(f, OP_USER_PASSWORD, user(1)), VERDICT_MISSING);
    assert_int_equal(on_user(f, OP_USER_CREATE, user(2)), VERDICT_OK);
}
TEST(test_user_create__whom_an_issuer_vouches_for_gets_no_password)
{
    on_every_store(others_are_not_ours);
}

static void locks_grow(struct fixture *f)
{
    static const int64_t locks_s[LOGIN_FREE_FAILURES + 6] = {
        [LOGIN_FREE_FAILURES - 1] = 1, 2, 4, 8, 16, 30, 30};
    assert_int_equal(on_user(f, OP_LOGIN_FAILED, user(1)), VERDICT_MISSING);
    assert_int_equal(on_user(f, OP_USER_CREATE, user(1)), VERDICT_OK);
    for (size_t i = 0; i < countof(locks_s); i++) {
        assert_int_equal(on_user(f, OP_LOGIN_FAILED, user(1)), VERDICT_OK);
        struct user_row *got = named(f, "user 1");
        assert_int_equal(got->failed_logins, i + 1);
        assert_int_equal(got->locked_until_ms, locks_s[i] ? NOW + locks_s[i] * 1000 : 0);
    }
    for (int i = 0; i < 30; i++)
        assert_int_equal(on_user(f, OP_LOGIN_FAILED, user(1)), VERDICT_OK);
    assert_int_equal(named(f, "user 1")->locked_until_ms, NOW + 30 * 1000);
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 1)), VERDICT_OK);
    assert_int_equal(named(f, "user 1")->failed_logins, 0);
    assert_int_equal(named(f, "user 1")->locked_until_ms, 0);
}
TEST(test_login_failed__locks_after_twenty_for_up_to_half_a_minute_until_one_succeeds)
{
    on_every_store(locks_grow);
}

static void logins_survive(struct fixture *f)
{
    struct login_row wrong = login(f, 1);
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 1)), VERDICT_MISSING);
    assert_int_equal(on_user(f, OP_USER_CREATE, user(1)), VERDICT_OK);
    wrong.password = STR("$argon2id$two");
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, wrong), VERDICT_NOT_ACTIVE);
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 1)), VERDICT_OK);
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 1)), VERDICT_DUPLICATE);
    struct login_row *got = get_login(f, 1);
    assert_str(got->id, LOGIN "000001");
    assert_str(got->family, LOGIN "000001");
    assert_str(got->tenant, "acme");
    assert_str(got->user_id, USER "000001");
    assert_str(got->device_info, "{\"user_agent\":\"curl\"}");
    assert_str(got->ip_address, "192.0.2.1");
    assert_int_equal(got->created_ms, NOW);
    assert_int_equal(got->expires_ms, NOW + 30 * DAY);
    assert_int_equal(got->last_activity_ms, NOW);
    assert_int_equal(got->revoked_ms, 0);
    assert_str(by_hash(f, 1)->id, LOGIN "000001");
    assert_null(by_hash(f, 2));
    assert_null(get_login(f, 2));
}
TEST(test_login_create__is_for_the_password_that_was_checked)
{
    on_every_store(logins_survive);
}

static void many_logins(struct fixture *f)
{
    struct login_row *rows = NULL;
    size_t n = 0;
    assert_int_equal(on_user(f, OP_USER_CREATE, user(1)), VERDICT_OK);
    for (int i = 1; i <= 3; i++, clock_advance_fake(1))
        assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, i)), VERDICT_OK);
    assert_int_equal(count(f), 3);
    assert_int_equal(rotate(f, 1, 11, NOW), VERDICT_OK); /* used last */
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 4)), VERDICT_OK);
    assert_int_equal(count(f), 3);
    assert_str(get_login(f, 2)->revoke_reason, "limit");
    check(f, store_logins_page(f->store, STR("acme"), STR(USER "000001"), STR_NONE, 2, f->mem,
                               &rows, &n, &f->err));
    assert_int_equal(n, 2);
    assert_str(rows[0].id, LOGIN "000004");
    assert_str(rows[1].id, LOGIN "000003");
    check(f, store_logins_page(f->store, STR("acme"), STR(USER "000001"), rows[1].id, 2, f->mem,
                               &rows, &n, &f->err));
    assert_int_equal(n, 1);
    assert_str(rows[0].id, LOGIN "000001");
    check(f, store_logins_page(f->store, STR("umbrella"), STR(USER "000001"), STR_NONE, 2, f->mem,
                               &rows, &n, &f->err));
    assert_int_equal(n, 0);
}
TEST(test_login_create__the_one_unused_for_longest_makes_room)
{
    on_every_store(many_logins);
}

static void tokens_rotate(struct fixture *f)
{
    assert_int_equal(on_user(f, OP_USER_CREATE, user(1)), VERDICT_OK);
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 1)), VERDICT_OK);
    assert_int_equal(rotate(f, 2, 3, NOW), VERDICT_MISSING);
    clock_advance_fake(1000);
    assert_int_equal(rotate(f, 1, 2, NOW + 1000), VERDICT_OK);
    struct login_row *got = get_login(f, 1);
    assert_int_equal(got->created_ms, NOW);
    assert_int_equal(got->last_activity_ms, NOW + 1000);
    assert_int_equal(got->expires_ms, NOW + 1000 + 30 * DAY);
    assert_str(got->ip_address, "192.0.2.7");
    assert_str(got->device_info, "{\"user_agent\":\"curl\"}");
    assert_str(by_hash(f, 2)->id, LOGIN "000001");
    got = by_hash(f, 1);
    assert_str(got->id, LOGIN "000101");
    assert_str(got->family, LOGIN "000001");
    assert_str(got->revoke_reason, "rotated");
    assert_int_equal(got->revoked_ms, NOW + 1000);
    assert_null(get_login(f, 101));
    assert_int_equal(count(f), 1);
    assert_int_equal(rotate(f, 2, 3, NOW + 1000), VERDICT_OK);
}
TEST(test_login_rotate__the_device_stays_and_its_old_token_is_remembered)
{
    on_every_store(tokens_rotate);
}

static void two_at_once(struct fixture *f)
{
    assert_int_equal(on_user(f, OP_USER_CREATE, user(1)), VERDICT_OK);
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 1)), VERDICT_OK);
    clock_advance_fake(10);
    assert_int_equal(rotate(f, 1, 2, NOW), VERDICT_OK);
    assert_int_equal(rotate(f, 1, 3, NOW + 10), VERDICT_DUPLICATE);
    assert_int_equal(get_login(f, 1)->revoked_ms, 0);
    assert_null(by_hash(f, 3));
    assert_int_equal(rotate(f, 1, 3, NOW + 11), VERDICT_STALE);
}
TEST(test_login_rotate__of_two_under_way_at_once_one_wins_and_nobody_is_signed_out)
{
    on_every_store(two_at_once);
}

static void copies_end_the_family(struct fixture *f)
{
    assert_int_equal(on_user(f, OP_USER_CREATE, user(1)), VERDICT_OK);
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 1)), VERDICT_OK);
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 9)), VERDICT_OK);
    assert_int_equal(rotate(f, 1, 2, NOW), VERDICT_OK);
    assert_int_equal(rotate(f, 2, 3, NOW), VERDICT_OK);
    clock_advance_fake(10);
    assert_int_equal(rotate(f, 1, 4, NOW + 10), VERDICT_STALE);
    assert_int_equal(get_login(f, 1)->revoked_ms, NOW + 10);
    assert_str(get_login(f, 1)->revoke_reason, "reuse");
    assert_int_equal(rotate(f, 3, 4, NOW + 10), VERDICT_MISSING);
    assert_int_equal(rotate(f, 1, 4, NOW + 10), VERDICT_MISSING); /* told once */
    assert_int_equal(get_login(f, 9)->revoked_ms, 0);
    assert_int_equal(count(f), 1);
}
TEST(test_login_rotate__a_token_that_comes_again_ends_its_family_alone)
{
    on_every_store(copies_end_the_family);
}

static void ends_are_ends(struct fixture *f)
{
    struct user_row ended = user(1);
    struct login_row other = login(f, 1);
    assert_int_equal(on_user(f, OP_USER_CREATE, user(1)), VERDICT_OK);
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 1)), VERDICT_OK);
    other.revoked_ms = NOW + 5;
    other.revoke_reason = STR("logout");
    other.user_id = STR(USER "000002");
    assert_int_equal(on_login(f, OP_LOGIN_REVOKE, other), VERDICT_MISSING);
    other.user_id = STR_NONE;
    other.tenant = STR("umbrella");
    assert_int_equal(on_login(f, OP_LOGIN_REVOKE, other), VERDICT_MISSING);
    other.tenant = STR("acme");
    assert_int_equal(on_login(f, OP_LOGIN_REVOKE, other), VERDICT_OK);
    assert_int_equal(on_login(f, OP_LOGIN_REVOKE, other), VERDICT_MISSING);
    assert_str(get_login(f, 1)->revoke_reason, "logout");
    assert_int_equal(get_login(f, 1)->revoked_ms, NOW + 5);
    assert_int_equal(rotate(f, 1, 2, NOW), VERDICT_MISSING);

    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 3)), VERDICT_OK);
    ended.ended_ms = NOW;
    assert_int_equal(on_user(f, OP_USER_END, ended), VERDICT_OK);
    assert_int_equal(named(f, "user 1")->ended_ms, NOW);
    assert_str(get_login(f, 3)->revoke_reason, "disabled");
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 4)), VERDICT_NOT_ACTIVE);
    ended.ended_ms = 0;
    assert_int_equal(on_user(f, OP_USER_END, ended), VERDICT_OK);
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 4)), VERDICT_OK);
    assert_int_equal(on_user(f, OP_USER_END, user(2)), VERDICT_MISSING);
}
TEST(test_login_revoke__and_a_user_that_ends_sign_out_for_good)
{
    on_every_store(ends_are_ends);
}

static void passwords_change(struct fixture *f)
{
    struct user_row changed = user(1);
    struct login_row all = login(f, 1);
    assert_int_equal(on_user(f, OP_USER_CREATE, user(1)), VERDICT_OK);
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 1)), VERDICT_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(on_user(f, OP_LOGIN_FAILED, user(1)), VERDICT_OK);
    changed.password = STR("$argon2id$two");
    assert_int_equal(on_user(f, OP_USER_PASSWORD, changed), VERDICT_OK);
    assert_str(named(f, "user 1")->password, "$argon2id$two");
    assert_int_equal(named(f, "user 1")->locked_until_ms, 0);
    assert_str(get_login(f, 1)->revoke_reason, "password");
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 2)), VERDICT_NOT_ACTIVE);
    struct login_row row = login(f, 2);
    row.password = changed.password;
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, row), VERDICT_OK);
    all.revoked_ms = NOW;
    all.revoke_reason = STR("everywhere");
    assert_int_equal(on_login(f, OP_LOGINS_REVOKE, all), VERDICT_OK);
    assert_int_equal(count(f), 0);
    assert_str(get_login(f, 1)->revoke_reason, "password");
    assert_str(get_login(f, 2)->revoke_reason, "everywhere");
}
TEST(test_user_password__another_one_signs_everybody_out)
{
    on_every_store(passwords_change);
}

static void old_ones_go(struct fixture *f)
{
    struct reap_request what = {.batch = 10};
    struct reaped done;
    assert_int_equal(on_user(f, OP_USER_CREATE, user(1)), VERDICT_OK);
    assert_int_equal(on_login(f, OP_LOGIN_CREATE, login(f, 1)), VERDICT_OK);
    clock_advance_fake(DAY);
    assert_int_equal(rotate(f, 1, 2, NOW + DAY), VERDICT_OK);
    clock_advance_fake(29 * DAY); /* the end of the first token, not of the device */
    what.now_ms = clock_life_ms();
    what.lease_until_ms = what.now_ms + 1000;
    what.writer = 1;
    check(f, store_reap(f->store, &what, &done, &f->err));
    assert_null(by_hash(f, 1));
    assert_non_null(by_hash(f, 2));
    clock_advance_fake(DAY);
    assert_int_equal(count(f), 0);
    assert_int_equal(rotate(f, 2, 3, NOW), VERDICT_MISSING);
    what.now_ms = clock_life_ms();
    check(f, store_reap(f->store, &what, &done, &f->err));
    assert_null(get_login(f, 1));
}
TEST(test_reap__logins_go_after_their_end)
{
    on_every_store(old_ones_go);
}
