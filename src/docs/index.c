/* SPDX-License-Identifier: Apache-2.0 */
/* Puts documents into the index and removes them.  Each put or remove is atomic: it has a
 * savepoint, inside a transaction if one is open. */
#include "docs/index_impl.h"

#include "docs/links.h"

static bool run(struct index *x, struct index_side *side, enum index_statement which,
                struct error *err)
{
    sqlite3_stmt *st = index_prepare(x, side, which, err);
    return st && index_run(x, side, st, err);
}

static bool run_on(struct index *x, struct index_side *side, enum index_statement which, int64_t id,
                   struct error *err)
{
    sqlite3_stmt *st = index_prepare(x, side, which, err);

    if (!st)
        return false;
    sqlite3_bind_int64(st, 1, id);
    return index_run(x, side, st, err);
}

/* Runs a statement over (folder, path) that returns one number; 0: no row. */
static bool id_of(struct index *x, struct index_side *side, enum index_statement which,
                  struct str folder, struct str path, int64_t *ret, struct error *err)
{
    sqlite3_stmt *st = index_prepare(x, side, which, err);
    bool row;

    if (!st)
        return false;
    index_bind(st, 1, folder);
    if (path.p)
        index_bind(st, 2, path);
    if (!index_step(x, side, st, &row, err))
        return false;
    *ret = row ? sqlite3_column_int64(st, 0) : 0;
    sqlite3_reset(st);
    return true;
}

static bool put_document(struct index *x, struct index_side *side, const struct index_document *d,
                         struct str key, struct str title, int64_t *ret_id, struct error *err)
{
    sqlite3_stmt *st = index_prepare(x, side, INDEX_PUT_DOCUMENT, err);
    bool row;

    if (!st)
        return false;
    index_bind(st, 1, d->folder);
    index_bind(st, 2, d->path);
    index_bind(st, 3, key);
    index_bind(st, 4, title);
    sqlite3_bind_int64(st, 5, d->size);
    sqlite3_bind_int64(st, 6, d->modified_ms);
    sqlite3_bind_int64(st, 7, (int64_t)d->inode);
    sqlite3_bind_blob(st, 8, d->sha256, sizeof d->sha256, SQLITE_STATIC);
    if (!index_step(x, side, st, &row, err))
        return false;
    *ret_id = sqlite3_column_int64(st, 0);
    /* Run to the end: only then is the row certain to be written. */
    return index_run(x, side, st, err);
}

static bool put_words(struct index *x, struct index_side *side, int64_t id, struct str title,
                      struct str path, struct str text, struct error *err)
{
    sqlite3_stmt *st = index_prepare(x, side, INDEX_PUT_WORDS, err);

    if (!st)
        return false;
    sqlite3_bind_int64(st, 1, id);
    index_bind(st, 2, title);
    index_bind(st, 3, path);
    index_bind(st, 4, text);
    return index_run(x, side, st, err);
}

/* Whether the index already has the words and links of exactly these bytes. */
static bool has_text(struct index *x, struct index_side *side, const struct index_document *d,
                     bool *ret, struct error *err)
{
    sqlite3_stmt *st = index_prepare(x, side, INDEX_HAS_TEXT, err);

    if (!st)
        return false;
    index_bind(st, 1, d->folder);
    index_bind(st, 2, d->path);
    sqlite3_bind_blob(st, 3, d->sha256, sizeof d->sha256, SQLITE_STATIC);
    if (!index_step(x, side, st, ret, err))
        return false;
    sqlite3_reset(st);
    return true;
}

static bool put(struct index *x, struct index_side *side, const struct index_document *d,
                struct str accepted, struct error *err)
{
    struct arena *mem = arena_new(1 << 16);
    struct str title = index_title(d->path, accepted);
    int64_t id = 0;
    bool known = false;
    bool ok = has_text(x, side, d, &known, err) &&
              put_document(x, side, d, links_fold(d->path, mem), title, &id, err);

    if (ok && !known)
        ok = run_on(x, side, INDEX_DROP_WORDS, id, err) &&
             put_words(x, side, id, index_composed(title, mem), index_composed(d->path, mem),
                       index_composed(accepted, mem), err) &&
             index_links_put(x, side, id, d->path, accepted, err);

    arena_free(mem);
    return ok;
}

static bool drop(struct index *x, struct index_side *side, int64_t id, struct error *err)
{
    return run_on(x, side, INDEX_DROP_WORDS, id, err) &&
           run_on(x, side, INDEX_DROP_LINKS, id, err) &&
           run_on(x, side, INDEX_DROP_DOCUMENT, id, err);
}

/* Ends the savepoint of INDEX_SAVE.  With !ok it is rolled back, and err stays unchanged. */
static bool end_savepoint(struct index *x, struct index_side *side, bool ok, struct error *err)
{
    struct error ignored;

    if (ok && run(x, side, INDEX_RELEASE, err))
        return true;
    if (!sqlite3_get_autocommit(side->db) && run(x, side, INDEX_UNDO, &ignored))
        (void)run(x, side, INDEX_RELEASE, &ignored);
    return false;
}

bool index_put(struct index *x, const struct index_document *d, struct str accepted,
               struct error *err)
{
    struct index_side *side;

    if (!index_enter_writer(x, &side, err))
        return false;
    bool ok = run(x, side, INDEX_SAVE, err);
    if (ok)
        ok = end_savepoint(x, side, put(x, side, d, accepted, err), err);
    index_leave(side);
    return ok;
}

bool index_remove(struct index *x, struct str folder, struct str path, struct error *err)
{
    struct index_side *side;
    int64_t id = 0;

    if (!index_enter_writer(x, &side, err))
        return false;
    bool ok = id_of(x, side, INDEX_DOCUMENT_ID, folder, path, &id, err);
    if (ok && id != 0) {
        ok = run(x, side, INDEX_SAVE, err);
        if (ok)
            ok = end_savepoint(x, side, drop(x, side, id, err), err);
    }
    index_leave(side);
    return ok;
}

static bool drop_folder(struct index *x, struct index_side *side, struct str folder,
                        struct error *err)
{
    for (;;) {
        int64_t id = 0;
        if (!id_of(x, side, INDEX_FOLDER_IDS, folder, STR_NONE, &id, err))
            return false;
        if (id == 0)
            return true;
        if (!drop(x, side, id, err))
            return false;
    }
}

bool index_remove_folder(struct index *x, struct str folder, struct error *err)
{
    struct index_side *side;

    if (!index_enter_writer(x, &side, err))
        return false;
    bool ok = run(x, side, INDEX_SAVE, err);
    if (ok)
        ok = end_savepoint(x, side, drop_folder(x, side, folder, err), err);
    index_leave(side);
    return ok;
}

bool index_begin(struct index *x, struct error *err)
{
    struct index_side *side;

    if (!index_enter_writer(x, &side, err))
        return false;
    bool ok = x->open > 0 || run(x, side, INDEX_BEGIN, err);
    x->open += ok;
    index_leave(side);
    return ok;
}

/* A failed commit loses all changes of the transaction; the next scan finds what is missing. */
bool index_commit(struct index *x, struct error *err)
{
    struct index_side *side;
    struct error ignored;
    bool ok = true;

    if (!index_enter_writer(x, &side, err))
        return false;
    if (x->open == 0 || sqlite3_get_autocommit(side->db)) {
        ok = error_set(err, ERR_UNAVAILABLE,
                       "The index of documents lost its entries; scan the documents again.");
    } else if (x->open == 1) {
        ok = run(x, side, INDEX_COMMIT, err);
        if (!ok && !sqlite3_get_autocommit(side->db))
            (void)run(x, side, INDEX_ROLLBACK, &ignored);
        sqlite3_db_release_memory(side->db);
    }
    x->open -= x->open > 0;
    index_leave(side);
    return ok;
}

static void known_read(sqlite3_stmt *st, struct str folder, struct arena *mem,
                       struct index_document *ret)
{
    *ret = (struct index_document){.folder = folder,
                                   .path = index_column(st, 0, mem),
                                   .size = sqlite3_column_int64(st, 1),
                                   .modified_ms = sqlite3_column_int64(st, 2),
                                   .inode = (uint64_t)sqlite3_column_int64(st, 3)};
    if (sqlite3_column_bytes(st, 4) == (int)sizeof ret->sha256)
        memcpy(ret->sha256, sqlite3_column_blob(st, 4), sizeof ret->sha256);
}

static bool known_rows(struct index *x, struct index_side *side, sqlite3_stmt *st,
                       struct str folder, struct arena *mem, struct index_document **ret,
                       size_t *ret_n, struct error *err)
{
    struct index_document *all = NULL;
    size_t n = 0, cap = 0;
    bool row = true;

    for (;;) {
        if (!index_step(x, side, st, &row, err))
            return false;
        if (!row)
            break;
        if (n == cap) {
            size_t more = cap ? cap * 2 : 64;
            struct index_document *grown = arena_alloc(mem, more * sizeof *grown);
            if (n)
                memcpy(grown, all, n * sizeof *grown);
            all = grown;
            cap = more;
        }
        known_read(st, folder, mem, &all[n++]);
    }
    sqlite3_reset(st);
    *ret = all;
    *ret_n = n;
    return true;
}

bool index_known(struct index *x, struct str folder, struct arena *mem, struct index_document **ret,
                 size_t *ret_n, struct error *err)
{
    struct index_side *side;

    if (!index_enter_reader(x, &side, err))
        return false;
    sqlite3_stmt *st = index_prepare(x, side, INDEX_KNOWN, err);
    bool ok = st != NULL;
    if (ok) {
        index_bind(st, 1, folder);
        ok = known_rows(x, side, st, arena_dup(mem, folder), mem, ret, ret_n, err);
    }
    index_leave(side);
    return ok;
}

bool index_find_path(struct index *x, struct str folder, struct str path, struct arena *mem,
                     struct str *ret, struct error *err)
{
    struct index_side *side;
    bool row = false;

    if (!index_enter_reader(x, &side, err))
        return false;
    sqlite3_stmt *st = index_prepare(x, side, INDEX_FIND_PATH, err);
    bool ok = st != NULL;
    if (ok) {
        index_bind(st, 1, folder);
        index_bind(st, 2, links_fold(path, mem));
        index_bind(st, 3, path);
        ok = index_step(x, side, st, &row, err);
    }
    if (ok) {
        *ret = row ? index_column(st, 0, mem) : STR_NONE;
        sqlite3_reset(st);
    }
    index_leave(side);
    return ok;
}
