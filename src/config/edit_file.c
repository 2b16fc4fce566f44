/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and replaces the files that edit.h edits.  The new content is complete and on disk before
 * it takes the file's place, so a crash leaves either the old file or the new one.
 *
 * Writers lock the directory of the file (flock), from the comparison with the old content to the
 * rename.  So of two commands that change a file at once, the second sees the change of the first.
 * The directory, because the file itself is replaced and a lock file would stay behind. */
#include "config/edit.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_WAIT_MS 10000
#define LOCK_PAUSE_MS 5

static bool read_rest(int fd, const char *path, struct buf *out, struct error *err)
{
    size_t start = out->n;

    for (;;) {
        char piece[16384];
        ssize_t n = read(fd, piece, sizeof(piece));
        if (n == 0)
            return true;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_sys(err, ERR_CONFIG, errno, "cannot read %s", path);
        if (out->n - start + (size_t)n > CONFIG_EDIT_MAX || !buf_try_add(out, piece, (size_t)n))
            return error_set(err, ERR_TOO_LARGE, "%s is larger than %zu MiB; it is not edited",
                             path, CONFIG_EDIT_MAX >> 20);
    }
}

bool config_edit_read(const char *path, struct buf *out, bool *ret_exists, struct error *err)
{
    /* Non-blocking, so that opening a FIFO does not block. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    bool ok;

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        *ret_exists = false;
        return true;
    }
    if (fd < 0)
        return error_sys(err, ERR_CONFIG, errno, "cannot open %s", path);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        ok = error_set(err, ERR_CONFIG, "%s is not a regular file; name one", path);
    else
        ok = read_rest(fd, path, out, err);
    close(fd);
    if (ok)
        *ret_exists = true;
    return ok;
}

/* A replacement under way. */
struct replacement {
    const char *path; /* links resolved */
    char beside[PATH_MAX + 32];
    int fd;
};

static bool make_parents(const char *path, struct error *err)
{
    char part[PATH_MAX];

    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return error_sys(err, ERR_CONFIG, errno, "cannot make the directory %s", part);
        *slash = '/';
    }
    return true;
}

/* The target of a link, so that the link stays a link.  *ret is NULL if the file does not exist. */
static bool resolve(const char *path, char **ret, struct error *err)
{
    struct stat st;

    *ret = realpath(path, NULL);
    if (*ret)
        return true;
    if (errno != ENOENT)
        return error_sys(err, ERR_CONFIG, errno, "cannot open %s", path);
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return error_set(err, ERR_CONFIG,
                         "%s is a symbolic link to a file that does not exist; make that file or "
                         "remove the link",
                         path);
    return true;
}

static bool write_all(int fd, struct str text)
{
    for (size_t at = 0; at < text.n;) {
        ssize_t n = write(fd, text.p + at, text.n - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static bool keep_rights(int fd, const struct stat *st)
{
    struct stat now;

    if (fstat(fd, &now) != 0)
        return false;
    if ((now.st_uid != st->st_uid || now.st_gid != st->st_gid) &&
        fchown(fd, st->st_uid, st->st_gid) != 0)
        return false;
    return fchmod(fd, st->st_mode & 07777) == 0;
}

static bool write_beside(struct replacement *r, struct str text, const struct stat *rights,
                         struct error *err)
{
    snprintf(r->beside, sizeof(r->beside), "%s.new.%016" PRIx64, r->path, random_u64());
    r->fd = open(r->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (r->fd < 0)
        return error_sys(err, ERR_CONFIG, errno,
                         "cannot write beside %s, so it is unchanged; check that its directory is "
                         "writable",
                         r->path);
    if (rights && !keep_rights(r->fd, rights))
        return error_sys(err, ERR_CONFIG, errno,
                         "cannot keep the owner and mode of %s, so it is unchanged; run the "
                         "command as the file's owner",
                         r->path);
    if (fault_hits("config.edit") || !write_all(r->fd, text) || fsync(r->fd) != 0)
        return error_sys(err, ERR_CONFIG, errno ? errno : EIO,
                         "cannot write %s, so it is unchanged", r->path);
    return true;
}

static bool fail_conflict(const char *path, struct error *err)
{
    return error_set(err, ERR_CONFLICT,
                     "%s was changed by another program in the meantime, so it was left alone; run "
                     "the command again",
                     path);
}

static bool check_unchanged(const char *path, struct str before, struct error *err)
{
    struct buf now;
    bool exists = false, ok;

    buf_init_secret(&now, SIZE_MAX);
    ok = config_edit_read(path, &now, &exists, err);
    if (ok && (!exists || !str_eq(buf_str(&now), before)))
        ok = fail_conflict(path, err);
    buf_release(&now);
    return ok;
}

static int open_directory_of(const char *path)
{
    char copy[PATH_MAX];

    snprintf(copy, sizeof(copy), "%s", path);
    return open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* *ret_fd is to be closed; -1: the directory cannot be locked here (some network filesystems), and
 * the comparisons of the content are the only protection. */
static bool lock_directory_of(const char *path, int *ret_fd, struct error *err)
{
    int64_t until = clock_mono_ms() + LOCK_WAIT_MS;

    *ret_fd = open_directory_of(path);
    while (*ret_fd >= 0 && flock(*ret_fd, LOCK_EX | LOCK_NB) != 0) {
        bool is_busy = errno == EWOULDBLOCK || errno == EINTR;
        if (is_busy && clock_mono_ms() < until) {
            (void)poll(NULL, 0, LOCK_PAUSE_MS);
            continue;
        }
        close(*ret_fd);
        *ret_fd = -1;
        if (is_busy)
            return error_set(err, ERR_TIMEOUT,
                             "another program holds the directory of %s locked; run the command "
                             "again when it has ended",
                             path);
    }
    return true;
}

static void sync_directory_of(const char *path)
{
    int fd = open_directory_of(path);

    if (fd < 0)
        return;
    fsync(fd); /* the file has its new content either way */
    close(fd);
}

static bool create(const char *path, struct str after, struct error *err)
{
    struct replacement r = {.path = path, .fd = -1};
    bool ok = write_beside(&r, after, NULL, err);

    if (ok && link(r.beside, path) != 0) /* fails if the file exists */
        ok = errno == EEXIST ? fail_conflict(path, err)
                             : error_sys(err, ERR_CONFIG, errno, "cannot make %s", path);
    if (r.fd >= 0) {
        close(r.fd);
        unlink(r.beside);
    }
    if (ok)
        sync_directory_of(path);
    return ok;
}

static bool replace(const char *path, struct str before, struct str after, struct error *err)
{
    struct replacement r = {.path = path, .fd = -1};
    struct stat st;
    bool ok = stat(path, &st) == 0 || error_sys(err, ERR_CONFIG, errno, "cannot read %s", path);

    ok = ok && check_unchanged(path, before, err) && write_beside(&r, after, &st, err) &&
         check_unchanged(path, before, err);
    if (ok && rename(r.beside, path) != 0)
        ok = error_sys(err, ERR_CONFIG, errno, "cannot replace %s, so it is unchanged", path);
    if (r.fd >= 0) {
        close(r.fd);
        if (!ok)
            unlink(r.beside);
    }
    if (ok)
        sync_directory_of(path);
    return ok;
}

static bool remove_file(const char *path, struct str before, struct error *err)
{
    if (!check_unchanged(path, before, err))
        return false;
    if (unlink(path) != 0)
        return error_sys(err, ERR_CONFIG, errno, "cannot remove %s", path);
    sync_directory_of(path);
    return true;
}

static bool write_locked(const char *path, const char *real, struct str before, struct str after,
                         struct error *err)
{
    if ((real != NULL) != (before.p != NULL))
        return fail_conflict(path, err);
    if (!real)
        return !after.p || create(path, after, err);
    return after.p ? replace(real, before, after, err) : remove_file(real, before, err);
}

bool config_edit_write(const char *path, struct str before, struct str after, struct error *err)
{
    char *real = NULL;
    int lock = -1;

    if (strlen(path) >= PATH_MAX)
        return error_set(err, ERR_CONFIG, "the path of the file is too long; use a shorter one");
    if (!resolve(path, &real, err))
        return false;
    bool ok = (real || !after.p || make_parents(path, err)) &&
              lock_directory_of(real ? real : path, &lock, err) &&
              write_locked(path, real, before, after, err);
    if (lock >= 0)
        close(lock);
    free(real);
    return ok;
}
