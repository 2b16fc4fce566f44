/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership is an flock on DATA/lock: it goes with the process however that ends, so there is no stale
 * lock to clean up.  The pid inside is only for messages. */
#include "cli/datadir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct datadir {
    int lock;
};

struct str datadir_path(struct str dir, const char *name, struct arena *mem)
{
    return arena_printf(mem, "%.*s/%s", STR_ARG(dir), name);
}

bool datadir_socket(struct str dir, struct arena *mem, struct str *ret, struct error *err)
{
    struct str path = datadir_path(dir, "holdfast.sock", mem);
    if (path.n >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return error_set(err, ERR_CONFIG,
                         "the data directory's path is too long for a socket inside it; use a shorter --data");
    *ret = path;
    return true;
}

/* mkdir -p, each new directory 0700. */
static bool make_dirs(const char *path, struct error *err)
{
    char part[4096];
    size_t n = strlen(path);

    if (n >= sizeof(part))
        return error_set(err, ERR_CONFIG, "the data directory's path is too long; use a shorter --data");
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

static int read_pid(int fd)
{
    char text[32];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    return (int)strtol(text, NULL, 10);
}

bool datadir_own(struct str dir, struct datadir **ret, struct error *err)
{
    struct arena *mem = arena_new(64 * 1024);
    struct str path = datadir_path(dir, "lock", mem);
    char pid[32];
    bool ok = false;

    if (!make_dirs(arena_dup(mem, dir).p, err)) {
        arena_free(mem);
        return false;
    }
    int fd = open(path.p, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        error_sys(err, ERR_CONFIG, errno, "cannot open %s; is the directory yours?", path.p);
    } else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        error_set(err, ERR_CONFIG,
                  "another Holdfast (pid %d) uses this data directory; stop it, or give another --data",
                  read_pid(fd));
        close(fd);
    } else {
        int n = snprintf(pid, sizeof(pid), "%d\n", getpid());
        ok = ftruncate(fd, 0) == 0 && pwrite(fd, pid, (size_t)n, 0) == n;
        if (!ok) {
            error_sys(err, ERR_CONFIG, errno, "cannot write %s", path.p);
            close(fd);
        }
    }
    if (ok) {
        *ret = xcalloc(1, sizeof(**ret));
        (*ret)->lock = fd;
    }
    arena_free(mem);
    return ok;
}

void datadir_release(struct datadir *d)
{
    if (!d)
        return;
    close(d->lock);
    free(d);
}

int datadir_owner(struct str dir)
{
    struct arena *mem = arena_new(64 * 1024);
    int fd = open(datadir_path(dir, "lock", mem).p, O_RDONLY | O_CLOEXEC);
    int pid = 0;

    arena_free(mem);
    if (fd < 0)
        return 0;
    if (flock(fd, LOCK_SH | LOCK_NB) < 0)
        pid = read_pid(fd);
    close(fd);
    return pid;
}
