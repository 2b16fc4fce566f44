/* SPDX-License-Identifier: Apache-2.0 */
/* The log file: its mode, its bound while lines are written, and one old file. */
#include "test.h"

#include "base/error.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(test_log_to_file__is_bounded_while_lines_are_written)
{
    char folder[] = "/tmp/test_log_fileXXXXXX", path[64], old[64], line[4096];
    int err_fd = dup(STDERR_FILENO);
    struct stat st;
    struct error err;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/log", folder);
    snprintf(old, sizeof(old), "%s/log.1", folder);
    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\n';
    assert_true(log_to_file(path, &err));
    for (size_t n = 0; n <= 2 * LOG_FILE_MAX + 1; n += sizeof(line))
        log_show(str_n(line, sizeof(line)));
    dup2(err_fd, STDERR_FILENO);
    close(err_fd);
    assert_int_equal(stat(old, &st), 0);
    assert_true(st.st_size > LOG_FILE_MAX && st.st_size <= LOG_FILE_MAX + (off_t)sizeof(line));
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size <= LOG_FILE_MAX);
    assert_int_equal(st.st_mode & 0777, 0600);
    unlink(path);
    unlink(old);
    rmdir(folder);
}

TEST(test_log_to_file__that_cannot_be_opened_is_an_error)
{
    struct error err;

    assert_false(log_to_file("/nonexistent/folder/log", &err));
    assert_non_null(strstr(err.text, "/nonexistent/folder/log"));
}
