/* SPDX-License-Identifier: Apache-2.0 */
/* Walking a tape and reading values from it. */
#include "test.h"

#include "json/read.h"

static struct arena *mem;
static struct js_doc doc;

static const struct js_node *parse(struct str text)
{
    arena_free(mem);
    mem = arena_new(1 << 20);
    assert_true(js_parse(text, &js_limits_upstream, mem, &doc, NULL));
    return js_root(&doc);
}

static void done(void)
{
    arena_free(mem);
    mem = NULL;
}

TEST(test_js_next__walks_elements_and_members)
{
    const struct js_node *root = parse(STR("[1,[2,3],{\"a\":4},5]"));
    const struct js_node *v = js_first(&doc, root);

    assert_str(js_raw(&doc, v), "1");
    v = js_next(&doc, root, v);
    assert_str(js_raw(&doc, v), "[2,3]");
    v = js_next(&doc, root, v);
    assert_str(js_raw(&doc, v), "{\"a\":4}");
    assert_str(js_raw(&doc, js_first(&doc, v)), "\"a\"");
    assert_null(js_next(&doc, v, js_value_of(js_first(&doc, v))));
    v = js_next(&doc, root, v);
    assert_str(js_raw(&doc, v), "5");
    assert_null(js_next(&doc, root, v));
    done();
}

TEST(test_js_first__is_null_for_empty_containers_scalars_and_null)
{
    const struct js_node *root = parse(STR("[[],{},1]"));
    const struct js_node *v = js_first(&doc, root);

    assert_null(js_first(&doc, v));
    v = js_next(&doc, root, v);
    assert_null(js_first(&doc, v));
    v = js_next(&doc, root, v);
    assert_null(js_first(&doc, v));
    assert_null(js_first(&doc, NULL));
    done();
}

TEST(test_js_get__finds_keys_after_unescaping_and_only_at_its_level)
{
    const struct js_node *root =
        parse(STR("{\"x\":{\"deep\":1},\"a\\u0062\":2,\"n\\u0000\":3,\"last\":[]}"));

    assert_str(js_raw(&doc, js_get(&doc, root, STR("ab"))), "2");
    assert_str(js_raw(&doc, js_get_key(&doc, root, STR("ab"))), "\"a\\u0062\"");
    assert_str(js_raw(&doc, js_get(&doc, root, STR("last"))), "[]");
    assert_null(js_get(&doc, root, STR("deep")));
    assert_null(js_get(&doc, root, STR("n"))); /* a NUL does not end a name */
    assert_str(js_raw(&doc, js_get(&doc, root, STR("n\0"))), "3");
    assert_str(js_raw(&doc, js_get(&doc, js_get(&doc, root, STR("x")), STR("deep"))), "1");
    assert_null(js_get(&doc, NULL, STR("a")));
    assert_null(js_get(&doc, js_get(&doc, root, STR("last")), STR("a")));
    done();
}

TEST(test_js_is__compares_whole_texts)
{
    parse(STR("[\"a\\n\",\"ab\",1]"));
    assert_true(js_is(&doc, &doc.nodes[1], STR("a\n")));
    assert_false(js_is(&doc, &doc.nodes[1], STR("a")));
    assert_false(js_is(&doc, &doc.nodes[1], STR("a\nb")));
    assert_false(js_is(&doc, &doc.nodes[2], STR("a")));
    assert_true(js_is(&doc, &doc.nodes[2], STR("ab")));
    assert_false(js_is(&doc, &doc.nodes[3], STR("1")));
    assert_false(js_is(&doc, NULL, STR("")));
    done();
}

TEST(test_js_text__is_a_view_when_plain_and_a_copy_when_escaped)
{
    struct str text =
        STR("[\"plain\",\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\u20ac\\ud83d\\ude00!\",\"\"]");
    struct str s;

    parse(text);
    s = js_text(&doc, &doc.nodes[1], mem);
    assert_ptr_equal(s.p, text.p + 2);
    assert_str(s, "plain");
    assert_str(js_text(&doc, &doc.nodes[2], mem),
               "\"\\/\b\f\n\r\t\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80!");
    s = js_text(&doc, &doc.nodes[3], mem);
    assert_non_null(s.p);
    assert_int_equal(s.n, 0);
    assert_null(js_text(&doc, &doc.nodes[0], mem).p);
    assert_null(js_text(&doc, NULL, mem).p);
    done();
}

TEST(test_js_text__keeps_an_escaped_nul)
{
    struct str s;

    parse(STR("\"kb.read\\u0000x\""));
    s = js_text(&doc, js_root(&doc), mem);
    assert_int_equal(s.n, 9);
    assert_false(js_is(&doc, js_root(&doc), STR("kb.read")));
    done();
}

TEST(test_js_to_i64__takes_whole_numbers_that_fit)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-0", 0},
                {"42", 42},
                {"-7", -7},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    static const char *const bad[] = {
        "9223372036854775808",           "-9223372036854775809", "1.0", "1e3", "\"1\"", "null",
        "123456789012345678901234567890"};
    int64_t v = 5;

    for (size_t i = 0; i < countof(good); i++) {
        assert_true(js_to_i64(&doc, parse(str_of(good[i].text)), &v));
        assert_true(v == good[i].value);
    }
    v = 5;
    for (size_t i = 0; i < countof(bad); i++)
        assert_false(js_to_i64(&doc, parse(str_of(bad[i])), &v));
    assert_false(js_to_i64(&doc, NULL, &v));
    assert_int_equal(v, 5);
    done();
}

TEST(test_js_position__counts_lines_and_characters_from_one)
{
    unsigned line, column;

    js_position(STR("ab\n\xc3\xa4x"), 0, &line, &column);
    assert_int_equal(line * 100 + column, 101);
    js_position(STR("ab\n\xc3\xa4x"), 2, &line, &column);
    assert_int_equal(line * 100 + column, 103);
    js_position(STR("ab\n\xc3\xa4x"), 5, &line, &column);
    assert_int_equal(line * 100 + column, 202);
    js_position(STR("ab"), 99, &line, &column);
    assert_int_equal(line * 100 + column, 103);
}
