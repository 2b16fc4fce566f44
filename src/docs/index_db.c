/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the index: opened, checked, and made anew if it is damaged or of another format.
 *
 * Only the writer's connection writes and checkpoints.  Commits are not synced one by one
 * (synchronous NORMAL): a crash may lose the last commits but never corrupts the file, and a scan
 * at the next start finds the missing documents. */
#include "docs/index_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

#define APPLICATION_ID 0x48644978 /* "HdIx" */
#define FORMAT 2                  /* 2: keys and words are composed (base/unicode.h) */
#define BUSY_MS 2000

#define TEXT_OF_(x) #x
#define TEXT_OF(x) TEXT_OF_(x)

static const char schema[] = "PRAGMA application_id = " TEXT_OF(
    APPLICATION_ID) ";"
                    "PRAGMA journal_mode = WAL;"
                    "BEGIN IMMEDIATE;"
                    "CREATE TABLE documents (id INTEGER PRIMARY KEY, folder TEXT NOT NULL, path "
                    "TEXT NOT NULL,"
                    " key TEXT NOT NULL, title TEXT NOT NULL, size INTEGER NOT NULL, modified_ms "
                    "INTEGER NOT NULL,"
                    " inode INTEGER NOT NULL, sha256 BLOB NOT NULL, UNIQUE (folder, path)) STRICT;"
                    "CREATE INDEX documents_by_key ON documents (folder, key);"
                    "CREATE TABLE links (document INTEGER NOT NULL, first TEXT NOT NULL, second "
                    "TEXT NOT NULL,"
                    " PRIMARY KEY (document, first, second)) STRICT, WITHOUT ROWID;"
                    "CREATE INDEX links_by_first ON links (first);"
                    "CREATE INDEX links_by_second ON links (second);"
                    "CREATE VIRTUAL TABLE words USING fts5(title, path, text,"
                    " tokenize = 'unicode61 remove_diacritics 2');"
                    /* For scans of many documents: fewer, larger segments to merge. */
                    "INSERT INTO words (words, rank) VALUES ('hashsize', 8388608);"
                    "PRAGMA user_version = " TEXT_OF(FORMAT) ";"
                                                             "COMMIT;";

static const char writer_pragmas[] = "PRAGMA synchronous = NORMAL;"
                                     "PRAGMA mmap_size = 0;"
                                     "PRAGMA wal_autocheckpoint = 4000;"
                                     "PRAGMA journal_size_limit = 67108864;"
                                     "PRAGMA cache_size = -8192;"
                                     "PRAGMA temp_store = MEMORY;"
                                     "PRAGMA trusted_schema = OFF;"
                                     "PRAGMA cell_size_check = ON;";
static const char reader_pragmas[] = "PRAGMA query_only = ON;"
                                     "PRAGMA mmap_size = 0;"
                                     "PRAGMA wal_autocheckpoint = 0;"
                                     "PRAGMA cache_size = -4096;"
                                     "PRAGMA temp_store = MEMORY;"
                                     "PRAGMA trusted_schema = OFF;"
                                     "PRAGMA cell_size_check = ON;";

static const char *const texts[INDEX_STATEMENTS] = {
    [INDEX_BEGIN] = "BEGIN IMMEDIATE",
    [INDEX_COMMIT] = "COMMIT",
    [INDEX_ROLLBACK] = "ROLLBACK",
    [INDEX_SAVE] = "SAVEPOINT one",
    [INDEX_RELEASE] = "RELEASE one",
    [INDEX_UNDO] = "ROLLBACK TO one",
    [INDEX_PUT_DOCUMENT] =
        "INSERT INTO documents (folder, path, key, title, size, modified_ms, inode, sha256)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (folder, path) DO UPDATE SET"
        " title = ?4, size = ?5, modified_ms = ?6, inode = ?7, sha256 = ?8 RETURNING id",
    [INDEX_HAS_TEXT] = "SELECT 1 FROM documents WHERE folder = ?1 AND path = ?2 AND sha256 = ?3",
    [INDEX_DROP_WORDS] = "DELETE FROM words WHERE rowid = ?1",
    [INDEX_PUT_WORDS] = "INSERT INTO words (rowid, title, path, text) VALUES (?1, ?2, ?3, ?4)",
    [INDEX_DROP_LINKS] = "DELETE FROM links WHERE document = ?1",
    [INDEX_PUT_LINK] = "INSERT OR IGNORE INTO links VALUES (?1, ?2, ?3)",
    [INDEX_DOCUMENT_ID] = "SELECT id FROM documents WHERE folder = ?1 AND path = ?2",
    [INDEX_DROP_DOCUMENT] = "DELETE FROM documents WHERE id = ?1",
    [INDEX_FOLDER_IDS] = "SELECT id FROM documents WHERE folder = ?1 LIMIT 1",
    [INDEX_KNOWN] = "SELECT path, size, modified_ms, inode, sha256 FROM documents"
                    " WHERE folder = ?1 ORDER BY path",
    [INDEX_FIND_PATH] = "SELECT path FROM documents WHERE folder = ?1 AND key = ?2"
                        " ORDER BY path <> ?3, path LIMIT 1",
    /* The FTS table is the outer loop, in the order of rank; each row then costs one lookup. */
    [INDEX_SEARCH] = "SELECT d.id, d.folder, d.path, d.title, w.rank"
                     " FROM words w CROSS JOIN documents d ON d.id = w.rowid"
                     " WHERE words MATCH ?1 AND w.rank MATCH '" INDEX_RANK "' ORDER BY w.rank",
    [INDEX_SNIPPET] = "SELECT snippet(words, 2, '**', '**', '\xe2\x80\xa6', 24) FROM words"
                      " WHERE words MATCH ?1 AND rowid = ?2",
    [INDEX_BACKLINKS] =
        "SELECT d.path AS path FROM links l CROSS JOIN documents d ON d.id = l.document"
        " WHERE l.first = ?2 AND d.folder = ?1"
        " UNION SELECT d.path FROM links l CROSS JOIN documents d ON d.id = l.document"
        " WHERE l.second = ?2 AND d.folder = ?1 AND NOT EXISTS"
        " (SELECT 1 FROM documents o WHERE o.folder = ?1 AND o.key = l.first)"
        " ORDER BY path LIMIT 1001",
    [INDEX_FORWARD_LINKS] =
        "WITH mine AS (SELECT first, second FROM links WHERE document ="
        " (SELECT id FROM documents WHERE folder = ?1 AND path = ?2))"
        " SELECT o.path AS path FROM mine CROSS JOIN documents o ON o.folder = ?1"
        " AND o.key = mine.first"
        " UNION SELECT o.path FROM mine CROSS JOIN documents o ON o.folder = ?1"
        " AND o.key = mine.second WHERE NOT EXISTS"
        " (SELECT 1 FROM documents p WHERE p.folder = ?1 AND p.key = mine.first)"
        " ORDER BY path LIMIT 1001",
};

static bool is_damage(int rc)
{
    rc &= 0xff;
    return rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB || rc == SQLITE_FORMAT;
}

static bool failed(struct index *x, struct index_side *side, struct error *err)
{
    int rc = sqlite3_errcode(side->db);

    if (is_damage(rc)) {
        atomic_store(&x->damaged, true);
        return error_set(err, ERR_UNAVAILABLE,
                         "The index of documents is damaged, and Holdfast builds it again; try "
                         "again when the documents have been scanned.");
    }
    if ((rc & 0xff) == SQLITE_INTERRUPT)
        return error_set(err, ERR_TIMEOUT, "The search took too long; use fewer or rarer words.");
    return error_set(err, ERR_UNAVAILABLE,
                     "The index of documents failed (%s); check the space and the permissions of "
                     "the data directory.",
                     sqlite3_errmsg(side->db));
}

sqlite3_stmt *index_prepare(struct index *x, struct index_side *side, enum index_statement which,
                            struct error *err)
{
    sqlite3_stmt **st = &side->statements[which];

    if (!*st && sqlite3_prepare_v3(side->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT, st, NULL))
        failed(x, side, err);
    return *st;
}

void index_bind(sqlite3_stmt *st, int at, struct str text)
{
    sqlite3_bind_text64(st, at, text.p ? text.p : "", text.n, SQLITE_STATIC, SQLITE_UTF8);
}

bool index_step(struct index *x, struct index_side *side, sqlite3_stmt *st, bool *ret_row,
                struct error *err)
{
    int rc = sqlite3_step(st);

    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        failed(x, side, err);
        sqlite3_reset(st);
        return false;
    }
    *ret_row = rc == SQLITE_ROW;
    return true;
}

bool index_run(struct index *x, struct index_side *side, sqlite3_stmt *st, struct error *err)
{
    bool row;

    if (!index_step(x, side, st, &row, err))
        return false;
    sqlite3_reset(st);
    return true;
}

struct str index_column(sqlite3_stmt *st, int at, struct arena *mem)
{
    const char *p = (const char *)sqlite3_column_text(st, at);
    return arena_dup(mem, str_n(p ? p : "", p ? (size_t)sqlite3_column_bytes(st, at) : 0));
}

static void side_close(struct index_side *side)
{
    for (size_t i = 0; i < INDEX_STATEMENTS; i++) {
        sqlite3_finalize(side->statements[i]);
        side->statements[i] = NULL;
    }
    sqlite3_close(side->db);
    side->db = NULL;
}

static int side_open(struct index *x, struct index_side *side, const char *pragmas)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2(x->path, &side->db, flags, NULL);

    if (rc)
        return rc;
    sqlite3_extended_result_codes(side->db, 1);
    sqlite3_busy_timeout(side->db, BUSY_MS);
    return sqlite3_exec(side->db, pragmas, NULL, NULL, NULL);
}

static int number_of(sqlite3 *db, const char *sql, int64_t *ret)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

    if (rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        *ret = sqlite3_column_int64(st, 0);
    int end = sqlite3_finalize(st);
    return rc ? rc : end;
}

/* SQLITE_OK: the file is ours and of this format (created now if it was empty), and its tables can
 * be read. */
static int check(sqlite3 *db)
{
    static const char *const probes[] = {"SELECT count(*) FROM (SELECT 1 FROM documents LIMIT 1)",
                                         "SELECT count(*) FROM (SELECT 1 FROM links LIMIT 1)",
                                         "SELECT count(*) FROM (SELECT 1 FROM words LIMIT 1)"};
    int64_t objects = 0, application = 0, format = 0, rows;
    int rc = number_of(db, "SELECT count(*) FROM sqlite_schema", &objects);

    if (rc == SQLITE_OK && objects == 0)
        return sqlite3_exec(db, schema, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = number_of(db, "PRAGMA application_id", &application);
    if (rc == SQLITE_OK)
        rc = number_of(db, "PRAGMA user_version", &format);
    if (rc == SQLITE_OK && (application != APPLICATION_ID || format != FORMAT))
        return SQLITE_FORMAT;
    for (size_t i = 0; rc == SQLITE_OK && i < countof(probes); i++)
        rc = number_of(db, probes[i], &rows);
    return rc == SQLITE_ERROR ? SQLITE_FORMAT : rc; /* a table is missing or differs */
}

static void unlink_files(struct index *x)
{
    static const char *const tails[] = {"", "-wal", "-shm"};
    char name[4096];

    for (size_t i = 0; i < countof(tails); i++)
        if (snprintf(name, sizeof name, "%s%s", x->path, tails[i]) < (int)sizeof name)
            (void)unlink(name);
}

static int both_open(struct index *x)
{
    /* Mode 0600: other users must not read the text of documents. */
    int fd = x->in_memory ? -1 : open(x->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    int rc = side_open(x, &x->writer, writer_pragmas);
    if (rc == SQLITE_OK)
        rc = check(x->writer.db);
    if (rc == SQLITE_OK && !x->in_memory)
        rc = side_open(x, &x->reader, reader_pragmas);
    return rc == SQLITE_ERROR ? SQLITE_FORMAT : rc; /* the header does not match the content */
}

static void both_close(struct index *x)
{
    side_close(&x->reader);
    side_close(&x->writer);
    x->open = 0;
}

/* Opens the file.  Deletes a file that is damaged or not ours and makes it anew, once. */
static bool renew(struct index *x, struct error *err)
{
    int rc = SQLITE_CORRUPT;

    both_close(x);
    if (!atomic_load(&x->damaged))
        rc = both_open(x);
    if (is_damage(rc)) {
        log_warn("the index of documents is damaged or of another format, and is built again",
                 LZ("file", x->path));
        both_close(x);
        unlink_files(x);
        atomic_fetch_add(&x->made, 1);
        rc = both_open(x);
    }
    atomic_store(&x->damaged, rc != SQLITE_OK);
    if (rc == SQLITE_OK)
        return true;
    both_close(x);
    return error_set(err, ERR_UNAVAILABLE,
                     "The index of documents cannot be opened (%s); check the space and the "
                     "permissions of the data directory.",
                     sqlite3_errstr(rc));
}

bool index_is_empty_again(struct index *x, unsigned *seen)
{
    unsigned made = atomic_load(&x->made);
    bool again = made != *seen || atomic_load(&x->damaged);

    *seen = made;
    return again;
}

static bool mend(struct index *x, struct error *err)
{
    bool ok = true;

    pthread_mutex_lock(&x->writer.lock);
    pthread_mutex_lock(&x->reader.lock);
    if (atomic_load(&x->damaged))
        ok = renew(x, err);
    pthread_mutex_unlock(&x->reader.lock);
    pthread_mutex_unlock(&x->writer.lock);
    return ok;
}

static bool enter(struct index *x, struct index_side *side, struct index_side **ret,
                  struct error *err)
{
    if (atomic_load(&x->damaged) && !mend(x, err))
        return false;
    pthread_mutex_lock(&side->lock);
    if (!side->db) { /* another thread failed to renew the file */
        pthread_mutex_unlock(&side->lock);
        return error_set(err, ERR_UNAVAILABLE,
                         "The index of documents cannot be opened; try again later.");
    }
    *ret = side;
    return true;
}

bool index_enter_writer(struct index *x, struct index_side **ret, struct error *err)
{
    return enter(x, &x->writer, ret, err);
}

bool index_enter_reader(struct index *x, struct index_side **ret, struct error *err)
{
    return enter(x, x->in_memory ? &x->writer : &x->reader, ret, err);
}

void index_leave(struct index_side *side)
{
    pthread_mutex_unlock(&side->lock);
}

void index_close(struct index *x)
{
    if (!x)
        return;
    both_close(x);
    pthread_mutex_destroy(&x->writer.lock);
    pthread_mutex_destroy(&x->reader.lock);
    free(x->path);
    free(x);
}

bool index_open(struct str path, struct index **ret, struct error *err)
{
    struct index *x = xcalloc(1, sizeof *x);

    x->path = xcalloc(1, path.n + 1);
    memcpy(x->path, path.p, path.n);
    x->in_memory = str_eq(path, STR(":memory:"));
    pthread_mutex_init(&x->writer.lock, NULL);
    pthread_mutex_init(&x->reader.lock, NULL);
    if (!renew(x, err)) {
        index_close(x);
        return false;
    }
    *ret = x;
    return true;
}
