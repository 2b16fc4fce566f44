/* SPDX-License-Identifier: Apache-2.0 */
/* Links in the index.  A link is stored as the two keys it may mean (docs/links.h), not as its
 * present target: so when a document is created or removed, no other document has to be read again.
 * The first key counts if a document has it, else the second, so backlinks and forward links are
 * lookups in an index. */
#include "docs/index_impl.h"

#include "docs/links.h"

static bool put_link(struct index *x, struct index_side *side, int64_t id, struct str first,
                     struct str second, struct error *err)
{
    sqlite3_stmt *st = index_prepare(x, side, INDEX_PUT_LINK, err);

    if (!st)
        return false;
    sqlite3_bind_int64(st, 1, id);
    index_bind(st, 2, first);
    index_bind(st, 3, second);
    return index_run(x, side, st, err);
}

bool index_links_put(struct index *x, struct index_side *side, int64_t id, struct str path,
                     struct str accepted, struct error *err)
{
    sqlite3_stmt *st = index_prepare(x, side, INDEX_DROP_LINKS, err);
    struct link_found *links = NULL;
    bool ok = st != NULL;

    if (ok) {
        sqlite3_bind_int64(st, 1, id);
        ok = index_run(x, side, st, err);
    }
    struct arena *found = arena_new(SIZE_MAX / 4), *mem = arena_new(SIZE_MAX / 4);
    size_t n = ok ? links_find(accepted, found, &links) : 0;
    for (size_t i = 0; ok && i < n; i++) {
        struct str keys[2] = {STR_NONE, STR_NONE};
        size_t count = links_candidates(path, links[i].target, mem, keys);
        if (count)
            ok = put_link(x, side, id, links_fold(keys[0], mem),
                          count > 1 ? links_fold(keys[1], mem) : STR(""), err);
        arena_reset(mem);
    }
    arena_free(mem);
    arena_free(found);
    return ok;
}

/* Reads rows of one path each, at most INDEX_LINKS_MAX. */
static bool paths_read(struct index *x, struct index_side *side, sqlite3_stmt *st,
                       struct arena *mem, struct str **ret, size_t *ret_n, bool *ret_more,
                       struct error *err)
{
    struct str *paths = arena_alloc(mem, INDEX_LINKS_MAX * sizeof *paths);
    size_t n = 0;
    bool row = false;

    for (;;) {
        if (!index_step(x, side, st, &row, err))
            return false;
        if (!row || n == INDEX_LINKS_MAX)
            break;
        paths[n++] = index_column(st, 0, mem);
    }
    sqlite3_reset(st);
    *ret = paths;
    *ret_n = n;
    *ret_more = row;
    return true;
}

static bool links_read(struct index *x, enum index_statement which, struct str folder,
                       struct str key, struct arena *mem, struct str **ret, size_t *ret_n,
                       bool *ret_more, struct error *err)
{
    struct index_side *side;

    if (!index_enter_reader(x, &side, err))
        return false;
    sqlite3_stmt *st = index_prepare(x, side, which, err);
    bool ok = st != NULL;
    if (ok) {
        index_bind(st, 1, folder);
        index_bind(st, 2, key);
        ok = paths_read(x, side, st, mem, ret, ret_n, ret_more, err);
    }
    index_leave(side);
    return ok;
}

bool index_backlinks(struct index *x, struct str folder, struct str path, struct arena *mem,
                     struct str **ret, size_t *ret_n, bool *ret_more, struct error *err)
{
    return links_read(x, INDEX_BACKLINKS, folder, links_fold(path, mem), mem, ret, ret_n, ret_more,
                      err);
}

bool index_forward_links(struct index *x, struct str folder, struct str path, struct arena *mem,
                         struct str **ret, size_t *ret_n, bool *ret_more, struct error *err)
{
    return links_read(x, INDEX_FORWARD_LINKS, folder, path, mem, ret, ret_n, ret_more, err);
}
