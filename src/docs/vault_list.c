/* SPDX-License-Identifier: Apache-2.0 */
/* Walking the tree.  Each directory is opened from its parent's descriptor, so a directory that was
 * replaced by a symlink is not entered.  Documents are examined with fstatat, not opened. */
#include "docs/vault_impl.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct walk {
    struct vault *v;
    vault_visitor *each;
    void *arg;
    bool ended; /* the visitor returned false */
    size_t n;
    char path[VAULT_PATH_MAX + VAULT_NAME_MAX + 2]; /* the current directory; in visits, the
                                                     * entry */
};

static bool walk_dir(struct walk *w, int dir, size_t depth, struct error *err);

/* A directory that vanished meanwhile is skipped.  Only a lack of descriptors or memory fails the
 * walk. */
static bool enter(struct walk *w, int above, const char *name, size_t depth, struct error *err)
{
    int dir = vault_openat(w->v, above, name, VAULT_OPEN_DIR);

    if (dir < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        return vault_sys(err, errno, "opening a folder");
    return dir < 0 || walk_dir(w, dir, depth + 1, err);
}

static void visit_document(struct walk *w, int dir, const char *name)
{
    struct vault_visit visit = {.path = str_n(w->path, w->n), .dir = dir};
    struct error ignored;

    if (!vault_path_check(visit.path, &ignored) ||
        fstatat(dir, name, &visit.st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(visit.st.st_mode))
        return;
    w->ended = !w->each(w->arg, &visit);
}

static bool is_directory(int dir, const struct dirent *e)
{
    struct stat st;

    if (e->d_type != DT_UNKNOWN)
        return e->d_type == DT_DIR;
    return fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool walk_entry(struct walk *w, int dir, const struct dirent *e, size_t depth,
                       struct error *err)
{
    size_t before = w->n, n = strlen(e->d_name);
    bool ok = true;

    if (e->d_name[0] == '.' || w->n + 1 + n > VAULT_PATH_MAX)
        return true;
    if (w->n > 0)
        w->path[w->n++] = '/';
    memcpy(w->path + w->n, e->d_name, n);
    w->n += n;
    if (!is_directory(dir, e))
        visit_document(w, dir, e->d_name);
    else if (depth + 1 < VAULT_DEPTH_MAX)
        ok = enter(w, dir, e->d_name, depth, err);
    w->n = before;
    return ok;
}

/* Takes ownership of `dir`. */
static bool walk_dir(struct walk *w, int dir, size_t depth, struct error *err)
{
    struct vault_visit visit = {.path = str_n(w->path, w->n), .dir = dir, .is_dir = true};
    DIR *d = fdopendir(dir);
    struct dirent *e;
    bool ok = true;

    if (!d) {
        int errnum = errno;
        close(dir);
        return vault_sys(err, errnum, "reading a folder");
    }
    w->ended = !w->each(w->arg, &visit);
    while (ok && !w->ended && (e = readdir(d)))
        ok = walk_entry(w, dir, e, depth, err);
    closedir(d);
    return ok;
}

static size_t depth_of(struct str path)
{
    size_t depth = path.n > 0;

    for (size_t i = 0; i < path.n; i++)
        depth += path.p[i] == '/';
    return depth;
}

bool vault_walk(struct vault *v, struct str path, vault_visitor *each, void *arg, struct error *err)
{
    bool ok = false;

    if (path.n > VAULT_PATH_MAX || depth_of(path) >= VAULT_DEPTH_MAX)
        return true;
    struct walk *w = xcalloc(1, sizeof *w);
    *w = (struct walk){.v = v, .each = each, .arg = arg, .n = path.n};
    if (path.n > 0)
        memcpy(w->path, path.p, path.n);
    int dir = vault_openat(v, v->root, path.n > 0 ? w->path : ".", VAULT_OPEN_DIR);
    if (dir < 0)
        vault_sys(err, errno, "opening a folder");
    else
        ok = walk_dir(w, dir, depth_of(path), err);
    free(w);
    return ok;
}

struct listing {
    struct arena *mem;
    struct vault_entry *entries; /* malloc */
    size_t n, cap;
    bool cut;
};

static bool list_visit(void *arg, const struct vault_visit *visit)
{
    struct listing *l = arg;

    if (visit->is_dir)
        return true;
    if (l->n == VAULT_FILES_MAX) {
        l->cut = true;
        return false;
    }
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 256;
        l->entries = xrealloc(l->entries, l->cap * sizeof *l->entries);
    }
    l->entries[l->n++] = (struct vault_entry){
        .path = arena_dup(l->mem, visit->path),
        .size = visit->st.st_size,
        .modified_ms =
            (int64_t)visit->st.st_mtim.tv_sec * 1000 + visit->st.st_mtim.tv_nsec / 1000000,
        .inode = visit->st.st_ino,
    };
    return true;
}

static int by_path(const void *a, const void *b)
{
    return str_cmp(((const struct vault_entry *)a)->path, ((const struct vault_entry *)b)->path);
}

/* A directory that changes while it is read may return a name twice. */
static size_t drop_twins(struct vault_entry *entries, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (kept == 0 || !str_eq(entries[kept - 1].path, entries[i].path))
            entries[kept++] = entries[i];
    return kept;
}

bool vault_list(struct vault *v, struct arena *mem, struct vault_entry **ret, size_t *ret_n,
                bool *ret_cut, struct error *err)
{
    struct listing l = {.mem = mem};

    if (!vault_is_current(v, err) || !vault_walk(v, STR(""), list_visit, &l, err)) {
        free(l.entries);
        return false;
    }
    if (l.n > 0)
        qsort(l.entries, l.n, sizeof *l.entries, by_path);
    l.n = drop_twins(l.entries, l.n);
    *ret = arena_alloc(mem, (l.n + 1) * sizeof **ret);
    if (l.n > 0)
        memcpy(*ret, l.entries, l.n * sizeof **ret);
    *ret_n = l.n;
    *ret_cut = l.cut;
    free(l.entries);
    return true;
}
