/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of its own for a test, in memory where that is possible (or in VAULT_TEST_DIR, to try
 * another file system), and people who save there the way editors do. */
#ifndef HOLDFAST_TESTS_VAULT_DIR_H
#define HOLDFAST_TESTS_VAULT_DIR_H

#include "base/buf.h"
#include "crypto/hash.h"
#include "docs/vault.h"
#include "test.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct dir {
    char path[64];
};

static char dir_last[256];      /* the path that dir_write() wrote last */
static char dir_name_[4][4096]; /* of dir_str(), in turn */

__attribute__((unused)) static void dir_make(struct dir *d)
{
    const char *in = getenv("VAULT_TEST_DIR");

    if (!in)
        in = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(d->path, sizeof d->path, "%s/vault-XXXXXX", in);
    assert_non_null(mkdtemp(d->path));
}

static int dir_remove_one_(const char *path, const struct stat *st __attribute__((unused)),
                           int type __attribute__((unused)), struct FTW *at __attribute__((unused)))
{
    return remove(path);
}

__attribute__((unused)) static void dir_drop(struct dir *d)
{
    assert_int_equal(nftw(d->path, dir_remove_one_, 64, FTW_DEPTH | FTW_PHYS), 0);
}

/* NUL-terminated; good until the fourth call after it. */
__attribute__((unused)) static struct str dir_str(const struct dir *d, const char *name)
{
    static __thread unsigned turn;
    char *out = dir_name_[turn++ % 4];

    snprintf(out, sizeof dir_name_[0], "%s/%s", d->path, name);
    return str_of(out);
}

static void dir_parents_(const struct dir *d, const char *name)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", d->path, name);
    for (char *slash = path + strlen(d->path) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
}

static void dir_put_(const char *path, struct str bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes.p, bytes.n), bytes.n);
    close(fd);
}

/* Something that has been there for a while: parents are made, and it is an hour old. */
__attribute__((unused)) static void dir_write(const struct dir *d, const char *name,
                                              struct str bytes)
{
    char path[4096];
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {0}};

    dir_parents_(d, name);
    snprintf(path, sizeof path, "%s/%s", d->path, name);
    dir_put_(path, bytes);
    clock_gettime(CLOCK_REALTIME, &times[1]);
    times[1].tv_sec -= 3600;
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    snprintf(dir_last, sizeof dir_last, "%s", strlen(name) < sizeof dir_last ? name : "");
}

/* The two ways of editors. */
__attribute__((unused)) static void dir_save_in_place(const struct dir *d, const char *name,
                                                      struct str bytes)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", d->path, name);
    dir_put_(path, bytes);
}

__attribute__((unused)) static void dir_save_by_rename(const struct dir *d, const char *name,
                                                       struct str bytes)
{
    char path[4096], temp[4096];

    snprintf(path, sizeof path, "%s/%s", d->path, name);
    snprintf(temp, sizeof temp, "%s/%s", d->path, ".save~");
    dir_put_(temp, bytes);
    assert_int_equal(rename(temp, path), 0);
}

__attribute__((unused)) static void dir_mkdir(const struct dir *d, const char *name)
{
    dir_parents_(d, name);
    assert_int_equal(mkdir(dir_str(d, name).p, 0755), 0);
}
__attribute__((unused)) static void dir_mkfifo(const struct dir *d, const char *name)
{
    assert_int_equal(mkfifo(dir_str(d, name).p, 0644), 0);
}
__attribute__((unused)) static void dir_symlink(const struct dir *d, const char *to,
                                                const char *name)
{
    dir_parents_(d, name);
    assert_int_equal(symlink(to, dir_str(d, name).p), 0);
}
__attribute__((unused)) static void dir_hardlink(const struct dir *d, const char *from,
                                                 const char *name)
{
    assert_int_equal(link(dir_str(d, from).p, dir_str(d, name).p), 0);
}
__attribute__((unused)) static void dir_remove(const struct dir *d, const char *name)
{
    assert_int_equal(remove(dir_str(d, name).p), 0);
}
__attribute__((unused)) static void dir_stat(const struct dir *d, const char *name,
                                             struct stat *ret)
{
    assert_int_equal(lstat(dir_str(d, name).p, ret), 0);
}
__attribute__((unused)) static bool dir_has(const struct dir *d, const char *name)
{
    struct stat st;
    return lstat(dir_str(d, name).p, &st) == 0;
}

/* What is in the file, for whoever frees it. */
__attribute__((unused)) static bool dir_load(const struct dir *d, const char *name, struct buf *out)
{
    char path[4096];
    ssize_t got = 1;

    snprintf(path, sizeof path, "%s/%s", d->path, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (got > 0) {
        got = read(fd, buf_room(out, 65536), 65536);
        buf_grown(out, got > 0 ? (size_t)got : 0);
    }
    close(fd);
    return got == 0;
}

__attribute__((unused)) static bool dir_holds(const struct dir *d, const char *name,
                                              struct str bytes)
{
    struct buf b;

    buf_init(&b, 1 << 26);
    bool same = dir_load(d, name, &b) && str_eq(buf_str(&b), bytes);
    buf_release(&b);
    return same;
}

__attribute__((unused)) static struct vault *open_vault(const struct dir *d)
{
    struct vault *v = NULL;
    struct error err;

    assert_true(vault_open(str_of(d->path), &v, &err));
    return v;
}

/* Also looks after its digest. */
__attribute__((unused)) static struct str must_read(struct vault *v, const char *path,
                                                    struct arena *mem)
{
    struct vault_file f = {0};
    struct error err;

    if (!vault_read(v, str_of(path), mem, &f, &err))
        fail_msg("%s: %s", path, err.text);
    uint8_t digest[32];
    sha256(f.bytes, digest);
    assert_memory_equal(digest, f.sha256, 32);
    return f.bytes;
}

#endif
