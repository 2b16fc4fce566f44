/* SPDX-License-Identifier: Apache-2.0 */
/* Limits as they are written, at the bounds and past them, and read back. */
#include "test.h"

#include "config/limits.h"

#include <stdio.h>

static struct config *config;
static struct error err;

static bool parse(const char *text)
{
    config_unref(config);
    config = NULL;
    return config_parse(str_of(text), STR("h.json"), NULL, &config, &err);
}

static void done(void)
{
    config_unref(config);
    config = NULL;
}

TEST(test_limit_parse__rates_counts_and_none)
{
    static const struct {
        enum limit_kind kind;
        const char *text;
        struct limit limit; /* amount 0: refused */
    } cases[] = {
        {LIMIT_REQUESTS, "600/m", {600, 60000, 600}},
        {LIMIT_REQUESTS, "1/s", {1, 1000, 1}},
        {LIMIT_REQUESTS, "5/h burst 1", {5, 3600000, 1}},
        {LIMIT_REQUESTS, "5/d burst 99", {5, 86400000, 99}},
        {LIMIT_REQUESTS, "none", {LIMIT_NONE, 0, 0}},
        {LIMIT_REQUESTS, "0/m", {0}},
        {LIMIT_REQUESTS, "600", {0}},
        {LIMIT_REQUESTS, "600/", {0}},
        {LIMIT_REQUESTS, "/m", {0}},
        {LIMIT_REQUESTS, "600/w", {0}},
        {LIMIT_REQUESTS, "-1/m", {0}},
        {LIMIT_REQUESTS, "1.5/m", {0}},
        {LIMIT_REQUESTS, "6MiB/m", {0}},
        {LIMIT_REQUESTS, "600/m burst", {0}},
        {LIMIT_REQUESTS, "600/m burst ", {0}},
        {LIMIT_REQUESTS, "600/m burst 0", {0}},
        {LIMIT_REQUESTS, "600/m bursts 5", {0}},
        {LIMIT_REQUESTS, "600/m burst 5 ", {0}},
        {LIMIT_REQUESTS, "", {0}},
        /* As much as a bucket counts, and one more. */
        {LIMIT_REQUESTS, "2305843009213693/s", {2305843009213693, 1000, 2305843009213693}},
        {LIMIT_REQUESTS, "2305843009213694/s", {0}},
        {LIMIT_REQUESTS, "1/s burst 2305843009213694", {0}},
        {LIMIT_BYTES, "50MiB/m", {52428800, 60000, 52428800}},
        {LIMIT_BYTES, "1KiB/s burst 2KiB", {1024, 1000, 2048}},
        {LIMIT_BYTES, "100/s", {100, 1000, 100}},
        {LIMIT_BYTES, "fast", {0}},
        {LIMIT_CALLS, "1", {.amount = 1}},
        {LIMIT_CALLS, "1000000", {.amount = 1000000}},
        {LIMIT_CALLS, "1000001", {0}},
        {LIMIT_CALLS, "0", {0}},
        {LIMIT_CALLS, "8/m", {0}},
        {LIMIT_CHILDREN, "none", {LIMIT_NONE, 0, 0}},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct limit l = {0};
        bool ok = limit_parse(cases[i].kind, str_of(cases[i].text), &l, &err);
        if (ok != (cases[i].limit.amount != 0) || memcmp(&l, &cases[i].limit, sizeof(l)) != 0)
            fail_msg("%s: %s", cases[i].text, ok ? "taken" : err.text);
    }
}

TEST(test_config__limits_of_tenants_and_keys)
{
    struct limits own = {.of[LIMIT_CALLS] = {.amount = 3}}, l;

    assert_true(parse("{\"holdfast\": {\"limits\": {\"body\": \"1MiB\", \"requests\": \"600/m\", "
                      "\"calls\": 8, \"key\": {\"requests\": \"60/m\"}}, \"tenants\": {\"a\": "
                      "{\"limits\": {\"calls\": 16, \"children\": 2, \"requests\": \"none\", "
                      "\"key\": {\"calls\": 4}}}}}}"));
    assert_true(config->is_limited);
    l = config_limits(config, STR("b"));
    assert_int_equal(l.of[LIMIT_REQUESTS].amount, 600);
    assert_int_equal(l.of[LIMIT_CALLS].amount, 8);
    assert_int_equal(l.of[LIMIT_CHILDREN].amount, LIMIT_UNSAID);
    l = config_limits(config, STR("a"));
    assert_int_equal(l.of[LIMIT_REQUESTS].amount, LIMIT_NONE);
    assert_int_equal(l.of[LIMIT_CALLS].amount, 16);
    assert_int_equal(l.of[LIMIT_CHILDREN].amount, 2);
    l = config_key_limits(config, STR("a"), NULL);
    assert_int_equal(l.of[LIMIT_REQUESTS].amount, 60);
    assert_int_equal(l.of[LIMIT_CALLS].amount, 4);
    l = config_key_limits(config, STR("a"), &own);
    assert_int_equal(l.of[LIMIT_REQUESTS].amount, 60);
    assert_int_equal(l.of[LIMIT_CALLS].amount, 3);
    done();
}

TEST(test_config__nobody_is_limited_unless_told)
{
    assert_true(parse("{\"holdfast\": {\"limits\": {\"body\": \"1MiB\"}, \"tenants\": {\"a\": "
                      "{\"limits\": {}}}}}"));
    assert_false(config->is_limited);
    assert_true(parse("{\"holdfast\": {\"tenants\": {\"a\": {\"limits\": {\"key\": {\"calls\": "
                      "1}}}}}}"));
    assert_true(config->is_limited);
    done();
}

TEST(test_config__limits_that_are_none_are_refused_in_words)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"{\"holdfast\": {\"limits\": {\"request\": \"600/m\"}}}",
         "h.json:1:26: unknown key \"request\"; did you mean \"requests\"?"},
        {"{\"holdfast\": {\"limits\": {\"requests\": 600}}}",
         "h.json:1:38: \"requests\" must be a rate per s, m, h or d such as 600/m, or 600/m burst "
         "100; or \"none\""},
        {"{\"holdfast\": {\"tenants\": {\"a\": {\"limits\": {\"calls\": 0}}}}}",
         "h.json:1:53: \"calls\" must be a whole number from 1 to 1000000, or \"none\""},
        {"{\"holdfast\": {\"limits\": {\"key\": {\"key\": {}}}}}",
         "h.json:1:34: unknown key \"key\"; the keys here are requests, bytes, calls, children"},
        {"{\"holdfast\": {\"limits\": {\"bytes\": \"50GiB/d\"}}}",
         "h.json:1:35: \"bytes\" is too large to count; write it per second (s)"},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        assert_false(parse(cases[i].text));
        assert_string_equal(err.text, cases[i].said);
    }
    done();
}

TEST(test_config_write__limits_are_read_back_as_they_were)
{
    static const char text[] =
        "{\"holdfast\": {\"limits\": {\"requests\": \"600/m burst 5\", \"bytes\": \"50MiB/h burst "
        "1GiB\", \"key\": {\"calls\": 4}}, \"tenants\": {\"a\": {\"limits\": {\"requests\": "
        "\"none\", \"children\": 7}}, \"b\": {}}}}";
    struct buf first, second;

    buf_init(&first, SIZE_MAX);
    buf_init(&second, SIZE_MAX);
    assert_true(parse(text));
    config_write(config, &first);
    assert_non_null(strstr(first.p, "\"requests\": \"600/m burst 5\""));
    assert_non_null(strstr(first.p, "\"bytes\": \"50MiB/h burst 1GiB\""));
    assert_non_null(strstr(first.p, "\"requests\": \"none\""));
    assert_non_null(strstr(first.p, "\"children\": 7"));
    assert_true(parse(first.p));
    config_write(config, &second);
    assert_string_equal(first.p, second.p);
    buf_release(&first);
    buf_release(&second);
    done();
}

TEST(test_limit_describe__is_a_phrase)
{
    static const struct {
        enum limit_kind kind;
        struct limit limit;
        const char *words;
    } cases[] = {
        {LIMIT_REQUESTS, {600, 60000, 600}, "600 requests a minute"},
        {LIMIT_REQUESTS, {1, 3600000, 1}, "1 request an hour"},
        {LIMIT_BYTES, {52428800, 86400000, 1}, "50 MiB a day"},
        {LIMIT_BYTES, {1001, 1000, 1}, "1001 bytes a second"},
        {LIMIT_CALLS, {.amount = 1}, "1 call at a time"},
        {LIMIT_CHILDREN, {.amount = 2}, "2 server processes at a time"},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct buf out;
        buf_init(&out, 256);
        limit_describe(cases[i].kind, &cases[i].limit, &out);
        assert_str(buf_str(&out), cases[i].words);
        buf_release(&out);
    }
}
