/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/fault.h"
#include "identity/password.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

TEST(test_password__fits_its_own_hash_and_no_other)
{
    char one[PASSWORD_HASH_TEXT], two[PASSWORD_HASH_TEXT];
    struct error err;

    assert_true(password_hash(STR("correct horse"), one, &err));
    assert_true(password_hash(STR("correct horse"), two, &err));
    assert_string_not_equal(one, two); /* each with a salt of its own */
    assert_memory_equal(one, "$argon2id$v=19$m=65536,t=3,p=1$", 31);
    assert_true(password_hash_is_sound(str_of(one)));
    assert_true(password_fits(STR("correct horse"), str_of(one)));
    assert_false(password_fits(STR("correct horsf"), str_of(one)));
    assert_false(password_fits(STR("correct hors"), str_of(one)));
}

TEST(test_password__nothing_fits_what_is_no_hash_of_ours)
{
    static const char *const others[] = {
        "", "correct horse", "$argon2i$v=19$m=65536,t=3,p=1$c29tZXNhbHQ$aGFzaA",
        "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$aGFzaA", "$argon2id$v=19$m=65536,t=3,p=1$"};

    for (size_t i = 0; i < countof(others); i++)
        assert_false(password_fits(STR("correct horse"), str_of(others[i])));
    assert_false(password_fits(STR("correct horse"), STR_NONE));
}

TEST(test_password__a_fault_point_makes_hashes_cheap)
{
    char cheap[PASSWORD_HASH_TEXT], dear[PASSWORD_HASH_TEXT];
    struct error err;

    fault_load("password.cheap:1");
    assert_true(password_hash(STR("correct horse"), cheap, &err));
    fault_load("");
    assert_true(password_hash(STR("correct horse"), dear, &err));
    assert_memory_equal(cheap, "$argon2id$v=19$m=1024,t=3,p=1$", 30);
    assert_memory_equal(dear, "$argon2id$v=19$m=65536,t=3,p=1$", 31);
    assert_true(password_fits(STR("correct horse"), str_of(cheap)));
    assert_false(password_fits(STR("correct horsf"), str_of(cheap)));
}

static int64_t cost_us(struct str hash)
{
    struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    (void)password_fits(STR("wrong horse"), hash);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    return (b.tv_sec - a.tv_sec) * 1000000 + (b.tv_nsec - a.tv_nsec) / 1000;
}

TEST(test_password__somebody_unknown_costs_as_much)
{
    char hash[PASSWORD_HASH_TEXT];
    struct error err;

    assert_true(password_hash(STR("correct horse"), hash, &err));
    int64_t known = cost_us(str_of(hash)), unknown = cost_us(STR_NONE);
    assert_in_range(unknown, known / 3, known * 3);
}

TEST(test_password_check__bytes_from_8_to_1024_without_control_characters)
{
    char text[PASSWORD_MAX + 1];
    struct error err;

    memset(text, 'x', sizeof(text));
    assert_false(password_check(str_n(text, PASSWORD_MIN - 1), &err));
    assert_true(password_check(str_n(text, PASSWORD_MIN), &err));
    assert_true(password_check(str_n(text, PASSWORD_MAX), &err));
    assert_false(password_check(str_n(text, PASSWORD_MAX + 1), &err));
    assert_false(password_check(STR("eight\nor more"), &err));
    assert_false(password_check(str_n("nul\0within", 10), &err));
    assert_false(password_check(STR("not \xff utf-8"), &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
}
