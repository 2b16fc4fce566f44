/* SPDX-License-Identifier: Apache-2.0 */
/* Documents changed by others: the examples of RFC 7396, and joining. */
#include "json/merge.h"

#include "test.h"

static void check(enum merge_how how, const char *document, const char *change, const char *want)
{
    struct arena *mem = arena_new(1 << 20);
    struct buf out;

    buf_init(&out, 1 << 20);
    assert_true(json_merge(str_of(document), str_of(change), how, mem, &out));
    assert_string_equal(buf_str(&out).p, want);
    buf_release(&out);
    arena_free(mem);
}

TEST(test_merge_patch__does_as_the_examples_of_the_rfc)
{
    static const char *const rows[][3] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
        {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
        {"{\"a\":\"foo\"}", "null", "null"},
        {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    };
    for (size_t i = 0; i < countof(rows); i++)
        check(MERGE_PATCH, rows[i][0], rows[i][1], rows[i][2]);
}

TEST(test_merge_patch__compares_keys_after_unescaping_and_keeps_other_bytes)
{
    check(MERGE_PATCH, "{\"\\u0061\": 1, \"big\": 12345678901234567890.10 }", "{\"a\":2}",
          "{\"\\u0061\":2,\"big\":12345678901234567890.10}");
}

TEST(test_merge_append__grows_arrays_and_loses_nothing)
{
    check(MERGE_APPEND, "{\"a\":[1],\"o\":{\"x\":1},\"s\":\"old\"}",
          "{\"a\":[2,3],\"o\":{\"y\":2},\"s\":\"new\",\"n\":null}",
          "{\"a\":[1,2,3],\"o\":{\"x\":1,\"y\":2},\"s\":\"new\",\"n\":null}");
    check(MERGE_APPEND, "{\"a\":[]}", "{\"a\":[1]}", "{\"a\":[1]}");
    check(MERGE_APPEND, "{\"a\":[1]}", "{\"a\":[]}", "{\"a\":[1]}");
    check(MERGE_APPEND, "{\"a\":1}", "{\"a\":[2]}", "{\"a\":[2]}");
}

TEST(test_merge__stops_at_the_ceiling)
{
    struct arena *mem = arena_new(1 << 20);
    struct buf out;

    buf_init(&out, 13);
    assert_true(json_merge(STR("{\"a\":1}"), STR("{\"b\":2}"), MERGE_PATCH, mem, &out));
    buf_release(&out);
    buf_init(&out, 12);
    assert_false(json_merge(STR("{\"a\":1}"), STR("{\"b\":2}"), MERGE_PATCH, mem, &out));
    buf_release(&out);
    arena_free(mem);
}
