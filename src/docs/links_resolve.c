/* SPDX-License-Identifier: Apache-2.0 */
/* Resolving a link: at most two paths, tried in order.  The index stores the same two paths as
 * keys, so a query for backlinks gives the same answer as following each link. */
#include "docs/links.h"

#include "base/unicode.h"
#include "docs/vault.h"

/* Only paths of files that were named by other programs can have no form: then ASCII letters are
 * folded. */
struct str links_fold(struct str path, struct arena *mem)
{
    struct str key = unicode_mapped(path, UNICODE_NAME, mem);

    if (key.p)
        return key;
    char *out = arena_alloc(mem, path.n + 1);
    for (size_t i = 0; i < path.n; i++)
        out[i] = (char)(path.p[i] >= 'A' && path.p[i] <= 'Z' ? path.p[i] + 32 : path.p[i]);
    out[path.n] = '\0';
    return str_n(out, path.n);
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
