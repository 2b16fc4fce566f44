/* SPDX-License-Identifier: Apache-2.0 */
/* The parser: what it takes, what it refuses and where it says the fault is; every limit at its
 * value and one past it. */
#include "test.h"

#include "base/buf.h"
#include "json/read.h"

#include <stdlib.h>

static struct arena *mem;
static struct js_doc doc;
static struct js_fault fault;

static bool parse_with(struct str text, const struct js_limits *limits)
{
    arena_free(mem);
    mem = arena_new(64 << 20);
    memset(&fault, 0, sizeof(fault));
    return js_parse(text, limits, mem, &doc, &fault);
}

static bool parse(struct str text)
{
    return parse_with(text, &js_limits_request);
}

static void done(void)
{
    arena_free(mem);
    mem = NULL;
}

TEST(test_js_parse__takes_every_kind_of_value)
{
    static const struct {
        const char *text;
        enum js_type type;
    } rows[] = {
        {"null", JS_NULL},
        {"true", JS_TRUE},
        {"false", JS_FALSE},
        {"0", JS_NUMBER},
        {"-0", JS_NUMBER},
        {"-1.5e+10", JS_NUMBER},
        {"1E400", JS_NUMBER},
        {"123456789012345678901234567890", JS_NUMBER},
        {"0.0", JS_NUMBER},
        {"1e-7", JS_NUMBER},
        {"\"\"", JS_STRING},
        {"\"a\"", JS_STRING},
        {"\"\\u0000\"", JS_STRING},
        {"\"\\ud83d\\ude00\"", JS_STRING},
        {"[]", JS_ARRAY},
        {"[ ]", JS_ARRAY},
        {"{}", JS_OBJECT},
        {" {\n} ", JS_OBJECT},
        {"[[],{}]", JS_ARRAY},
        {"\t\r\n 1 \t\r\n", JS_NUMBER},
        {"\"\x7f\"", JS_STRING},
        {"\"\xed\x9f\xbf\"", JS_STRING},
        {"\"\xf4\x8f\xbf\xbf\"", JS_STRING},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\uABcd\"", JS_STRING},
    };

    for (size_t i = 0; i < countof(rows); i++) {
        if (!parse(str_of(rows[i].text)))
            fail_msg("%s: %s", rows[i].text, fault.reason);
        assert_int_equal(js_root(&doc)->type, rows[i].type);
    }
    done();
}

TEST(test_js_parse__refuses_what_is_not_json)
{
    static const struct str rows[] = {
        STR(""),
        STR(" "),
        STR("nul"),
        STR("nulL"),
        STR("nullx"),
        STR("True"),
        STR("NaN"),
        STR("Infinity"),
        STR("-"),
        STR("-a"),
        STR("+1"),
        STR("01"),
        STR("-01"),
        STR("1."),
        STR(".5"),
        STR("1.e1"),
        STR("1e"),
        STR("1e+"),
        STR("0x10"),
        STR("1 2"),
        STR("1,"),
        STR("\""),
        STR("\"a"),
        STR("\"\\\""),
        STR("\"\\x41\""),
        STR("\"\\u12\""),
        STR("\"\\u12g4\""),
        STR("\"\\ud800\""),
        STR("\"\\udc00\""),
        STR("\"\\ud800\\u0041\""),
        STR("\"\\ud800\\ud800\""),
        STR("\"\\udc00\\ud800\""),
        STR("\"\\ud800x\""),
        STR("\"\n\""),
        STR("\"\t\""),
        STR("\"\0\""),
        STR("\"\x1f\""),
        STR("'a'"),
        STR("[1,]"),
        STR("[,1]"),
        STR("[1 2]"),
        STR("[1"),
        STR("["),
        STR("]"),
        STR("[}"),
        STR("{]"),
        STR("{"),
        STR("{,}"),
        STR("{\"a\"}"),
        STR("{\"a\":}"),
        STR("{\"a\":1,}"),
        STR("{\"a\":1 \"b\":2}"),
        STR("{a:1}"),
        STR("{1:1}"),
        STR("{\"a\" 1}"),
        STR("{\"a\":1}}"),
        STR("[1]]"),
        STR("{}{}"),
        STR("//x\n1"),
        STR("1/**/"),
        STR("\xef\xbb\xbf{}"),
        STR("\xfe\xff"),
        STR("1\0"),
        STR("\0"),
        STR("\x0b"
            "1"),
        STR("\xc2\xa0"
            "1"),
        /* overlong, surrogates, too large, cut off, stray */
        STR("\"\xc0\x80\""),
        STR("\"\xc1\xbf\""),
        STR("\"\xe0\x80\x80\""),
        STR("\"\xe0\x9f\xbf\""),
        STR("\"\xf0\x80\x80\x80\""),
        STR("\"\xf0\x8f\xbf\xbf\""),
        STR("\"\xed\xa0\x80\""),
        STR("\"\xed\xbf\xbf\""),
        STR("\"\xf4\x90\x80\x80\""),
        STR("\"\xf5\x80\x80\x80\""),
        STR("\"\xff\""),
        STR("\"\xc3\""),
        STR("\"\xe2\x82\""),
        STR("\"\xf0\x9f\x98\""),
        STR("\"\x80\""),
        STR("\"\xc3\xc3\""),
        STR("\"aaaaaaaaaaaaaaaaaaaaaaa\xff\""),
        STR("\"aaaaaaaaaaaaaaaaaaaaaaaaaaa\n\""),
    };

    for (size_t i = 0; i < countof(rows); i++) {
        if (parse(rows[i]))
            fail_msg("row %zu was taken", i);
        assert_non_null(fault.reason);
        assert_false(fault.limit);
        assert_false(fault.duplicate);
        assert_true(fault.offset <= rows[i].n);
        assert_true(fault.line >= 1 && fault.column >= 1);
    }
    done();
}

TEST(test_js_parse__a_cut_anywhere_is_refused_and_says_so)
{
    struct str whole = STR("{\"a\":[1,-2.5e3,\"x\\u00e4\xc3\xa4\",{\"b\":true}],\"c\":null}");

    assert_true(parse(whole));
    for (size_t n = 0; n < whole.n; n++)
        assert_false(parse(str_n(whole.p, n)));
    done();
}

TEST(test_js_parse__no_string_is_read_past_its_end)
{
    char text[80];

    /* Exact heap copies, so that ASan sees a byte too many at every alignment of the fast loop. */
    for (size_t n = 2; n < sizeof(text); n++) {
        char *exact = xmalloc(n);
        memset(exact, 'a', n);
        exact[0] = exact[n - 1] = '"';
        assert_true(parse(str_n(exact, n)));
        assert_int_equal(js_root(&doc)->end, n);
        exact[n - 1] = 'a';
        assert_false(parse(str_n(exact, n)));
        free(exact);
    }
    done();
}

TEST(test_js_parse__odd_bytes_are_found_at_every_place_of_the_fast_loop)
{
    for (size_t at = 1; at < 40; at++) {
        char text[42];
        memset(text, 'x', sizeof(text));
        text[0] = text[41] = '"';
        text[at] = '\n';
        assert_false(parse(str_n(text, sizeof(text))));
        assert_int_equal(fault.offset, at);
        text[at] = (char)0x80;
        assert_false(parse(str_n(text, sizeof(text))));
        assert_int_equal(fault.offset, at);
        text[at] = '"';
        assert_false(parse(str_n(text, sizeof(text))));
        assert_int_equal(fault.offset, at + 1);
    }
    done();
}

TEST(test_js_parse__spans_cover_the_original_bytes)
{
    assert_true(parse(STR("{ \"k\" : [ 1 , \"a\\n\" ] , \"z\":{}}")));
    assert_int_equal(doc.n, 7);
    assert_str(js_raw(&doc, &doc.nodes[0]), "{ \"k\" : [ 1 , \"a\\n\" ] , \"z\":{}}");
    assert_str(js_raw(&doc, &doc.nodes[1]), "\"k\"");
    assert_str(js_raw(&doc, &doc.nodes[2]), "[ 1 , \"a\\n\" ]");
    assert_str(js_raw(&doc, &doc.nodes[4]), "\"a\\n\"");
    assert_int_equal(doc.nodes[4].escaped, 1);
    assert_int_equal(doc.nodes[1].escaped, 0);
    assert_int_equal(doc.nodes[0].next, 7);
    assert_int_equal(doc.nodes[2].next, 5);
    assert_str(js_raw(&doc, &doc.nodes[6]), "{}");
    done();
}

TEST(test_js_parse__failure_leaves_the_document_alone_and_names_the_place)
{
    struct js_doc before;

    memset(&doc, 0x5a, sizeof(doc));
    before = doc;
    assert_false(parse(STR("{\n  \"ä\": 1,\n  \"ä\" 2\n}")));
    assert_memory_equal(&before, &doc, sizeof(doc));
    assert_int_equal(fault.line, 3);
    assert_int_equal(fault.column, 7); /* characters, not bytes */
    assert_string_equal(fault.reason, "a colon must follow the key");
    assert_false(js_parse(STR("["), &js_limits_request, mem, &doc, NULL));
    done();
}

static bool duplicates(struct str text)
{
    bool ok = parse(text);

    if (!ok)
        assert_true(fault.duplicate);
    assert_true(parse_with(text, &js_limits_upstream)); /* tolerated there */
    return !ok;
}

TEST(test_js_parse__refuses_duplicate_keys_after_unescaping)
{
    assert_true(duplicates(STR("{\"a\":1,\"a\":2}")));
    assert_true(duplicates(STR("{\"a\":1,\"b\":3,\"\\u0061\":2}")));
    assert_true(duplicates(STR("{\"\\u0061\":1,\"a\":2}")));
    assert_true(duplicates(STR("{\"\\u0061\":1,\"\\u0061\":2}")));
    assert_true(duplicates(STR("{\"\":1,\"\":2}")));
    assert_true(duplicates(STR("[{\"x\":{\"a\":{},\"a\":[]}}]")));
    assert_true(duplicates(STR("{\"a/b\":1,\"a\\/b\":2}")));
    assert_true(duplicates(STR("{\"\xf0\x9f\x98\x80\":1,\"\\uD83d\\uDE00\":2}")));
    assert_false(duplicates(STR("{\"a\":1,\"A\":2}")));
    assert_false(duplicates(STR("{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":1}]}")));
    assert_false(duplicates(STR("{\"a\":1,\"a\\u0000\":2}")));
    assert_false(duplicates(STR("{\"ab\":1,\"ba\":2,\"aab\":3,\"\":4}")));
    done();
}

TEST(test_js_parse__a_duplicate_fault_stands_on_the_second_key)
{
    assert_false(parse(STR("{\"a\":1,\"b\":[9,9],\"a\":2}")));
    assert_int_equal(fault.offset, 17);
    done();
}

/* {"k0":0,"k1":0,...} with the last key replaced when `last` is given. */
static struct str many_keys(struct buf *out, unsigned n, const char *last)
{
    buf_reset(out);
    buf_addc(out, '{');
    for (unsigned i = 0; i < n; i++) {
        if (i == n - 1 && last)
            buf_addf(out, "%s\"%s\":0", i ? "," : "", last);
        else
            buf_addf(out, "%s\"k%u\":0", i ? "," : "", i);
    }
    buf_addc(out, '}');
    return buf_str(out);
}

TEST(test_js_parse__finds_a_duplicate_at_every_size_of_object)
{
    struct buf b;

    buf_init(&b, 1 << 20);
    for (unsigned n = 2; n < 70; n++) {
        assert_true(parse(many_keys(&b, n, NULL)));
        assert_false(parse(many_keys(&b, n, "k0")));
        assert_true(fault.duplicate);
        assert_false(parse(many_keys(&b, n, "\\u006b0")));
        assert_true(fault.duplicate);
    }
    buf_release(&b);
    done();
}

TEST(test_js_parse__keys_at_the_limit_and_one_more)
{
    struct buf b;

    buf_init(&b, 1 << 20);
    assert_true(parse(many_keys(&b, 10000, NULL)));
    assert_false(parse(many_keys(&b, 10000, "k5000")));
    assert_true(fault.duplicate);
    assert_false(parse(many_keys(&b, 10001, NULL)));
    assert_true(fault.limit);
    assert_false(fault.duplicate);
    buf_release(&b);
    done();
}

static struct str nested(struct buf *out, unsigned n)
{
    buf_reset(out);
    for (unsigned i = 0; i < n; i++)
        buf_addz(out, i % 2 ? "{\"a\":" : "[");
    buf_addc(out, '1');
    for (unsigned i = n; i-- > 0;)
        buf_addz(out, i % 2 ? "}" : "]");
    return buf_str(out);
}

TEST(test_js_parse__depth_at_the_limit_and_one_more)
{
    struct js_limits deep = {.depth = 100000, .keys = 10, .nodes = 100000};
    struct buf b;

    buf_init(&b, 1 << 22);
    assert_true(parse(nested(&b, 64)));
    assert_false(parse(nested(&b, 65)));
    assert_true(fault.limit);
    assert_true(parse_with(nested(&b, 256), &deep));
    assert_false(parse_with(nested(&b, 257), &deep)); /* the hard stop */
    assert_true(fault.limit);
    buf_reset(&b);
    for (int i = 0; i < 1000000; i++)
        buf_addc(&b, '[');
    assert_false(parse(buf_str(&b)));
    assert_int_equal(fault.offset, 64);
    buf_release(&b);
    done();
}

TEST(test_js_parse__nodes_at_the_limit_and_one_more)
{
    struct js_limits few = {.depth = 4, .keys = 10, .nodes = 5};

    assert_true(parse_with(STR("[1,2,3,4]"), &few));
    assert_false(parse_with(STR("[1,2,3,4,5]"), &few));
    assert_true(fault.limit);
    assert_true(parse_with(STR("{\"a\":1,\"b\":2}"), &few));
    assert_false(parse_with(STR("{\"a\":1,\"b\":[2]}"), &few));
    done();
}

TEST(test_js_parse__a_request_holds_a_million_values_and_not_one_more)
{
    struct buf b;

    buf_init(&b, 4 << 20);
    buf_addz(&b, "[0");
    for (uint32_t i = 2; i < js_limits_request.nodes; i++)
        buf_addz(&b, ",0");
    buf_addc(&b, ']');
    assert_true(parse(buf_str(&b)));
    assert_int_equal(doc.n, js_limits_request.nodes);
    b.n--;
    buf_addz(&b, ",0]");
    assert_false(parse(buf_str(&b)));
    assert_true(fault.limit);
    buf_release(&b);
    done();
}

TEST(test_js_parse__the_ceiling_of_the_arena_is_a_limit)
{
    struct arena *small = arena_new(1000);
    struct buf b;

    buf_init(&b, 1 << 20);
    buf_addz(&b, "[0");
    for (int i = 0; i < 5000; i++)
        buf_addz(&b, ",0");
    buf_addc(&b, ']');
    assert_false(js_parse(buf_str(&b), &js_limits_request, small, &doc, &fault));
    assert_true(fault.limit);
    assert_true(parse(buf_str(&b)));
    assert_int_equal(doc.n, 5002);
    arena_free(small);
    buf_release(&b);
    done();
}

TEST(test_js_parse__a_long_string_costs_one_node)
{
    struct buf b;

    buf_init(&b, 8 << 20);
    buf_addc(&b, '"');
    for (int i = 0; i < (4 << 20); i += 16)
        buf_addz(&b, "0123456789abcdef");
    buf_addc(&b, '"');
    assert_true(parse(buf_str(&b)));
    assert_int_equal(doc.n, 1);
    assert_true(arena_used(mem) <= sizeof(struct js_node));
    buf_release(&b);
    done();
}

TEST(test_js_parse__relaxed_takes_comments_and_trailing_commas_only)
{
    static const char *const good[] = {
        "// c\n{ /* x */ \"a\" /**/ : /* * / */ 1, // end\n \"b\": [1,2,], }  // no newline",
        "[1,/*,*/]", "{\"a\":\"//not a comment\",}", "/**/1/**/", "[1]//"};
    static const char *const bad[] = {
        "[,]",    "{,}",   "[1,,]", "/* open", "{} /* open",         "/ 1",  "[1] / ",
        "# c\n1", "{a:1}", "'a'",   "/*/1",    "{\"a\":1,\"a\":2,}", "[1/]", "01"};

    for (size_t i = 0; i < countof(good); i++) {
        if (!parse_with(str_of(good[i]), &js_limits_config))
            fail_msg("%s: %s", good[i], fault.reason);
        assert_false(i < 4 && parse(str_of(good[i])));
    }
    for (size_t i = 0; i < countof(bad); i++)
        if (parse_with(str_of(bad[i]), &js_limits_config))
            fail_msg("%s was taken", bad[i]);
    done();
}
