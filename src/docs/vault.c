/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and reading.  Every open in the vault goes through vault_openat(): openat2 beneath a
 * directory that was itself opened this way, down from the root, following no link.  After an open
 * the vault inspects the descriptor and never the name again.  O_NONBLOCK, because opening a FIFO
 * without a writer would hang the thread.
 *
 * A file that an editor writes in place is incomplete for a moment.  If a file is younger than
 * YOUNG_MS, or changes while it is read, the reader waits a little and reads again.  Publishing
 * does not rely on that. */
#include "base/utf8.h"
#include "crypto/hash.h"
#include "docs/vault_impl.h"

#include <errno.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define YOUNG_MS 50
#define YOUNG_WAIT_MAX_MS 250
#define YOUNG_WAIT_STEP_MS 5
#define OPEN_TRIES 16

static void trace_open(struct vault *v, int fd, uint64_t flags)
{
    char link[64], where[4096];
    int saved = errno;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, where, sizeof where - 1);
    where[n > 0 ? n : 0] = '\0';
    v->on_open(v->on_open_arg, where, flags);
    errno = saved;
}

static int open_beneath(struct vault *v, int dir, const char *path, uint64_t flags, uint64_t mode)
{
    struct open_how how = {
        .flags = flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = -1;

    /* EAGAIN: a directory on the path was renamed at that moment. */
    for (int i = 0; i < OPEN_TRIES; i++) {
        fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    if (fd >= 0 && v->on_open)
        trace_open(v, (int)fd, how.flags);
    return (int)fd;
}

int vault_openat(struct vault *v, int dir, const char *path, uint64_t flags)
{
    return open_beneath(v, dir, path, flags, 0);
}

int vault_openat_new(struct vault *v, int dir, const char *path)
{
    return open_beneath(v, dir, path, O_WRONLY | O_CREAT | O_EXCL, 0666);
}

bool vault_sys(struct error *err, int errnum, const char *doing)
{
    switch (errnum) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENXIO:
    case EXDEV:
    case ENODEV:
    case ENAMETOOLONG:
        return error_set(err, ERR_NOT_FOUND,
                         "there is no such document; list the folder to see its documents");
    default:
        return error_sys(err, ERR_UNAVAILABLE, errnum,
                         "%s failed; check the folder's permissions and its disk", doing);
    }
}

static void identify(const struct stat *st, char ret[48])
{
    snprintf(ret, 48, "%ju:%ju", (uintmax_t)st->st_dev, (uintmax_t)st->st_ino);
}

bool vault_open(struct str root, struct vault **ret, struct error *err)
{
    char path[PATH_MAX];

    if (root.n == 0 || root.n >= sizeof path || memchr(root.p, '\0', root.n))
        return error_set(err, ERR_CONFIG, "the folder's path is empty or too long; correct it");
    memcpy(path, root.p, root.n);
    path[root.n] = '\0';

    struct vault *v = xcalloc(1, sizeof *v);
    v->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (v->root < 0) {
        int errnum = errno;
        free(v);
        return error_sys(err, ERR_CONFIG, errnum,
                         "the folder %s cannot be opened; make it, or correct its path", path);
    }
    struct stat st;
    int probe = vault_openat(v, v->root, ".", VAULT_OPEN_DIR);
    if (probe < 0 || fstat(v->root, &st) != 0) {
        int errnum = errno;
        close(v->root);
        free(v);
        return error_sys(err, ERR_CONFIG, errnum,
                         "this kernel or its sandbox has no openat2, which keeps documents inside "
                         "their folder; use Linux 5.6 or newer and allow the call");
    }
    close(probe);
    identify(&st, v->identity);
    v->path = xmalloc(root.n + 1);
    memcpy(v->path, path, root.n + 1);
    atomic_init(&v->lost, false);
    pthread_mutex_init(&v->lock, NULL);
    map_init(&v->staged);
    *ret = v;
    return true;
}

struct str vault_root(const struct vault *v)
{
    return str_of(v->identity);
}

bool vault_is_current(struct vault *v, struct error *err)
{
    char now[48] = "";
    struct stat st;
    bool is_there = stat(v->path, &st) == 0;

    if (is_there)
        identify(&st, now);
    atomic_store(&v->lost, strcmp(now, v->identity) != 0);
    if (!vault_is_lost(v))
        return true;
    return error_set(err, ERR_UNAVAILABLE,
                     is_there ? "this folder was replaced by another one on the disk; Holdfast "
                                "opens that one within seconds, call again then"
                              : "this folder does not exist on the disk any more; a person has to "
                                "put it back, or to correct its path in the configuration");
}

bool vault_is_lost(const struct vault *v)
{
    return atomic_load(&v->lost);
}

void vault_close(struct vault *v)
{
    size_t at = 0;
    struct str key;
    void *entry;

    if (!v)
        return;
    while (map_next(&v->staged, &at, &key, &entry))
        free(entry);
    map_release(&v->staged);
    vault_watches_free(v->watches);
    pthread_mutex_destroy(&v->lock);
    close(v->root);
    free(v->path);
    free(v);
}

void vault_on_open(struct vault *v, void (*fn)(void *arg, const char *path, uint64_t flags),
                   void *arg)
{
    v->on_open = fn;
    v->on_open_arg = arg;
}

void vault_remember_own(struct vault *v, const struct stat *st)
{
    pthread_mutex_lock(&v->lock);
    v->own[v->n_own++ % VAULT_OWN_MAX] =
        (struct vault_own){.inode = st->st_ino, .modified = st->st_mtim};
    pthread_mutex_unlock(&v->lock);
}

static bool is_own(struct vault *v, const struct stat *st)
{
    bool found = false;

    pthread_mutex_lock(&v->lock);
    for (size_t i = 0; i < VAULT_OWN_MAX && !found; i++)
        found = v->own[i].inode == st->st_ino && v->own[i].modified.tv_sec == st->st_mtim.tv_sec &&
                v->own[i].modified.tv_nsec == st->st_mtim.tv_nsec;
    pthread_mutex_unlock(&v->lock);
    return found;
}

/* File times come from the kernel's clock, so ages are measured with it, not with the tests'
 * clock. */
static int64_t kernel_ms(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t modified_ms(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

static bool is_young(struct vault *v, const struct stat *st)
{
    int64_t age = kernel_ms(CLOCK_REALTIME) - modified_ms(st);

    return age >= 0 && age < YOUNG_MS && !is_own(v, st);
}

/* One reading of a file: its bytes, and whether it stayed unchanged during the reading. */
struct look {
    char *bytes; /* malloc; room for st_size + 1 */
    size_t n;
    struct stat st;
    bool still;
};

static bool same_state(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool read_all(int fd, struct look *l)
{
    size_t room = (size_t)l->st.st_size + 1;

    l->n = 0;
    l->bytes = xrealloc(l->bytes, room);
    while (l->n < room) {
        ssize_t got = read(fd, l->bytes + l->n, room - l->n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0)
            break;
        l->n += (size_t)got;
    }
    return true;
}

static bool look_at_fd(int fd, struct look *l, struct error *err)
{
    struct stat after;

    if (fstat(fd, &l->st) != 0)
        return vault_sys(err, errno, "looking at a document");
    if (!S_ISREG(l->st.st_mode))
        return vault_sys(err, ENOENT, "");
    if (l->st.st_size > VAULT_FILE_MAX)
        return error_set(err, ERR_BAD_INPUT,
                         "the document is larger than %u bytes; split it into smaller ones",
                         VAULT_FILE_MAX);
    if (!read_all(fd, l))
        return vault_sys(err, errno, "reading a document");
    if (fstat(fd, &after) != 0)
        return vault_sys(err, errno, "looking at a document");
    l->still = l->n == (size_t)l->st.st_size && same_state(&l->st, &after);
    if (l->n > (size_t)l->st.st_size)
        l->n--;
    return true;
}

static bool look_once(struct vault *v, int dir, const char *name, struct look *l, struct error *err)
{
    int fd = vault_openat(v, dir, name, VAULT_OPEN_FILE);

    if (fd < 0)
        return vault_sys(err, errno, "opening a document");
    bool ok = look_at_fd(fd, l, err);
    close(fd);
    return ok;
}

static void pause_ms(int64_t ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

static bool look_until_still(struct vault *v, int dir, const char *name, unsigned how,
                             struct look *l, struct error *err)
{
    int64_t begin = kernel_ms(CLOCK_MONOTONIC), waited = 0;

    for (;; waited = kernel_ms(CLOCK_MONOTONIC) - begin) {
        if (!look_once(v, dir, name, l, err))
            return false;
        bool cut = how & VAULT_READ_PATIENTLY && l->n == 0 && waited < YOUNG_MS;
        if ((l->still && !cut && !is_young(v, &l->st)) || waited >= YOUNG_WAIT_MAX_MS)
            return true;
        pause_ms(YOUNG_WAIT_STEP_MS);
    }
}

static bool keep_look(const struct look *l, unsigned how, struct arena *mem, struct vault_file *ret,
                      struct error *err)
{
    struct str bytes = str_n(l->bytes, l->n);

    if (!(how & VAULT_READ_ANY_BYTES) && !utf8_is_valid(bytes))
        return error_set(err, ERR_BAD_INPUT,
                         "the document is not UTF-8 text; convert it, or leave it alone");
    char *copy = arena_try_alloc(mem, l->n + 1);
    if (!copy)
        return error_set(
            err, ERR_TOO_LARGE,
            "the documents are too large together; ask for fewer or smaller documents");
    memcpy(copy, l->bytes, l->n);
    copy[l->n] = '\0';
    ret->bytes = str_n(copy, l->n);
    ret->modified_ms = modified_ms(&l->st);
    ret->is_read_only = (l->st.st_mode & 0222) == 0;
    sha256(bytes, ret->sha256);
    return true;
}

bool vault_read_at(struct vault *v, int dir, const char *name, unsigned how, struct arena *mem,
                   struct vault_file *ret, struct error *err)
{
    struct look look = {0};
    bool ok =
        look_until_still(v, dir, name, how, &look, err) && keep_look(&look, how, mem, ret, err);

    free(look.bytes);
    return ok;
}

bool vault_holds(struct vault *v, int dir, const char *name, struct str bytes)
{
    struct look look = {0};
    struct error ignored;
    bool same = look_once(v, dir, name, &look, &ignored) && look.still &&
                str_eq(str_n(look.bytes, look.n), bytes);

    free(look.bytes);
    return same;
}

static bool read_path(struct vault *v, struct str path, unsigned how, struct arena *mem,
                      struct vault_file *ret, struct error *err)
{
    char name[VAULT_PATH_MAX + 1];

    if (!vault_path_check(path, err))
        return false;
    memcpy(name, path.p, path.n);
    name[path.n] = '\0';
    return vault_read_at(v, v->root, name, how, mem, ret, err);
}

bool vault_read(struct vault *v, struct str path, struct arena *mem, struct vault_file *ret,
                struct error *err)
{
    return read_path(v, path, VAULT_READ_TEXT, mem, ret, err);
}

bool vault_read_patiently(struct vault *v, struct str path, struct arena *mem,
                          struct vault_file *ret, struct error *err)
{
    return read_path(v, path, VAULT_READ_PATIENTLY, mem, ret, err);
}
