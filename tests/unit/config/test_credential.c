/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of a configuration: handed over as files, or written down where others can read them. */
#include "test.h"

#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static void enter(void)
{
    snprintf(dir, sizeof(dir), "/tmp/holdfast-credentials-XXXXXX");
    assert_non_null(mkdtemp(dir));
    setenv("CREDENTIALS_DIRECTORY", dir, 1);
}

static const char *file_of(const char *name)
{
    static char path[160];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void put(const char *name, const char *text, size_t n, mode_t mode)
{
    FILE *out = fopen(file_of(name), "we");
    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, n, out), n);
    fclose(out);
    assert_int_equal(chmod(file_of(name), mode), 0);
}

static void leave(const char *const *names)
{
    for (; *names; names++)
        unlink(file_of(*names));
    assert_int_equal(rmdir(dir), 0);
    unsetenv("CREDENTIALS_DIRECTORY");
}

static struct config *parse(const char *value, struct error *err)
{
    char text[512];
    struct config *c = NULL;
    snprintf(text, sizeof(text),
             "{\"mcpServers\":{\"x\":{\"command\":\"c\",\"env\":{\"A\":\"%s\"}}}}", value);
    return config_parse(str_of(text), STR("f.json"), NULL, &c, err) ? c : NULL;
}

static void is_value(const char *written, const char *wanted)
{
    struct error err;
    struct config *c = parse(written, &err);
    if (!c)
        fail_msg("%s", err.text);
    assert_true(str_eq(c->servers[0].env[0].value, str_of(wanted)));
    config_unref(c);
}

static void is_refused(const char *written, const char *words)
{
    struct error err;
    assert_null(parse(written, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    if (!strstr(err.text, words) || strstr(err.text, "open sesame"))
        fail_msg("%s", err.text);
}

TEST(test_credential__is_what_its_file_holds_without_the_end_of_its_line)
{
    enter();
    put("one", "open sesame\n", 12, 0400);
    put("two.b-c_d", "a\n\n", 3, 0440);
    put("empty", "", 0, 0400);
    is_value("${credential:one}", "open sesame");
    is_value("Bearer ${credential:one}, ${credential:two.b-c_d}", "Bearer open sesame, a\n");
    is_value("${credential:empty}", "");
    is_value("$${credential:one}", "${credential:one}");
    leave((const char *const[]){"one", "two.b-c_d", "empty", NULL});
}

TEST(test_credential__that_leads_elsewhere_or_is_not_there_is_refused_in_words)
{
    enter();
    put("one", "open sesame", 11, 0400);
    is_refused("${credential:none}", "LoadCredential=");
    is_refused("${credential:../one}", "plain file name");
    is_refused("${credential:.one}", "plain file name");
    is_refused("${credential:}", "plain file name");
    is_refused("${credential:one:-x}", "plain file name");
    assert_int_equal(mkdir(file_of("dir"), 0700), 0);
    is_refused("${credential:dir}", "regular file");
    rmdir(file_of("dir"));
    unsetenv("CREDENTIALS_DIRECTORY");
    is_refused("${credential:one}", "CREDENTIALS_DIRECTORY is not set");
    leave((const char *const[]){"one", NULL});
}

TEST(test_credential__as_long_as_a_value_may_be_and_no_longer)
{
    size_t most = 64u << 10;
    char *text = calloc(1, most + 1);
    struct error err;
    assert_non_null(text);
    memset(text, 'x', most + 1);
    enter();
    put("most", text, most, 0400);
    put("more", text, most + 1, 0400);
    struct config *c = parse("${credential:most}", &err);
    assert_non_null(c);
    assert_int_equal(c->servers[0].env[0].value.n, most);
    config_unref(c);
    is_refused("${credential:more}", "longer than a value may be");
    leave((const char *const[]){"most", "more", NULL});
    free(text);
}

static bool warns(const char *text, mode_t mode)
{
    struct config_source source = {.must_exist = true};
    struct config *c = NULL;
    struct error err;
    put("holdfast.json", text, strlen(text), mode);
    source.file = str_of(file_of("holdfast.json"));
    if (!config_load(&source, &c, &err))
        fail_msg("%s", err.text);
    bool is_warned = c->warning.p != NULL;
    if (is_warned) {
        assert_non_null(strstr(c->warning.p, "holdfast.json"));
        assert_non_null(strstr(c->warning.p, "chmod 600"));
        assert_null(strstr(c->warning.p, "open sesame"));
    }
    config_unref(c);
    unlink(file_of("holdfast.json"));
    return is_warned;
}

TEST(test_credential__a_file_others_can_read_that_holds_secrets_is_warned_of)
{
    static const char env[] =
        "{\"mcpServers\":{\"x\":{\"command\":\"c\",\"env\":{\"GITHUB_TOKEN\":\"open sesame\"}}}}";
    static const char header[] = "{\"mcpServers\":{\"x\":{\"url\":\"http://localhost/\","
                                 "\"headers\":{\"authorization\":\"open sesame\"}}}}";
    static const char referred[] =
        "{\"mcpServers\":{\"x\":{\"command\":\"c\",\"env\":{\"A_TOKEN\":\"${HOME:-x}\"}}}}";
    static const char harmless[] =
        "{\"mcpServers\":{\"x\":{\"command\":\"c\",\"env\":{\"LOG_LEVEL\":\"debug\"}}}}";
    enter();
    assert_true(warns(env, 0644));
    assert_true(warns(env, 0640));
    assert_true(warns(env, 0604));
    assert_false(warns(env, 0600));
    assert_true(warns(header, 0644));
    assert_false(warns(referred, 0644));
    assert_false(warns(harmless, 0644));
    leave((const char *const[]){NULL});
}
