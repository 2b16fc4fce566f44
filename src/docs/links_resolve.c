/* SPDX-License-Identifier: Apache-2.0 */
/* Resolving a link: at most two paths, tried in order.  The index stores the same two paths as
 * keys, so a query for backlinks gives the same answer as following each link. */
#include "docs/links.h"

#include "base/utf8.h"
#include "docs/vault.h"

/* Letters whose small form is a fixed distance away, or the next code in a run of pairs (step 2).
 * The table has the scripts with case that notes are usually written in; other letters are compared
 * as they are. */
static const struct fold {
    uint32_t first, last;
    uint32_t add;
    unsigned step;
} folds[] = {
    {'A', 'Z', 32, 1},     {0xc0, 0xd6, 32, 1},    {0xd8, 0xde, 32, 1},    {0x100, 0x12e, 1, 2},
    {0x132, 0x136, 1, 2},  {0x139, 0x147, 1, 2},   {0x14a, 0x176, 1, 2},   {0x179, 0x17d, 1, 2},
    {0x1cd, 0x1db, 1, 2},  {0x1de, 0x1ee, 1, 2},   {0x1f8, 0x21e, 1, 2},   {0x222, 0x232, 1, 2},
    {0x386, 0x386, 38, 1}, {0x388, 0x38a, 37, 1},  {0x38c, 0x38c, 64, 1},  {0x38e, 0x38f, 63, 1},
    {0x391, 0x3a1, 32, 1}, {0x3a3, 0x3ab, 32, 1},  {0x400, 0x40f, 80, 1},  {0x410, 0x42f, 32, 1},
    {0x460, 0x480, 1, 2},  {0x48a, 0x4be, 1, 2},   {0x4c1, 0x4cd, 1, 2},   {0x4d0, 0x52e, 1, 2},
    {0x531, 0x556, 48, 1}, {0x1e00, 0x1e94, 1, 2}, {0x1ea0, 0x1efe, 1, 2}, {0xff21, 0xff3a, 32, 1},
};

static uint32_t fold_code(uint32_t code)
{
    if (code == 0x178)
        return 0xff;
    for (size_t i = 0; i < countof(folds) && code >= folds[i].first; i++)
        if (code <= folds[i].last && (code - folds[i].first) % folds[i].step == 0)
            return code + folds[i].add;
    return code;
}

/* No letter's small form takes more bytes than the letter, so path.n bytes suffice. */
struct str links_fold(struct str path, struct arena *mem)
{
    char *out = arena_alloc(mem, path.n + 1);
    size_t n = 0;

    for (size_t i = 0, step; i < path.n; i += step) {
        uint32_t code;
        step = utf8_decode(path.p + i, path.p + path.n, &code);
        if (step == 0) {
            out[n++] = path.p[i];
            step = 1;
        } else {
            n += utf8_encode(fold_code(code), out + n);
        }
    }
    out[n] = '\0';
    return str_n(out, n);
}

static struct str folder_of(struct str path)
{
    while (path.n > 0 && path.p[path.n - 1] != '/')
        path.n--;
    return path;
}

static bool ends_in_md(struct str s)
{
    return s.n > 3 && str_ieq(str_n(s.p + s.n - 3, 3), STR(".md"));
}

/* Joins `folder` (ends in '/' or is empty) and `target` to one path without empty, "." and ".."
 * parts.  Absent when the path leads out of the root, names a directory, or is too long for a
 * document. */
static struct str join(struct str folder, struct str target, struct arena *mem)
{
    char out[VAULT_PATH_MAX + 1];
    size_t n = folder.n;

    if (folder.n > VAULT_PATH_MAX || target.n == 0 || target.p[target.n - 1] == '/')
        return STR_NONE;
    memcpy(out, folder.p, folder.n);
    for (struct str rest = target; rest.p;) {
        struct str part = str_split(&rest, '/');
        if (part.n == 0 || str_eq(part, STR(".")))
            continue;
        if (str_eq(part, STR(".."))) {
            if (n == 0)
                return STR_NONE;
            n = folder_of(str_n(out, n - 1)).n;
            continue;
        }
        if (n + part.n > VAULT_PATH_MAX)
            return STR_NONE;
        memcpy(out + n, part.p, part.n);
        n += part.n;
        out[n++] = '/';
    }
    /* The last part is a name, not "." or "..". */
    struct str last = str_n(target.p + folder_of(target).n, target.n - folder_of(target).n);
    if (n == 0 || str_eq(last, STR(".")) || str_eq(last, STR("..")))
        return STR_NONE;
    struct str path = str_n(out, n - 1);
    if (ends_in_md(path))
        return arena_dup(mem, path);
    return n - 1 + 3 > VAULT_PATH_MAX ? STR_NONE : arena_printf(mem, "%.*s.md", STR_ARG(path));
}

size_t links_candidates(struct str source_path, struct str target, struct arena *mem,
                        struct str ret[2])
{
    bool from_root = str_starts(target, STR("/"));
    bool relative = str_starts(target, STR("./")) || str_starts(target, STR("../"));
    struct str folder = folder_of(source_path), path;
    size_t n = 0;

    if (!from_root && (path = join(folder, target, mem)).p)
        ret[n++] = path;
    if ((from_root || (!relative && folder.n > 0)) && (path = join(STR(""), target, mem)).p)
        ret[n++] = path;
    return n;
}

struct str links_resolve(struct str source_path, struct str target,
                         bool (*exists)(void *arg, struct str path, struct str *ret_path),
                         void *arg, struct arena *mem)
{
    struct str candidates[2], path = STR_NONE;
    size_t n = links_candidates(source_path, target, mem, candidates);

    for (size_t i = 0; i < n; i++)
        if (exists(arg, candidates[i], &path))
            return arena_dup(mem, path);
    return STR_NONE;
}
