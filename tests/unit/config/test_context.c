/* SPDX-License-Identifier: Apache-2.0 */
/* ${context:KEY} in servers, and the keys that a profile takes. */
#include "test.h"

#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>

static struct config *config;
static struct error err;

static bool parse(const char *text)
{
    config_unref(config);
    config = NULL;
    setenv("HF_TEST_PLACEHOLDER", "${context:region}", 1);
    return config_parse(str_of(text), STR("c.json"), NULL, &config, &err);
}

static bool parse_env(const char *value)
{
    char text[4096];
    snprintf(text, sizeof(text),
             "{\"mcpServers\":{\"x\":{\"command\":\"c\",\"env\":{\"A\":\"%s\"}}}}", value);
    return parse(text);
}

static void done(void)
{
    config_unref(config);
    config = NULL;
}

static struct str fill(const struct config_pair *pair, const struct config_pair *values, size_t n)
{
    static struct buf out;
    struct str missing = STR_NONE;

    buf_release(&out);
    buf_init(&out, SIZE_MAX);
    return config_pair_fill(pair, values, n, &out, &missing) ? buf_str(&out) : missing;
}

TEST(test_context__placeholders_are_filled_with_context_values)
{
    static const struct config_pair values[] = {{.name = {"region", 6}, .value = {"eu", 2}},
                                                {.name = {"empty", 5}, .value = {"", 0}}};
    static const struct {
        const char *written, *filled;
    } cases[] = {
        {"${context:region}", "eu"},
        {"<${context:region}${context:region}>", "<eueu>"},
        {"a ${context:token:-none} b", "a none b"},
        {"${context:token:-}", ""},
        {"${context:empty:-d}", "d"},
        {"${context:empty}", ""},
        {"${context:region:-us} $${context:region}", "eu ${context:region}"},
        {"${HF_TEST_PLACEHOLDER}",
         "${context:region}"},           /* what a variable holds makes no placeholder */
        {"x${context:token}y", "token"}, /* missing */
    };

    for (size_t i = 0; i < countof(cases); i++) {
        if (!parse_env(cases[i].written))
            fail_msg("%s: %s", cases[i].written, err.text);
        assert_str(fill(&config->servers[0].env[0], values, countof(values)), cases[i].filled);
    }
    done();
}

TEST(test_context__a_server_with_a_hole_takes_it)
{
    assert_true(parse_env("${context:region}"));
    assert_true(config->servers[0].takes_context);
    assert_true(parse_env("${HF_TEST_PLACEHOLDER}"));
    assert_false(config->servers[0].takes_context);
    assert_true(parse("{\"mcpServers\":{\"x\":{\"url\":\"http://h/\",\"headers\":"
                      "{\"Authorization\":\"Bearer ${context:token}\"}}}}"));
    assert_true(config->servers[0].takes_context);
    done();
}

TEST(test_context__mistakes_are_told_with_their_place)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"mcpServers\":{\n\"x\":{\"command\":\"c\",\"share\":\"all\",\"env\":{\"A\":"
         "\"${context:a}\"}}}}",
         "c.json:2:1: with \"share\": \"all\" every session would use the value of the first"},
        {"{\"mcpServers\":{\"x\":{\"command\":\"${context:a}\"}}}", "cannot be used here"},
        {"{\"mcpServers\":{\"x\":{\"command\":\"c\",\"args\":[\"${context:a}\"]}}}",
         "cannot be used here"},
        {"{\"mcpServers\":{\"x\":{\"command\":\"c\",\"env\":{\"A\":\"${context:}\"}}}}",
         "has an invalid key"},
        {"{\"mcpServers\":{\"x\":{\"command\":\"c\",\"env\":{\"A\":\"${context:a b}\"}}}}",
         "has an invalid key"},
        {"{\"mcpServers\":{\"x\":{\"command\":\"c\",\"env\":{\"A\":\"${context:a:b}\"}}}}",
         "is not understood; write ${context:KEY}"},
        {"{\"mcpServers\":{\"x\":{\"command\":\"c\",\"env\":{\"A\":"
         "\"${context:a:-${context:b}}\"}}}}",
         "has a variable as its default"},
        {"{\"mcpServers\":{\"x\":{\"url\":\"http://h/\",\"headers\":{\"A\":"
         "\"${context:a:-b\\r\\nC: d}\"}}}}",
         "the value of the header A must not contain control characters"},
        {"{\"holdfast\":{\"profiles\":{\"p\":{\"context\":{}}}}}", "keys"},
        {"{\"holdfast\":{\"profiles\":{\"p\":{\"context\":{\"keys\":[]}}}}}", "is empty"},
        {"{\"holdfast\":{\"profiles\":{\"p\":{\"context\":{\"keys\":[\"a.b\"]}}}}}",
         "letters, digits, _ and -"},
    };

    for (size_t i = 0; i < countof(cases); i++) {
        assert_false(parse(cases[i].text));
        if (!strstr(err.text, cases[i].words))
            fail_msg("%s: %s", cases[i].text, err.text);
    }
    done();
}

/* A header of one name, whose lines have that many bytes, or whose default has. */
static bool parse_header(size_t bytes, bool is_default)
{
    static char text[65536];
    size_t n = bytes - 1 - 4;

    snprintf(text, sizeof(text),
             "{\"mcpServers\":{\"x\":{\"url\":\"http://h/\",\"headers\":{\"A\":\"%s%0*d%s\"}}}}",
             is_default ? "${context:a:-" : "", (int)n, 0, is_default ? "}" : "");
    return parse(text);
}

TEST(test_context__headers_of_a_server_fit_into_a_head)
{
    for (int is_default = 0; is_default < 2; is_default++) {
        assert_true(parse_header(48 * 1024, is_default));
        assert_false(parse_header(48 * 1024 + 1, is_default));
        assert_non_null(strstr(err.text, "more than 48 KiB together; shorten"));
    }
    done();
}

static bool parse_keys(size_t n, size_t length)
{
    static char text[32768];
    char *at = text + sprintf(text, "{\"holdfast\":{\"profiles\":{\"p\":{\"context\":{\"keys\":[");

    for (size_t i = 0; i < n; i++)
        at += sprintf(at, "%s\"%0*zu\"", i ? "," : "", (int)length, i);
    strcpy(at, "]}}}}}");
    return parse(text);
}

TEST(test_context__limits)
{
    char value[2048] = "";

    assert_true(parse_keys(CONTEXT_KEYS_MAX, 8));
    assert_int_equal(config_profile(config, STR("p"))->n_context_keys, CONTEXT_KEYS_MAX);
    assert_false(parse_keys(CONTEXT_KEYS_MAX + 1, 8));
    assert_true(parse_keys(1, CONTEXT_KEY_MAX));
    assert_false(parse_keys(1, CONTEXT_KEY_MAX + 1));
    for (size_t i = 0; i < 16; i++)
        strcat(value, "${context:a}");
    assert_true(parse_env(value));
    strcat(value, "${context:a}");
    assert_false(parse_env(value));
    assert_non_null(strstr(err.text, "more than a value may have"));
    done();
}

TEST(test_context__a_definition_differs_by_its_holes)
{
    static const char *const values[] = {"${context:a}",  "${context:b}", "${context:a:-}", "",
                                         "x${context:a}", "${context:a}x"};
    uint8_t seen[countof(values)][32];

    for (size_t i = 0; i < countof(values); i++) {
        assert_true(parse_env(values[i]));
        memcpy(seen[i], config->servers[0].definition, sizeof(seen[i]));
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(seen[i], seen[k], sizeof(seen[i]));
    }
    done();
}

TEST(test_context__is_shown_as_it_was_written)
{
    struct buf out;

    assert_true(
        parse("{\"mcpServers\":{\"x\":{\"command\":\"c\",\"env\":{\"A\":"
              "\"1${context:a}$${2${context:b:-c}\"}}},"
              "\"holdfast\":{\"profiles\":{\"p\":{\"context\":{\"keys\":[\"a\",\"b\"]}}}}}"));
    buf_init(&out, SIZE_MAX);
    config_write(config, &out);
    assert_non_null(strstr(out.p, "\"1${context:a}$${2${context:b:-c}\""));
    assert_non_null(strstr(out.p, "\"context\""));
    buf_release(&out);
    done();
}

TEST(test_context__a_header_may_end_where_a_hole_is)
{
    assert_true(parse("{\"mcpServers\":{\"x\":{\"url\":\"http://h/\",\"headers\":"
                      "{\"A\":\"Bearer ${context:token}\"}}}}"));
    assert_false(parse("{\"mcpServers\":{\"x\":{\"url\":\"http://h/\",\"headers\":"
                       "{\"A\":\"Bearer \"}}}}"));
    assert_true(config_is_header_value(STR("a b")));
    assert_false(config_is_header_value(STR("a\r\nb")));
    assert_false(config_is_header_value(STR("a ")));
    done();
}

TEST(test_context__a_key_that_no_session_can_have_is_noted)
{
    assert_true(parse_env("${context:a} ${context:b:-}"));
    assert_int_equal(config->n_notes, 1);
    assert_non_null(
        strstr(config->notes[0].p, "server \"x\" needs ${context:a}, which no profile"));
    assert_true(
        parse("{\"mcpServers\":{\"x\":{\"command\":\"c\",\"env\":{\"A\":\"${context:a}\"}}},"
              "\"holdfast\":{\"profiles\":{\"p\":{\"context\":{\"keys\":[\"a\"]}}}}}"));
    assert_int_equal(config->n_notes, 0);
    done();
}
