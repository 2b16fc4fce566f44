/* SPDX-License-Identifier: Apache-2.0 */
/* A log file of bounded size: PATH and one old file, PATH.1.  Standard error is the file, so lines
 * of child processes and of sanitizers are in it too; they count when the next line is written. */
#include "base/log_file.h"

#include "base/error.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    char *path, *old; /* NULL: no log file */
    size_t size;
} log_file;

static bool open_file(struct error *err)
{
    int fd = open(log_file.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || dup2(fd, STDERR_FILENO) < 0) {
        error_sys(err, ERR_CONFIG, errno, "cannot write the log file %s", log_file.path);
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (fd != STDERR_FILENO)
        close(fd);
    log_file.size = (size_t)st.st_size;
    return true;
}

/* If the file cannot be renamed, lines still go to it. */
static bool rotate(struct error *err)
{
    log_file.size = 0;
    return rename(log_file.path, log_file.old) < 0 || open_file(err);
}

bool log_to_file(const char *path, struct error *err)
{
    free(log_file.path);
    free(log_file.old);
    log_file.path = xmalloc(strlen(path) + 1);
    memcpy(log_file.path, path, strlen(path) + 1);
    log_file.old = xmalloc(strlen(path) + 3);
    snprintf(log_file.old, strlen(path) + 3, "%s.1", path);
    return open_file(err) && (log_file.size <= LOG_FILE_MAX || rotate(err));
}

void log_file_grew(size_t n)
{
    struct error ignored;

    if (!log_file.path)
        return;
    log_file.size += n;
    if (log_file.size > LOG_FILE_MAX)
        (void)!rotate(&ignored);
}

bool log_fd_is_journal(int fd, const char *journal_stream)
{
    unsigned long long device, inode;
    struct stat st;

    return journal_stream && sscanf(journal_stream, "%llu:%llu", &device, &inode) == 2 &&
           fstat(fd, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}
