/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite backend: opening, closing, statements and transactions.
 *
 * Exactly one connection per file reads and writes; only this connection checkpoints.  Readers are
 * opened read-only.  This is necessary: SQLite before 3.51.3 can lose commits when two connections
 * write or checkpoint at the same instant.
 *
 * Durability: WAL with synchronous=FULL, so a returned commit is on the disk.  A failed commit is
 * rolled back and never retried on the same connection, because a second fsync may report success
 * falsely.  The same holds for a checkpoint with a failed sync, although the commit before it
 * stands.  The connection is then broken.  Before the next write it is closed and opened again, the
 * WAL is written and synced once more and copied whole into the database (sqlite_vfs.c says why),
 * and the file is probed. */
#include "store/sqlite_impl.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/metric.h"
#include "store/database.h"
#include "store/sqlite_vfs.h"

#define BUSY_MS 2000
#define CHECKPOINT_FRAMES 1000
#define PAGE_BYTES 8192
/* After a disk failure, reopening is tried after this pause, which doubles up to the second
 * value. */
#define REOPEN_PAUSE_US 100000
#define REOPEN_PAUSE_MAX_US 2000000
/* Virtual machine steps between two looks at the clock while a page is read. */
#define PROGRESS_STEPS 2000

/* Pages of 8 KiB: a batch of events takes several.  sqlite_vfs.c relies on synchronous=FULL. */
/* auto_vacuum only changes a new file, so it comes before everything else that writes. */
static const char writer_pragmas[] = "PRAGMA page_size = 8192;"
                                     "PRAGMA auto_vacuum = INCREMENTAL;"
                                     "PRAGMA journal_mode = WAL;"
                                     "PRAGMA synchronous = FULL;"
                                     "PRAGMA mmap_size = 0;"
                                     "PRAGMA wal_autocheckpoint = 0;" /* see on_committed() */
                                     "PRAGMA journal_size_limit = 67108864;"
                                     "PRAGMA cache_size = -4096;"
                                     "PRAGMA temp_store = MEMORY;"
                                     "PRAGMA trusted_schema = OFF;"
                                     "PRAGMA cell_size_check = ON;"
                                     "PRAGMA foreign_keys = ON;";
static const char reader_pragmas[] = "PRAGMA query_only = ON;"
                                     "PRAGMA mmap_size = 0;"
                                     "PRAGMA wal_autocheckpoint = 0;"
                                     "PRAGMA cache_size = -2048;"
                                     "PRAGMA temp_store = MEMORY;"
                                     "PRAGMA trusted_schema = OFF;"
                                     "PRAGMA cell_size_check = ON;";
/* Checks the small tables whole and the tail of the large one, where a lost write would show.
 * Quick for any size of the file. */
static const char *const reopen_probes[] = {
    "PRAGMA quick_check('fold_state')",
    "PRAGMA quick_check('writers')",
    "PRAGMA quick_check('tenants')",
    ("SELECT CASE WHEN total(records > x'') + total(bodies > x'') >= 0 THEN 'ok' END "
     "FROM (SELECT * FROM events ORDER BY id DESC LIMIT 10)"),
};

/* The advice to the operator for a result code. */
static const struct trouble {
    int rc;
    enum err_code code;
    const char *what_to_do;
} troubles[] = {
    {SQLITE_BUSY, ERR_UNAVAILABLE, "another process holds its lock; stop that process"},
    {SQLITE_LOCKED, ERR_UNAVAILABLE, "another process holds its lock; stop that process"},
    {SQLITE_FULL, ERR_UNAVAILABLE, "the disk is full; free some space in the data directory"},
    {SQLITE_IOERR, ERR_UNAVAILABLE, "the disk reported an error; check it and the system log"},
    {SQLITE_CANTOPEN, ERR_UNAVAILABLE,
     "it cannot be opened; check the data directory and its permissions"},
    {SQLITE_READONLY, ERR_UNAVAILABLE,
     "it is read-only; check the data directory and its permissions"},
    {SQLITE_PERM, ERR_UNAVAILABLE,
     "access was refused; check the data directory and its permissions"},
    {SQLITE_PROTOCOL, ERR_UNAVAILABLE, "another process holds its lock; stop that process"},
    {SQLITE_NOMEM, ERR_UNAVAILABLE, "memory ran out; give the process more"},
    {SQLITE_CORRUPT, ERR_UNAVAILABLE, "it is damaged; restore it from a backup"},
    {SQLITE_NOTADB, ERR_UNAVAILABLE,
     "it is not a database; move it away or restore it from a backup"},
    {SQLITE_INTERRUPT, ERR_TIMEOUT, "the page took too long; ask for a narrower one"},
};

static bool error_of(sqlite3 *db, int rc, struct error *err, const char *doing)
{
    for (size_t i = 0; i < countof(troubles); i++)
        if (troubles[i].rc == (rc & 0xff))
            return error_set(err, troubles[i].code, "The database failed while %s: %s.", doing,
                             troubles[i].what_to_do);
    return error_set(err, ERR_INTERNAL, "The database refused %s (%s); report it.", doing,
                     db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

bool sq_error(struct sqlite_store *s, struct error *err, const char *doing)
{
    int rc = s->db ? sqlite3_errcode(s->db) : SQLITE_CANTOPEN;
    return error_of(s->db, rc, err, doing);
}

char *sq_statement_text(unsigned which)
{
    const char *text =
        which < SQ_COUNT ? sq_texts[which] : sql_statement_text(which - SQ_COUNT, SQL_SQLITE);
    return text ? sql_expand(text, &sql_session, SQL_SQLITE) : NULL;
}

static int prepare(struct sqlite_store *s, unsigned which, sqlite3_stmt **ret)
{
    char *text = sq_statement_text(which);
    int rc = text ? sqlite3_prepare_v3(s->db, text, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL)
                  : SQLITE_ERROR;
    free(text);
    return rc;
}

sqlite3_stmt *sq_prepare(struct sqlite_store *s, unsigned which, struct error *err)
{
    sqlite3_stmt **st = &s->statements[which];
    if (!s->db) {
        sq_error(s, err, "waiting to be opened again");
        return NULL;
    }
    if (!*st && prepare(s, which, st)) {
        sq_error(s, err, "preparing a statement");
        return NULL;
    }
    return *st;
}

void sq_reset(sqlite3_stmt *st)
{
    sqlite3_reset(st);
}

bool sq_step(struct sqlite_store *s, sqlite3_stmt *st, bool *ret_row, struct error *err)
{
    int rc = sqlite3_step(st);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        sq_error(s, err, s->read_only ? "reading" : "running a statement");
        sqlite3_reset(st);
        return false;
    }
    *ret_row = rc == SQLITE_ROW;
    return true;
}

bool sq_run(struct sqlite_store *s, sqlite3_stmt *st, struct error *err)
{
    bool row = false;
    if (!sq_step(s, st, &row, err))
        return false;
    sqlite3_reset(st);
    return true;
}

void sq_text(struct sq_bind *b, struct str s)
{
    if (s.p)
        sqlite3_bind_text64(b->st, ++b->at, s.p, s.n, SQLITE_STATIC, SQLITE_UTF8);
    else
        sqlite3_bind_null(b->st, ++b->at);
}

void sq_blob(struct sq_bind *b, struct str s)
{
    if (s.p)
        sqlite3_bind_blob64(b->st, ++b->at, s.p, s.n, SQLITE_STATIC);
    else
        sqlite3_bind_null(b->st, ++b->at);
}

void sq_sha(struct sq_bind *b, const uint8_t sha[32])
{
    static const uint8_t zero[32];
    sq_blob(b, memcmp(sha, zero, 32) ? str_n((const char *)sha, 32) : STR_NONE);
}

void sq_int(struct sq_bind *b, int64_t i)
{
    sqlite3_bind_int64(b->st, ++b->at, i);
}

void sq_time(struct sq_bind *b, int64_t ms)
{
    if (ms)
        sq_int(b, ms);
    else
        sqlite3_bind_null(b->st, ++b->at);
}

void sq_owner(struct sq_bind *b, const struct principal *who)
{
    sq_text(b, who->tenant_wide ? STR_NONE : who->owner);
}

struct str sq_peek_bytes(struct sq_row *r)
{
    int at = r->at++;
    if (sqlite3_column_type(r->st, at) == SQLITE_NULL)
        return STR_NONE;
    const void *p = sqlite3_column_blob(r->st, at);
    return str_n(p ? p : "", (size_t)sqlite3_column_bytes(r->st, at));
}

struct str sq_get_bytes(struct sq_row *r)
{
    return arena_dup(r->mem, sq_peek_bytes(r));
}

int64_t sq_get_int(struct sq_row *r)
{
    return sqlite3_column_int64(r->st, r->at++);
}

void sq_get_sha(struct sq_row *r, uint8_t ret[32])
{
    int at = r->at++;
    const void *p = sqlite3_column_blob(r->st, at);
    memset(ret, 0, 32);
    if (p && sqlite3_column_bytes(r->st, at) == 32)
        memcpy(ret, p, 32);
}

static void finalize_all(struct sqlite_store *s)
{
    for (size_t i = 0; i < SQ_ALL; i++) {
        sqlite3_finalize(s->statements[i]);
        s->statements[i] = NULL;
    }
}

static void close_db(struct sqlite_store *s)
{
    finalize_all(s);
    sqlite3_close(s->db);
    s->db = NULL;
    sq_unfolded_lose(s);
    sq_events_forget(s);
}

static int on_progress(void *arg)
{
    struct sqlite_store *s = arg;
    return s->deadline_us != 0 && clock_mono_us() > s->deadline_us;
}

/* We make the file instead of SQLite, so that other users can never read it; the WAL gets the same
 * mode.  An existing file is not opened here: when any descriptor of a file is closed, POSIX
 * releases all locks of the process on that file.  Without the lock of our connections another
 * program that closes the database would consider itself the last one and delete our WAL. */
static bool make_file(const char *path, struct error *err)
{
    if (access(path, R_OK | W_OK) == 0)
        return true;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, ERR_UNAVAILABLE, errno, "The database %s cannot be opened", path);
    close(fd);
    return true;
}

static store_handler *handlers[VERB_COUNT];
sq_verb *sq_ops[OP_COUNT];

static void add_ops(const struct sq_op *list)
{
    for (; list->run; list++)
        sq_ops[list->kind] = list->run;
}

static void register_ops(void)
{
    static const struct sq_op *const lists[] = {
        sq_session_ops, sq_registry_ops, sq_key_ops,   sq_secret_ops,     sq_login_ops,
        sq_tool_ops,    sq_size_ops,     sq_write_ops, sq_undelivered_ops};
    for (size_t i = 0; i < countof(lists); i++)
        add_ops(lists[i]);
}

static void register_verbs(void)
{
    static const struct verb_handler own[] = {{VERB_SESSIONS_FIND, store_find_each}, {0}};
    store_handlers_add(handlers, own);
    store_handlers_add(handlers, sq_count_verbs);
    store_handlers_add(handlers, sq_size_verbs);
    store_handlers_add(handlers, sq_registry_verbs);
    store_handlers_add(handlers, sq_event_verbs);
    store_handlers_add(handlers, sq_head_verbs);
    store_handlers_add(handlers, sq_execution_verbs);
    store_handlers_add(handlers, sq_fold_verbs);
    store_handlers_add(handlers, sq_write_verbs);
}

static void register_families(void)
{
    size_t n;
    const struct store_family *const *families = store_families(&n);
    for (size_t i = 0; i < n; i++) {
        add_ops(families[i]->sqlite->ops);
        store_handlers_add(handlers, families[i]->sqlite->verbs);
        sql_texts_add(families[i]->sqlite->texts, SQL_SQLITE, SQ_COUNT);
    }
    for (size_t i = 0; i < OP_COUNT; i++)
        assert(sq_ops[i] || !store_op_infos[i].name);
    for (size_t i = 0; i < VERB_COUNT; i++)
        assert(handlers[i] || !store_verbs[i].name ||
               sql_statement_text(i * SQL_VARIANTS_MAX, SQL_SQLITE));
}

/* Runs once, before SQLite is first used in this process. */
static void configure_library(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* unused, and each allocation locks them */
    sq_vfs_register(SQ_VFS_NAME, NULL);
    register_verbs();
    register_ops();
    register_families();
}

/* The connection must not be used any more.  Logged once, because later failures have the same
 * cause. */
static void distrust(struct sqlite_store *s, int rc)
{
    if (!s->broken && ((rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_FULL))
        log_error("the disk failed during a write to the database; Holdfast records nothing until "
                  "it has opened the database again and written its WAL",
                  LZ("sqlite", sqlite3_errstr(rc)), LI("code", rc));
    s->broken = true;
}

/* Copies the frames that no reader needs from the WAL into the database.  A full disk does not
 * break the connection: commits are in the WAL, and the next checkpoint tries again. */
static bool checkpoint(struct sqlite_store *s, struct error *err)
{
    int rc = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY)
        return true;
    if ((rc & 0xff) != SQLITE_FULL)
        distrust(s, rc);
    return error_of(s->db, rc, err, "copying the WAL into it");
}

/* Checkpoints normally keep the WAL at 8 MiB.  A WAL above the bound is held by a reader, in this
 * or another process, that does not end its transaction.  Logged at the bound and each time the WAL
 * has doubled. */
static void watch_wal(struct sqlite_store *s, int64_t bytes)
{
    int64_t bound = fault_hits("store.wal_bound") ? 1 : SQ_WAL_BOUND;
    metric_set(s->wal_bytes, bytes);
    if (bytes >= (s->wal_warned ? 2 * s->wal_warned : bound)) {
        log_warn("the WAL of the database grows, because a reader keeps a transaction open; end "
                 "programs that read holdfast.db",
                 LI("bytes", bytes));
        s->wal_warned = bytes;
    } else if (s->wal_warned && bytes < bound) {
        log_info("the WAL of the database was copied and is short again", LI("bytes", bytes));
        s->wal_warned = 0;
    }
}

void sq_checkpoint(struct sqlite_store *s)
{
    struct error reported;
    (void)!checkpoint(s, &reported);
}

/* SQLite calls this after each commit.  The commit stands even if the checkpoint fails. */
static int on_committed(void *arg, sqlite3 *db unused_arg, const char *name unused_arg, int frames)
{
    struct sqlite_store *s = arg;
    watch_wal(s, (int64_t)frames * PAGE_BYTES);
    struct error reported; /* reported in the log and by the next write */
    if (frames >= (fault_hits("store.checkpoint") ? 1 : s->checkpoint_frames))
        (void)!checkpoint(s, &reported);
    return SQLITE_OK;
}

/* The previous writer of the WAL may have died, or continued, after a failed sync. */
static int write_wal_again(sqlite3 *db)
{
    int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_file_control(db, "main", SQ_VFS_WRITE_WAL_AGAIN, NULL);
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

static bool open_db(struct sqlite_store *s, struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, configure_library);
    int flags = SQLITE_OPEN_NOMUTEX | (s->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    if (s->read_only && access(s->path, F_OK) != 0)
        return error_set(err, ERR_NOT_FOUND,
                         "There is no database at %s yet; run `holdfast up` first.", s->path);
    if (!s->read_only && !make_file(s->path, err))
        return false;
    int rc = sqlite3_open_v2(s->path, &s->db, flags, SQ_VFS_NAME);
    if (rc == SQLITE_OK) {
        sqlite3_extended_result_codes(s->db, 1);
        sqlite3_busy_timeout(s->db, BUSY_MS);
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        if (s->read_only) {
            sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
            sqlite3_progress_handler(s->db, PROGRESS_STEPS, on_progress, s);
        }
        rc = sqlite3_exec(s->db, s->read_only ? reader_pragmas : writer_pragmas, NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK && !s->read_only)
        rc = write_wal_again(s->db);
    if (rc == SQLITE_OK) {
        if (!s->read_only)
            sqlite3_wal_hook(s->db, on_committed, s);
        return true;
    }
    error_of(s->db, rc, err, "opening");
    close_db(s);
    return false;
}

static bool probe(struct sqlite_store *s, struct error *err)
{
    for (size_t i = 0; i < countof(reopen_probes); i++) {
        sqlite3_stmt *st = NULL;
        bool sound = sqlite3_prepare_v2(s->db, reopen_probes[i], -1, &st, NULL) == SQLITE_OK &&
                     sqlite3_step(st) == SQLITE_ROW && sqlite3_column_text(st, 0) &&
                     strcmp((const char *)sqlite3_column_text(st, 0), "ok") == 0;
        sqlite3_finalize(st);
        if (!sound)
            return error_set(
                err, ERR_UNAVAILABLE,
                "The database failed its check after a failed commit; look at the disk "
                "and the system log.");
    }
    return true;
}

/* Needed because a checkpoint that a reader blocks syncs nothing. */
static bool sync_works(struct sqlite_store *s, struct error *err)
{
    sqlite3_file *file = NULL;
    int rc = sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (rc == SQLITE_OK)
        rc = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
    return rc == SQLITE_OK || error_of(s->db, rc, err, "syncing it");
}

static bool try_to_reopen(struct sqlite_store *s, struct error *err)
{
    close_db(s);
    if (!open_db(s, err))
        return false;
    if (checkpoint(s, err) && sync_works(s, err) && probe(s, err))
        return true;
    close_db(s);
    return false;
}

static bool reopen(struct sqlite_store *s, struct error *err)
{
    int64_t now_us = clock_mono_us();
    if (s->reopen_pause_us && now_us < s->reopen_after_us) {
        *err = s->why;
        return false;
    }
    if (!try_to_reopen(s, &s->why)) {
        int64_t pause_us = 2 * s->reopen_pause_us;
        s->reopen_pause_us = !pause_us                        ? REOPEN_PAUSE_US
                             : pause_us > REOPEN_PAUSE_MAX_US ? REOPEN_PAUSE_MAX_US
                                                              : pause_us;
        s->reopen_after_us = clock_mono_us() + s->reopen_pause_us;
        *err = s->why;
        return false;
    }
    s->broken = false;
    s->reopen_pause_us = 0;
    log_warn("database reopened after a failed commit or sync");
    return true;
}

bool sq_begin(struct sqlite_store *s, struct error *err)
{
    if (s->read_only)
        return error_set(err, ERR_INTERNAL, "A read-only store was asked to write; report it.");
    if (s->broken && !reopen(s, err))
        return false;
    if (fault_hits("store.begin"))
        return error_set(err, ERR_UNAVAILABLE,
                         "The database failed while beginning: fault injected.");
    sqlite3_stmt *st = sq_prepare(s, SQ_BEGIN_WRITE, err);
    return st && sq_run(s, st, err);
}

void sq_rollback(struct sqlite_store *s)
{
    struct error ignored;
    int rc = sqlite3_extended_errcode(s->db);
    sq_unfolded_rollback(s);
    sq_events_forget(s);
    if ((rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_FULL)
        distrust(s, rc);
    if (sqlite3_get_autocommit(s->db))
        return; /* SQLite has already rolled back by itself */
    sqlite3_stmt *st = sq_prepare(s, SQ_ROLLBACK, &ignored);
    if (!st || !sq_run(s, st, &ignored) || !sqlite3_get_autocommit(s->db))
        s->broken = true;
}

bool sq_commit(struct sqlite_store *s, struct error *err)
{
    bool ok;
    if (fault_hits("store.commit")) {
        ok = error_set(err, ERR_UNAVAILABLE,
                       "The database failed while committing: fault injected.");
    } else {
        sqlite3_stmt *st = sq_prepare(s, SQ_COMMIT, err);
        ok = st && sq_run(s, st, err);
    }
    if (ok) {
        sq_unfolded_commit(s);
        return true;
    }
    sq_rollback(s);
    s->broken = true;
    return false;
}

bool sq_begin_read(struct sqlite_store *s, struct error *err)
{
    if (s->broken && !reopen(s, err))
        return false;
    sqlite3_stmt *st = sq_prepare(s, SQ_BEGIN_READ, err);
    return st && sq_run(s, st, err);
}

void sq_end_read(struct sqlite_store *s)
{
    struct error ignored;
    sqlite3_stmt *st = sq_prepare(s, SQ_ROLLBACK, &ignored);
    if (st && !sq_run(s, st, &ignored))
        s->broken = !s->read_only;
}

void sq_page_begin(struct sqlite_store *s)
{
    s->deadline_us = clock_mono_us() + (fault_hits("store.page") ? -1 : STORE_PAGE_MS * 1000);
}

void sq_page_end(struct sqlite_store *s)
{
    s->deadline_us = 0;
}

/* Checkpoints before closing, because SQLite does not report a failed checkpoint of the last
 * connection.  After a failure the WAL stays, and the next start copies it. */
static void checkpoint_last(struct sqlite_store *s)
{
    struct error err;
    if (!s->read_only && s->db && !s->broken && !checkpoint(s, &err))
        log_warn("the WAL could not be copied into the database; the next start copies it",
                 LZ("why", err.text));
}

static void sq_close(struct store *store)
{
    struct sqlite_store *s = sq_of(store);
    checkpoint_last(s);
    close_db(s);
    free(s->unfolded);
    segment_release(&s->segment);
    packer_free(s->packer);
    for (size_t i = 0; i < countof(s->packed); i++)
        buf_release(&s->packed[i]);
    free(s->path);
    free(s->sql_dir);
    free(s);
}

static bool sq_call(struct store *store, struct store_call *c, struct error *err)
{
    store_handler *run = handlers[c->verb];
    return run ? run(store, c, err) : sq_read_call(sq_of(store), c, err);
}

static const struct store_ops sqlite_ops = {
    .name = "sqlite",
    .close = sq_close,
    .write = sq_write,
    .call = sq_call,
};

/* Migrates up to the newest schema.  A read-only store only checks that the schema is the
 * newest. */
static bool migrate_or_check(struct sqlite_store *s, struct error *err)
{
    struct migrations known;
    struct arena *mem = arena_new(1 << 20);
    struct migrate_driver driver = sq_migrate_driver(&s->db);
    int number = 0;
    bool ok = migrate_load("sqlite", s->sql_dir, mem, &known, err);
    if (ok && s->read_only)
        ok = driver.version(driver.arg, &number, err) && migrate_check(&known, number, err);
    else if (ok)
        ok = migrate_up(&driver, &known, err);
    arena_free(mem);
    return ok;
}

static char *copy_of(struct str s)
{
    char *copy = xmalloc(s.n + 1);
    memcpy(copy, s.p, s.n);
    copy[s.n] = '\0';
    return copy;
}

bool sq_open_file(const struct store_config *config, struct sqlite_store **ret, struct error *err)
{
    if (!config->path.p || config->path.n == 0)
        return error_set(err, ERR_CONFIG, "The SQLite store needs a file; set the data directory.");
    struct sqlite_store *s = xcalloc(1, sizeof(*s));
    s->base.ops = &sqlite_ops;
    s->path = copy_of(config->path);
    s->sql_dir = config->sql_dir ? copy_of(str_of(config->sql_dir)) : NULL;
    s->read_only = config->read_only;
    s->checkpoint_frames = CHECKPOINT_FRAMES;
    if (!s->read_only)
        s->wal_bytes =
            metric_cell(metric_register(METRIC_GAUGE, SQ_WAL_METRIC, SQ_WAL_HELP, "", 1), NULL, 0);
    segment_init(&s->segment);
    s->packer = packer_new();
    for (size_t i = 0; i < countof(s->packed); i++)
        buf_init(&s->packed[i], SIZE_MAX / 4);
    if (!open_db(s, err)) {
        sq_close(&s->base);
        return false;
    }
    *ret = s;
    return true;
}

bool store_open_sqlite(const struct store_config *config, struct store **ret, struct error *err)
{
    struct sqlite_store *s = NULL;
    if (!sq_open_file(config, &s, err))
        return false;
    if (!migrate_or_check(s, err)) {
        sq_close(&s->base);
        return false;
    }
    log_debug("database opened", LZ("sqlite", sqlite3_libversion()),
              LZ("mode", s->read_only ? "read-only" : "read-write"));
    *ret = &s->base;
    return true;
}
