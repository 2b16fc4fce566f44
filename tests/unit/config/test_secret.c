/* SPDX-License-Identifier: Apache-2.0 */
/* ${secret:NAME} and ${input:NAME}: noted while reading, filled in by config_resolve(). */
#include "test.h"

#include "config/config.h"

static struct config *parse(const char *text)
{
    struct config *c = NULL;
    struct error err;

    if (!config_parse(str_of(text), STR("h.json"), NULL, &c, &err))
        fail_msg("%s", err.text);
    return c;
}

static void refused(const char *text, const char *why)
{
    struct config *c = NULL;
    struct error err;

    assert_false(config_parse(str_of(text), STR("h.json"), NULL, &c, &err));
    if (!strstr(err.text, why))
        fail_msg("%s", err.text);
}

static const struct config_secret two[] = {
    {{"A", 1}, {"${A}alpha", 9}},
    {{"b.c-d", 5}, {"beta", 4}},
};

TEST(test_secret_name__has_letters_digits_and_three_marks_and_a_limit)
{
    char name[201];

    memset(name, 'x', sizeof(name));
    assert_true(config_is_secret_name(str_n(name, 200)));
    assert_false(config_is_secret_name(str_n(name, 201)));
    assert_true(config_is_secret_name(STR("_a.B-9")));
    assert_false(config_is_secret_name(STR("")));
    assert_true(config_is_secret_name(STR("9a")));
    assert_false(config_is_secret_name(STR("a b")));
    assert_false(config_is_secret_name(STR("a/b")));
}

TEST(test_secret__fills_env_headers_args_and_url)
{
    struct config *c = parse("{\"mcpServers\":{"
                             "\"one\":{\"command\":\"x\",\"args\":[\"--k=${secret:A}\",\"~\"],"
                             "\"env\":{\"P\":\"1${input:b.c-d}2${secret:A}3\"}},"
                             "\"two\":{\"url\":\"https://h/${secret:b.c-d}\","
                             "\"headers\":{\"Authorization\":\"Bearer ${secret:A}\"}},"
                             "\"three\":{\"command\":\"y\"}}}");
    uint8_t before[2][32];

    memcpy(before[0], c->servers[0].definition, 32);
    memcpy(before[1], c->servers[2].definition, 32);
    assert_int_equal(c->servers[0].n_secrets, 2);
    assert_true(config_uses_secrets(c));
    config_resolve(c, two, 2);
    assert_true(str_eq(c->servers[0].args[0], STR("--k=${A}alpha")));
    assert_true(str_eq(c->servers[0].env[0].value, STR("1beta2${A}alpha3")));
    assert_true(str_eq(c->servers[1].url, STR("https://h/beta")));
    assert_true(str_eq(c->servers[1].headers[0].value, STR("Bearer ${A}alpha")));
    for (size_t i = 0; i < 3; i++)
        assert_null(c->servers[i].refusal.p);
    assert_memory_not_equal(before[0], c->servers[0].definition, 32);
    assert_memory_equal(before[1], c->servers[2].definition, 32);
    assert_int_equal(c->n_secrets, 2);
    config_unref(c);
}

TEST(test_secret__a_missing_one_refuses_its_server_alone)
{
    struct config *c = parse("{\"mcpServers\":{"
                             "\"one\":{\"command\":\"x\",\"env\":{\"P\":\"${secret:NO}\"}},"
                             "\"two\":{\"command\":\"x\",\"env\":{\"P\":\"${secret:A}\"}}}}");

    config_resolve(c, two, 2);
    assert_string_equal(c->servers[0].refusal.p,
                        "h.json:1:48: server \"one\": the secret NO is not set; run `holdfast "
                        "secret set NO`");
    assert_null(c->servers[1].refusal.p);
    config_unref(c);
}

TEST(test_secret__one_that_does_not_open_or_fit_refuses_its_server)
{
    const struct config_secret odd[] = {{STR("shut"), {0}}, {STR("line"), STR("a\nb")}};
    struct config *c =
        parse("{\"mcpServers\":{\"one\":{\"command\":\"x\",\"env\":{\"P\":\"${secret:shut}\"}},"
              "\"two\":{\"url\":\"http://h/\",\"headers\":{\"X\":\"${secret:line}\"}},"
              "\"three\":{\"url\":\"${secret:line}\"},"
              "\"four\":{\"command\":\"x\",\"env\":{\"P\":\"${secret:line}\"}}}}");

    config_resolve(c, odd, 2);
    assert_non_null(strstr(c->servers[0].refusal.p, "cannot be opened with the master key"));
    assert_non_null(strstr(c->servers[1].refusal.p, "the header X contain control characters"));
    assert_non_null(strstr(c->servers[2].refusal.p, "with its secret \"url\""));
    assert_null(c->servers[3].refusal.p);
    config_unref(c);
}

TEST(test_secret__a_value_may_be_64_KiB_and_not_more)
{
    static char most[65536 + 1];
    struct config_secret big[] = {{STR("A"), {0}}};

    memset(most, 'x', sizeof(most));
    for (size_t over = 0; over < 2; over++) {
        struct config *c =
            parse("{\"mcpServers\":{\"one\":{\"command\":\"x\",\"env\":{\"P\":\"${secret:A}\"}}}}");
        big[0].value = str_n(most, 65536 + over);
        config_resolve(c, big, 1);
        assert_int_equal(c->servers[0].refusal.p != NULL, over);
        config_unref(c);
    }
}

TEST(test_secret__placeholders_of_sessions_keep_their_places)
{
    struct config *c =
        parse("{\"mcpServers\":{\"one\":{\"command\":\"x\",\"env\":{\"P\":"
              "\"${context:k:-1}.${secret:b.c-d}.${context:k:-2}${secret:A}${context:k:-3}\"}}}}");
    struct str missing;
    struct buf out;

    config_resolve(c, two, 2);
    buf_init(&out, SIZE_MAX);
    assert_true(config_pair_fill(&c->servers[0].env[0], NULL, 0, &out, &missing));
    assert_true(str_eq(buf_str(&out), STR("1.beta.2${A}alpha3")));
    buf_release(&out);
    config_unref(c);
}

TEST(test_secret__a_wrong_name_or_place_is_an_error_of_the_file)
{
    refused("{\"mcpServers\":{\"a\":{\"command\":\"x\",\"env\":{\"P\":\"${secret:a/b}\"}}}}",
            "${secret:a/b} has an invalid name");
    refused("{\"mcpServers\":{\"a\":{\"command\":\"${secret:A}\"}}}",
            "\"command\" cannot hold a secret");
    refused("{\"mcpServers\":{\"a\":{\"command\":\"x\",\"cwd\":\"/${input:A}\"}}}",
            "\"cwd\" cannot hold a secret");
    refused("{\"holdfast\":{\"listen\":\"${secret:A}\"}}", "cannot be used here");
}

TEST(test_secret__show_writes_the_name_and_reads_it_again)
{
    struct config *c =
        parse("{\"mcpServers\":{\"one\":{\"command\":\"x\",\"args\":[\"--token\",\"${secret:A}\"],"
              "\"env\":{\"API_KEY\":\"${secret:A}\",\"P\":\"p$${x}${input:A}\"}}},"
              "\"inputs\":[{\"id\":\"A\",\"description\":\"what\"},{\"id\":\"9\"},7]}");
    struct buf out;

    assert_true(str_eq(config_input_description(c, STR("A")), STR("what")));
    assert_null(config_input_description(c, STR("B")).p);
    buf_init(&out, SIZE_MAX);
    config_write(c, &out);
    assert_non_null(strstr(out.p, "\"API_KEY\": \"${secret:A}\""));
    assert_non_null(strstr(out.p, "\"P\": \"p$${x}${input:A}\""));
    assert_null(strstr(out.p, "***"));
    struct config *again = parse(out.p);
    assert_int_equal(again->servers[0].n_secrets, 1);
    config_unref(again);
    buf_release(&out);
    config_unref(c);
}
