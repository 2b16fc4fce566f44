/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "json/splice.h"

static bool starts_with_x(void *arg, struct str raw_key)
{
    (void)arg;
    return raw_key.n > 1 && raw_key.p[1] == 'x';
}

static void check(const char *text, const char *add, const char *expected)
{
    struct arena *mem = arena_new(1 << 20);
    struct js_doc doc;
    struct js_splice s;
    struct buf out;

    assert_true(js_parse(str_of(text), &js_limits_request, mem, &doc, NULL));
    js_splice_init(&s, &doc);
    js_splice_remove(&s, js_root(&doc), starts_with_x, NULL);
    if (add)
        js_splice_member(&s, js_root(&doc), str_of(add));
    buf_init(&out, 1 << 20);
    js_splice_write(&s, js_root(&doc), &out);
    assert_string_equal(out.p, expected);
    buf_release(&out);
    arena_free(mem);
}

TEST(test_splice__takes_members_out_and_keeps_every_other_byte)
{
    check("{\"a\": 1 , \"x\":2,\"b\" :3}", NULL, "{\"a\": 1 , \"b\" :3}");
    check("{\"x\":2,\"b\" :3}", NULL, "{\"b\" :3}");
    check("{\"a\":1,\"x\":2 }", NULL, "{\"a\":1 }");
    check("{\"a\":1,\"x\":2,\"x2\":[3]}", NULL, "{\"a\":1}");
    check("{\"x\":2,\"x2\":[3]}", NULL, "{}");
    check("{\"x\":1,\"a\":0,\"x2\":2,\"x3\":3,\"b\":1,\"x4\":4}", NULL, "{\"a\":0,\"b\":1}");
}

TEST(test_splice__adds_last_with_the_right_comma)
{
    check("{}", "\"n\":1", "{\"n\":1}");
    check("{ }", "\"n\":1", "{ \"n\":1}");
    check("{\"a\":1}", "\"n\":1", "{\"a\":1,\"n\":1}");
    check("{\"x\":1}", "\"n\":1", "{\"n\":1}");
    check("{\"a\":1,\"x\":1}", "\"n\":1", "{\"a\":1,\"n\":1}");
    check("{\"x\":1,\"a\":1e400 }", "\"n\":1", "{\"a\":1e400 ,\"n\":1}");
}

TEST(test_splice__edits_inside_a_value_leave_its_surroundings)
{
    struct arena *mem = arena_new(1 << 20);
    struct js_doc doc;
    struct js_splice s;
    struct buf out;
    const char *text = "{\"p\":{\"m\":{\"t\":\"\\u00e9\", \"k\":12345678901234567890}},\"l\":[ ]}";

    assert_true(js_parse(str_of(text), &js_limits_request, mem, &doc, NULL));
    const struct js_node *meta = js_get(&doc, js_get(&doc, js_root(&doc), STR("p")), STR("m"));
    js_splice_init(&s, &doc);
    js_splice_element(&s, js_get(&doc, js_root(&doc), STR("l")), STR("1"));
    js_splice_element(&s, js_get(&doc, js_root(&doc), STR("l")), STR("2"));
    js_splice_replace(&s, js_get(&doc, meta, STR("t")), STR("7"));
    buf_init(&out, 1 << 20);
    js_splice_write(&s, js_root(&doc), &out);
    assert_string_equal(out.p,
                        "{\"p\":{\"m\":{\"t\":7, \"k\":12345678901234567890}},\"l\":[ 1,2]}");
    buf_reset(&out);
    js_splice_write(&s, meta, &out);
    assert_string_equal(out.p, "{\"t\":7, \"k\":12345678901234567890}");
    buf_release(&out);
    arena_free(mem);
}

static bool is_odd(void *arg unused_arg, struct str raw_key)
{
    return (raw_key.p[raw_key.n - 2] - '0') % 2 == 1;
}

TEST(test_splice__takes_out_as_many_members_as_there_are)
{
    for (int n = 2 * JS_SPLICE_OWN - 1; n < 2000; n = 2 * n + 1) {
        struct arena *mem = arena_new(1 << 22);
        struct js_doc doc;
        struct js_splice s;
        struct buf in, out, expected;

        buf_init(&in, 1 << 20);
        buf_init(&out, 1 << 20);
        buf_init(&expected, 1 << 20);
        for (int i = 0; i < n; i++) {
            buf_addf(&in, "%s\"k%d\":%d", i ? "," : "{", i, i);
            if (i % 2 == 0)
                buf_addf(&expected, "%s\"k%d\":%d", i ? "," : "{", i, i);
        }
        buf_addz(&in, "}");
        buf_addz(&expected, "}");
        assert_true(js_parse(buf_str(&in), &js_limits_request, mem, &doc, NULL));
        assert_int_equal(js_splice_stay(&doc, js_root(&doc), is_odd, NULL), (n + 1) / 2);
        js_splice_init(&s, &doc);
        assert_int_equal(js_splice_remove(&s, js_root(&doc), is_odd, NULL), (n + 1) / 2);
        js_splice_write(&s, js_root(&doc), &out);
        assert_string_equal(out.p, expected.p);
        buf_release(&in);
        buf_release(&out);
        buf_release(&expected);
        arena_free(mem);
    }
}
