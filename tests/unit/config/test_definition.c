/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions: what leaves a server untouched by a reload, and what does not. */
#include "test.h"

#include "config/config.h"

#include <stdio.h>

static void definition_of(const char *entry, uint8_t ret[32])
{
    struct config *config;
    struct error err;
    char text[512];

    snprintf(text, sizeof(text), "{\"mcpServers\":{\"x\":{%s}}}", entry);
    assert_true(config_parse(str_of(text), STR("h.json"), NULL, &config, &err));
    memcpy(ret, config_server(config, STR("x"))->definition, 32);
    config_unref(config);
}

TEST(test_definition__the_same_meaning_has_the_same_digest)
{
    static const char *const same[][2] = {
        {"\"command\":\"c\"", "\"command\" : \"\\u0063\", \"share\": \"session\""},
        {"\"command\":\"c\",\"env\":{\"A\":\"1\",\"B\":\"2\"}",
         "\"env\":{\"B\":\"2\",\"A\":\"1\"},\"command\":\"c\""},
        {"\"command\":\"c\",\"timeout\":60", "\"command\":\"c\",\"timeout\":\"1m\""},
        {"\"command\":\"c\",\"icon\":1", "\"command\":\"c\",\"type\":\"stdio\""},
        {"\"url\":\"http://h\"", "\"url\":\"http://h\",\"type\":\"streamable-http\""},
        {"\"url\":\"http://h\",\"type\":\"sse\"", "\"url\":\"http://h\",\"transport\":\"sse\""},
        {"\"url\":\"http://h\"", "\"httpUrl\":\"http://h\",\"headers\":{}"},
    };
    uint8_t a[32], b[32];

    for (size_t i = 0; i < countof(same); i++) {
        definition_of(same[i][0], a);
        definition_of(same[i][1], b);
        assert_memory_equal(a, b, 32);
    }
}

TEST(test_definition__every_difference_shows)
{
    static const char *const entries[] = {
        "\"command\":\"c\"",
        "\"command\":\"d\"",
        "\"command\":\"c\",\"args\":[\"\"]",
        "\"command\":\"c\",\"args\":[\"ab\",\"c\"]",
        "\"command\":\"c\",\"args\":[\"a\",\"bc\"]",
        "\"command\":\"c\",\"args\":[\"a\",\"b\",\"c\"]",
        "\"command\":\"c\",\"env\":{\"A\":\"1\"}",
        "\"command\":\"c\",\"env\":{\"A\":\"2\"}",
        "\"command\":\"c\",\"env\":{\"A\":\"\"}",
        "\"command\":\"c\",\"cwd\":\"/\"",
        "\"command\":\"c\",\"share\":\"all\"",
        "\"command\":\"c\",\"handles\":\"always\"",
        "\"command\":\"c\",\"handles\":\"never\"",
        "\"command\":\"c\",\"audit\":\"full\"",
        "\"command\":\"c\",\"audit\":\"none\"",
        "\"command\":\"c\",\"era\":\"legacy\"",
        "\"command\":\"c\",\"pin\":true",
        "\"command\":\"c\",\"timeout\":61",
        "\"url\":\"http://c\"",
        "\"url\":\"http://c\",\"headers\":{\"A\":\"1\"}",
        "\"url\":\"http://c\",\"headers\":{\"A\":\"2\"}",
        "\"url\":\"http://c\",\"type\":\"sse\"",
        "\"url\":\"http://c\",\"credential\":{\"service\":\"s\",\"as\":\"header:K\"}",
        "\"url\":\"http://c\",\"credential\":{\"service\":\"s\",\"as\":\"header:K\","
        "\"key_names\":[\"A\"]}",
    };
    uint8_t digests[countof(entries)][32];

    for (size_t i = 0; i < countof(entries); i++) {
        definition_of(entries[i], digests[i]);
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(digests[i], digests[j], 32);
    }
}

TEST(test_definition__the_name_is_part_of_it)
{
    struct config *config;
    struct error err;

    assert_true(
        config_parse(STR("{\"mcpServers\":{\"x\":{\"command\":\"c\"},\"y\":{\"command\":\"c\"}}}"),
                     STR("h.json"), NULL, &config, &err));
    assert_memory_not_equal(config->servers[0].definition, config->servers[1].definition, 32);
    config_unref(config);
}
