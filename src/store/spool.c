/* SPDX-License-Identifier: Apache-2.0 */
/* The spool is one small SQLite table with a rollback journal and synchronous=FULL, so that a
 * returned write is on the disk.  It is written only while the main store fails, so one fsync per
 * round is fast enough.
 *
 * A failed commit closes the connection, because a second fsync of the same pages may report
 * success falsely.  The next call opens the database again. */
#include "store/spool.h"

#include "base/fault.h"
#include "store/record.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#define SPOOL_VERSION 1
#define BUSY_MS 2000

static const char pragmas[] = "PRAGMA journal_mode = TRUNCATE;"
                              "PRAGMA synchronous = FULL;"
                              "PRAGMA trusted_schema = OFF;"
                              "PRAGMA cell_size_check = ON;";
static const char schema[] = "BEGIN IMMEDIATE;"
                             "CREATE TABLE IF NOT EXISTS outcomes ("
                             " exec INTEGER PRIMARY KEY,"
                             " intent_mac BLOB NOT NULL,"
                             " record BLOB NOT NULL,"
                             " body BLOB,"
                             " kept_id INTEGER,"
                             " kept_session TEXT,"
                             " kept_digest BLOB,"
                             " kept_at INTEGER,"
                             " kept_until INTEGER,"
                             " kept_sealed BLOB"
                             ") STRICT;"
                             "PRAGMA user_version = 1;"
                             "COMMIT;";

#define COLUMNS                                                                                    \
    "exec, intent_mac, record, body, kept_id, kept_session, kept_digest, kept_at, kept_until, "    \
    "kept_sealed"

struct spool {
    char *path;
    sqlite3 *db; /* NULL after a failed commit */
};

static bool failed(struct spool *s, struct error *err, const char *doing)
{
    int rc = s->db ? sqlite3_errcode(s->db) & 0xff : SQLITE_CANTOPEN;
    bool damaged = rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB;
    return error_set(err, damaged ? ERR_CONFIG : ERR_UNAVAILABLE, "%s failed while %s: %s; %s",
                     s->path, doing, s->db ? sqlite3_errmsg(s->db) : "it cannot be opened",
                     damaged ? "restore it from a backup, or move it away and look up in the audit "
                               "which calls are left without an outcome"
                             : "check the disk and the permissions of the data directory");
}

static bool run(struct spool *s, const char *sql, const char *doing, struct error *err)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK || failed(s, err, doing);
}

/* *ret is the first column of the only row. */
static bool ask(struct spool *s, const char *sql, int64_t *ret, struct error *err)
{
    sqlite3_stmt *st = NULL;
    bool ok = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) == SQLITE_OK &&
              sqlite3_step(st) == SQLITE_ROW;
    if (ok)
        *ret = sqlite3_column_int64(st, 0);
    else
        failed(s, err, "reading");
    sqlite3_finalize(st);
    return ok;
}

static void close_db(struct spool *s)
{
    sqlite3_close(s->db);
    s->db = NULL;
}

/* Makes the file with mode 0600 before SQLite opens it, so that other users can never read it. */
static bool open_db(struct spool *s, struct error *err)
{
    int64_t version = 0;
    int fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_sys(err, ERR_UNAVAILABLE, errno, "%s cannot be opened", s->path);
    close(fd);
    if (sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL))
        return failed(s, err, "opening");
    sqlite3_busy_timeout(s->db, BUSY_MS);
    if (!run(s, pragmas, "opening", err) || !ask(s, "PRAGMA user_version", &version, err))
        return false;
    if (version > SPOOL_VERSION)
        return error_set(
            err, ERR_CONFIG,
            "%s was written by a newer Holdfast; start that version once, or move the file away",
            s->path);
    return version == SPOOL_VERSION || run(s, schema, "opening", err);
}

bool spool_open(struct str path, struct spool **ret, struct error *err)
{
    struct spool *s = xcalloc(1, sizeof(*s));
    s->path = xmalloc(path.n + 1);
    memcpy(s->path, path.p, path.n);
    s->path[path.n] = '\0';
    if (!open_db(s, err)) {
        spool_close(s);
        return false;
    }
    *ret = s;
    return true;
}

void spool_close(struct spool *s)
{
    if (!s)
        return;
    close_db(s);
    free(s->path);
    free(s);
}

static bool ready(struct spool *s, struct error *err)
{
    if (s->db)
        return true;
    if (open_db(s, err))
        return true;
    close_db(s);
    return false;
}

static void bind_bytes(sqlite3_stmt *st, int at, struct str bytes)
{
    if (bytes.p)
        sqlite3_bind_blob64(st, at, bytes.p, bytes.n, SQLITE_STATIC);
    else
        sqlite3_bind_null(st, at);
}

static void bind_undelivered(sqlite3_stmt *st, int at, const struct undelivered_row *u)
{
    if (u->id == 0)
        return; /* unbound parameters are NULL */
    sqlite3_bind_int64(st, at, u->id);
    sqlite3_bind_text64(st, at + 1, u->session_id.p, u->session_id.n, SQLITE_STATIC, SQLITE_UTF8);
    bind_bytes(st, at + 2, str_n((const char *)u->digest, sizeof(u->digest)));
    sqlite3_bind_int64(st, at + 3, u->created_ms);
    sqlite3_bind_int64(st, at + 4, u->expires_ms);
    bind_bytes(st, at + 5, u->sealed);
}

static bool put_one(sqlite3_stmt *st, const struct spooled *one)
{
    struct event_row e = one->event;
    e.id = e.seq = 0; /* set when the main store takes the event */
    char *record = xmalloc(record_room(&e));
    size_t n = record_write(&e, record);
    sqlite3_bind_int64(st, 1, e.exec);
    bind_bytes(st, 2, str_n((const char *)one->intent_mac, sizeof(one->intent_mac)));
    bind_bytes(st, 3, str_n(record, n));
    bind_bytes(st, 4, e.body);
    bind_undelivered(st, 5, &one->undelivered);
    bool ok = sqlite3_step(st) == SQLITE_DONE;
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    free(record);
    return ok;
}

static bool take_one(sqlite3_stmt *st, int64_t exec)
{
    sqlite3_bind_int64(st, 1, exec);
    bool ok = sqlite3_step(st) == SQLITE_DONE;
    sqlite3_reset(st);
    return ok;
}

static bool apply(struct spool *s, const struct spool_change *changes, size_t n)
{
    static const char put[] = "INSERT INTO outcomes (" COLUMNS ") "
                              "VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING";
    static const char take[] = "DELETE FROM outcomes WHERE exec = ?";
    sqlite3_stmt *put_st = NULL, *take_st = NULL;
    bool ok = sqlite3_prepare_v2(s->db, put, -1, &put_st, NULL) == SQLITE_OK &&
              sqlite3_prepare_v2(s->db, take, -1, &take_st, NULL) == SQLITE_OK;
    for (size_t i = 0; ok && i < n; i++)
        ok = changes[i].put ? put_one(put_st, changes[i].put) : take_one(take_st, changes[i].exec);
    sqlite3_finalize(put_st);
    sqlite3_finalize(take_st);
    return ok;
}

bool spool_write(struct spool *s, const struct spool_change *changes, size_t n, struct error *err)
{
    if (!ready(s, err) || !run(s, "BEGIN IMMEDIATE", "beginning", err))
        return false;
    bool ok = apply(s, changes, n) || failed(s, err, "writing");
    ok = ok && (!fault_hits("spool.commit") ||
                error_set(err, ERR_UNAVAILABLE, "The spool failed: fault injected."));
    ok = ok && run(s, "COMMIT", "committing", err);
    if (!ok)
        close_db(s); /* closing rolls back */
    return ok;
}

static struct str column(sqlite3_stmt *st, int at, struct arena *mem)
{
    if (sqlite3_column_type(st, at) == SQLITE_NULL)
        return STR_NONE;
    const void *p = sqlite3_column_blob(st, at);
    return arena_dup(mem, str_n(p ? p : "", (size_t)sqlite3_column_bytes(st, at)));
}

static bool read_undelivered(sqlite3_stmt *st, struct arena *mem, struct spooled *ret)
{
    struct undelivered_row *u = &ret->undelivered;
    struct str digest = column(st, 6, mem);
    u->id = sqlite3_column_int64(st, 4);
    if (u->id == 0)
        return true;
    u->tenant = ret->event.tenant;
    u->owner = ret->event.owner;
    u->exec = ret->event.exec;
    u->session_id = column(st, 5, mem);
    u->created_ms = sqlite3_column_int64(st, 7);
    u->expires_ms = sqlite3_column_int64(st, 8);
    u->sealed = column(st, 9, mem);
    u->sealed_len = (int64_t)u->sealed.n;
    if (digest.n != sizeof(u->digest) || !u->sealed.p || !u->session_id.p)
        return false;
    memcpy(u->digest, digest.p, digest.n);
    return true;
}

static bool read_one(sqlite3_stmt *st, struct arena *mem, struct spooled *ret)
{
    int64_t exec = sqlite3_column_int64(st, 0);
    struct str mac = column(st, 1, mem);
    if (mac.n != sizeof(ret->intent_mac) || !record_read(0, column(st, 2, mem), &ret->event) ||
        ret->event.exec != exec || ret->event.kind != EVENT_OUTCOME)
        return false;
    memcpy(ret->intent_mac, mac.p, mac.n);
    ret->event.body = column(st, 3, mem);
    return read_undelivered(st, mem, ret);
}

bool spool_page(struct spool *s, int64_t after, unsigned limit, struct arena *mem,
                struct spooled **ret, size_t *ret_n, struct error *err)
{
    struct spooled *list = arena_zalloc(mem, limit * sizeof(*list));
    sqlite3_stmt *st = NULL;
    size_t n = 0;
    int rc = SQLITE_ERROR;
    bool sound = true;
    if (!ready(s, err))
        return false;
    if (sqlite3_prepare_v2(s->db,
                           "SELECT " COLUMNS " FROM outcomes WHERE exec > ? "
                           "ORDER BY exec LIMIT ?",
                           -1, &st, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(st, 1, after);
        sqlite3_bind_int64(st, 2, limit);
        while (sound && (rc = sqlite3_step(st)) == SQLITE_ROW)
            sound = read_one(st, mem, &list[n++]);
    }
    bool ok = sound && (rc == SQLITE_DONE || failed(s, err, "reading"));
    sqlite3_finalize(st);
    if (!sound)
        return error_set(
            err, ERR_CONFIG,
            "%s contains a row that is not an outcome; restore it from a backup, or move it away",
            s->path);
    if (!ok)
        return false;
    *ret = list;
    *ret_n = n;
    return true;
}

bool spool_count(struct spool *s, int64_t *ret, struct error *err)
{
    return ready(s, err) && ask(s, "SELECT count(*) FROM outcomes", ret, err);
}
