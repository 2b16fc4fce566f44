/* SPDX-License-Identifier: Apache-2.0 */
/* Which database is meant, and that its URL is shown without what is secret. */
#include "test.h"

#include "store/database.h"

static struct arena *mem;

static struct database choose(const char *url)
{
    struct database d = {0};
    struct error err = {0};
    if (!database_choose(str_of(url), STR("/data"), mem, &d, &err))
        fail_msg("%s", err.text);
    return d;
}

TEST(test_database__without_a_url_it_is_the_file_of_the_data_directory)
{
    mem = arena_new(1 << 20);
    const char *const none[] = {NULL, ""};
    for (size_t i = 0; i < countof(none); i++) {
        struct database d = choose(none[i]);
        assert_false(d.is_postgres);
        assert_str(d.path, "/data/holdfast.db");
        assert_str(d.shown, "/data/holdfast.db");
    }
    arena_free(mem);
}

TEST(test_database__a_url_is_passed_on_whole_and_shown_without_secrets)
{
    static const struct {
        const char *url, *shown;
    } cases[] = {
        {"postgresql://db/holdfast", "postgresql://db/holdfast"},
        {"postgres://hf@db:5433/holdfast", "postgresql://hf@db:5433/holdfast"},
        {"postgresql://hf:secret@db/holdfast", "postgresql://hf@db/holdfast"},
        {"postgresql://hf:se:c@ret@db/holdfast", "postgresql://hf@db/holdfast"},
        {"postgresql://hf:sec/ret@db/holdfast", "postgresql://hf@db/holdfast"},
        {"postgresql://:secret@db/holdfast", "postgresql://@db/holdfast"},
        {"postgresql://hf:secret@db", "postgresql://hf@db"},
        {"postgresql:///holdfast?host=/run/pg&password=secret&user=hf",
         "postgresql:///holdfast?host=/run/pg&user=hf"},
        {"postgresql:///holdfast?password=secret", "postgresql:///holdfast"},
        {"postgresql:///holdfast?Password=secret&sslpassword=secret&sslmode=require",
         "postgresql:///holdfast?sslmode=require"},
        {"postgresql://", "postgresql://"},
    };
    mem = arena_new(1 << 20);
    for (size_t i = 0; i < countof(cases); i++) {
        struct database d = choose(cases[i].url);
        assert_true(d.is_postgres);
        assert_str(d.path, cases[i].url);
        assert_str(d.shown, cases[i].shown);
    }
    arena_free(mem);
}

TEST(test_database__another_kind_of_url_is_refused_without_repeating_it)
{
    static const char *const wrong[] = {"mysql://hf:secret@db/x", "db:5432",
                                        "POSTGRES://hf:secret@x", "postgresql:/hf:secret@x",
                                        " postgresql://hf:secret@x"};
    mem = arena_new(1 << 20);
    for (size_t i = 0; i < countof(wrong); i++) {
        struct database d;
        struct error err;
        assert_false(database_choose(str_of(wrong[i]), STR("/data"), mem, &d, &err));
        assert_int_equal(err.code, ERR_CONFIG);
        assert_null(strstr(err.text, "secret"));
        assert_non_null(strstr(err.text, "postgresql://"));
    }
    arena_free(mem);
}

TEST(test_database__a_url_has_a_limit)
{
    char url[4200] = "postgresql://";
    struct database d;
    struct error err;
    mem = arena_new(1 << 20);
    memset(url + 13, 'a', 4096 - 13);
    url[4096] = '\0';
    assert_true(database_choose(str_of(url), STR("/data"), mem, &d, &err));
    url[4096] = 'a';
    url[4097] = '\0';
    assert_false(database_choose(str_of(url), STR("/data"), mem, &d, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    arena_free(mem);
}
