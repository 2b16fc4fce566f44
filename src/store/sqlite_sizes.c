/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the audit in SQLite (store/sizes.h), and the size of the file. */
#include "store/sqlite_impl.h"

#include <stdio.h>
#include <sys/stat.h>

static bool write_row(struct sqlite_store *s, const struct size_row *row, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_SIZES_ADD, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->tenant);
    sq_int(&b, row->day);
    sq_int(&b, row->events);
    sq_int(&b, row->event_bytes);
    sq_int(&b, row->bodies);
    sq_int(&b, row->body_bytes);
    sq_int(&b, row->first_ms);
    sq_int(&b, row->last_ms);
    return sq_run(s, st, err);
}

static bool drop_empty(struct sqlite_store *s, const struct size_row *row, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_SIZES_DROP, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->tenant);
    sq_int(&b, row->day);
    return sq_run(s, st, err);
}

bool sq_sizes_write(struct sqlite_store *s, struct sizes *sizes, struct error *err)
{
    sizes_sort(sizes);
    for (size_t i = 0; i < sizes->n; i++)
        if (!write_row(s, sizes->rows[i], err) ||
            (sizes->rows[i]->events < 0 && !drop_empty(s, sizes->rows[i], err)))
            return false;
    return true;
}

struct todo {
    int64_t writer, next, last;
};

static bool read_todo(struct sqlite_store *s, struct todo *ret, bool *ret_found, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_SIZES_TODO, err);
    if (!st || !sq_step(s, st, ret_found, err))
        return false;
    struct sq_row r = {.st = st};
    if (*ret_found) {
        ret->writer = sq_get_int(&r);
        ret->next = sq_get_int(&r);
        ret->last = sq_get_int(&r);
    }
    sq_reset(st);
    return true;
}

static bool move_on(struct sqlite_store *s, const struct todo *todo, struct error *err)
{
    bool done = todo->next > todo->last;
    sqlite3_stmt *st = sq_prepare(s, done ? SQ_SIZES_DONE : SQ_SIZES_MOVE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, todo->writer);
    sq_int(&b, todo->next);
    return sq_run(s, st, err);
}

/* Reads up to `max` events of the row, and moves its beginning past them. */
static bool read_some(struct sqlite_store *s, struct todo *todo, size_t max, struct sizes *sizes,
                      struct error *err)
{
    struct sq_events c;
    struct event_row e;
    bool found = true;
    if (!sq_events_open(s, &c, SQ_EVENTS_UP, todo->next, todo->last, true, err))
        return false;
    for (size_t n = 0; n < max; n++) {
        if (!sq_events_next(&c, &e, &found, err))
            return false;
        if (!found)
            break;
        sizes_add(sizes, e.tenant, e.at_ms, event_size_of(&e));
        todo->next = e.id + 1;
    }
    if (!found)
        todo->next = todo->last + 1;
    sq_events_close(&c);
    return true;
}

bool sq_sizes_count(struct sqlite_store *s, size_t max, bool *ret_left, struct error *err)
{
    struct todo todo = {0};
    struct sizes sizes = {0};
    bool ok = read_todo(s, &todo, ret_left, err);
    if (!ok || !*ret_left)
        return ok;
    ok = read_some(s, &todo, max, &sizes, err) && sq_sizes_write(s, &sizes, err) &&
         move_on(s, &todo, err);
    sizes_release(&sizes);
    return ok;
}

/* False for an event that sq_sizes_count() has not come to yet. */
static bool is_counted(struct sqlite_store *s, int64_t id, bool *ret, struct error *err)
{
    bool waits = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_SIZES_HAS, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, id >> EVENT_WRITER_SHIFT);
    sq_int(&b, id);
    if (!sq_run_exists(s, st, &waits, err))
        return false;
    *ret = !waits;
    return true;
}

static bool subtract(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct sizes_gone *gone = op->sizes;
    struct sizes sizes = {0};
    bool ok = true, counted = false;

    for (size_t i = 0; ok && i < gone->n; i++) {
        ok = is_counted(batch->s, gone->rows[i].id, &counted, err);
        if (ok && counted)
            sizes_subtract(&sizes, &gone->rows[i]);
    }
    ok = ok && sq_sizes_write(batch->s, &sizes, err);
    sizes_release(&sizes);
    op->verdict = VERDICT_OK;
    return ok;
}

const struct sq_op sq_size_ops[] = {
    {OP_SIZES_SUBTRACT, subtract},
    {0},
};

static int64_t wal_bytes(const struct sqlite_store *s)
{
    struct stat st;
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s-wal", s->path);
    return n > 0 && (size_t)n < sizeof(path) && stat(path, &st) == 0 ? st.st_size : 0;
}

static bool database_size(struct store *store, struct store_call *c, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct database_size *ret = c->ret;
    bool found = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_DATABASE_SIZE, err);
    if (!st || !sq_step(s, st, &found, err))
        return false;
    struct sq_row r = {.st = st};
    int64_t pages = sq_get_int(&r), unused = sq_get_int(&r), page = sq_get_int(&r);
    *ret = (struct database_size){.bytes = pages * page,
                                  .is_file = true,
                                  .free_bytes = unused * page,
                                  .wal_bytes = wal_bytes(s),
                                  .uncounted = sq_get_int(&r)};
    sq_reset(st);
    return true;
}

const struct verb_handler sq_size_verbs[] = {
    {VERB_DATABASE_SIZE, database_size},
    {0},
};
