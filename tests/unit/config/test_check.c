/* SPDX-License-Identifier: Apache-2.0 */
/* What a configuration names and this machine lacks. */
#include "test.h"

#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[32];

static void enter(void)
{
    strcpy(root, "/tmp/holdfast-check-XXXXXX");
    assert_non_null(mkdtemp(root));
    assert_int_equal(chdir(root), 0);
    setenv("PATH", root, 1);
}

static void put(const char *path, mode_t mode)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

static void clean(void)
{
    static const char *const made[] = {"prog", "plain", "dir/below", "npx -y foo"};

    for (size_t i = 0; i < countof(made); i++)
        unlink(made[i]);
    rmdir("dir");
    rmdir(root);
}

/* The findings of one entry, each on a line: "E text" or "W text". */
static void check(const char *json, char *ret, size_t room)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct config_finding *found;
    struct config *config = NULL;
    struct error err = {0};
    size_t used = 0;

    if (!config_parse(str_of(json), STR("h.json"), NULL, &config, &err))
        fail_msg("%s", err.text);
    size_t n = config_check_machine(config, true, mem, &found);
    ret[0] = '\0';
    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(ret + used, room - used, "%s %.*s\n",
                                 found[i].is_error ? "E" : "W", STR_ARG(found[i].text));
    config_unref(config);
    arena_free(mem);
}

static void expect(const char *json, const char *start, const char *part)
{
    char found[4096];

    check(json, found, sizeof(found));
    if (!start) {
        assert_string_equal(found, "");
        return;
    }
    if (strncmp(found, start, strlen(start)) != 0 || !strstr(found, part))
        fail_msg("%s\n%s", json, found);
}

TEST(test_config_check_machine__finds_programs_as_a_child_would)
{
    enter();
    put("prog", 0755);
    put("plain", 0644);
    assert_int_equal(mkdir("dir", 0755), 0);
    put("dir/below", 0755);
    put("npx -y foo", 0755);

    expect("{\"servers\":{\"a\":{\"command\":\"prog\"}}}", NULL, NULL);
    expect("{\"servers\":{\"a\":{\"command\":\"./prog\"}}}", NULL, NULL);
    expect("{\"servers\":{\"a\":{\"command\":\"./below\",\"cwd\":\"dir\"}}}", NULL, NULL);
    expect("{\"servers\":{\"a\":{\"command\":\"below\",\"env\":{\"PATH\":\"/x:dir\"}}}}", NULL,
           NULL);
    expect("{\"servers\":{\"a\":{\"command\":\"npx -y foo\"}}}", NULL, NULL);
    expect("{\"servers\":{\"a\":{\"url\":\"http://127.0.0.1:1/\",\"cwd\":\"/nonexistent\"}}}", NULL,
           NULL);
    expect("{\"servers\":{\"a\":{\"command\":\"nosuch\",\"disabled\":true}}}", NULL, NULL);

    expect("{\"servers\":{\"a\":\n {\"command\":\"nosuch\"}}}",
           "W h.json:2:13: server \"a\": nosuch is not in PATH (", root);
    expect("{\"servers\":{\"a\":{\"command\":\"plain\"}}}", "W h.json:1:28: ", "not in PATH");
    expect("{\"servers\":{\"a\":{\"command\":\"prog\",\"env\":{\"PATH\":\"/nowhere\"}}}}", "W ",
           "(/nowhere)");
    expect("{\"servers\":{\"a\":{\"command\":\"./plain\"}}}", "E ", "may not be run");
    expect("{\"servers\":{\"a\":{\"command\":\"dir/\"}}}", "E ", "no program dir/");
    expect("{\"servers\":{\"a\":{\"command\":\"npx -y  bar\"}}}",
           "E h.json:1:28: ", "\"command\": \"npx\", \"args\": [\"-y\", \"bar\"]");
    clean();
}

TEST(test_config_check_machine__finds_directories)
{
    enter();
    put("prog", 0755);
    expect("{\"servers\":{\"a\":{\"command\":\"prog\",\"cwd\":\"/nonexistent\"}}}",
           "E h.json:1:41: server \"a\": it cannot start in /nonexistent: No such file", "\"cwd\"");
    expect("{\"servers\":{\"a\":{\"command\":\"prog\",\"cwd\":\"prog\"}}}", "E ",
           "Not a directory");
    expect("{\"holdfast\":{\"docs\":{\"Lens\":{\"path\":\"/nonexistent\"}}}}",
           "E h.json:1:37: the folder \"Lens\" of documents, /nonexistent, cannot be read", "path");
    expect("{\"holdfast\":{\"docs\":{\"Lens\":{\"path\":\".\"}}}}", NULL, NULL);
    clean();
}
