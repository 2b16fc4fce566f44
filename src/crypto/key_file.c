/* SPDX-License-Identifier: Apache-2.0 */
/* A new key is written to a temporary file beside its path, synced and linked, so that a crash
 * leaves either no key or a whole key, and two starts never overwrite each other's key.  Temporary
 * files that a crash leaves hold keys, so they are removed before the file is next replaced. */
#include "crypto/key_file.h"

#include "base/random.h"
#include "crypto/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BESIDE ".new." /* and 16 hex digits: unlikely for a user's own copy */
#define BESIDE_DIGITS 16
#define KEY_TEXT (2 * KEY_FILE_BYTES + 1) /* with the newline */

static bool sync_directory_of(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof(copy), "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool is_left_over(const char *name, const char *base)
{
    size_t n = strlen(base);
    if (strncmp(name, base, n) != 0 || strncmp(name + n, BESIDE, sizeof(BESIDE) - 1) != 0)
        return false;
    const char *digits = name + n + sizeof(BESIDE) - 1;
    return strlen(digits) == BESIDE_DIGITS && strspn(digits, "0123456789abcdef") == BESIDE_DIGITS;
}

/* Another process that is writing at this moment then fails with an error. */
static void drop_left_overs(const char *path)
{
    char copy[PATH_MAX], again[PATH_MAX];
    snprintf(copy, sizeof(copy), "%s", path);
    snprintf(again, sizeof(again), "%s", path);
    const char *base = basename(again);
    DIR *dir = opendir(dirname(copy));
    if (!dir)
        return;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        if (is_left_over(e->d_name, base))
            unlinkat(dirfd(dir), e->d_name, 0);
    closedir(dir);
}

bool key_file_put(const char *path, struct str text, bool first)
{
    char beside[PATH_MAX + sizeof(BESIDE) + BESIDE_DIGITS];
    if (!first)
        drop_left_overs(path);
    snprintf(beside, sizeof(beside), "%s" BESIDE "%016" PRIx64, path, random_u64());
    int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n && fsync(fd) == 0;
    if (ok && first)
        ok = link(beside, path) == 0 || errno == EEXIST;
    else if (ok)
        ok = rename(beside, path) == 0;
    ok = ok && sync_directory_of(path);
    int saved = errno;
    if (fd >= 0) {
        close(fd);
        unlink(beside);
    }
    errno = saved;
    return ok;
}

static bool make_key(const struct key_file *f, const char *path, struct error *err)
{
    uint8_t key[KEY_FILE_BYTES];
    char text[KEY_TEXT + 1];
    random_bytes(key, sizeof(key));
    hex_encode(key, sizeof(key), text);
    text[KEY_TEXT - 1] = '\n';
    bool ok = key_file_put(path, str_n(text, KEY_TEXT), true);
    int saved = errno;
    crypto_wipe(key, sizeof(key));
    crypto_wipe(text, sizeof(text));
    return ok ||
           error_sys(err, ERR_CONFIG, saved,
                     "%s %s cannot be made; check that its directory is writable", f->name, path);
}

bool key_is_handed_over(const char *path)
{
    const char *dir = getenv("CREDENTIALS_DIRECTORY");
    size_t n = dir ? strlen(dir) : 0;
    return n > 0 && strncmp(path, dir, n) == 0 && path[n] == '/';
}

bool key_file_check_owner(const struct stat *st, const char *path, struct error *err)
{
    return st->st_uid == geteuid() || st->st_uid == 0 ||
           error_set(err, ERR_CONFIG,
                     "%s belongs to another user (uid %u), who could change it; Holdfast runs as "
                     "uid %u; run: chown %u %s",
                     path, (unsigned)st->st_uid, (unsigned)geteuid(), (unsigned)geteuid(), path);
}

struct str key_file_handed_over(const char *name, struct arena *mem)
{
    const char *dir = getenv("CREDENTIALS_DIRECTORY");
    struct str path = dir && *dir ? arena_printf(mem, "%s/%s", dir, name) : STR_NONE;
    return path.p && access(path.p, F_OK) == 0 ? path : STR_NONE;
}

static bool read_key(const struct key_file *f, int fd, const char *path,
                     uint8_t ret_key[KEY_FILE_BYTES], struct error *err)
{
    struct stat st;
    char text[KEY_TEXT + 1];
    if (fstat(fd, &st) != 0)
        return error_sys(err, ERR_CONFIG, errno, "%s %s cannot be read", f->name, path);
    if (!S_ISREG(st.st_mode))
        return error_set(err, ERR_CONFIG,
                         "%s %s is no regular file; put the key file back in its place", f->name,
                         path);
    if (st.st_mode & (key_is_handed_over(path) ? 007 : 077))
        return error_set(err, ERR_CONFIG, "%s %s can be read by others; run: chmod 600 %s", f->name,
                         path, path);
    if (!key_file_check_owner(&st, path, err))
        return false;
    ssize_t n = read(fd, text, sizeof(text));
    bool ok = n >= KEY_TEXT - 1 && n <= KEY_TEXT && (n < KEY_TEXT || text[KEY_TEXT - 1] == '\n') &&
              hex_decode(str_n(text, KEY_TEXT - 1), ret_key, KEY_FILE_BYTES);
    crypto_wipe(text, sizeof(text));
    return ok || error_set(err, ERR_CONFIG,
                           "%s %s is not 64 hex digits; restore it from a backup, or move it %s",
                           f->name, path, f->or_move);
}

bool key_file_load(const struct key_file *f, struct str path, bool create,
                   uint8_t ret_key[KEY_FILE_BYTES], struct error *err)
{
    char file[PATH_MAX];
    if (path.n >= sizeof(file))
        return error_set(err, ERR_CONFIG,
                         "the path of %s is too long; use a shorter data directory", f->name);
    snprintf(file, sizeof(file), "%.*s", STR_ARG(path));
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT && create) {
        if (!make_key(f, file, err))
            return false;
        fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    }
    if (fd < 0 && errno == ENOENT)
        return error_set(
            err, ERR_CONFIG,
            "%s %s is missing; restore it from a backup, or name the right directory with --data",
            f->name, file);
    if (fd < 0)
        return error_sys(err, ERR_CONFIG, errno, "%s %s cannot be opened", f->name, file);
    bool ok = read_key(f, fd, file, ret_key, err);
    close(fd);
    return ok;
}
