/* SPDX-License-Identifier: Apache-2.0 */
/* Files of variables: every form of a line, who wins, limits, and that nothing of them is shown. */
#include "test.h"

#include "config/config_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char root[32], config_file[64], env_file[64];
static struct config *config;
static struct error err;

static void put(const char *text, size_t n)
{
    if (!root[0]) {
        strcpy(root, "/tmp/holdfast-env-XXXXXX");
        assert_non_null(mkdtemp(root));
        snprintf(config_file, sizeof(config_file), "%s/h.json", root);
        snprintf(env_file, sizeof(env_file), "%s/.env", root);
    }
    FILE *f = fopen(env_file, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

static bool parse(const char *entry)
{
    char text[256];

    config_unref(config);
    config = NULL;
    snprintf(text, sizeof(text), "{\"servers\":{\"a\":{\"command\":\"c\",%s}}}", entry);
    return config_parse(str_of(text), str_of(config_file), NULL, &config, &err);
}

static void done(void)
{
    config_unref(config);
    config = NULL;
    unlink(env_file);
    rmdir(root);
    root[0] = '\0';
}

static const char *value(const char *name)
{
    const struct server_config *s = &config->servers[0];

    for (size_t i = 0; i < s->n_env; i++)
        if (str_eq(s->env[i].name, str_of(name)))
            return s->env[i].value.p;
    return NULL;
}

TEST(test_env_file__forms_of_lines)
{
    static const char text[] =
        "\xef\xbb\xbf# a comment\n\n  \t\nA=plain\nexport B = spaced out  \r\n"
        "C=\"q \\\"x\\\" \\$H\\n.\" # behind\nD='$H \\n'\nE=\n"
        "F=a#b #c\nG=\"two\nlines\"\nH=x=y\nI=#none\nA=again\nexport=1";

    put(text, sizeof(text) - 1);
    if (!parse("\"envFile\":\".env\""))
        fail_msg("%s", err.text);
    assert_string_equal(value("A"), "again");
    assert_string_equal(value("B"), "spaced out");
    assert_string_equal(value("C"), "q \"x\" $H\n.");
    assert_string_equal(value("D"), "$H \\n");
    assert_string_equal(value("E"), "");
    assert_string_equal(value("F"), "a#b");
    assert_string_equal(value("G"), "two\nlines");
    assert_string_equal(value("H"), "x=y");
    assert_string_equal(value("I"), "");
    assert_string_equal(value("export"), "1");
    assert_int_equal(config->servers[0].n_env, 10);
    assert_int_equal(config->n_notes, 0);
    done();
}

TEST(test_env_file__env_wins_and_nothing_of_the_file_is_shown)
{
    uint8_t before[32];
    struct buf out;

    put("PLACE=file\nHARMLESS=canary\n", strlen("PLACE=file\nHARMLESS=canary\n"));
    assert_true(parse("\"env\":{\"PLACE\":\"env\",\"Z\":\"1\"},\"envFile\":\".env\""));
    assert_string_equal(value("PLACE"), "env");
    assert_string_equal(value("HARMLESS"), "canary");
    buf_init(&out, 1 << 20);
    config_write(config, &out);
    assert_null(strstr(out.p, "canary"));
    assert_non_null(strstr(out.p, "\"envFile\": \".env\""));
    assert_non_null(strstr(out.p, "\"PLACE\": \"env\""));
    buf_release(&out);
    memcpy(before, config->servers[0].definition, sizeof(before));
    put("PLACE=file\nHARMLESS=other\n",
        strlen("PLACE=file\nHARMLESS=other\n")); /* a reload notices that */
    assert_true(parse("\"env\":{\"PLACE\":\"env\",\"Z\":\"1\"},\"envFile\":\".env\""));
    assert_memory_not_equal(before, config->servers[0].definition, sizeof(before));
    done();
}

TEST(test_env_file__faults_name_file_and_line)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"A=1\nnonsense\n", ".env:2: this line is not NAME=VALUE"},
        {"A=1\n\nB=\"x\n\n", ".env:3: this quote is not closed"},
        {"A='1' 2\n", ".env:1: there is text after the closing quote; remove it"},
        {"A B=1\n", ".env:1: this is not the name of a variable"},
        {"=1\n", ".env:1: this is not the name of a variable"},
    };

    for (size_t i = 0; i < countof(cases); i++) {
        put(cases[i].text, strlen(cases[i].text));
        assert_false(parse("\"envFile\":\".env\""));
        assert_int_equal(err.code, ERR_CONFIG);
        if (!strstr(err.text, cases[i].words) || !strstr(err.text, "h.json:1:42: "))
            fail_msg("%s", err.text);
    }
    put("A=\0\n", 4);
    assert_false(parse("\"envFile\":\".env\""));
    assert_non_null(strstr(err.text, "is not a text"));
    assert_false(parse("\"envFile\":\"nosuch\""));
    assert_non_null(strstr(err.text, "nosuch: No such file or directory; make it"));
    assert_false(parse("\"envFile\":\"/dev/zero\""));
    assert_non_null(strstr(err.text, "/dev/zero is not a regular file"));
    assert_false(parse("\"envFile\":1"));
    assert_true(parse("\"envFile\":\"nosuch\",\"disabled\":true"));
    done();
}

TEST(test_env_file__is_bounded)
{
    char *text = test_malloc(CONFIG_ENV_FILE_MAX + 1);
    size_t n = 0;

    memset(text, '#', CONFIG_ENV_FILE_MAX + 1);
    put(text, CONFIG_ENV_FILE_MAX);
    assert_true(parse("\"envFile\":\".env\""));
    put(text, CONFIG_ENV_FILE_MAX + 1);
    assert_false(parse("\"envFile\":\".env\""));
    assert_non_null(strstr(err.text, "is larger than 64 KiB"));
    for (int i = 0; i <= CONFIG_PAIRS_MAX; i++) {
        if (i == CONFIG_PAIRS_MAX) {
            put(text, n);
            assert_true(parse("\"envFile\":\".env\""));
            assert_int_equal(config->servers[0].n_env, CONFIG_PAIRS_MAX);
            assert_false(parse("\"env\":{\"ONE\":\"more\"},\"envFile\":\".env\""));
            assert_non_null(strstr(err.text, "have 257 variables; at most 256"));
        }
        n += (size_t)snprintf(text + n, 32, "V%d=%d\n", i, i);
    }
    put(text, n);
    assert_false(parse("\"envFile\":\".env\""));
    assert_non_null(strstr(err.text, "more variables than 256"));
    test_free(text);
    done();
}
