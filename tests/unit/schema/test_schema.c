/* SPDX-License-Identifier: Apache-2.0 */
/* The checker as its callers see it: sentences, pointers, gaps, and the three answers.  That the
 * keywords mean what they should is shown with the official suite
 * (tests/e2e/differential_schema.py).
 */
#include "schema/schema.h"

#include "test.h"

struct fixture {
    struct arena *mem;
    struct js_doc doc, given;
    struct schema *s;
    struct schema_report report;
    enum schema_answer answer;
};

static struct fixture check(const char *schema, const char *instance)
{
    struct fixture f = {.mem = arena_new(16 << 20)};
    struct error err;

    assert_true(js_parse(str_of(schema), &js_limits_upstream, f.mem, &f.doc, NULL));
    assert_true(js_parse(str_of(instance), &js_limits_request, f.mem, &f.given, NULL));
    assert_true(schema_compile(&f.doc, js_root(&f.doc), f.mem, &f.s, &err));
    f.answer = schema_check(f.s, &f.given, js_root(&f.given), f.mem, &f.report);
    return f;
}

static enum schema_answer answer_of(const char *schema, const char *instance)
{
    struct fixture f = check(schema, instance);

    arena_free(f.mem);
    return f.answer;
}

TEST(test_schema_check__says_what_to_change)
{
    static const char *const rows[][5] = {
        {"{\"properties\":{\"limit\":{\"maximum\":100}}}", "{\"limit\":101}", "/limit", "maximum",
         "parameters.limit must be at most 100"},
        {"{\"properties\":{\"n\":{\"exclusiveMinimum\":0}}}", "{\"n\":0}", "/n", "exclusiveMinimum",
         "parameters.n must be greater than 0"},
        {"{\"required\":[\"path\"]}", "{}", "", "required", "missing required parameter 'path'"},
        {"{\"properties\":{\"a\":{\"required\":[\"b\"]}}}", "{\"a\":{}}", "/a", "required",
         "missing required parameter 'a.b'"},
        {"{\"properties\":{\"path\":{}},\"additionalProperties\":false}", "{\"pth\":1}", "",
         "additionalProperties", "unknown parameter 'pth'; did you mean 'path'?"},
        {"{\"properties\":{\"path\":{}},\"additionalProperties\":false}", "{\"zebra\":1}", "",
         "additionalProperties", "unknown parameter 'zebra'"},
        {"{\"properties\":{\"filePath\":{}},\"unevaluatedProperties\":false}", "{\"filepath\":1}",
         "", "unevaluatedProperties", "unknown parameter 'filepath'; did you mean 'filePath'?"},
        {"{\"properties\":{\"x\":{\"type\":\"integer\"}}}", "{\"x\":\"1\"}", "/x", "type",
         "parameters.x must be an integer, not a string"},
        {"{\"properties\":{\"x\":{\"type\":\"integer\"}}}", "{\"x\":1.5}", "/x", "type",
         "parameters.x must be an integer, not 1.5"},
        {"{\"type\":[\"string\",\"null\"]}", "true", "", "type",
         "parameters must be a string or null, not true"},
        {"{\"properties\":{\"m\":{\"enum\":[\"fast\",\"slow\",3]}}}", "{\"m\":\"f\"}", "/m", "enum",
         "parameters.m must be one of \"fast\", \"slow\", 3"},
        {"{\"const\":{\"a\":1}}", "1", "", "const", "parameters must be {\"a\":1}"},
        {"{\"items\":{\"minLength\":2}}", "[\"ab\",\"\\u00e9\"]", "/1", "minLength",
         "parameters[1] must be at least 2 characters long, not 1"},
        {"{\"properties\":{\"a b/c\":{\"multipleOf\":0.5}}}", "{\"a b/c\":0.7}", "/a b~1c",
         "multipleOf", "parameters[\"a b/c\"] must be a multiple of 0.5"},
        {"{\"pattern\":\"^a$\"}", "\"b\"", "", "pattern",
         "parameters must match the pattern \"^a$\""},
        {"{\"uniqueItems\":true}", "[1,2,1.0]", "", "uniqueItems",
         "parameters must not have equal items, but 0 and 2 are"},
        {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}", "", "dependentRequired",
         "missing required parameter 'b', needed when 'a' is given"},
        {"{\"properties\":{\"a\":false}}", "{\"a\":1}", "/a", "false schema",
         "parameters.a is not allowed"},
        {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "1", "", "anyOf",
         "parameters must be a string or null, not a number"},
        {"{\"anyOf\":[{\"type\":\"number\",\"maximum\":3},{\"type\":\"null\"}]}", "4", "",
         "maximum", "parameters must be at most 3"},
        {"{\"oneOf\":[{\"minimum\":1},{\"minimum\":2}]}", "3", "", "oneOf",
         "parameters matches 2 of the 2 alternatives, but must match just one"},
        {"{\"propertyNames\":{\"maxLength\":2}}", "{\"abc\":1}", "", "propertyNames",
         "parameters must not have a property named 'abc'"},
        {"{\"prefixItems\":[{}],\"items\":false}", "[1,2,3]", "", "items",
         "parameters must have at most 1 item, not 3"},
        {"{\"contains\":{\"const\":1},\"minContains\":2}", "[1]", "", "contains",
         "parameters must contain at least 2 items of the kind asked for"},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct fixture f = check(rows[i][0], rows[i][1]);

        assert_int_equal(f.answer, SCHEMA_INVALID);
        assert_int_equal(f.report.n, 1);
        assert_str(f.report.findings[0].path, rows[i][2]);
        assert_string_equal(f.report.findings[0].keyword, rows[i][3]);
        assert_str(f.report.findings[0].sentence, rows[i][4]);
        arena_free(f.mem);
    }
}

static void assert_text(const char *schema, const char *instance, const char *want)
{
    struct fixture f = check(schema, instance);
    struct buf out;

    buf_init(&out, 1 << 20);
    schema_report_write(&f.report, &f.given, js_root(&f.given), &out);
    assert_string_equal(buf_str(&out).p, want);
    buf_release(&out);
    arena_free(f.mem);
}

TEST(test_schema_report__begins_with_what_is_missing_and_what_came)
{
    static const char schema[] = "{\"properties\":{\"path\":{},\"n\":{\"minimum\":1}},"
                                 "\"required\":[\"path\",\"mode\"],\"additionalProperties\":false}";
    assert_text(schema, "{\"pth\":1,\"n\":0}",
                "Missing required parameters: path, mode\nReceived parameters: pth, n\n"
                "unknown parameter 'pth'; did you mean 'path'?\nparameters.n must be at least 1");
    assert_text(schema, "{}", "Missing required parameters: path, mode\nReceived parameters: none");
    assert_text(schema, "{\"path\":1,\"mode\":2}", "unknown parameter 'mode'");
}

TEST(test_schema_check__numbers_are_compared_exactly)
{
    static const char big[] = "{\"maximum\":9007199254740992}";

    assert_int_equal(answer_of(big, "9007199254740992"), SCHEMA_VALID);
    assert_int_equal(answer_of(big, "9007199254740993"), SCHEMA_INVALID);
    assert_int_equal(answer_of("{\"enum\":[12345678901234567890]}", "12345678901234567891"),
                     SCHEMA_INVALID);
    assert_int_equal(answer_of("{\"type\":\"integer\"}", "1e999999999"), SCHEMA_VALID);
    assert_int_equal(answer_of("{\"type\":\"integer\"}", "1e1000000000"), SCHEMA_UNSURE);
    assert_int_equal(answer_of("{\"uniqueItems\":true}", "[1e1000000000,10e999999999]"),
                     SCHEMA_UNSURE);
}

TEST(test_schema_check__what_is_not_understood_is_unsure_only_where_it_decides)
{
    static const struct {
        const char *schema, *instance;
        enum schema_answer answer;
        const char *keyword;
    } rows[] = {
        {"{\"$ref\":\"https://example.com/other\"}", "1", SCHEMA_UNSURE, "$ref"},
        {"{\"$ref\":\"#/$defs/none\"}", "1", SCHEMA_UNSURE, "$ref"},
        {"{\"type\":\"string\",\"$ref\":\"https://example.com/other\"}", "1", SCHEMA_INVALID, NULL},
        {"{\"anyOf\":[{\"$ref\":\"x:y\"},{\"type\":\"number\"}]}", "1", SCHEMA_VALID, NULL},
        {"{\"anyOf\":[{\"$ref\":\"x:y\"},{\"type\":\"string\"}]}", "1", SCHEMA_UNSURE, "$ref"},
        {"{\"oneOf\":[{\"$ref\":\"x:y\"},{\"type\":\"number\"}]}", "1", SCHEMA_UNSURE, "$ref"},
        {"{\"oneOf\":[{\"$ref\":\"x:y\"},{},{}]}", "1", SCHEMA_INVALID, NULL},
        {"{\"not\":{\"$ref\":\"x:y\"}}", "1", SCHEMA_UNSURE, "$ref"},
        {"{\"if\":{\"$ref\":\"x:y\"},\"then\":{\"type\":\"null\"},\"else\":{\"type\":\"null\"}}",
         "1", SCHEMA_INVALID, NULL},
        {"{\"if\":{\"$ref\":\"x:y\"},\"then\":{\"type\":\"null\"}}", "1", SCHEMA_UNSURE, "$ref"},
        {"{\"if\":{\"$ref\":\"x:y\"},\"then\":{\"minimum\":0}}", "1", SCHEMA_VALID, NULL},
        {"{\"$schema\":\"https://example.com/mine\"}", "1", SCHEMA_UNSURE, "$schema"},
        {"{\"$schema\":\"http://json-schema.org/draft-04/schema#\"}", "1", SCHEMA_UNSURE,
         "$schema"},
        {"{\"type\":\"text\"}", "1", SCHEMA_UNSURE, "type"},
        {"{\"minimum\":\"1\"}", "1", SCHEMA_UNSURE, "minimum"},
        {"{\"minimum\":\"1\"}", "\"a\"", SCHEMA_VALID, NULL},
        {"{\"minimum\":1,\"minimum\":2}", "3", SCHEMA_UNSURE, "minimum"},
        {"{\"exclusiveMinimum\":true,\"minimum\":1}", "3", SCHEMA_UNSURE, "exclusiveMinimum"},
        {"{\"pattern\":\"(a)\\\\1\"}", "\"aa\"", SCHEMA_UNSURE, "pattern"},
        {"{\"properties\":[],\"additionalProperties\":false}", "{\"a\":1}", SCHEMA_UNSURE,
         "properties"},
        {"{\"properties\":{\"a\":{},\"a\":false}}", "{\"a\":1}", SCHEMA_UNSURE, "properties"},
        {"{\"patternProperties\":{\"(a)\\\\1\":{}},\"additionalProperties\":false}", "{\"b\":1}",
         SCHEMA_UNSURE, "patternProperties"},
        {"{\"patternProperties\":{\"(a)\\\\1\":{}},\"additionalProperties\":{\"type\":\"number\"}}",
         "{\"b\":1}", SCHEMA_VALID, NULL},
        {"{\"$ref\":\"x:y\",\"unevaluatedProperties\":false}", "{\"b\":1}", SCHEMA_UNSURE, "$ref"},
        {"{\"contains\":{\"$ref\":\"x:y\"}}", "[]", SCHEMA_INVALID, NULL},
        {"{\"contains\":{\"$ref\":\"x:y\"}}", "[1]", SCHEMA_UNSURE, "$ref"},
        {"{\"multipleOf\":0}", "1", SCHEMA_UNSURE, "multipleOf"},
        {"{\"multipleOf\":10000000000000000001}", "1", SCHEMA_UNSURE, "multipleOf"},
        {"{\"items\":5}", "[1]", SCHEMA_UNSURE, "schema"},
        {"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"items\":[{}]}", "[1]",
         SCHEMA_UNSURE, "items"},
        {"{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\",\"$recursiveRef\":\"#\"}",
         "1", SCHEMA_UNSURE, "$recursiveRef"},
        {"{\"$defs\":{\"a\":{\"$id\":\"u:1\"},\"b\":{\"$id\":\"u:1\"}},\"$ref\":\"u:1\"}", "1",
         SCHEMA_UNSURE, "$ref"},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct fixture f = check(rows[i].schema, rows[i].instance);

        if (f.answer != rows[i].answer)
            fail_msg("%s on %s: %d", rows[i].schema, rows[i].instance, f.answer);
        if (rows[i].keyword)
            assert_string_equal(f.report.unsure_keyword, rows[i].keyword);
        else
            assert_null(f.report.unsure_keyword);
        arena_free(f.mem);
    }
}

TEST(test_schema_check__forms_of_draft_07_are_read_where_nothing_is_said)
{
    assert_int_equal(answer_of("{\"items\":[{},{\"type\":\"string\"}],\"additionalItems\":false}",
                               "[1,\"a\",2]"),
                     SCHEMA_INVALID);
    assert_int_equal(answer_of("{\"items\":[{},{\"type\":\"string\"}]}", "[1,\"a\",2]"),
                     SCHEMA_VALID);
    assert_int_equal(answer_of("{\"dependencies\":{\"a\":[\"b\"]}}", "{\"a\":1}"), SCHEMA_INVALID);
    assert_int_equal(answer_of("{\"definitions\":{\"s\":{\"type\":\"string\"}},"
                               "\"$ref\":\"#/definitions/s\"}",
                               "1"),
                     SCHEMA_INVALID);
    assert_int_equal(answer_of("{\"format\":\"email\"}", "\"nobody\""), SCHEMA_VALID);
}

TEST(test_schema_unsupported__lists_what_is_not_checked_and_where)
{
    struct fixture f = check("{\"properties\":{\"a/b\":{\"$ref\":\"https://example.com/x\"},"
                             "\"c\":{\"items\":{\"pattern\":\"\\\\\\\\1(\"}}}}",
                             "{}");
    unsigned n, total;
    const struct schema_gap *gaps = schema_unsupported(f.s, &n, &total);

    assert_int_equal(f.answer, SCHEMA_VALID);
    assert_int_equal(n, 2);
    assert_int_equal(total, 2);
    assert_str(gaps[0].path, "/properties/c/items/pattern");
    assert_string_equal(gaps[0].keyword, "pattern");
    assert_str(gaps[1].path, "/properties/a~1b/$ref");
    assert_string_equal(gaps[1].keyword, "$ref");
    assert_string_equal(gaps[1].reason, "the reference leads out of the schema or nowhere");
    arena_free(f.mem);
}

TEST(test_schema_compile__takes_a_part_of_a_document)
{
    struct arena *mem = arena_new(1 << 20);
    struct schema_report report;
    struct js_doc doc, given;
    struct schema *s;
    struct error err;

    assert_true(
        js_parse(STR("{\"name\":\"t\",\"inputSchema\":{\"$defs\":{\"n\":{\"type\":\"null\"}},"
                     "\"properties\":{\"a\":{\"$ref\":\"#/$defs/n\"}}}}"),
                 &js_limits_upstream, mem, &doc, NULL));
    assert_true(js_parse(STR("{\"a\":1}"), &js_limits_request, mem, &given, NULL));
    assert_true(
        schema_compile(&doc, js_get(&doc, js_root(&doc), STR("inputSchema")), mem, &s, &err));
    assert_int_equal(schema_check(s, &given, js_root(&given), mem, &report), SCHEMA_INVALID);
    assert_false(schema_compile(&doc, js_get(&doc, js_root(&doc), STR("name")), mem, &s, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    assert_false(schema_compile(&doc, NULL, mem, &s, &err));
    arena_free(mem);
}
