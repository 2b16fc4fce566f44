/* SPDX-License-Identifier: Apache-2.0 */
/* Where the file is looked for and in which order, files that cannot be read, and the name of the
 * data directory. */
#include "test.h"

#include "config/config.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/holdfast-config-XXXXXX";
static struct config *config;
static struct error err;

static int remove_one(const char *path, const struct stat *st unused_arg, int flag unused_arg,
                      struct FTW *ftw unused_arg)
{
    return remove(path);
}

static void remove_root(void)
{
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* A directory of its own as the current one, as HOME and as XDG_CONFIG_HOME's place. */
static void enter(void)
{
    static bool made;

    if (!made) {
        assert_non_null(mkdtemp(root));
        made = true;
        atexit(remove_root);
    }
    assert_int_equal(chdir(root), 0);
    setenv("HOME", root, 1);
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("XDG_DATA_HOME");
    unsetenv("STATE_DIRECTORY");
    unsetenv("HOLDFAST_CONFIG");
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void put_port(const char *path, int port)
{
    char text[64];

    snprintf(text, sizeof(text), "{\"holdfast\":{\"listen\":\"127.0.0.1:%d\"}}", port);
    put(path, text);
}

static bool load(const char *file, bool must_exist)
{
    struct config_source source = {.file = str_of(file), .must_exist = must_exist};

    config_unref(config);
    config = NULL;
    return config_load(&source, &config, &err);
}

static void done(void)
{
    config_unref(config);
    config = NULL;
    assert_int_equal(chdir("/"), 0);
}

TEST(test_config_load__looks_in_the_documented_order)
{
    char path[256];

    enter();
    mkdir(".config", 0700);
    mkdir(".config/holdfast", 0700);
    mkdir("xdg", 0700);
    mkdir("xdg/holdfast", 0700);
    put_port(".config/holdfast/holdfast.json", 1);
    assert_true(load(NULL, false));
    assert_str(config->listen, "127.0.0.1:1");
    snprintf(path, sizeof(path), "%s/xdg", root);
    setenv("XDG_CONFIG_HOME", path, 1);
    put_port("xdg/holdfast/holdfast.json", 2);
    assert_true(load(NULL, false));
    assert_str(config->listen, "127.0.0.1:2");
    put_port("holdfast.json", 3);
    assert_true(load(NULL, false));
    assert_str(config->listen, "127.0.0.1:3");
    assert_str(config->file, "holdfast.json");
    put_port("env.json", 4);
    setenv("HOLDFAST_CONFIG", "env.json", 1);
    assert_true(load(NULL, false));
    assert_str(config->listen, "127.0.0.1:4");
    put_port("flag.json", 5);
    assert_true(load("flag.json", true));
    assert_str(config->listen, "127.0.0.1:5");
    unlink("holdfast.json");
    unlink("xdg/holdfast/holdfast.json");
    unlink(".config/holdfast/holdfast.json");
    done();
}

TEST(test_config_load__without_any_file_the_defaults_serve)
{
    enter();
    if (access("/etc/holdfast/holdfast.json", F_OK) == 0)
        skip_because("this machine has an /etc/holdfast/holdfast.json");
    assert_true(load(NULL, false));
    assert_null(config->file.p);
    assert_str(config->servers[0].name, "sample");
    done();
}

TEST(test_config_load__a_file_that_was_named_must_exist)
{
    enter();
    assert_false(load("nowhere.json", true));
    assert_string_equal(err.text, "there is no file nowhere.json; create it or name another");
    assert_int_equal(err.code, ERR_CONFIG);
    setenv("HOLDFAST_CONFIG", "nowhere.json", 1);
    assert_false(load(NULL, false));
    assert_true(load("nowhere.json", false));
    assert_null(config->file.p);
    done();
}

TEST(test_config_load__faults_name_the_file_as_it_was_given)
{
    enter();
    put("bad.json", "{\n  \"holdfast\": {,}\n}\n");
    assert_false(load("bad.json", true));
    assert_int_equal(strncmp(err.text, "bad.json:2:16: ", 15), 0);
    put("empty.json", "");
    assert_false(load("empty.json", true));
    assert_string_equal(
        err.text, "empty.json:1:1: the text ends too early; close what is open: a quote, ] or }");
    done();
}

TEST(test_config_load__takes_regular_files_only_and_never_waits)
{
    enter();
    mkfifo("fifo.json", 0600);
    assert_false(load("fifo.json", true));
    assert_string_equal(err.text, "fifo.json is not a regular file; name one");
    mkdir("dir.json", 0700);
    assert_false(load("dir.json", true));
    assert_string_equal(err.text, "dir.json is not a regular file; name one");
    done();
}

TEST(test_config_load__files_have_a_most)
{
    char *text = malloc((1 << 20) + 2);

    enter();
    memset(text, ' ', (1 << 20) + 1);
    memcpy(text, "{}", 2);
    text[1 << 20] = '\0';
    put("large.json", text);
    assert_true(load("large.json", true));
    text[1 << 20] = ' ';
    text[(1 << 20) + 1] = '\0';
    put("large.json", text);
    assert_false(load("large.json", true));
    assert_string_equal(err.text, "large.json is larger than 1 MiB; shorten it");
    free(text);
    done();
}

static void data_dir_is(struct str flag, const char *expected)
{
    struct arena *mem = arena_new(SIZE_MAX);
    struct str dir;

    assert_true(config_data_dir(flag, mem, &dir, &err));
    assert_str(dir, expected);
    assert_int_equal(dir.p[dir.n], '\0');
    arena_free(mem);
}

TEST(test_config_data_dir__flag_then_xdg_then_service_then_home)
{
    struct arena *mem = arena_new(SIZE_MAX);
    char expected[256];
    struct str dir;

    enter();
    snprintf(expected, sizeof(expected), "%s/.local/share/holdfast", root);
    data_dir_is(STR_NONE, expected);
    setenv("XDG_DATA_HOME", "relative", 1);
    data_dir_is(STR_NONE, expected);
    setenv("STATE_DIRECTORY", "/var/lib/holdfast:/var/lib/other", 1);
    data_dir_is(STR_NONE, "/var/lib/holdfast");
    setenv("XDG_DATA_HOME", "/data", 1);
    data_dir_is(STR_NONE, "/data/holdfast");
    data_dir_is(STR("here"), "here");
    unsetenv("XDG_DATA_HOME");
    unsetenv("STATE_DIRECTORY");
    unsetenv("HOME");
    data_dir_is(STR_NONE, "/var/lib/holdfast");
    assert_false(config_data_dir(STR(""), mem, &dir, &err));
    assert_str(config_service_data_dir(STR("/etc/holdfast/holdfast.json")), "/var/lib/holdfast");
    assert_null(config_service_data_dir(STR("/srv/holdfast.json")).p);
    arena_free(mem);
    done();
}
