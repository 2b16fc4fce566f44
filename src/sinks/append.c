/* SPDX-License-Identifier: Apache-2.0 */
#include "sinks/append.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE 65536
#define ROTATED_PATH 1100 /* a path has at most 1000 bytes */

void append_close(struct append_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

static bool failed(struct append_file *f, const char *what, const char *next, struct error *err)
{
    return error_set(err, ERR_UNAVAILABLE, "%s cannot be %s: %s%s", f->path, what, strerror(errno),
                     next);
}

/* A new name of a file is on the disk with its directory. */
static bool sync_directory(struct append_file *f, struct error *err)
{
    const char *slash = strrchr(f->path, '/');
    char dir[ROTATED_PATH];

    snprintf(dir, sizeof(dir), "%.*s", slash == f->path ? 1 : (int)(slash - f->path), f->path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (!ok)
        failed(f, "saved in its directory", "", err);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* The end of the last whole line. */
static bool find_end(struct append_file *f, off_t *ret)
{
    char piece[PIECE];

    for (off_t at = f->size; at > 0;) {
        size_t n = at < PIECE ? (size_t)at : PIECE;
        at -= (off_t)n;
        if (pread(f->fd, piece, n, at) != (ssize_t)n)
            return false;
        const char *newline = memrchr(piece, '\n', n);
        if (newline) {
            *ret = at + (newline - piece) + 1;
            return true;
        }
    }
    *ret = 0;
    return true;
}

static bool is_ours(const char *tail, size_t n)
{
    static const char *const begins[] = {"{\"id\":\"", "{\"kind\":\"removed\""};

    for (size_t i = 0; i < countof(begins); i++) {
        size_t most = strlen(begins[i]);
        if (memcmp(tail, begins[i], n < most ? n : most) == 0)
            return true;
    }
    return false;
}

static bool repair(struct append_file *f, struct error *err)
{
    char tail[32];
    off_t end = 0;

    if (!find_end(f, &end))
        return failed(f, "read", "", err);
    if (end == f->size)
        return true;
    ssize_t n = pread(f->fd, tail, sizeof(tail), end);
    bool cuts = n > 0 && is_ours(tail, (size_t)n);
    if (n <= 0 || (cuts ? ftruncate(f->fd, end) < 0 : write(f->fd, "\n", 1) != 1))
        return failed(f, "repaired", "", err);
    log_info("repaired the last line of the file of a sink", LZ("file", f->path),
             LI("bytes_cut", cuts ? f->size - end : 0));
    f->size = cuts ? end : f->size + 1;
    return true;
}

static bool open_locked(struct append_file *f, struct error *err)
{
    struct stat st;

    f->fd =
        open(f->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
             0600);
    if (f->fd < 0)
        return failed(f, "opened",
                      errno == ELOOP ? "; it is a symbolic link, so name its target"
                      : errno == ENOENT || errno == EACCES
                          ? "; make its directory, writable for the user that runs "
                            "Holdfast"
                          : "",
                      err);
    if (fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, ERR_UNAVAILABLE, "%s is not a regular file; choose another path",
                         f->path);
    if (flock(f->fd, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, ERR_UNAVAILABLE,
                         "%s is written by another process; give each sink a file of its own",
                         f->path);
    f->size = st.st_size;
    return (f->size ? repair(f, err) : sync_directory(f, err));
}

/* The file at the path, which may be another one than before. */
static bool open_current(struct append_file *f, struct error *err)
{
    struct stat at_path, open_one;

    if (f->fd >= 0) {
        bool is_same = stat(f->path, &at_path) == 0 && fstat(f->fd, &open_one) == 0 &&
                       at_path.st_dev == open_one.st_dev && at_path.st_ino == open_one.st_ino;
        f->size = is_same ? open_one.st_size : 0;
        if (is_same)
            return true;
        append_close(f);
    }
    if (open_locked(f, err))
        return true;
    append_close(f);
    return false;
}

static const char *rotated(const struct append_file *f, unsigned n, char ret[ROTATED_PATH])
{
    snprintf(ret, ROTATED_PATH, "%s.%u", f->path, n);
    return ret;
}

/* PATH.2 to PATH.3, PATH.1 to PATH.2, PATH to PATH.1.  Those above `keep` are deleted, also after it
 * was lowered. */
static bool rotate(struct append_file *f, struct error *err)
{
    char from[ROTATED_PATH], to[ROTATED_PATH];
    unsigned n = f->keep;

    if (fdatasync(f->fd) < 0)
        return failed(f, "saved", "", err);
    append_close(f);
    if (n == 0 && unlink(f->path) < 0 && errno != ENOENT)
        return failed(f, "rotated", "", err);
    while (n > 0) {
        const char *source = n > 1 ? rotated(f, n - 1, from) : f->path;
        if (rename(source, rotated(f, n, to)) < 0 && errno != ENOENT)
            return failed(f, "rotated", "", err);
        n--;
    }
    for (n = f->keep + 1; unlink(rotated(f, n, to)) == 0; n++)
        continue;
    return sync_directory(f, err) && open_current(f, err);
}

/* The whole lines that fit; in an empty file, at least one. */
static size_t fitting(const struct append_file *f, struct str lines)
{
    size_t room = f->size < (off_t)f->max_size ? f->max_size - (size_t)f->size : 0;
    const char *end;

    if (lines.n <= room)
        return lines.n;
    end = room ? memrchr(lines.p, '\n', room) : NULL;
    if (!end && f->size == 0)
        end = memchr(lines.p, '\n', lines.n);
    return end ? (size_t)(end - lines.p) + 1 : 0;
}

/* Takes back what was written of a line; if that fails, the next open repairs it. */
static bool take_back(struct append_file *f, struct error *err)
{
    bool full = errno == ENOSPC || errno == EDQUOT;

    failed(f, "written", full ? "; make room on its disk" : "", err);
    if (ftruncate(f->fd, f->size) < 0)
        append_close(f);
    return false;
}

static bool write_some(struct append_file *f, struct str lines, struct error *err)
{
    for (size_t at = 0; at < lines.n;) {
        ssize_t n = write(f->fd, lines.p + at, lines.n - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return take_back(f, err);
        at += (size_t)n;
    }
    f->size += (off_t)lines.n;
    return true;
}

bool append_lines(struct append_file *f, struct str lines, struct error *err)
{
    if (!open_current(f, err))
        return false;
    while (lines.n > 0) {
        size_t n = fitting(f, lines);
        if (n == 0) {
            if (!rotate(f, err))
                return false;
            continue;
        }
        if (!write_some(f, str_n(lines.p, n), err))
            return false;
        lines = str_n(lines.p + n, lines.n - n);
    }
    if (fdatasync(f->fd) == 0)
        return true;
    failed(f, "saved", "", err);
    append_close(f);
    return false;
}
