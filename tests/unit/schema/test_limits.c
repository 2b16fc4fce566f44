/* SPDX-License-Identifier: Apache-2.0 */
/* Every bound of the checker, at the limit and one past it. */
#include "schema/schema.h"

#include "test.h"

#include <stdlib.h>

static const struct js_limits roomy = {
    .depth = 64, .keys = 1000000, .nodes = 4000000, .flags = JS_NO_DUPLICATES};

struct bench {
    struct arena *mem;
    struct buf schema, instance;
    struct js_doc doc, given;
    struct schema *s;
    struct schema_report report;
    struct error err;
};

static struct bench *bench_new(void)
{
    struct bench *b = xcalloc(1, sizeof(*b));

    b->mem = arena_new(512 << 20);
    buf_init(&b->schema, 64 << 20);
    buf_init(&b->instance, 64 << 20);
    return b;
}

static void bench_free(struct bench *b)
{
    arena_free(b->mem);
    buf_release(&b->schema);
    buf_release(&b->instance);
    free(b);
}

static bool compile(struct bench *b)
{
    assert_true(js_parse(buf_str(&b->schema), &roomy, b->mem, &b->doc, NULL));
    return schema_compile(&b->doc, js_root(&b->doc), b->mem, &b->s, &b->err);
}

static enum schema_answer check(struct bench *b)
{
    assert_true(compile(b));
    assert_true(js_parse(buf_str(&b->instance), &roomy, b->mem, &b->given, NULL));
    return schema_check(b->s, &b->given, js_root(&b->given), b->mem, &b->report);
}

static void repeat(struct buf *out, const char *text, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        buf_addz(out, text);
}

static bool compiles_with_size(size_t n)
{
    struct bench *b = bench_new();
    bool ok;

    buf_addz(&b->schema, "{\"title\":\"");
    while (b->schema.n < n - 2)
        buf_addc(&b->schema, 'x');
    buf_addz(&b->schema, "\"}");
    ok = compile(b);
    assert_true(ok || b->err.code == ERR_TOO_LARGE);
    bench_free(b);
    return ok;
}

TEST(test_schema_limits__size_of_a_schema)
{
    assert_true(compiles_with_size(SCHEMA_TEXT_MAX));
    assert_false(compiles_with_size(SCHEMA_TEXT_MAX + 1));
}

static bool compiles_with_subschemas(unsigned n)
{
    struct bench *b = bench_new();
    bool ok;

    buf_addz(&b->schema, "{\"allOf\":[true");
    repeat(&b->schema, ",true", n - 2);
    buf_addz(&b->schema, "]}");
    ok = compile(b);
    assert_true(ok || b->err.code == ERR_TOO_LARGE);
    bench_free(b);
    return ok;
}

TEST(test_schema_limits__schemas_in_a_schema)
{
    assert_true(compiles_with_subschemas(SCHEMA_SUBSCHEMAS_MAX));
    assert_false(compiles_with_subschemas(SCHEMA_SUBSCHEMAS_MAX + 1));
}

/* A chain of n schemas, each but the last a reference to the next. */
static enum schema_answer nested(unsigned n)
{
    struct bench *b = bench_new();
    enum schema_answer answer;

    buf_addz(&b->schema, "{\"$ref\":\"#/$defs/2\",\"$defs\":{");
    for (unsigned i = 2; i < n; i++)
        buf_addf(&b->schema, "\"%u\":{\"$ref\":\"#/$defs/%u\"},", i, i + 1);
    buf_addf(&b->schema, "\"%u\":{\"type\":\"number\"}}}", n);
    buf_addz(&b->instance, "1");
    answer = check(b);
    if (answer == SCHEMA_UNSURE)
        assert_string_equal(b->report.unsure_keyword, "$ref");
    bench_free(b);
    return answer;
}

TEST(test_schema_limits__depth)
{
    assert_int_equal(nested(SCHEMA_DEPTH_MAX), SCHEMA_VALID);
    assert_int_equal(nested(SCHEMA_DEPTH_MAX + 1), SCHEMA_UNSURE);
}

static enum schema_answer answer_of(const char *schema, const char *instance)
{
    struct bench *b = bench_new();
    enum schema_answer answer;

    buf_addz(&b->schema, schema);
    buf_addz(&b->instance, instance);
    answer = check(b);
    bench_free(b);
    return answer;
}

TEST(test_schema_limits__references_in_a_circle_end)
{
    assert_int_equal(answer_of("{\"$ref\":\"#\"}", "1"), SCHEMA_UNSURE);
    assert_int_equal(answer_of("{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}", "1"),
                     SCHEMA_UNSURE);
    assert_int_equal(answer_of("{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},"
                               "\"b\":{\"$ref\":\"#/$defs/a\"}},\"$ref\":\"#/$defs/a\"}",
                               "1"),
                     SCHEMA_UNSURE);
    assert_int_equal(answer_of("{\"$dynamicAnchor\":\"a\",\"$dynamicRef\":\"#a\"}", "1"),
                     SCHEMA_UNSURE);
}

static enum schema_answer with_items(unsigned n)
{
    struct bench *b = bench_new();
    enum schema_answer answer;

    buf_addz(&b->schema, "{\"items\":{\"type\":\"null\"}}");
    buf_addz(&b->instance, "[null");
    repeat(&b->instance, ",null", n - 1);
    buf_addz(&b->instance, "]");
    answer = check(b);
    if (answer == SCHEMA_UNSURE)
        assert_string_equal(b->report.unsure_reason, "the check took more steps than it may");
    bench_free(b);
    return answer;
}

TEST(test_schema_limits__steps)
{
    /* Two for the root, two for each item and one for sixteen items that are counted. */
    unsigned most = SCHEMA_STEPS_MAX / 3;

    while (2 + 2 * (most + 1) + (most + 1) / 16 <= SCHEMA_STEPS_MAX)
        most++;
    assert_int_equal(with_items(most), SCHEMA_VALID);
    assert_int_equal(with_items(most + 1), SCHEMA_UNSURE);
}

TEST(test_schema_limits__a_schema_that_doubles_with_each_line_is_stopped)
{
    struct bench *b = bench_new();

    buf_addz(&b->schema, "{\"$defs\":{\"d0\":{\"type\":\"null\"}");
    for (unsigned i = 1; i < 60; i++)
        buf_addf(&b->schema,
                 ",\"d%u\":{\"anyOf\":[{\"$ref\":\"#/$defs/d%u\"},{\"$ref\":\"#/$defs/d%u\"}]}", i,
                 i - 1, i - 1);
    buf_addz(&b->schema, "},\"$ref\":\"#/$defs/d59\"}");
    buf_addz(&b->instance, "1");
    assert_int_equal(check(b), SCHEMA_UNSURE);
    bench_free(b);
}

TEST(test_schema_limits__findings)
{
    for (unsigned n = SCHEMA_FINDINGS_MAX; n <= SCHEMA_FINDINGS_MAX + 1; n++) {
        struct bench *b = bench_new();

        buf_addz(&b->schema, "{\"items\":{\"type\":\"null\"}}");
        buf_addz(&b->instance, "[1");
        repeat(&b->instance, ",1", n - 1);
        buf_addz(&b->instance, "]");
        assert_int_equal(check(b), SCHEMA_INVALID);
        assert_int_equal(b->report.n, SCHEMA_FINDINGS_MAX);
        assert_int_equal(b->report.more, n > SCHEMA_FINDINGS_MAX);
        bench_free(b);
    }
}

TEST(test_schema_limits__gaps_that_are_listed)
{
    for (unsigned n = SCHEMA_GAPS_MAX; n <= SCHEMA_GAPS_MAX + 1; n++) {
        struct bench *b = bench_new();
        unsigned listed, total;

        buf_addz(&b->schema, "{\"allOf\":[{\"minimum\":{}}");
        repeat(&b->schema, ",{\"minimum\":{}}", n - 1);
        buf_addz(&b->schema, "]}");
        buf_addz(&b->instance, "1");
        assert_int_equal(check(b), SCHEMA_UNSURE);
        schema_unsupported(b->s, &listed, &total);
        assert_int_equal(listed, SCHEMA_GAPS_MAX);
        assert_int_equal(total, n);
        bench_free(b);
    }
}

static enum schema_answer with_uri(size_t n)
{
    struct bench *b = bench_new();
    struct buf uri;
    enum schema_answer answer;

    buf_init(&uri, 1 << 20);
    buf_addz(&uri, "u:");
    while (uri.n < n)
        buf_addc(&uri, 'x');
    buf_addf(&b->schema, "{\"$defs\":{\"a\":{\"$id\":\"%s\",\"type\":\"null\"}},\"$ref\":\"%s\"}",
             uri.p, uri.p);
    buf_addz(&b->instance, "null");
    answer = check(b);
    buf_release(&uri);
    bench_free(b);
    return answer;
}

TEST(test_schema_limits__length_of_a_uri)
{
    assert_int_equal(with_uri(SCHEMA_URI_MAX), SCHEMA_VALID);
    assert_int_equal(with_uri(SCHEMA_URI_MAX + 1), SCHEMA_UNSURE);
}

static enum schema_answer with_pattern(unsigned n)
{
    struct bench *b = bench_new();
    enum schema_answer answer;

    buf_addz(&b->schema, "{\"pattern\":\"");
    repeat(&b->schema, "a", n);
    buf_addz(&b->schema, "\"}");
    buf_addz(&b->instance, "\"b\"");
    answer = check(b);
    bench_free(b);
    return answer;
}

TEST(test_schema_limits__length_of_a_pattern)
{
    assert_int_equal(with_pattern(SCHEMA_PATTERN_MAX), SCHEMA_INVALID);
    assert_int_equal(with_pattern(SCHEMA_PATTERN_MAX + 1), SCHEMA_UNSURE);
}

/* Each pattern compiles to some 60 KB; the gaps are those that had no room. */
static unsigned gaps_of_patterns(unsigned n)
{
    struct bench *b = bench_new();
    unsigned listed, total;

    buf_addz(&b->schema, "{\"allOf\":[true");
    repeat(&b->schema, ",{\"pattern\":\"([ab]{400}){3}\"}", n);
    buf_addz(&b->schema, "]}");
    assert_true(compile(b));
    schema_unsupported(b->s, &listed, &total);
    bench_free(b);
    return total;
}

TEST(test_schema_limits__patterns_of_a_schema_together)
{
    unsigned fit = 1;

    while (fit < 10000 && gaps_of_patterns(fit) == 0)
        fit = fit < 4 ? fit + 1 : fit + fit / 4;
    assert_true(fit < 10000);
    while (gaps_of_patterns(fit) > 0)
        fit--;
    assert_int_equal(gaps_of_patterns(fit), 0);
    assert_int_equal(gaps_of_patterns(fit + 1), 1);
}

TEST(test_schema_limits__a_pattern_that_explodes)
{
    assert_int_equal(
        answer_of("{\"pattern\":\"^(a+)+$\"}", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\""),
        SCHEMA_UNSURE);
    assert_int_equal(answer_of("{\"patternProperties\":{\"^(a+)+$\":false}}",
                               "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\":1}"),
                     SCHEMA_UNSURE);
}

TEST(test_schema_limits__many_items_are_told_apart_in_time)
{
    struct bench *b = bench_new();

    buf_addz(&b->schema, "{\"uniqueItems\":true}");
    buf_addz(&b->instance, "[0");
    for (unsigned i = 1; i < 100000; i++)
        buf_addf(&b->instance, ",%u", i);
    buf_addz(&b->instance, "]");
    assert_int_equal(check(b), SCHEMA_VALID);
    b->instance.n--;
    buf_addz(&b->instance, ",7e0]");
    assert_int_equal(check(b), SCHEMA_INVALID);
    assert_str(b->report.findings[0].sentence,
               "parameters must not have equal items, but 7 and 100000 are");
    bench_free(b);
}

/* `part` applied n times to one value. */
static void add_times(struct buf *out, struct str part, unsigned n)
{
    buf_addz(out, "{\"$defs\":{\"x\":");
    buf_addstr(out, part);
    buf_addz(out, "},\"allOf\":[true");
    repeat(out, ",{\"$ref\":\"#/$defs/x\"}", n);
    buf_addz(out, "]}");
}

static enum schema_answer many_times(const char *before, const char *text, unsigned long_by,
                                     const char *after, const char *instance)
{
    struct bench *b = bench_new();
    enum schema_answer answer;
    struct buf part;

    buf_init(&part, 1 << 20);
    buf_addz(&part, before);
    repeat(&part, text, long_by);
    buf_addz(&part, after);
    add_times(&b->schema, buf_str(&part), 1000);
    buf_addz(&b->instance, instance);
    answer = check(b);
    buf_release(&part);
    bench_free(b);
    return answer;
}

TEST(test_schema_limits__digits_are_paid_for_on_either_side)
{
    struct bench *b = bench_new();

    add_times(&b->schema, STR("{\"type\":\"integer\"}"), 1000);
    repeat(&b->instance, "1234567890", 10000);
    assert_int_equal(check(b), SCHEMA_UNSURE);
    bench_free(b);
    assert_int_equal(many_times("{\"enum\":[", "1234567890", 10000, "]}", "1"), SCHEMA_UNSURE);
    assert_int_equal(many_times("{\"maximum\":1.", "0000000000", 10000, "1}", "1"), SCHEMA_UNSURE);
    assert_int_equal(many_times("{\"maximum\":1.", "0000000000", 10, "1}", "1"), SCHEMA_VALID);
}

TEST(test_schema_limits__a_long_name_that_is_looked_for_is_paid_for)
{
    struct bench *b = bench_new();
    struct buf part;

    buf_init(&part, 1 << 20);
    buf_addz(&part, "{\"required\":[\"");
    repeat(&part, "abcdefghij", 10000);
    buf_addz(&part, "z\"]}");
    add_times(&b->schema, buf_str(&part), 1000);
    buf_addz(&b->instance, "{\"");
    repeat(&b->instance, "abcdefghij", 10000);
    buf_addz(&b->instance, "y\":1}");
    assert_int_equal(check(b), SCHEMA_UNSURE);
    buf_release(&part);
    bench_free(b);
}

TEST(test_schema_limits__a_long_key_is_paid_for_with_every_pattern)
{
    struct bench *b = bench_new();

    buf_addz(&b->schema, "{\"patternProperties\":{\"x\":true");
    for (unsigned i = 0; i < 1000; i++)
        buf_addf(&b->schema, ",\"B%u\":true", i);
    buf_addz(&b->schema, "}}");
    buf_addz(&b->instance, "{\"");
    repeat(&b->instance, "aaaaaaaaaa", 10000);
    buf_addz(&b->instance, "\":1}");
    assert_int_equal(check(b), SCHEMA_UNSURE);
    bench_free(b);
}

TEST(test_schema_limits__what_is_not_told_costs_no_memory)
{
    struct bench *b = bench_new();
    size_t before;

    buf_addz(&b->schema, "{\"items\":{\"enum\":[100");
    for (unsigned i = 101; i < 160; i++)
        buf_addf(&b->schema, ",%u", i);
    buf_addz(&b->schema, "]}}");
    buf_addz(&b->instance, "[1");
    repeat(&b->instance, ",1", 100000);
    buf_addz(&b->instance, "]");
    assert_true(compile(b));
    assert_true(js_parse(buf_str(&b->instance), &roomy, b->mem, &b->given, NULL));
    before = arena_used(b->mem);
    assert_int_equal(schema_check(b->s, &b->given, js_root(&b->given), b->mem, &b->report),
                     SCHEMA_INVALID);
    assert_int_equal(b->report.n, SCHEMA_FINDINGS_MAX);
    assert_true(b->report.more);
    assert_true(arena_used(b->mem) - before < 1 << 20);
    bench_free(b);
}

TEST(test_schema_limits__a_long_key_is_cut_in_what_is_told)
{
    struct bench *b = bench_new();
    size_t before;

    repeat(&b->schema, "{\"additionalProperties\":", 40);
    buf_addz(&b->schema, "{\"required\":[\"a\"]}");
    repeat(&b->schema, "}", 40);
    buf_addz(&b->instance, "{\"");
    repeat(&b->instance, "aaaaaaaaaa", 10000);
    buf_addz(&b->instance, "\":");
    repeat(&b->instance, "{\"k\":", 39);
    buf_addz(&b->instance, "{}");
    repeat(&b->instance, "}", 40);
    assert_true(compile(b));
    assert_true(js_parse(buf_str(&b->instance), &roomy, b->mem, &b->given, NULL));
    before = arena_used(b->mem);
    assert_int_equal(schema_check(b->s, &b->given, js_root(&b->given), b->mem, &b->report),
                     SCHEMA_INVALID);
    assert_true(arena_used(b->mem) - before < 1 << 20);
    bench_free(b);
}

/* n references that pass 1,000 items each. */
static enum schema_answer with_references(unsigned n)
{
    struct bench *b = bench_new();
    enum schema_answer answer;

    buf_addz(&b->schema, "{\"x\":[0");
    repeat(&b->schema, ",0", 999);
    buf_addz(&b->schema, ",{}],\"allOf\":[true");
    repeat(&b->schema, ",{\"$ref\":\"#/x/1000\"}", n);
    buf_addz(&b->schema, "]}");
    buf_addz(&b->instance, "1");
    answer = check(b);
    bench_free(b);
    return answer;
}

TEST(test_schema_limits__what_references_pass)
{
    /* Each also passes "x", the first member. */
    assert_int_equal(with_references(SCHEMA_LINK_MAX / 1000), SCHEMA_VALID);
    assert_int_equal(with_references(SCHEMA_LINK_MAX / 1000 + 1), SCHEMA_UNSURE);
}
