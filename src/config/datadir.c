/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership is an flock on DATA/lock.  The kernel releases it whenever the process ends, so stale
 * locks cannot occur.  The pid in the file is only for messages. */
#include "config/datadir.h"

#include "crypto/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LOCK_ATTEMPTS 10
#define LOCK_PAUSE_NS 10000000

struct datadir {
    int lock;
};

struct str datadir_path(struct str dir, const char *name, struct arena *mem)
{
    return arena_printf(mem, "%.*s/%s", STR_ARG(dir), name);
}

/* The file that the variable names, else the credential of that name, else `own`. */
static struct str key_path(const char *variable, const char *credential, struct str own,
                           struct arena *mem, bool *ret_is_own)
{
    const char *named = getenv(variable);
    struct str given = key_file_handed_over(credential, mem);
    bool is_named = named && *named;

    *ret_is_own = !is_named && !given.p;
    return is_named ? arena_dup(mem, str_of(named)) : given.p ? given : own;
}

struct str datadir_audit_key(struct str dir, struct arena *mem, bool *ret_is_own)
{
    bool is_own;
    struct str path = key_path("HOLDFAST_AUDIT_KEY_FILE", "holdfast-audit-key",
                               datadir_path(dir, "audit.key", mem), mem, &is_own);
    if (ret_is_own)
        *ret_is_own = is_own;
    return path;
}

struct str datadir_token_key(struct str dir, struct arena *mem, bool *ret_is_own)
{
    return key_path("HOLDFAST_TOKEN_KEY_FILE", "holdfast-token-key",
                    datadir_path(dir, "token.key", mem), mem, ret_is_own);
}

bool datadir_socket(struct str dir, struct arena *mem, struct str *ret, struct error *err)
{
    struct str path = datadir_path(dir, "holdfast.sock", mem);
    if (path.n >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return error_set(
            err, ERR_CONFIG,
            "the data directory's path is too long for a socket inside it; use a shorter --data");
    *ret = path;
    return true;
}

/* mkdir -p, each new directory 0700. */
static bool make_dirs(const char *path, struct error *err)
{
    char part[4096];
    size_t n = strlen(path);

    if (n == 0 || n >= sizeof(part))
        return error_set(err, ERR_CONFIG, "the data directory's path is %s; give another --data",
                         n ? "too long" : "empty");
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return error_sys(err, ERR_CONFIG, errno, "cannot make the data directory %s", part);
    }
    return true;
}

/* A user who can write to the directory could replace our database or socket. */
static bool check_directory(const char *path, struct stat *st, struct error *err)
{
    if (stat(path, st) < 0)
        return error_sys(err, ERR_CONFIG, errno, "cannot check the data directory %s", path);
    if (!S_ISDIR(st->st_mode))
        return error_set(err, ERR_CONFIG, "%s is not a directory; name another with --data", path);
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return error_set(err, ERR_CONFIG,
                         "%s may write to the data directory %s; run: chmod go-w %s, or give "
                         "another --data",
                         st->st_mode & S_IWOTH ? "everybody" : "the group", path, path);
    return key_file_check_owner(st, path, err);
}

/* The classes of users that may read the file and can reach it through the directory. */
static mode_t readers(mode_t file, mode_t dir)
{
    return (dir & S_IXGRP ? file & S_IRGRP : 0) | (dir & S_IXOTH ? file & S_IROTH : 0);
}

/* A missing file is fine: the code that needs it creates it for the owner alone. */
static bool check_file(const char *path, mode_t dir_mode, struct error *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return errno == ENOENT ||
               error_sys(err, ERR_CONFIG, errno, "cannot check the file %s", path);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return error_set(err, ERR_CONFIG, "other users may write to %s; run: chmod 600 %s", path,
                         path);
    if (readers(st.st_mode, dir_mode))
        return error_set(err, ERR_CONFIG,
                         "other users may read %s, which holds private data; run: chmod 600 %s",
                         path, path);
    return key_file_check_owner(&st, path, err);
}

static bool check_private(struct str dir, const char *path, struct arena *mem, struct error *err)
{
    static const char *const names[] = {
        "holdfast.db",         "holdfast.db-wal", "holdfast.db-shm", "spool.db",
        "audit-anchors.jsonl", "audit.key",       "master.key",      "token.key",
    };
    struct stat st;
    bool ok = check_directory(path, &st, err);

    for (size_t i = 0; ok && i < countof(names); i++)
        ok = check_file(datadir_path(dir, names[i], mem).p, st.st_mode, err);
    return ok;
}

/* 0 when the file holds no number yet. */
static int read_pid(int fd)
{
    char text[32];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    return (int)strtol(text, NULL, 10);
}

/* Another command may hold the lock briefly to find the owner, so a locked file is tried again. */
static bool take_lock(int fd, struct error *err)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};

    for (int attempt = 0;; attempt++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_sys(err, ERR_CONFIG, errno, "cannot lock the data directory");
        if (attempt == LOCK_ATTEMPTS)
            break;
        nanosleep(&pause, NULL);
    }
    return error_set(
        err, ERR_CONFIG,
        "another Holdfast (pid %d) uses this data directory; stop it, or give another --data",
        read_pid(fd));
}

static bool write_pid(int fd, struct error *err)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%d\n", getpid());

    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) == n)
        return true;
    return error_sys(err, ERR_CONFIG, errno,
                     "cannot write to the data directory; is the disk full, or read-only?");
}

bool datadir_own(struct str dir, struct datadir **ret, struct error *err)
{
    struct arena *mem = arena_new(64 * 1024);
    const char *path = datadir_path(dir, "lock", mem).p, *top = arena_dup(mem, dir).p;
    int fd = -1;
    bool ok = make_dirs(top ? top : "", err) && check_private(dir, top, mem, err);

    if (ok) {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        ok = fd >= 0 || error_sys(err, ERR_CONFIG, errno,
                                  "cannot open %s; does the directory belong to you?", path);
    }
    ok = ok && take_lock(fd, err) && write_pid(fd, err);
    arena_free(mem);
    if (!ok) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    *ret = xcalloc(1, sizeof(**ret));
    (*ret)->lock = fd;
    return true;
}

void datadir_release(struct datadir *d)
{
    if (!d)
        return;
    close(d->lock);
    free(d);
}

bool datadir_check_readable(struct str dir, bool *ret_exists, struct error *err)
{
    struct arena *mem = arena_new(64 * 1024);
    const char *path = arena_dup(mem, dir).p, *lock = datadir_path(dir, "lock", mem).p;
    struct stat st;
    bool ok = true;

    *ret_exists = stat(path, &st) == 0;
    if (*ret_exists && !S_ISDIR(st.st_mode))
        ok = error_set(err, ERR_CONFIG, "%s is not a directory; name another with --data", path);
    else if ((!*ret_exists && errno != ENOENT) ||
             (*ret_exists && faccessat(AT_FDCWD, path, R_OK | X_OK, AT_EACCESS) < 0) ||
             (*ret_exists && faccessat(AT_FDCWD, lock, R_OK, AT_EACCESS) < 0 && errno != ENOENT))
        ok = error_sys(err, ERR_CONFIG, errno,
                       "cannot read the data directory %s; run this as its owner, or name another "
                       "with --data",
                       path);
    arena_free(mem);
    return ok;
}

/* "ffff…: RefCount Protocol Flags Type St Inode Path"; flag 0x10000: it listens. */
static struct str listening_path(struct str line)
{
    uint64_t flags = 0;

    for (int column = 0; column < 7; column++) {
        while (line.n && line.p[0] == ' ')
            line = str_n(line.p + 1, line.n - 1);
        struct str word = str_split(&line, ' ');
        if (column == 3 && word.n == 8) {
            char text[9] = "";
            memcpy(text, word.p, 8);
            flags = strtoull(text, NULL, 16);
        }
    }
    return line.p && (flags & 0x10000) ? line : STR_NONE;
}

struct str datadir_of_another(struct str table, struct str own_dir)
{
    const struct str socket = STR("/holdfast.sock");

    while (table.n) {
        struct str path = listening_path(str_split(&table, '\n'));
        if (path.n <= socket.n || !str_ends(path, socket))
            continue;
        struct str dir = str_n(path.p, path.n - socket.n);
        if (!str_eq(dir, own_dir))
            return dir;
    }
    return STR_NONE;
}

int datadir_owner(struct str dir)
{
    struct arena *mem = arena_new(64 * 1024);
    int fd = open(datadir_path(dir, "lock", mem).p, O_RDONLY | O_CLOEXEC);
    int pid = 0;

    arena_free(mem);
    if (fd < 0)
        return 0;
    if (flock(fd, LOCK_SH | LOCK_NB) < 0) {
        pid = read_pid(fd);
        pid = pid > 0 ? pid : -1;
    }
    close(fd);
    return pid;
}
