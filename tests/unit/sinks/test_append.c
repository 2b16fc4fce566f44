/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a sink: limits, rotation, and what a crash or a full disk leaves. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#include "sinks/append.h"

#define LINE "{\"id\":\"1.1\"}\n" /* 13 bytes */

static char dir[64], path[128];

static struct append_file open_in_new_dir(size_t max_size, unsigned keep)
{
    snprintf(dir, sizeof(dir), "/tmp/holdfast-append-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/events", dir);
    return (struct append_file){.path = path, .max_size = max_size, .keep = keep, .fd = -1};
}

static void finish(struct append_file *f)
{
    char command[128];

    append_close(f);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static void append(struct append_file *f, const char *lines)
{
    struct error err;
    if (!append_lines(f, str_of(lines), &err))
        fail_msg("%s", err.text);
}

static void put(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void has(const char *suffix, const char *wanted)
{
    char name[192], text[1024];
    snprintf(name, sizeof(name), "%s%s", path, suffix);
    FILE *file = fopen(name, "r");
    if (!wanted) {
        assert_null(file);
        return;
    }
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, wanted);
}

TEST(test_append__a_half_line_of_ours_is_cut_and_another_one_is_ended)
{
    static const char *const ours[] = {"{", "{\"i", "{\"id\":\"1.2\",\"ki",
                                       "{\"kind\":\"removed\",\"a"};
    struct append_file f = open_in_new_dir(4096, 1);

    for (size_t i = 0; i < countof(ours); i++) {
        char text[64];
        snprintf(text, sizeof(text), LINE "%s", ours[i]);
        put(text);
        append(&f, LINE);
        has("", LINE LINE);
        append_close(&f);
    }
    put(LINE "{\"other\":1}");
    append(&f, LINE);
    has("", LINE "{\"other\":1}\n" LINE);
    append_close(&f);
    put("{\"id\":\"half");
    append(&f, LINE);
    has("", LINE);
    finish(&f);
}

TEST(test_append__a_half_line_longer_than_a_piece_is_cut_where_it_begins)
{
    struct append_file f = open_in_new_dir((size_t)1 << 20, 1);
    FILE *file = fopen(path, "w");

    fputs(LINE "{\"id\":\"", file);
    for (int i = 0; i < 150000; i++)
        fputc('x', file);
    fclose(file);
    append(&f, LINE);
    has("", LINE LINE);
    finish(&f);
}

TEST(test_append__a_file_of_exactly_its_size_is_rotated_by_the_next_line)
{
    struct append_file f = open_in_new_dir(26, 2);

    append(&f, LINE LINE);
    has("", LINE LINE);
    has(".1", NULL);
    append(&f, LINE);
    has("", LINE);
    has(".1", LINE LINE);
    append(&f, LINE LINE LINE LINE);
    has("", LINE);
    has(".1", LINE LINE);
    has(".2", LINE LINE);
    has(".3", NULL);
    f.keep = 0;
    append(&f, LINE LINE);
    has("", LINE);
    has(".1", NULL);
    finish(&f);
}

TEST(test_append__a_line_larger_than_the_file_may_be_has_a_file_of_its_own)
{
    struct append_file f = open_in_new_dir(8, 2);

    append(&f, LINE LINE);
    has("", LINE);
    has(".1", LINE);
    finish(&f);
}

TEST(test_append__what_cannot_be_written_leaves_whole_lines_and_comes_again)
{
    struct append_file f = open_in_new_dir(4096, 1);
    struct rlimit before, small;
    struct error err;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 30; /* two lines and a half */
    append(&f, LINE);
    setrlimit(RLIMIT_FSIZE, &small);
    bool ok = append_lines(&f, STR(LINE LINE), &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(ok);
    assert_non_null(strstr(err.text, path));
    has("", LINE);
    append(&f, LINE LINE);
    has("", LINE LINE LINE);
    finish(&f);
}

TEST(test_append__a_file_that_another_program_moved_or_cut_is_followed)
{
    struct append_file f = open_in_new_dir(4096, 1);
    struct stat st;
    char moved[192];

    append(&f, LINE);
    snprintf(moved, sizeof(moved), "%s.moved", path);
    assert_int_equal(rename(path, moved), 0);
    append(&f, LINE LINE);
    has("", LINE LINE);
    has(".moved", LINE);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(truncate(path, 0), 0);
    append(&f, LINE);
    has("", LINE);
    finish(&f);
}

TEST(test_append__two_writers_of_one_file_are_refused)
{
    struct append_file f = open_in_new_dir(4096, 1), second = f;
    struct error err;

    append(&f, LINE);
    assert_false(append_lines(&second, STR(LINE), &err));
    assert_non_null(strstr(err.text, "another process"));
    append_close(&f);
    append(&second, LINE);
    has("", LINE LINE);
    finish(&second);
}
