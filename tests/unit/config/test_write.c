/* SPDX-License-Identifier: Apache-2.0 */
/* The effective configuration: complete, readable again, and without secrets.  The reference: every
 * option of the table. */
#include "test.h"

#include "config/config.h"

#include <stdlib.h>

static struct config *config;
static struct buf out;

static void written(const char *text)
{
    struct error err;

    config_unref(config);
    config = NULL;
    buf_release(&out);
    buf_init(&out, SIZE_MAX);
    if (!config_parse(str_of(text), STR("h.json"), NULL, &config, &err))
        fail_msg("%s", err.text);
    config_write(config, &out);
}

static void done(void)
{
    config_unref(config);
    config = NULL;
    buf_release(&out);
}

static bool says(const char *part)
{
    return strstr(out.p, part) != NULL;
}

TEST(test_config_write__defaults_in_full)
{
    written("{}");
    assert_string_equal(out.p, "{\n"
                               "  \"mcpServers\": {},\n"
                               "  \"holdfast\": {\n"
                               "    \"listen\": \"127.0.0.1:4653\",\n"
                               "    \"auth\": \"none\",\n"
                               "    \"path_keys\": false,\n"
                               "    \"client_id\": \"optional\",\n"
                               "    \"metrics\": true,\n"
                               "    \"carriers\": {\n"
                               "      \"meta\": [\n"
                               "        \"session_id\",\n"
                               "        \"openai/session\",\n"
                               "        \"vscode.conversationId\",\n"
                               "        [\n"
                               "          \"x-codex-turn-metadata\",\n"
                               "          \"session_id\"\n"
                               "        ],\n"
                               "        \"threadId\",\n"
                               "        \"sessionID\"\n"
                               "      ],\n"
                               "      \"client_ids\": false\n"
                               "    },\n"
                               "    \"session\": {\n"
                               "      \"limits\": {\n"
                               "        \"max_per_tenant\": 100,\n"
                               "        \"default_ttl\": \"1d\",\n"
                               "        \"idle_timeout\": \"30m\"\n"
                               "      },\n"
                               "      \"cleanup\": {\n"
                               "        \"interval\": \"5m\",\n"
                               "        \"batch_size\": 100,\n"
                               "        \"undelivered\": \"10m\"\n"
                               "      }\n"
                               "    },\n"
                               "    \"events\": {\n"
                               "      \"max_streams\": 4096,\n"
                               "      \"max_per_tenant\": 2048,\n"
                               "      \"max_per_owner\": 256,\n"
                               "      \"patience\": \"30s\"\n"
                               "    },\n"
                               "    \"limits\": {\n"
                               "      \"body\": \"4MiB\",\n"
                               "      \"audit_body\": \"16KiB\",\n"
                               "      \"disk_reserve\": \"64MiB\"\n"
                               "    },\n"
                               "    \"audit\": {}\n"
                               "  }\n"
                               "}");
    done();
}

TEST(test_config_write__is_read_back_to_the_same)
{
    struct config *again;
    struct error err;
    struct buf twice;

    setenv("HF_TEST_LITERAL", "${x} $${y}", 1);
    written(
        "{\"mcpServers\":{\"a\":{\"command\":\"c\",\"args\":[\"$${x}\",\"${HF_TEST_LITERAL}\"],"
        "\"env\":{\"A\":\"\\u00e9\\n\"},\"cwd\":\"/\",\"timeout\":\"1500ms\",\"pin\":true},"
        "\"b\":{\"url\":\"https://h/"
        "p\",\"headers\":{\"X-A\":\"b\"},\"era\":\"modern\",\"transport\":\"sse\","
        "\"tls\":{\"ca\":\"/etc/ca.pem\"}}},"
        "\"holdfast\":{\"listen\":\"[::1]:1\",\"tls\":{\"cert\":\"c\",\"key\":\"k\"},"
        "\"origins\":[\"https://o\"],\"trusted_proxies\":[\"10.0.0.0/8\"],"
        "\"public_url\":\"https://p\",\"client_id\":\"required\",\"metrics\":false,"
        "\"carriers\":{\"meta\":[],\"headers\":[\"X-C\"]},\"tenants\":{\"b\":{\"max_sessions\":3,"
        "\"sessions\":false},\"a\":{\"default_ttl\":\"1h\",\"idle_timeout\":\"1m\"}},"
        "\"profiles\":{\"p\":{},\"q\":{\"context\":{\"keys\":[\"k\"]}}},"
        "\"limits\":{\"body\":1025}}}");
    if (!config_parse(buf_str(&out), STR("again.json"), NULL, &again, &err))
        fail_msg("%s", err.text);
    assert_int_equal(again->n_servers, 2);
    assert_int_equal(config_profile(again, STR("p"))->n_context_keys, 0);
    assert_int_equal(config_profile(again, STR("q"))->n_context_keys, 1);
    for (size_t i = 0; i < 2; i++)
        assert_memory_equal(again->servers[i].definition, config->servers[i].definition, 32);
    assert_int_equal(again->n_meta_carriers, 0);
    assert_int_equal(again->limit_body, 1025);
    assert_int_equal(config_max_sessions(again, STR("b")), 3);
    assert_int_equal(config_max_sessions(again, STR("a")), 100);
    assert_int_equal(config_idle_ms(again, STR("a")), 60000);
    buf_init(&twice, SIZE_MAX);
    config_write(again, &twice);
    assert_string_equal(twice.p, out.p);
    assert_non_null(strstr(twice.p, "/etc/ca.pem"));
    buf_release(&twice);
    config_unref(again);
    done();
}

TEST(test_config_write__shows_no_secret)
{
    written("{\"mcpServers\":{\"a\":{\"command\":\"c\",\"args\":[\"--token\",\"sEcReT1\","
            "\"--api-key=sEcReT2\",\"--verbose\",\"shown1\"],\"env\":{\"GITHUB_TOKEN\":\"sEcReT3\","
            "\"DB_PASSWORD\":\"sEcReT4\",\"OPENAI_API_KEY\":\"sEcReT5\",\"LANG\":\"shown2\"}},"
            "\"b\":{\"url\":\"https://h/p?key=sEcReT6\",\"headers\":{\"Authorization\":\"Bearer "
            "sEcReT7\",\"X-Api-Key\":\"sEcReT8\",\"Cookie\":\"sEcReT9\",\"Accept-Language\":"
            "\"shown3\"}}}}");
    assert_false(says("sEcReT"));
    assert_true(says("shown1"));
    assert_true(says("shown2"));
    assert_true(says("shown3"));
    assert_true(says("\"GITHUB_TOKEN\": \"***\""));
    assert_true(says("\"https://h/p?***\""));
    done();
}

TEST(test_config_reference__has_every_option_with_default_and_bounds)
{
    static const char *const rows[] = {
        "| `holdfast.listen` | an address | `127.0.0.1:4653` |",
        "| `holdfast.session.limits.max_per_tenant` | a whole number, 1 to 10000000 | `100` |",
        "| `holdfast.session.limits.default_ttl` | a duration, 1s to 30d | `24h` |",
        "| `holdfast.limits.body` | a size, 1KiB to 64MiB | `4MiB` |",
        "| `holdfast.auth` | `none`, `required` | `none` |",
        "| `holdfast.docs.NAME.agent` | `read`, `comment`, `suggest`, `write` | `suggest` |",
        "| `holdfast.profiles.NAME.policy.max_active` | a whole number, 0 to 64 | `0` |",
        "| `holdfast.profiles.NAME.clients.NAME.toolsets` | an array of strings |  |",
        "| `holdfast.tls.cert` | a file name |  |",
        "| `mcpServers.NAME.tls.ca` | a file name |  |",
        "| `mcpServers.NAME.share` | `session`, `all` | `session` |",
        "| `mcpServers.NAME.credential.as` | a string |  |",
        "| `mcpServers.NAME.timeout` | a duration, or a whole number | `60s` |",
    };

    buf_init(&out, SIZE_MAX);
    config_write_reference(&out);
    for (size_t i = 0; i < countof(rows); i++)
        if (!says(rows[i]))
            fail_msg("missing: %s in\n%s", rows[i], out.p);
    assert_true(says("`autoApprove`"));
    done();
}
