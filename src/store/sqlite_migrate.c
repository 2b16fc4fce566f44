/* SPDX-License-Identifier: Apache-2.0 */
/* The migration driver of SQLite.  BEGIN IMMEDIATE is the lock: only its holder can change the
 * schema, and it ends with the transaction or the process. */
#include "store/sqlite_impl.h"

#include "base/clock.h"

/* During a migration SQLite keeps undo data of statements on disk.  In memory, a change of every
 * event of a large database would take too much. */
static const char to_disk[] = "PRAGMA temp_store = FILE",
                  to_memory[] = "PRAGMA temp_store = MEMORY";

static bool failed(sqlite3 *db, struct error *err, const char *doing)
{
    bool busy = (sqlite3_errcode(db) & 0xff) == SQLITE_BUSY;
    return error_set(err, ERR_UNAVAILABLE, "The database failed while %s: %s%s.", doing,
                     sqlite3_errmsg(db), busy ? "; stop the other process that holds it" : "");
}

static bool exec_text(void *arg, const char *sql, const char *doing, struct error *err)
{
    sqlite3 *db = *(sqlite3 **)arg;
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK || failed(db, err, doing);
}

static void on_unpacked(sqlite3_context *call, int n unused_arg, sqlite3_value **args)
{
    struct buf room;
    if (sqlite3_value_type(args[0]) != SQLITE_BLOB) /* deleted bodies stay deleted */
        return;
    buf_init(&room, SIZE_MAX / 4);
    struct str packed = str_n(sqlite3_value_blob(args[0]), (size_t)sqlite3_value_bytes(args[0])),
               plain;
    if (unpack_bytes(packed, &room, &plain))
        sqlite3_result_blob64(call, plain.n ? plain.p : "", plain.n, SQLITE_TRANSIENT);
    else
        sqlite3_result_error(call,
                             "some events are damaged, and what is left of them would be lost; "
                             "keep a copy of the database and run `holdfast audit verify`",
                             -1);
    buf_release(&room);
}

int sq_add_unpacked(sqlite3 *db)
{
    return sqlite3_create_function_v2(db, "unpacked", 1,
                                      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, NULL,
                                      on_unpacked, NULL, NULL, NULL);
}

static bool on_begin(void *arg, struct error *err)
{
    sqlite3 *db = *(sqlite3 **)arg;
    if (sq_add_unpacked(db) != SQLITE_OK)
        return failed(db, err, "preparing a migration");
    return exec_text(arg, to_disk, "preparing a migration", err) &&
           exec_text(arg, "BEGIN IMMEDIATE", "locking the schema", err);
}

static bool on_commit(void *arg, struct error *err)
{
    if (!exec_text(arg, "COMMIT", "committing a migration", err))
        return false;
    sqlite3_exec(*(sqlite3 **)arg, to_memory, NULL, NULL, NULL); /* committed, even if this fails */
    return true;
}

static void on_rollback(void *arg)
{
    sqlite3 *db = *(sqlite3 **)arg;
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_exec(db, to_memory, NULL, NULL, NULL);
}

static bool on_exec(void *arg, struct str sql, struct error *err)
{
    return exec_text(arg, sql.p, "changing the schema", err);
}

/* *ret is the number in the first column of the only row. */
static bool select_number(sqlite3 *db, const char *sql, int *ret, struct error *err)
{
    sqlite3_stmt *st = NULL;
    bool ok =
        sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW;
    if (ok)
        *ret = sqlite3_column_int(st, 0);
    else
        failed(db, err, "reading the schema's number");
    sqlite3_finalize(st);
    return ok;
}

static bool on_version(void *arg, int *ret_number, struct error *err)
{
    sqlite3 *db = *(sqlite3 **)arg;
    int has_table = 0;
    int number = 0;
    if (!select_number(db, "SELECT count(*) FROM sqlite_master WHERE name = 'schema_migrations'",
                       &has_table, err))
        return false;
    if (has_table &&
        !select_number(db, "SELECT coalesce(max(number), 0) FROM schema_migrations", &number, err))
        return false;
    *ret_number = number;
    return true;
}

static bool on_record(void *arg, const struct migration *m, bool applied, struct error *err)
{
    static const char add[] =
        "INSERT INTO schema_migrations (number, name, applied_at) VALUES (?,?,?)";
    static const char drop[] = "DELETE FROM schema_migrations WHERE number = ?";
    sqlite3 *db = *(sqlite3 **)arg;
    sqlite3_stmt *st = NULL;
    bool ok = sqlite3_prepare_v2(db, applied ? add : drop, -1, &st, NULL) == SQLITE_OK;
    if (ok) {
        struct sq_bind b = {.st = st};
        sq_int(&b, m->number);
        if (applied) {
            sq_text(&b, m->name);
            sq_int(&b, clock_wall_ms());
        }
        ok = sqlite3_step(st) == SQLITE_DONE;
    }
    if (!ok)
        failed(db, err, "recording a migration");
    sqlite3_finalize(st);
    return ok;
}

struct migrate_driver sq_migrate_driver(sqlite3 **db)
{
    return (struct migrate_driver){
        .arg = db,
        .begin = on_begin,
        .version = on_version,
        .exec = on_exec,
        .record = on_record,
        .commit = on_commit,
        .rollback = on_rollback,
    };
}
