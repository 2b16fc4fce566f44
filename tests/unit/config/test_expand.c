/* SPDX-License-Identifier: Apache-2.0 */
/* Variables in values: every form, where they are looked for, and what happens without them. */
#include "test.h"

#include "config/config_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct config *config;
static struct error err;

static bool parse(const char *text)
{
    config_unref(config);
    config = NULL;
    setenv("HF_TEST_A", "alpha", 1);
    setenv("HF_TEST_EMPTY", "", 1);
    setenv("HF_TEST_NESTED", "${HF_TEST_A}", 1);
    unsetenv("HF_TEST_UNSET");
    return config_parse(str_of(text), STR("h.json"), NULL, &config, &err);
}

static void done(void)
{
    config_unref(config);
    config = NULL;
}

TEST(test_expand__forms)
{
    static const struct {
        const char *written, *meant;
    } cases[] = {
        {"${HF_TEST_A}", "alpha"},
        {"${env:HF_TEST_A}", "alpha"},
        {"a-${HF_TEST_A}-${HF_TEST_A}", "a-alpha-alpha"},
        {"${HF_TEST_UNSET:-d}", "d"},
        {"${env:HF_TEST_UNSET:-d}", "d"},
        {"${HF_TEST_EMPTY:-d}", "d"},
        {"x${HF_TEST_EMPTY}", "x"},
        {"x${HF_TEST_UNSET:-}", "x"},
        {"${HF_TEST_UNSET:-a:-b}", "a:-b"},
        {"${HF_TEST_A:-d}", "alpha"},
        {"${HF_TEST_NESTED}", "${HF_TEST_A}"},
        {"$${HF_TEST_A}", "${HF_TEST_A}"},
        {"$$${HF_TEST_A}", "$${HF_TEST_A}"},
        {"$HF_TEST_A $ {} $", "$HF_TEST_A $ {} $"},
        {"\\u0024{HF_TEST_A}", "alpha"},
    };
    char text[256];

    for (size_t i = 0; i < countof(cases); i++) {
        snprintf(text, sizeof(text), "{\"mcpServers\":{\"x\":{\"command\":\"%s\"}}}",
                 cases[i].written);
        assert_true(parse(text));
        assert_str(config->servers[0].command, cases[i].meant);
    }
    done();
}

TEST(test_expand__faults_name_place_server_and_variable)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"mcpServers\":{\"x\":{\"command\":\"c\",\n  \"env\":{\"T\":\"a${HF_TEST_UNSET}\"}}}}",
         "h.json:2:14: server \"x\": HF_TEST_UNSET is not set in the environment; set it, or write "
         "${NAME:-default}"},
        {"{\"mcpServers\":{\"x\":{\"command\":\"c\",\"args\":[\"a\",\"${HF_TEST_UNSET}\"]}}}",
         "h.json:1:47: server \"x\": HF_TEST_UNSET is not set in the environment; set it, or write "
         "${NAME:-default}"},
        {"{\"holdfast\":{\"listen\":\"${HF_TEST_UNSET}\"}}",
         "h.json:1:23: HF_TEST_UNSET is not set in the environment; set it, or write "
         "${NAME:-default}"},
        {"{\"holdfast\":{\"listen\":\"${HF_TEST_A\"}}",
         "h.json:1:23: ${HF_TEST_A has no closing brace; write $${ for a plain ${"},
        {"{\"holdfast\":{\"listen\":\"${input:token}\"}}",
         "h.json:1:23: ${input:token} cannot be used here; use it in \"env\", \"headers\", "
         "\"args\" "
         "and \"url\" of a server, in \"otlp\" and \"sinks\", or write ${credential:NAME}"},
        {"{\"holdfast\":{\"listen\":\"${command:token}\"}}",
         "h.json:1:23: ${command:token} is a command of an editor; write its result, or "
         "${env:NAME}"},
        {"{\"holdfast\":{\"listen\":\"${}\"}}",
         "h.json:1:23: ${} is not the name of an environment variable; write ${NAME} or "
         "${NAME:-default}, or $${ for a plain ${"},
        {"{\"holdfast\":{\"listen\":\"${1A}\"}}",
         "h.json:1:23: ${1A} is not the name of an environment variable; write ${NAME} or "
         "${NAME:-default}, or $${ for a plain ${"},
    };

    for (size_t i = 0; i < countof(cases); i++) {
        assert_false(parse(cases[i].text));
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(err.code, ERR_CONFIG);
    }
}

TEST(test_expand__reaches_every_kind_of_string_and_no_key)
{
    setenv("HF_TEST_SHARE", "all", 1);
    setenv("HF_TEST_TIME", "7s", 1);
    setenv("HF_TEST_URL", "http://h", 1);
    setenv("HF_TEST_BODY", "2MiB", 1);
    assert_true(
        parse("{\"mcpServers\":{\"x\":{\"url\":\"${HF_TEST_URL}/m\",\"share\":\"${HF_TEST_SHARE}\","
              "\"timeout\":\"${HF_TEST_TIME}\",\"headers\":{\"X\":\"${HF_TEST_A}\"}},"
              "\"y\":{\"command\":\"c\",\"env\":{\"${HF_TEST_UNSET}\":\"v\"},"
              "\"description\":\"${HF_TEST_UNSET}\"}},"
              "\"holdfast\":{\"limits\":{\"body\":\"${HF_TEST_BODY}\"},"
              "\"carriers\":{\"meta\":[[\"${HF_TEST_A}\"]]}}}"));
    assert_str(config->servers[0].url, "http://h/m");
    assert_int_equal(config->servers[0].share, SHARE_ALL);
    assert_int_equal(config->servers[0].timeout_ms, 7000);
    assert_str(config->servers[0].headers[0].value, "alpha");
    assert_str(config->servers[1].env[0].name, "${HF_TEST_UNSET}");
    assert_int_equal(config->limit_body, 2 << 20);
    assert_str(config->meta_carriers[0].label, "meta:alpha");
    done();
}

TEST(test_expand__what_a_variable_brings_is_checked_like_anything_else)
{
    setenv("HF_TEST_URL", "http://h\r\nX: y", 1);
    assert_false(parse("{\"mcpServers\":{\"x\":{\"url\":\"${HF_TEST_URL}\"}}}"));
    assert_false(parse("{\"mcpServers\":{\"x\":{\"url\":\"http://h\",\"headers\":{\"A\":"
                       "\"${HF_TEST_URL}\"}}}}"));
    assert_null(strstr(err.text, "X: y"));
}

static void set_long(size_t n)
{
    char *value = malloc(n + 1);

    memset(value, 'a', n);
    value[n] = '\0';
    setenv("HF_TEST_LONG", value, 1);
    free(value);
}

TEST(test_expand__one_value_has_a_most)
{
    const char *text = "{\"mcpServers\":{\"x\":{\"command\":\"${HF_TEST_LONG}\"}}}";

    set_long(CONFIG_EXPANDED_ONE_MAX);
    assert_true(parse(text));
    assert_int_equal(config->servers[0].command.n, CONFIG_EXPANDED_ONE_MAX);
    set_long(CONFIG_EXPANDED_ONE_MAX + 1);
    assert_false(parse(text));
    assert_string_equal(err.text, "h.json:1:31: server \"x\": a variable makes the value too long; "
                                  "set it to something shorter");
    done();
}

TEST(test_expand__all_values_together_have_a_most)
{
    enum { FIT = CONFIG_EXPANDED_ALL_MAX / CONFIG_EXPANDED_ONE_MAX };
    char text[4096];

    set_long(CONFIG_EXPANDED_ONE_MAX);
    for (int extra = 0; extra < 2; extra++) {
        size_t at = (size_t)snprintf(text, sizeof(text),
                                     "{\"mcpServers\":{\"x\":{\"command\":\"c\",\"args\":[");
        for (int i = 0; i < FIT; i++)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "\"${HF_TEST_LONG}\",");
        snprintf(text + at, sizeof(text) - at, "%s]}}}", extra ? "\"${HF_TEST_UNSET:-x}\"" : "");
        assert_int_equal(parse(text), extra == 0);
    }
    done();
}

TEST(test_expand__what_editors_predefine)
{
    static const struct {
        const char *file, *folder, *base;
    } cases[] = {
        {"/h.json", "/project", "project"},
        {"/.vscode/mcp.json", "/project", "project"},
        {"/.cursor/mcp.json", "/project", "project"},
        {"/.other/mcp.json", "/project/.other", ".other"},
    };
    char top[] = "/tmp/holdfast-expand-XXXXXX", path[256], wanted[600], text[256];
    static const char *const dirs[] = {"/project/.vscode", "/project/.cursor", "/project/.other",
                                       "/project"};

    assert_non_null(mkdtemp(top));
    setenv("HOME", "/home/ada", 1);
    for (size_t i = countof(dirs); i-- > 0;) {
        snprintf(path, sizeof(path), "%s%s", top, dirs[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    for (size_t i = 0; i < countof(cases); i++) {
        snprintf(path, sizeof(path), "%s/project%s", top, cases[i].file);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fclose(f);
        snprintf(text, sizeof(text), "%s",
                 "{\"servers\":{\"a\":{\"command\":\"${workspaceFolder}|${workspaceFolderBasename}|"
                 "${userHome}${/}x${pathSeparator}\"}}}");
        config_unref(config);
        assert_true(config_parse(str_of(text), str_of(path), NULL, &config, &err));
        snprintf(wanted, sizeof(wanted), "%s%s|%s|/home/ada/x/", top, cases[i].folder,
                 cases[i].base);
        assert_true(str_eq(config->servers[0].command, str_of(wanted)));
        unlink(path);
    }
    for (size_t i = 0; i < countof(dirs); i++) {
        snprintf(path, sizeof(path), "%s%s", top, dirs[i]);
        assert_int_equal(rmdir(path), 0);
    }
    rmdir(top);
    done();
}

TEST(test_expand__what_only_an_editor_knows_is_refused_with_words)
{
    static const struct {
        const char *variable, *words;
    } cases[] = {
        {"${command:pick}", "is a command of an editor"},
        {"${config:a.b}", "is a setting of an editor"},
        {"${workspaceFolder:other}", "names a folder of an editor"},
        {"${workspaceFolder}", "has no value in Holdfast"}, /* the file is not there */
        {"${file}", "is not set in the environment"},
    };
    char text[256];

    for (size_t i = 0; i < countof(cases); i++) {
        snprintf(text, sizeof(text), "{\"servers\":{\"a\":{\"command\":\"%s\"}}}",
                 cases[i].variable);
        assert_false(parse(text));
        assert_int_equal(err.code, ERR_CONFIG);
        assert_non_null(strstr(err.text, "h.json:1:28: server \"a\": "));
        assert_non_null(strstr(err.text, cases[i].words));
    }
    done();
}

/* Readings for an edit. */

static bool parse_for_edit(const char *text)
{
    config_unref(config);
    config = NULL;
    unsetenv("HF_TEST_UNSET");
    unsetenv("CREDENTIALS_DIRECTORY");
    return config_parse(str_of(text), STR("h.json"), &(struct config_source){.is_for_edit = true},
                        &config, &err);
}

TEST(test_expand__an_edit_leaves_variables_and_credentials)
{
    assert_true(parse_for_edit(
        "{\"mcpServers\":{\"x\":{\"command\":\"${HF_TEST_UNSET}/bin\",\"env\":{\"A\":"
        "\"${credential:c}\",\"B\":\"${secret:b}\"},\"envFile\":\"/no/such/file\",\"timeout\":"
        "\"${HF_TEST_UNSET}\"},\"y\":{\"url\":\"${HF_TEST_UNSET}\",\"headers\":{\"A\":\"Bearer "
        "${HF_TEST_UNSET}\"}}},\"holdfast\":{\"listen\":\"0.0.0.0:${HF_TEST_UNSET}\",\"auth\":"
        "\"${HF_TEST_UNSET}\",\"origins\":[\"${HF_TEST_UNSET}\"],\"session\":{\"cache\":{\"ttl\":"
        "\"${HF_TEST_UNSET}\"}}}}"));
    assert_str(config->servers[0].command, "${HF_TEST_UNSET}/bin");
    assert_str(config->servers[0].env[0].value, "${credential:c}");
    assert_int_equal(config->servers[0].n_secrets, 1);
    assert_str(config->servers[1].url, "${HF_TEST_UNSET}");
    done();
}

TEST(test_expand__an_edit_still_finds_mistakes)
{
    static const char *const texts[] = {
        "{\"mcpServers\":{\"x\":{\"command\":\"${not a name}\"}}}",
        "{\"mcpServers\":{\"x\":{\"command\":\"${credential:a/b}\"}}}",
        "{\"mcpServers\":{\"x\":{\"command\":\"${A}\",\"comand\":\"b\"}}}",
        "{\"mcpServers\":{\"a__b\":{\"command\":\"${A}\"}}}",
        "{\"mcpServers\":{\"x\":{\"url\":\"ftp://a\"},\"y\":{\"command\":\"${A}\"}}}",
        "{\"holdfast\":{\"listen\":\"0.0.0.0:1\"}}",
    };

    for (size_t i = 0; i < countof(texts); i++)
        assert_false(parse_for_edit(texts[i]));
    done();
}
