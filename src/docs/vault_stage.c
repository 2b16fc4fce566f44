/* SPDX-License-Identifier: Apache-2.0 */
/* ROOT/.holdfast: a new text waits here, whole and synced, until it is exchanged with the document.
 * The displaced file then stays here until the history has it.
 *
 *   w-RANDOM        being written; ours, discarded after a crash
 *   PATH-OURS-RANDOM  a whole text: ours before the exchange, displaced after it
 *
 * The directory is created with the first file and removed with the last, both under the vault's
 * lock, so that no thread writes into a directory that was just removed. */
#include "base/fault.h"
#include "base/random.h"
#include "crypto/hash.h"
#include "docs/vault_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define HASH_HEX 16
#define XATTR_LIST_MAX 4096
#define XATTR_VALUE_MAX 4096

#define MTIME_TRUSTED_MS 1000 /* the next write is sure to change an mtime older than this */

struct vault_staged {
    char name[VAULT_STAGE_NAME];
    uint8_t sha256[32]; /* of the text that was returned last */
    /* Size and mtime at that time, if they are enough to notice another write. */
    bool has_state;
    off_t size;
    struct timespec modified;
};

int vault_stage_dir(struct vault *v)
{
    return vault_openat(v, v->root, VAULT_STAGE_DIR, VAULT_OPEN_DIR);
}

static void hash_hex(struct str s, char ret[HASH_HEX + 1])
{
    uint8_t digest[SHA256_BYTES];

    sha256(s, digest);
    hex_encode(digest, HASH_HEX / 2, ret);
}

static void random_hex(char ret[HASH_HEX + 1])
{
    uint8_t bytes[HASH_HEX / 2];

    random_bytes(bytes, sizeof bytes);
    hex_encode(bytes, sizeof bytes, ret);
}

static bool is_stage_name(struct str name)
{
    uint8_t bytes[HASH_HEX / 2];

    if (name.n != VAULT_STAGE_NAME - 1)
        return false;
    for (size_t at = 0; at < name.n; at += HASH_HEX + 1)
        if ((at > 0 && name.p[at - 1] != '-') ||
            !hex_decode(str_n(name.p + at, HASH_HEX), bytes, sizeof bytes))
            return false;
    return true;
}

static bool write_all(int fd, struct str bytes)
{
    for (size_t at = 0; at < bytes.n;) {
        ssize_t put = write(fd, bytes.p + at, bytes.n - at);
        if (put < 0 && errno != EINTR)
            return false;
        at += put > 0 ? (size_t)put : 0;
    }
    return true;
}

static void copy_xattrs(int from, int to)
{
    char names[XATTR_LIST_MAX], value[XATTR_VALUE_MAX];
    ssize_t n = flistxattr(from, names, sizeof names);

    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
        ssize_t size = fgetxattr(from, names + at, value, sizeof value);
        if (size >= 0 && fsetxattr(to, names + at, value, (size_t)size, 0) != 0)
            continue; /* setting security.* may be denied; a file system may lack attributes */
    }
}

/* Copies mode, owner and attributes of the document, as far as permitted. */
static void copy_manners(struct vault *v, struct str path, int to)
{
    char name[VAULT_PATH_MAX + 1];
    struct stat st;

    memcpy(name, path.p, path.n);
    name[path.n] = '\0';
    int from = vault_openat(v, v->root, name, VAULT_OPEN_FILE);
    if (from < 0)
        return;
    if (fstat(from, &st) == 0 && S_ISREG(st.st_mode)) {
        bool owned = fchown(to, st.st_uid, st.st_gid) == 0 || fchown(to, (uid_t)-1, st.st_gid) == 0;
        /* If the group cannot be copied, the file's own group must not get the permissions of the
         * other. */
        mode_t mode = st.st_mode & (owned ? 07777 : 0707);
        copy_xattrs(from, to);
        if (fchmod(to, mode) != 0)
            (void)fchmod(to, 0600);
    }
    close(from);
}

/* Creates a file "w-…" in the stage directory, which is created if it is missing. */
static int begin_file(struct vault *v, char name[VAULT_STAGE_NAME], int *ret_dir)
{
    char random[HASH_HEX + 1];
    int fd = -1;

    random_hex(random);
    snprintf(name, VAULT_STAGE_NAME, "w-%s", random);
    pthread_mutex_lock(&v->lock);
    if (mkdirat(v->root, VAULT_STAGE_DIR, 0700) == 0)
        (void)fsync(v->root);
    int dir = vault_stage_dir(v);
    if (dir >= 0)
        fd = vault_openat_new(v, dir, name);
    int errnum = errno;
    pthread_mutex_unlock(&v->lock);
    if (fd < 0 && dir >= 0)
        close(dir);
    errno = errnum;
    *ret_dir = dir;
    return fd;
}

static void remove_dir_if_empty(struct vault *v)
{
    pthread_mutex_lock(&v->lock);
    if (unlinkat(v->root, VAULT_STAGE_DIR, AT_REMOVEDIR) == 0)
        (void)fsync(v->root);
    pthread_mutex_unlock(&v->lock);
}

static bool finish_file(struct vault *v, int dir, int fd, const char *as, struct str path,
                        struct str bytes, char ret_name[VAULT_STAGE_NAME])
{
    char of_path[HASH_HEX + 1], of_text[HASH_HEX + 1], random[HASH_HEX + 1];
    char name[VAULT_STAGE_NAME];
    struct stat st;

    if (!write_all(fd, bytes) || fsync(fd) != 0 || fstat(fd, &st) != 0)
        return false;
    hash_hex(path, of_path);
    hash_hex(bytes, of_text);
    random_hex(random);
    snprintf(name, sizeof name, "%s-%s-%s", of_path, of_text, random);
    if (renameat2(dir, as, dir, name, RENAME_NOREPLACE) != 0 && renameat(dir, as, dir, name) != 0)
        return false;
    vault_remember_own(v, &st);
    memcpy(ret_name, name, sizeof name);
    return true;
}

bool vault_stage(struct vault *v, struct str path, struct str bytes, bool is_new,
                 char ret_name[VAULT_STAGE_NAME], struct error *err)
{
    char as[VAULT_STAGE_NAME];
    int dir, fd = begin_file(v, as, &dir);

    if (fd < 0)
        return error_sys(err, ERR_UNAVAILABLE, errno,
                         "the folder cannot be written to; check its permissions and its disk");
    if (!is_new)
        copy_manners(v, path, fd);
    bool crash = fault_hits("vault.writing") && write_all(fd, str_n(bytes.p, bytes.n / 2));
    bool ok = !crash && finish_file(v, dir, fd, as, path, bytes, ret_name);
    if (crash) {
        error_set(err, ERR_INTERNAL, "stopped by a fault point; start again");
    } else if (!ok) {
        error_sys(err, ERR_UNAVAILABLE, errno,
                  "the new text cannot be written; check the space on the folder's disk");
        unlinkat(dir, as, 0);
    }
    close(fd);
    close(dir);
    if (!ok && !crash)
        remove_dir_if_empty(v);
    return ok;
}

void vault_stage_drop(struct vault *v, const char *name)
{
    int dir = vault_stage_dir(v);

    if (dir < 0)
        return;
    unlinkat(dir, name, 0);
    close(dir);
    remove_dir_if_empty(v);
}

void vault_stage_keep(struct vault *v, const char *name, const uint8_t sha256[32])
{
    pthread_mutex_lock(&v->lock);
    struct vault_staged *s = map_get(&v->staged, str_of(name));
    if (!s) {
        s = xcalloc(1, sizeof *s);
        memcpy(s->name, name, VAULT_STAGE_NAME);
        map_put(&v->staged, str_of(s->name), s);
    }
    memcpy(s->sha256, sha256, 32);
    s->has_state = false;
    pthread_mutex_unlock(&v->lock);
}

/* `st` was taken before the returned text was read. */
static void note_state(struct vault *v, const char *name, const struct stat *st)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&v->lock);
    struct vault_staged *s = map_get(&v->staged, str_of(name));
    if (s && (now.tv_sec - st->st_mtim.tv_sec) * 1000 > MTIME_TRUSTED_MS) {
        s->has_state = true;
        s->size = st->st_size;
        s->modified = st->st_mtim;
    }
    pthread_mutex_unlock(&v->lock);
}

static bool is_unchanged(struct vault *v, const char *name, const struct stat *st)
{
    pthread_mutex_lock(&v->lock);
    struct vault_staged *s = map_get(&v->staged, str_of(name));
    bool same = s && s->has_state && s->size == st->st_size &&
                s->modified.tv_sec == st->st_mtim.tv_sec &&
                s->modified.tv_nsec == st->st_mtim.tv_nsec;
    pthread_mutex_unlock(&v->lock);
    return same;
}

static bool is_in_history(struct vault *v, const char *name, const uint8_t sha256[32])
{
    pthread_mutex_lock(&v->lock);
    struct vault_staged *s = map_get(&v->staged, str_of(name));
    bool known = s && memcmp(s->sha256, sha256, 32) == 0;
    pthread_mutex_unlock(&v->lock);
    return known;
}

static void forget(struct vault *v, const char *name)
{
    pthread_mutex_lock(&v->lock);
    free(map_remove(&v->staged, str_of(name)));
    pthread_mutex_unlock(&v->lock);
}

/* The next well-formed name of a list like vault_published.staged; false at its end. */
static bool next_name(struct str *rest, char ret[VAULT_STAGE_NAME])
{
    while (rest->p) {
        struct str name = str_split(rest, '\n');
        if (!is_stage_name(name))
            continue;
        memcpy(ret, name.p, name.n);
        ret[name.n] = '\0';
        return true;
    }
    return false;
}

static size_t count_names(struct str staged)
{
    char name[VAULT_STAGE_NAME];
    size_t n = 0;

    while (next_name(&staged, name))
        n++;
    return n;
}

bool vault_late(struct vault *v, struct str staged, struct arena *mem, struct vault_version **ret,
                size_t *ret_n, struct error *err)
{
    char name[VAULT_STAGE_NAME];
    struct vault_version *late = arena_alloc(mem, (count_names(staged) + 1) * sizeof *late);
    int dir = vault_stage_dir(v);
    size_t n = 0;

    if (dir < 0 && errno != ENOENT)
        return vault_sys(err, errno, "opening the folder of displaced texts");
    while (dir >= 0 && next_name(&staged, name)) {
        struct vault_file file;
        struct error read_err;
        struct stat st;
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || is_unchanged(v, name, &st))
            continue;
        if (!vault_read_at(v, dir, name, VAULT_READ_ANY_BYTES, mem, &file, &read_err)) {
            if (read_err.code == ERR_NOT_FOUND)
                continue;
            *err = read_err;
            close(dir);
            return false;
        }
        if (is_in_history(v, name, file.sha256)) {
            note_state(v, name, &st);
            continue;
        }
        late[n].bytes = file.bytes;
        late[n].is_ours = false;
        memcpy(late[n++].sha256, file.sha256, 32);
        vault_stage_keep(v, name, file.sha256);
    }
    if (dir >= 0)
        close(dir);
    *ret = late;
    *ret_n = n;
    return true;
}

/* The kernel grants a write lease only if no other process has the file open.  A process that opens
 * the file during the lease makes the kernel send us SIGURG, which does nothing. */
static enum vault_holder holder_of(struct vault *v, int dir, const char *name)
{
    int fd = vault_openat(v, dir, name, VAULT_OPEN_FILE);
    enum vault_holder holder = VAULT_HELD_UNKNOWN;

    if (fd < 0)
        return errno == ENOENT ? VAULT_HELD_BY_NONE : VAULT_HELD_UNKNOWN;
    if (fcntl(fd, F_SETSIG, SIGURG) == 0) {
        if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0)
            holder = VAULT_HELD_BY_NONE;
        else if (errno == EAGAIN)
            holder = VAULT_HELD;
    }
    close(fd); /* releases the lease too */
    return holder;
}

enum vault_holder vault_held(struct vault *v, struct str staged)
{
    char name[VAULT_STAGE_NAME];
    enum vault_holder all = VAULT_HELD_BY_NONE;
    int dir = vault_stage_dir(v);

    if (dir < 0)
        return errno == ENOENT ? VAULT_HELD_BY_NONE : VAULT_HELD_UNKNOWN;
    while (all != VAULT_HELD && next_name(&staged, name)) {
        enum vault_holder one = holder_of(v, dir, name);
        all = one == VAULT_HELD_BY_NONE ? all : one;
    }
    close(dir);
    return all;
}

/* Removes the file only if its text was returned: a later write has still to be returned. */
static void release_one(struct vault *v, int dir, const char *name)
{
    struct arena *mem = arena_new(2 * (VAULT_FILE_MAX + 4096));
    struct vault_file file;
    struct error ignored;

    if (vault_read_at(v, dir, name, VAULT_READ_ANY_BYTES, mem, &file, &ignored) &&
        is_in_history(v, name, file.sha256) && unlinkat(dir, name, 0) == 0)
        forget(v, name);
    arena_free(mem);
}

void vault_release(struct vault *v, struct str staged)
{
    char name[VAULT_STAGE_NAME];
    int dir = vault_stage_dir(v);

    if (dir < 0)
        return;
    while (next_name(&staged, name))
        release_one(v, dir, name);
    close(dir);
    remove_dir_if_empty(v);
}
