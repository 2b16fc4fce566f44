/* SPDX-License-Identifier: Apache-2.0 */
/* Returns the files that a crash left in .holdfast, for the history.  A staged name begins with the
 * hash of its document's path, so the paths of all present documents are hashed and compared. */
#include "base/log.h"
#include "crypto/hash.h"
#include "docs/vault_impl.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define HASH_HEX 16

struct found {
    char name[VAULT_STAGE_NAME];
    struct timespec displaced; /* ctime: renaming sets it */
};
struct found_list {
    struct found *all; /* malloc */
    size_t n, cap;
};

static void add_found(struct found_list *l, int dir, const char *name)
{
    struct stat st;

    if (strlen(name) != VAULT_STAGE_NAME - 1 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(st.st_mode))
        return;
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 16;
        l->all = xrealloc(l->all, l->cap * sizeof *l->all);
    }
    memcpy(l->all[l->n].name, name, VAULT_STAGE_NAME);
    l->all[l->n++].displaced = st.st_ctim;
}

static int by_time(const void *a, const void *b)
{
    const struct timespec *s = &((const struct found *)a)->displaced;
    const struct timespec *t = &((const struct found *)b)->displaced;

    if (s->tv_sec != t->tv_sec)
        return s->tv_sec < t->tv_sec ? -1 : 1;
    return (s->tv_nsec > t->tv_nsec) - (s->tv_nsec < t->tv_nsec);
}

static bool find_all(struct vault *v, struct found_list *l, struct error *err)
{
    int dir = vault_stage_dir(v);
    struct dirent *e;

    if (dir < 0)
        return errno == ENOENT || vault_sys(err, errno, "opening the folder of displaced texts");
    DIR *d = fdopendir(dir);
    if (!d) {
        close(dir);
        return vault_sys(err, errno, "reading the folder of displaced texts");
    }
    while ((e = readdir(d))) {
        if (e->d_name[0] == 'w' && e->d_name[1] == '-')
            unlinkat(dir, e->d_name, 0);
        else
            add_found(l, dir, e->d_name);
    }
    closedir(d);
    if (l->n > 0)
        qsort(l->all, l->n, sizeof *l->all, by_time);
    return true;
}

struct search {
    struct vault_leftover *left;
    size_t n, missing;
    struct arena *mem;
};

static bool match_path(void *arg, const struct vault_visit *visit)
{
    struct search *s = arg;
    uint8_t digest[SHA256_BYTES];
    char hex[HASH_HEX + 1];

    if (visit->is_dir)
        return true;
    sha256(visit->path, digest);
    hex_encode(digest, HASH_HEX / 2, hex);
    for (size_t i = 0; i < s->n; i++) {
        if (s->left[i].path.p || memcmp(s->left[i].staged.p, hex, HASH_HEX) != 0)
            continue;
        s->left[i].path = arena_dup(s->mem, visit->path);
        s->missing--;
    }
    return s->missing > 0;
}

static bool tell(struct vault *v, int dir, const struct found *f, struct arena *mem,
                 struct vault_leftover *ret)
{
    struct arena *one = arena_new(2 * (VAULT_FILE_MAX + 4096));
    struct vault_file file;
    struct error err;
    char hex[HASH_HEX + 1], *copy;

    if (!vault_read_at(v, dir, f->name, VAULT_READ_ANY_BYTES, one, &file, &err)) {
        arena_free(one);
        log_warn("a displaced text cannot be read; look at it by hand", LZ("file", f->name),
                 LZ("why", err.text));
        return false;
    }
    hex_encode(file.sha256, HASH_HEX / 2, hex);
    *ret = (struct vault_leftover){
        .staged = arena_dup(mem, str_of(f->name)),
        .version = {.bytes = STR_NONE,
                    .is_ours = memcmp(f->name + HASH_HEX + 1, hex, HASH_HEX) == 0},
    };
    copy = arena_try_alloc(mem, file.bytes.n + 1);
    if (copy) {
        memcpy(copy, file.bytes.p, file.bytes.n);
        ret->version.bytes = str_n(copy, file.bytes.n);
    }
    arena_free(one);
    memcpy(ret->version.sha256, file.sha256, 32);
    vault_stage_keep(v, f->name, file.sha256);
    return true;
}

static bool list_found(struct vault *v, const struct found_list *l, struct arena *mem,
                       struct vault_leftover **ret, size_t *ret_n, struct error *err)
{
    struct search s = {.mem = mem};
    int dir = vault_stage_dir(v);

    if (dir < 0)
        return vault_sys(err, errno, "opening the folder of displaced texts");
    s.left = arena_zalloc(mem, l->n * sizeof *s.left);
    for (size_t i = 0; i < l->n; i++)
        if (tell(v, dir, &l->all[i], mem, &s.left[s.n]))
            s.n++;
    close(dir);
    s.missing = s.n;
    if (s.n > 0 && !vault_walk(v, STR(""), match_path, &s, err))
        return false;
    *ret = s.left;
    *ret_n = s.n;
    return true;
}

bool vault_recover(struct vault *v, struct arena *mem, struct vault_leftover **ret, size_t *ret_n,
                   struct error *err)
{
    struct found_list l = {0};
    bool ok = find_all(v, &l, err);

    if (ok && l.n > 0) {
        ok = list_found(v, &l, mem, ret, ret_n, err);
    } else if (ok) {
        vault_release(v, STR(""));
        *ret = NULL;
        *ret_n = 0;
    }
    free(l.all);
    return ok;
}
