/* SPDX-License-Identifier: Apache-2.0 */
/* "sinks": what each type takes, bounds, secrets. */
#include "test.h"

#include "config/sinks.h"

#include <stdio.h>
#include <stdlib.h>

static struct config *config;
static struct error err;

static bool reads(const char *sinks)
{
    char text[8192];

    config_unref(config);
    config = NULL;
    snprintf(text, sizeof(text), "{\"holdfast\":{\"sinks\":%s}}", sinks);
    return config_parse(str_of(text), STR("h.json"), NULL, &config, &err);
}

static void done(void)
{
    config_unref(config);
    config = NULL;
}

static void refuses(const char *sinks, const char *why)
{
    assert_false(reads(sinks));
    if (!strstr(err.text, why))
        fail_msg("%s: not \"%s\", but \"%s\"", sinks, why, err.text);
}

#define FILE_SINK "{\"name\":\"a\",\"type\":\"file\",\"path\":\"/x\"}"

TEST(test_sinks__each_type_takes_its_members)
{
    assert_true(reads("[" FILE_SINK ",{\"name\":\"b\",\"type\":\"webhook\",\"url\":\"https://h/p\","
                      "\"secret\":\"${secret:S}\",\"headers\":{\"A\":\"b\"},\"filter\":"
                      "{\"types\":\"outcome\",\"tool\":[\"x\",\"y\"]},\"tenants\":[\"t\"],"
                      "\"bodies\":true,\"from\":\"start\"},"
                      "{\"name\":\"c\",\"type\":\"syslog\",\"url\":\"tls://[::1]:6514\"}]"));
    assert_int_equal(config->n_sinks, 3);
    const struct sink_config *b = &config->sinks[1];
    assert_int_equal(b->type, SINK_WEBHOOK);
    assert_int_equal(b->from, SINK_FROM_START);
    assert_int_equal(b->types.n, 1);
    assert_int_equal(b->tool.n, 2);
    assert_int_equal(b->n_tenants, 1);
    assert_true(b->bodies && config->sinks[0].max_size == 100u << 20 && config->sinks[0].keep == 5);
    done();
}

TEST(test_sinks__what_a_type_cannot_use_is_refused)
{
    refuses("{}", "an array");
    refuses("[{\"name\":\"a\",\"type\":\"file\"}]", "needs \"path\"");
    refuses("[{\"name\":\"a\",\"type\":\"file\",\"path\":\"x\"}]", "full path");
    refuses("[{\"name\":\"a\",\"type\":\"file\",\"path\":\"/x\",\"url\":\"http://h\"}]",
            "no \"url\"");
    refuses("[{\"name\":\"a\",\"type\":\"webhook\"}]", "needs \"url\"");
    refuses("[{\"name\":\"a\",\"type\":\"webhook\",\"url\":\"tcp://h:1\"}]", "https://");
    refuses("[{\"name\":\"a\",\"type\":\"syslog\",\"url\":\"http://h\"}]", "tls://HOST:PORT");
    refuses("[{\"name\":\"a\",\"type\":\"syslog\",\"url\":\"tcp://h\"}]", "tls://HOST:PORT");
    refuses("[{\"name\":\"a\",\"type\":\"syslog\",\"url\":\"tcp://h:0\"}]", "tls://HOST:PORT");
    refuses("[{\"name\":\"a\",\"type\":\"syslog\",\"url\":\"tcp://h:1/x\"}]", "tls://HOST:PORT");
    refuses("[{\"name\":\"a\",\"type\":\"syslog\",\"url\":\"tcp://h:1\",\"tls\":{\"ca\":\"/c\"}}]",
            "no effect");
    refuses(
        "[{\"name\":\"a\",\"type\":\"syslog\",\"url\":\"tls://h:1\",\"headers\":{\"a\":\"b\"}}]",
        "webhook");
    refuses("[" FILE_SINK "," FILE_SINK "]", "two sinks");
    refuses("[{\"name\":\"-a\",\"type\":\"file\",\"path\":\"/x\"}]", "letters");
    refuses("[{\"name\":\"a\",\"type\":\"webhook\",\"url\":\"http://"
            "h\",\"secret\":\"123456789012345\"}]",
            "at least 16");
    assert_true(reads("[{\"name\":\"a\",\"type\":\"webhook\",\"url\":\"http://h\","
                      "\"secret\":\"1234567890123456\"}]"));
    done();
}

TEST(test_sinks__at_most_sixteen)
{
    char text[4096] = "[";

    for (int i = 0; i < CONFIG_SINKS_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "%s{\"name\":\"a%d\",\"type\":\"file\",\"path\":\"/x\"}", i ? "," : "", i);
    char more[8192];
    snprintf(more, sizeof(more), "%s]", text);
    assert_true(reads(more));
    snprintf(more, sizeof(more), "%s," FILE_SINK "]", text);
    refuses(more, "at most 16");
    done();
}

TEST(test_sinks__secrets_are_filled_in_and_masked)
{
    const struct config_secret good[] = {{STR("S"), STR("0123456789abcdef")}};
    const struct config_secret shorter[] = {{STR("S"), STR("0123456789")}};
    const char *text = "[{\"name\":\"a\",\"type\":\"webhook\",\"url\":\"http://h\","
                       "\"secret\":\"${secret:S}\"}]";
    struct buf out;

    assert_true(reads(text) && config_uses_secrets(config));
    config_resolve(config, good, 1);
    assert_true(str_eq(config->sinks[0].target.secret, good[0].value));
    assert_false(config->sinks[0].target.refusal.p);
    buf_init(&out, SIZE_MAX);
    config_write(config, &out);
    assert_null(strstr(out.p, "0123456789abcdef"));
    buf_release(&out);

    assert_true(reads(text));
    config_resolve(config, NULL, 0);
    assert_non_null(config->sinks[0].target.refusal.p);
    assert_true(reads(text));
    config_resolve(config, shorter, 1);
    assert_non_null(config->sinks[0].target.refusal.p);
    done();
}

TEST(test_sinks__equal_only_if_nothing_differs)
{
    struct config *first;

    assert_true(reads("[" FILE_SINK "]"));
    first = config_ref(config);
    assert_true(reads("[" FILE_SINK "]"));
    assert_true(sink_config_equal(first->sinks, config->sinks));
    assert_true(
        reads("[{\"name\":\"a\",\"type\":\"file\",\"path\":\"/x\",\"filter\":{\"tool\":\"y\"}}]"));
    assert_false(sink_config_equal(first->sinks, config->sinks));
    config_unref(first);
    done();
}
