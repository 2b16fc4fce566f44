/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's VFS: it changes no byte; and if a write or a sync fails, the process dies or another
 * connection reads, no acknowledged commit is missing and no reader sees half of one. */
#include "store_files.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "recording_vfs.h"

#include "store/sqlite_impl.h"
#include "store/sqlite_vfs.h"

#define UNDER_TEST "under-test"

/* Bodies of every length, so that pages fill unevenly; table b grows in its middle, so that pages
 * that are no neighbours change too. */
#define BODY "substr(replace(hex(zeroblob(900)), '0', char(97 + id % 26)), 1, 90 + id * 37 % 1500)"
static const char schema_sql[] = "CREATE TABLE a(id INTEGER PRIMARY KEY, body TEXT);"
                                 "CREATE TABLE b(id TEXT PRIMARY KEY) WITHOUT ROWID;"
                                 "CREATE TABLE total(n INTEGER);"
                                 "INSERT INTO total VALUES (0);";
static const char insert_sql[] =
    "WITH RECURSIVE many(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM many WHERE i < 3),"
    " ids(id) AS (SELECT 3 * n + i FROM many, total)"
    "INSERT INTO a SELECT id, " BODY " FROM ids;"
    "INSERT INTO b SELECT hex(n * 7919 % 1000) || n FROM total;"
    "UPDATE total SET n = n + 1;";
/* The number of commits, or -1 when what they wrote is not all there or not whole. */
static const char check_sql[] =
    "SELECT CASE WHEN (SELECT count(*) FROM a) = 3 * n AND (SELECT count(*) FROM b) = n"
    " AND NOT EXISTS (SELECT 1 FROM a WHERE body <> " BODY ") THEN n ELSE -1 END FROM total";

static void set_up(struct files *f)
{
    recording_register();
    if (!sqlite3_vfs_find(UNDER_TEST))
        sq_vfs_register(UNDER_TEST, RECORDING_VFS);
    recording_reset();
    files_init(f);
}

static int run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static sqlite3 *open_on(const char *path, const char *vfs, const char *pragmas)
{
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    assert_int_equal(sqlite3_open_v2(path, &db, flags, vfs), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(run(db, pragmas), SQLITE_OK);
    return db;
}

static sqlite3 *open_writer(const char *path, const char *vfs, const char *pragmas)
{
    sqlite3 *db = open_on(path, vfs, pragmas);
    assert_int_equal(run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"), SQLITE_OK);
    return db;
}

static int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st = NULL;
    int64_t answer = -2;
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        answer = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return answer;
}

static int64_t check_beside(const char *path)
{
    sqlite3 *db = open_on(path, RECORDING_VFS, "PRAGMA wal_autocheckpoint = 0");
    int64_t n = ask(db, check_sql);
    sqlite3_close(db);
    return n;
}

static bool is_sound(sqlite3 *db)
{
    return ask(db, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'") ==
           0;
}

/* Rolls back what failed, so that its code has to be kept. */
static int end_commit(sqlite3 *db, int rc)
{
    if (rc == SQLITE_OK)
        rc = run(db, "COMMIT");
    if (rc != SQLITE_OK)
        run(db, "ROLLBACK");
    return rc;
}

static int commit_one(sqlite3 *db)
{
    int rc = run(db, "BEGIN IMMEDIATE");
    return end_commit(db, rc == SQLITE_OK ? run(db, insert_sql) : rc);
}

/* More than a small cache holds, read before it is committed. */
static int commit_many(sqlite3 *db, int n)
{
    int rc = run(db, "BEGIN IMMEDIATE");
    int64_t before = ask(db, "SELECT n FROM total");
    for (int i = 0; rc == SQLITE_OK && i < n; i++)
        rc = run(db, insert_sql);
    if (rc == SQLITE_OK && ask(db, check_sql) != before + n)
        rc = sqlite3_errcode(db);
    return end_commit(db, rc);
}

static char *read_whole(const char *path, size_t *ret_n)
{
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    fseek(in, 0, SEEK_END);
    *ret_n = (size_t)ftell(in);
    rewind(in);
    char *bytes = xmalloc(*ret_n + 1);
    assert_int_equal(fread(bytes, 1, *ret_n, in), *ret_n);
    fclose(in);
    return bytes;
}

struct tally {
    int commit_writes, commit_syncs, checkpoint_writes, checkpoint_syncs;
    char *bytes; /* the database in the end */
    size_t n;
};

/* One commit as under load, then a checkpoint of many. */
static struct tally tally_on(const char *vfs)
{
    struct files f;
    struct tally t = {0};
    set_up(&f);
    sqlite3 *db = open_writer(f.db, vfs, "PRAGMA page_size = 8192; PRAGMA wal_autocheckpoint = 0");
    assert_int_equal(run(db, schema_sql), SQLITE_OK);
    assert_int_equal(commit_one(db), SQLITE_OK);
    recording_reset();
    assert_int_equal(commit_many(db, 20), SQLITE_OK);
    t.commit_writes = recording.writes[RECORDED_WAL];
    t.commit_syncs = recording.syncs[RECORDED_WAL];
    for (int i = 0; i < 9; i++)
        assert_int_equal(commit_many(db, 20), SQLITE_OK);
    recording_reset();
    assert_int_equal(run(db, "PRAGMA wal_checkpoint"), SQLITE_OK);
    t.checkpoint_writes = recording.writes[RECORDED_DB];
    t.checkpoint_syncs = recording.syncs[RECORDED_DB];
    t.bytes = read_whole(f.db, &t.n);
    sqlite3_close(db);
    files_release(&f);
    return t;
}

TEST(test_sqlite_vfs__passes_every_write_and_sync_on_unchanged)
{
    struct tally plain = tally_on(RECORDING_VFS), passed = tally_on(UNDER_TEST);
    assert_int_equal(passed.commit_writes, plain.commit_writes);
    assert_int_equal(passed.commit_syncs, plain.commit_syncs);
    assert_int_equal(passed.checkpoint_writes, plain.checkpoint_writes);
    assert_int_equal(passed.checkpoint_syncs, plain.checkpoint_syncs);
    assert_int_equal(passed.n, plain.n);
    assert_memory_equal(passed.bytes, plain.bytes, plain.n);
    free(plain.bytes);
    free(passed.bytes);
}

#define AT_ONCE 7
/* Small pages and a cache of few, so that a short run has spills, restarts of the WAL and
 * checkpoints of many writes. */
static const char small_pragmas[] = "PRAGMA page_size = 1024; PRAGMA cache_size = 6;"
                                    "PRAGMA wal_autocheckpoint = 25";

/* Until something fails or all is done; the number of commits that were acknowledged. */
static int64_t run_commits(sqlite3 *db, int *ret_rc)
{
    int64_t acked = 0;
    *ret_rc = SQLITE_OK;
    for (int i = 0; i < 8 && *ret_rc == SQLITE_OK; i++) {
        int n = i == 4 ? AT_ONCE : 1;
        *ret_rc = n > 1 ? commit_many(db, n) : commit_one(db);
        if (*ret_rc == SQLITE_OK)
            recording_ack(acked += n);
    }
    return acked;
}

/* Fails the n-th write or sync, and tells whether there was one. */
static bool survives_failure(int n, int code)
{
    struct files f;
    int rc = SQLITE_OK;
    set_up(&f);
    sqlite3 *db = open_writer(f.db, UNDER_TEST, small_pragmas);
    assert_int_equal(run(db, schema_sql), SQLITE_OK);
    recording.fail_in = n;
    recording.fail_with = code;
    int64_t acked = run_commits(db, &rc);
    bool failed = recording.fail_in == 0;
    recording.fail_in = 0;
    if (rc != SQLITE_OK || recording.wal_write_failed)
        assert_int_equal(rc, code & 0xff);
    assert_true(check_beside(f.db) >= acked);
    if (rc == SQLITE_OK && recording.sync_failed) {
        assert_int_not_equal(commit_one(db), SQLITE_OK); /* until it was opened again */
    } else if (rc == SQLITE_OK) { /* a checkpoint's write that failed is made up for */
        assert_int_equal(commit_one(db), SQLITE_OK);
        acked++;
    }
    sqlite3_close(db);
    db = open_writer(f.db, UNDER_TEST, small_pragmas);
    assert_true(is_sound(db));
    int64_t after = ask(db, check_sql);
    assert_true(after >= acked && after <= acked + AT_ONCE);
    assert_int_equal(commit_one(db), SQLITE_OK);
    assert_int_equal(check_beside(f.db), after + 1);
    sqlite3_close(db);
    files_release(&f);
    return failed;
}

TEST(test_sqlite_vfs__no_failing_write_or_sync_loses_an_acknowledged_commit)
{
    static const int codes[] = {SQLITE_FULL, SQLITE_IOERR_WRITE};
    for (size_t i = 0; i < countof(codes); i++) {
        int n = 1;
        while (survives_failure(n, codes[i]))
            n += 1 + 2 * (int)i; /* the second time in longer steps */
        assert_true(n > 30);     /* commits and checkpoints were both reached */
    }
}

/* SQLite says of a checkpoint that a reader holds back that it is done without asking the file. */
TEST(test_sqlite_vfs__a_checkpoint_held_back_tells_of_every_write_that_failed)
{
    bool failed = true;
    for (int n = 1; failed; n++) {
        struct files f;
        set_up(&f);
        sqlite3 *db = open_writer(f.db, UNDER_TEST,
                                  "PRAGMA page_size = 1024;"
                                  "PRAGMA wal_autocheckpoint = 0");
        assert_int_equal(run(db, schema_sql), SQLITE_OK);
        assert_int_equal(commit_many(db, 6), SQLITE_OK);
        sqlite3 *old = open_on(f.db, RECORDING_VFS, "BEGIN; SELECT n FROM total");
        assert_int_equal(commit_one(db), SQLITE_OK);
        recording.fail_in = n;
        recording.fail_with = SQLITE_IOERR_WRITE;
        int rc = run(db, "PRAGMA wal_checkpoint");
        failed = recording.fail_in == 0;
        recording.fail_in = 0;
        assert_int_equal(rc, failed ? SQLITE_IOERR : SQLITE_OK);
        assert_int_equal(check_beside(f.db), 7);
        assert_int_equal(ask(old, check_sql), 6);
        rc = run(db, "PRAGMA wal_checkpoint");
        assert_int_equal(rc, recording.sync_failed ? SQLITE_IOERR : SQLITE_OK);
        assert_int_equal(check_beside(f.db), 7);
        assert_true(failed ? n < 100 : n > 10);
        sqlite3_close(old);
        sqlite3_close(db);
        files_release(&f);
    }
}

#define READ_COMMITS 150

/* In another process: looks until it has seen the last commit, and says so each time. */
static int read_beside(const char *path, int out)
{
    sqlite3 *db = open_on(path, "unix", "PRAGMA wal_autocheckpoint = 0; PRAGMA query_only = ON");
    int64_t seen = 0;
    fcntl(out, F_SETFL, O_NONBLOCK); /* what the writer does not wait for may be lost */
    alarm(60);
    while (seen < READ_COMMITS) {
        if (run(db, "BEGIN") != SQLITE_OK)
            return 1;
        int64_t n = ask(db, check_sql);
        if (n < seen)
            return 2;
        if (ask(db, check_sql) != n || run(db, "COMMIT") != SQLITE_OK)
            return 3;
        seen = n;
        if (write(out, "", 1) == 0)
            return 4;
    }
    sqlite3_close(db);
    return 0;
}

TEST(test_sqlite_vfs__another_process_sees_whole_commits_only)
{
    struct files f;
    int ends[2], status = 0;
    char byte;
    set_up(&f);
    sqlite3 *db = open_writer(f.db, UNDER_TEST, small_pragmas);
    assert_int_equal(run(db, schema_sql), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        _exit(read_beside(f.db, ends[1]));
    }
    close(ends[1]);
    db = open_writer(f.db, UNDER_TEST, small_pragmas);
    for (int i = 0; i < READ_COMMITS; i++) {
        if (i % 5 == 0) /* so that it looks all the while */
            assert_int_equal(read(ends[0], &byte, 1), 1);
        assert_int_equal(commit_one(db), SQLITE_OK);
    }
    while (read(ends[0], &byte, 1) == 1)
        ;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(is_sound(db));
    close(ends[0]);
    sqlite3_close(db);
    files_release(&f);
}

static void put(const char *path, const struct image *image)
{
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(image->p, 1, image->n, out), image->n);
    assert_int_equal(fclose(out), 0);
}

static void check_cut(const struct image base[RECORDED_FILES], size_t n, enum cut how)
{
    static const char *const suffix[] = {[RECORDED_DB] = "", [RECORDED_WAL] = "-wal"};
    struct files f;
    char path[128];
    int64_t acked = 0;
    files_init(&f);
    for (size_t i = 0; i < n; i++)
        if (recording.kept[i].deed == RECORDED_ACK)
            acked = recording.kept[i].at;
    for (enum recorded_file i = 0; i < RECORDED_FILES; i++) {
        struct image image = image_cut(&base[i], i, n, how);
        snprintf(path, sizeof(path), "%s%s", f.db, suffix[i]);
        put(path, &image);
        free(image.p);
    }
    bool keeping = recording.keeping;
    recording.keeping = false;
    sqlite3 *db = open_on(f.db, RECORDING_VFS, "PRAGMA synchronous = FULL");
    int64_t there = ask(db, check_sql);
    if (!is_sound(db) || there < acked || there > acked + AT_ONCE)
        fail_msg("cut %d after %zu: %d of %d", (int)how, n, (int)there, (int)acked);
    sqlite3_close(db);
    recording.keeping = keeping;
    files_release(&f);
}

TEST(test_sqlite_vfs__a_power_cut_at_any_moment_loses_no_acknowledged_commit)
{
    struct files f;
    struct image base[RECORDED_FILES];
    char wal[128];
    int rc = SQLITE_OK;
    set_up(&f);
    sqlite3 *db = open_writer(f.db, UNDER_TEST, small_pragmas);
    assert_int_equal(run(db, schema_sql), SQLITE_OK);
    snprintf(wal, sizeof(wal), "%s-wal", f.db);
    base[RECORDED_DB].p = read_whole(f.db, &base[RECORDED_DB].n);
    base[RECORDED_WAL].p = read_whole(wal, &base[RECORDED_WAL].n);
    recording.keeping = true;
    run_commits(db, &rc);
    assert_int_equal(rc, SQLITE_OK);
    assert_true(recording.syncs[RECORDED_DB] >= 2);
    for (size_t n = 0; n <= recording.n_kept; n++)
        for (enum cut how = 0; how < CUT_WAYS; how++)
            check_cut(base, n, how);
    recording.keeping = false;
    sqlite3_close(db);
    free(base[RECORDED_DB].p);
    free(base[RECORDED_WAL].p);
    recording_reset();
    files_release(&f);
}

static bool append(struct store *s, int64_t id, struct error *err)
{
    static char body[700];
    struct event_row events[60];
    struct store_op ops[60];
    memset(body, 'b', sizeof(body));
    for (int i = 0; i < 60; i++, id++) {
        events[i] = (struct event_row){.id = id,
                                       .tenant = STR("t"),
                                       .seq = id,
                                       .kind = EVENT_INTENT,
                                       .exec = id,
                                       .body = str_n(body, sizeof(body)),
                                       .body_len = sizeof(body)};
        events[i].mac[0] = 1;
        ops[i] = (struct store_op){OP_EVENT_APPEND, NULL, {.event = &events[i]}};
    }
    return store_write(s, ops, 60, err);
}

TEST(test_sqlite_vfs__the_store_names_what_failed_and_goes_on)
{
    static const struct {
        int code;
        const char *says;
    } cases[] = {{SQLITE_FULL, "disk is full"}, {SQLITE_IOERR_WRITE, "disk reported an error"}};
    struct files f;
    struct error err;
    int64_t id = 1;
    set_up(&f);
    struct store *s = files_open(&f, false);
    assert_true(append(s, id, &err));
    recording_reset();
    assert_true(append(s, id += 60, &err));
    int deeds = recording.writes[RECORDED_WAL] + recording.syncs[RECORDED_WAL];
    assert_int_equal(recording.syncs[RECORDED_WAL], 1);
    for (size_t i = 0; i < countof(cases); i++)
        for (int n = 1; n <= deeds; n += deeds - 1) { /* the first write, and the sync */
            recording.fail_in = n;
            recording.fail_with = cases[i].code;
            assert_false(append(s, id += 60, &err));
            assert_int_equal(err.code, ERR_UNAVAILABLE);
            assert_non_null(strstr(err.text, cases[i].says));
            assert_true(append(s, id, &err)); /* opened again */
        }
    store_close(s);
    assert_int_equal(files_ask(&f, "SELECT max(id) >= 300 FROM events"), 1);
    files_release(&f);
}

/* Failed syncs, with a reader and a power cut. */

#define SYNC_BATCHES 24

/* Bodies that do not pack, so that a batch is a few pages. */
static bool append_batch(struct store *s, int64_t number, struct error *err)
{
    static char body[3][5000];
    struct event_row events[3];
    struct store_op ops[3];
    uint64_t dice = (uint64_t)number;
    for (int i = 0; i < 3; i++) {
        for (size_t k = 0; k < sizeof(body[i]); k++)
            body[i][k] = (char)((dice = dice * 6364136223846793005u + 1442695040888963407u) >> 56);
        int64_t id = 3 * number + i + 1;
        events[i] = (struct event_row){.id = id,
                                       .tenant = STR("t"),
                                       .seq = id,
                                       .kind = EVENT_INTENT,
                                       .exec = id,
                                       .body = str_n(body[i], sizeof(body[i])),
                                       .body_len = sizeof(body[i])};
        events[i].mac[0] = 1;
        ops[i] = (struct store_op){OP_EVENT_APPEND, NULL, {.event = &events[i]}};
    }
    return store_write(s, ops, 3, err);
}

/* What a power cut after `n` deeds leaves is whole and has every batch acknowledged by then. */
static void check_batches_after_cut(const struct image base[RECORDED_FILES], size_t n, enum cut how)
{
    static const char *const suffix[] = {[RECORDED_DB] = "", [RECORDED_WAL] = "-wal"};
    struct files f;
    char path[128];
    int64_t acked = 0;
    bool keeping = recording.keeping;
    files_init(&f);
    for (size_t i = 0; i < n; i++)
        if (recording.kept[i].deed == RECORDED_ACK)
            acked = recording.kept[i].at;
    for (enum recorded_file i = 0; i < RECORDED_FILES; i++) {
        struct image image = image_cut(&base[i], i, n, how);
        snprintf(path, sizeof(path), "%s%s", f.db, suffix[i]);
        put(path, &image);
        free(image.p);
    }
    recording.keeping = false;
    sqlite3 *db = open_on(f.db, RECORDING_VFS, "PRAGMA synchronous = FULL");
    int64_t there = ask(db, "SELECT count(*) FROM events");
    if (!is_sound(db) || there < acked)
        fail_msg("cut %d after %zu: %d of %d batches", (int)how, n, (int)there, (int)acked);
    sqlite3_close(db);
    recording.keeping = keeping;
    files_release(&f);
}

struct sync_trial {
    enum recorded_file file;
    int nth;          /* sync of it fails */
    bool with_reader; /* that holds one checkpoint back */
};

/* One batch after the other, whatever was refused once more; how often one was. */
static int run_batches(struct store *s, struct files *f, const struct sync_trial *t)
{
    struct error err;
    sqlite3 *reader = NULL;
    int refused = 0;
    for (int i = 0; i < SYNC_BATCHES; i++) {
        if (t->with_reader && i % 8 == 2)
            reader = open_on(f->db, RECORDING_VFS, "BEGIN; SELECT count(*) FROM events");
        for (int tries = 1; !append_batch(s, i, &err); tries++, refused++)
            if (tries == 3)
                fail_msg("batch %d: %s", i, err.text);
        recording_ack(i + 1);
        if (reader && i % 8 == 5) {
            sqlite3_close(reader);
            reader = NULL;
        }
    }
    sqlite3_close(reader);
    return refused;
}

/* Tells whether that sync was reached. */
static bool survives_failed_sync(const struct sync_trial *t)
{
    struct files f;
    struct image base[RECORDED_FILES];
    char wal[128];
    set_up(&f);
    struct store *s = files_open(&f, false);
    struct store *lane = files_open(&f, true); /* keeps the wal-index there, as lanes do */
    sq_of(s)->checkpoint_frames = 9;
    snprintf(wal, sizeof(wal), "%s-wal", f.db);
    base[RECORDED_DB].p = read_whole(f.db, &base[RECORDED_DB].n);
    base[RECORDED_WAL].p = read_whole(wal, &base[RECORDED_WAL].n);
    recording.keeping = true;
    recording.fail_syncs_of[t->file] = t->nth;
    run_batches(s, &f, t);
    bool reached = recording.fail_syncs_of[t->file] == 0;
    for (size_t n = 1; reached && n <= recording.n_kept; n++)
        if (recording.kept[n - 1].deed == RECORDED_ACK)
            check_batches_after_cut(base, n, CUT_DROPS);
    for (enum cut how = 0; how < CUT_WAYS; how++)
        check_batches_after_cut(base, recording.n_kept, how);
    recording.keeping = false;
    store_close(lane);
    store_close(s);
    assert_int_equal(files_ask(&f, "SELECT count(*) FROM events"), SYNC_BATCHES);
    free(base[RECORDED_DB].p);
    free(base[RECORDED_WAL].p);
    recording_reset();
    files_release(&f);
    return reached;
}

static void fail_every_sync_of(enum recorded_file file, bool with_reader, int step)
{
    struct sync_trial t = {file, 1, with_reader};
    while (survives_failed_sync(&t))
        t.nth += step;
    assert_true(t.nth > 3);
}

TEST(test_sqlite_sync__one_of_the_database_that_fails_beside_a_reader_loses_nothing)
{
    fail_every_sync_of(RECORDED_DB, true, 1);
}

TEST(test_sqlite_sync__one_of_the_database_that_fails_loses_nothing)
{
    fail_every_sync_of(RECORDED_DB, false, 2);
}

TEST(test_sqlite_sync__one_of_the_wal_that_fails_loses_nothing)
{
    fail_every_sync_of(RECORDED_WAL, true, 4);
}

TEST(test_sqlite_read__a_disk_that_fails_is_not_called_a_damaged_database)
{
    struct files f;
    struct error err;
    struct store_counts counts;
    set_up(&f);
    struct store *s = files_open(&f, false);
    assert_true(append_batch(s, 0, &err));
    struct store *reader = files_open(&f, true);
    recording.read_errors = 1000;
    assert_false(store_counts(reader, &counts, &err));
    assert_non_null(strstr(err.text, "disk reported an error"));
    recording.read_errors = 0;
    assert_true(store_counts(reader, &counts, &err));
    assert_int_equal(counts.events, 3);
    store_close(reader);
    store_close(s);
    files_release(&f);
}
