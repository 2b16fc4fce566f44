/* SPDX-License-Identifier: Apache-2.0 */
/* A table is taken out of TOML with its own lines only, or not at all. */
#include "test.h"

#include "config/toml_edit.h"

static struct error err;

static bool take_out(const char *text, const char *name, struct buf *out, bool *ret_found)
{
    struct arena *mem = arena_new(SIZE_MAX);
    bool ok;

    buf_init(out, SIZE_MAX);
    ok = toml_edit_remove(str_of(text), STR("s"), str_of(name), mem, out, ret_found, &err);
    arena_free(mem);
    return ok;
}

TEST(test_toml_edit__takes_out_the_lines_of_the_table)
{
    static const struct {
        const char *before, *after, *name;
    } cases[] = {
        {"[s.a]\nx = 1\n", "", NULL},
        {"y = 1\n\n[s.a]\nx = 1\n", "y = 1\n", NULL},
        {"y = 1\r\n\r\n[s.a]\r\nx = 1\r\n", "y = 1\r\n", NULL},
        {"y = 1\n[s.a]\nx = 1", "y = 1\n", NULL},
        {"[s.a]\nx = 1\n\n[s.a.env]\nE = 2\n\n[t]\n", "[t]\n", NULL},
        {"[s.a]\nx = 1\n[[s.a.list]]\ny = 1\n[s.ab]\nz = 1\n", "[s.ab]\nz = 1\n", NULL},
        {"[s.a]\nx = 1\n[s.ab]\nz = 1\n", "[s.ab]\nz = 1\n", NULL},
        {"[s.a]\n# in it\nx = 1\n# after\n\n  [t]\n", "# after\n\n  [t]\n", NULL},
        {"[s.a]\nx = [\n 1,\n]\n# end\n", "# end\n", NULL},
        {"[ s . \"a\" ] # c\nx = 1\n", "", NULL},
        {"['s'.'a']\nx = 1\n", "", NULL},
        {"[s.\"a\\\"] b\"]\nx = 1\n[t]\n", "[t]\n", "a\"] b"},
        {"[s.a]\nx = 1\n[t]\ny = 1\n[s.a.env]\nE = 1\n", "[t]\ny = 1\n", NULL},
        {"[s]\n[s.a]\nx = 1\n", "[s]\n", NULL},
        /* In a form that is not taken out line by line. */
        {"s = { a = { x = 1 } }\n", NULL, NULL},
        {"[s]\na.x = 1\n", NULL, NULL},
        {"[s]\na = { x = 1 }\n", NULL, NULL},
        {"s.a.x = 1\n", NULL, NULL},
        {"y = \"\"\"\n[s.a]\nz\"\"\"\n[s.a]\nx = 1\n", NULL, NULL},
        {"[s.a]\nx = [\n[1],\n[2]]\n", NULL, NULL},
    };

    for (size_t i = 0; i < countof(cases); i++) {
        struct buf out;
        bool found = false;
        bool ok = take_out(cases[i].before, cases[i].name ? cases[i].name : "a", &out, &found);
        assert_int_equal(ok, cases[i].after != NULL);
        if (ok)
            assert_string_equal(out.p ? out.p : "", cases[i].after);
        else
            assert_int_equal(err.code, ERR_CONFLICT);
        assert_true(ok ? found : out.n == 0);
        buf_release(&out);
    }
}

TEST(test_toml_edit__without_the_table_the_text_stays)
{
    static const char *const texts[] = {"", "y = 1", "[s]\n[s.b]\nx = 1\n", "[t.a]\n"};

    for (size_t i = 0; i < countof(texts); i++) {
        struct buf out;
        bool found = true;
        assert_true(take_out(texts[i], "a", &out, &found));
        assert_false(found);
        assert_string_equal(out.p ? out.p : "", texts[i]);
        buf_release(&out);
    }
}

TEST(test_toml_edit__text_that_is_not_toml_is_refused_with_its_place)
{
    struct buf out;
    bool found;

    assert_false(take_out("y = \n[s.a]\n", "a", &out, &found));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, "line 1"));
    assert_int_equal(out.n, 0);
    buf_release(&out);
}
