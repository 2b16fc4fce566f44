/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the directory of a document anew for every act; creates, moves and removes documents in it.
 * A new document is staged whole and then renamed to its path, which must be free
 * (RENAME_NOREPLACE). */
#include "base/utf8.h"
#include "crypto/hash.h"
#include "docs/vault_impl.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static bool not_a_folder(struct error *err)
{
    return error_set(err, ERR_CONFLICT,
                     "a part of the path exists and is not a folder; choose another path");
}

/* Opens the directory `name` in `dir`.  With `make`, creates it if it is missing. */
static int step_into(struct vault *v, int dir, const char *name, bool make)
{
    int next = vault_openat(v, dir, name, VAULT_OPEN_DIR);

    if (next >= 0 || errno != ENOENT || !make)
        return next;
    if (mkdirat(dir, name, 0777) != 0 && errno != EEXIST)
        return -1;
    (void)fsync(dir);
    return vault_openat(v, dir, name, VAULT_OPEN_DIR);
}

bool vault_place_open(struct vault *v, struct str path, bool make_parents, struct vault_place *ret,
                      struct error *err)
{
    struct str rest = path, part = str_split(&rest, '/');
    int dir = vault_openat(v, v->root, ".", VAULT_OPEN_DIR);

    while (dir >= 0 && rest.p) {
        char name[VAULT_NAME_MAX + 1];
        memcpy(name, part.p, part.n);
        name[part.n] = '\0';
        int next = step_into(v, dir, name, make_parents);
        int errnum = errno;
        close(dir);
        errno = errnum;
        dir = next;
        part = str_split(&rest, '/');
    }
    if (dir < 0 && make_parents && (errno == ENOTDIR || errno == ELOOP))
        return not_a_folder(err);
    if (dir < 0)
        return vault_sys(err, errno, "opening a folder");
    ret->dir = dir;
    memcpy(ret->name, part.p, part.n);
    ret->name[part.n] = '\0';
    return true;
}

void vault_place_close(struct vault_place *p)
{
    close(p->dir);
}

/* Sets the error for a failed rename, of a staged text or of a moved document. */
static bool rename_failed(int errnum, struct error *err)
{
    switch (errnum) {
    case EEXIST:
        return error_set(
            err, ERR_CONFLICT,
            "the path exists already; choose another path, or change the document there");
    case EXDEV:
        return error_set(err, ERR_UNAVAILABLE,
                         "the path is on another file system than the folder; serve that one as a "
                         "folder of its own");
    case EINVAL:
    case ENOSYS:
        return error_set(err, ERR_UNAVAILABLE,
                         "the folder's file system cannot rename without replacing; keep the "
                         "documents on a local disk");
    default:
        return vault_sys(err, errnum, "renaming a document");
    }
}

static bool put_in_place(struct vault *v, const char *staged, const struct vault_place *to,
                         struct error *err)
{
    int dir = vault_stage_dir(v);

    if (dir < 0)
        return vault_sys(err, errno, "opening the folder of new texts");
    bool ok = renameat2(dir, staged, to->dir, to->name, RENAME_NOREPLACE) == 0;
    if (!ok)
        rename_failed(errno, err);
    else
        (void)fsync(to->dir);
    close(dir);
    return ok;
}

bool vault_create(struct vault *v, struct str path, struct str bytes, struct error *err)
{
    char staged[VAULT_STAGE_NAME];
    struct vault_place to = {.dir = -1};

    if (!vault_path_check(path, err))
        return false;
    if (bytes.n > VAULT_FILE_MAX)
        return error_set(err, ERR_BAD_INPUT,
                         "a document holds at most %u bytes; split it into smaller ones",
                         VAULT_FILE_MAX);
    if (!utf8_is_valid(bytes))
        return error_set(err, ERR_BAD_INPUT, "the text is not UTF-8; send it as UTF-8");
    if (!vault_place_open(v, path, true, &to, err))
        return false;
    bool ok = vault_stage(v, path, bytes, true, staged, err);
    if (ok) {
        ok = put_in_place(v, staged, &to, err);
        vault_stage_drop(v, staged); /* after a successful rename only the directory is left to
                                      * remove */
    }
    vault_place_close(&to);
    return ok;
}

static bool is_document(struct vault *v, const struct vault_place *p)
{
    struct stat st;
    int fd = vault_openat(v, p->dir, p->name, VAULT_OPEN_FILE);

    if (fd < 0)
        return false;
    bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    close(fd);
    return regular;
}

bool vault_move(struct vault *v, struct str from, struct str to, struct error *err)
{
    struct vault_place old = {.dir = -1}, fresh = {.dir = -1};

    if (!vault_path_check(from, err) || !vault_path_check(to, err) ||
        !vault_place_open(v, from, false, &old, err))
        return false;
    if (!is_document(v, &old)) {
        vault_place_close(&old);
        return vault_sys(err, ENOENT, "");
    }
    bool ok = vault_place_open(v, to, true, &fresh, err);
    if (ok) {
        ok = renameat2(old.dir, old.name, fresh.dir, fresh.name, RENAME_NOREPLACE) == 0 ||
             rename_failed(errno, err);
        /* The new name is synced first: after a crash the file may have two names, but always has
         * one. */
        if (ok && fsync(fresh.dir) == 0)
            (void)fsync(old.dir);
        vault_place_close(&fresh);
    }
    vault_place_close(&old);
    return ok;
}

/* Moves the document to `staged`, and back again if it is not empty. */
static bool take_empty(struct vault *v, const struct vault_place *at, int stage, const char *staged,
                       struct error *err)
{
    uint8_t digest[SHA256_BYTES];

    if (renameat(at->dir, at->name, stage, staged) != 0)
        return vault_sys(err, errno, "removing a document");
    (void)fsync(at->dir);
    if (vault_holds(v, stage, staged, STR(""))) {
        sha256(STR(""), digest);
        vault_stage_keep(v, staged, digest);
        return true;
    }
    if (renameat2(stage, staged, at->dir, at->name, RENAME_NOREPLACE) == 0)
        (void)fsync(at->dir);
    return error_set(err, ERR_CONFLICT,
                     "the document is not empty any more; it was written to meanwhile");
}

bool vault_remove_empty(struct vault *v, struct str path, struct arena *mem, struct str *ret_staged,
                        struct error *err)
{
    char staged[VAULT_STAGE_NAME];
    struct vault_place at = {.dir = -1};
    int stage = -1;

    *ret_staged = STR("");
    if (!vault_path_check(path, err) || !vault_place_open(v, path, false, &at, err))
        return false;
    bool ok = is_document(v, &at) || vault_sys(err, ENOENT, "");
    /* Reserves a name in the stage; the document is then renamed over it. */
    ok = ok && vault_stage(v, path, STR(""), true, staged, err);
    if (ok)
        stage = vault_stage_dir(v);
    if (ok && stage < 0)
        ok = vault_sys(err, errno, "opening the folder of displaced texts");
    ok = ok && take_empty(v, &at, stage, staged, err);
    if (stage >= 0)
        close(stage);
    vault_place_close(&at);
    if (!ok)
        return false;
    if (vault_held(v, str_of(staged)) == VAULT_HELD_BY_NONE)
        vault_release(v, str_of(staged));
    else
        *ret_staged = arena_dup(mem, str_of(staged));
    return true;
}
