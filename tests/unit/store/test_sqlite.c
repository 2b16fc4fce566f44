/* SPDX-License-Identifier: Apache-2.0 */
/* What is SQLite's own: durability settings, readers beside the writer, and what a failing disk or
 * a foreign lock does to the store.  The contract suite has the rest. */
#include "store_files.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "reap.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/metric.h"
#include "store/sqlite_impl.h"

static bool append(struct store *s, int64_t id, struct error *err)
{
    struct event_row e = {
        .id = id, .tenant = STR("t"), .seq = id, .kind = EVENT_INTENT, .exec = id, .body_len = -1};
    struct store_op op = {OP_EVENT_APPEND, NULL, {.event = &e}};
    memcpy(e.mac, &id, sizeof(id));
    e.mac[31] = 1;
    return store_write(s, &op, 1, err);
}

static struct store_counts counts(struct store *s)
{
    struct store_counts c;
    struct error err;
    if (!store_counts(s, &c, &err))
        fail_msg("%s", err.text);
    return c;
}

static int64_t pragma(struct store *s, const char *sql)
{
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_prepare_v2(sq_of(s)->db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(st, 0);
    if (sqlite3_column_type(st, 0) == SQLITE_TEXT)
        value = strcmp((const char *)sqlite3_column_text(st, 0), "wal") == 0;
    sqlite3_finalize(st);
    return value;
}

TEST(test_sqlite_open__one_durable_writer_and_readers_that_cannot_write)
{
    struct files f;
    struct error err;
    struct stat st;
    char wal[128];
    files_init(&f);
    struct store *writer = files_open(&f, false);
    struct store *reader = files_open(&f, true);
    assert_int_equal(pragma(writer, "PRAGMA journal_mode"), 1);
    assert_int_equal(pragma(writer, "PRAGMA synchronous"), 2);
    assert_int_equal(pragma(reader, "PRAGMA query_only"), 1);
    assert_int_equal(pragma(reader, "PRAGMA wal_autocheckpoint"), 0);
    assert_true(append(writer, 1, &err));
    assert_false(append(reader, 2, &err));
    assert_int_equal(counts(reader).events, 1);
    assert_int_equal(stat(f.db, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    snprintf(wal, sizeof(wal), "%s-wal", f.db);
    assert_int_equal(stat(wal, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    store_close(reader);
    store_close(writer);
    assert_int_equal(stat(wal, &st), -1); /* the writer went last and checkpointed */
    files_release(&f);
}

TEST(test_sqlite_read_only__refuses_every_verb_that_writes)
{
    struct files f;
    struct error err;
    struct writer_row w = {.uuid = STR("u"), .number = 77};
    struct event_row *rows = NULL;
    struct arena *mem = arena_new(1 << 20);
    size_t n = 0;
    bool left = false;
    files_init(&f);
    store_close(files_open(&f, false));
    struct store *reader = files_open(&f, true);
    assert_false(store_writer_start(reader, &w, true, &err));
    assert_int_equal(w.number, 77);
    assert_false(store_fold(reader, 10, &left, &err));
    assert_false(reap_at(reader, 1, 10, &n, &err));
    assert_false(store_open_intents(reader, 1, 0, 10, mem, &rows, &n, &err));
    assert_false(store_write(reader, NULL, 0, &err));
    store_close(reader);
    arena_free(mem);
    files_release(&f);
}

/* Fails the n-th pass of a fault point for n = 1, 2, … until none is hit: what was acknowledged is
 * there, what was refused is not, and the next write works. */
static void fail_every_pass_of(const char *point)
{
    enum { WRITES = 6 };
    for (int n = 1; n <= WRITES + 1; n++) {
        struct files f;
        struct error err;
        char spec[64];
        int64_t acknowledged = 0;
        bool left = false;
        files_init(&f);
        struct store *s = files_open(&f, false);
        struct store *reader = files_open(&f, true);
        snprintf(spec, sizeof(spec), "%s:%d", point, n);
        fault_load(spec);
        for (int i = 1; i <= WRITES; i++) {
            bool ok = append(s, i, &err);
            assert_int_equal(ok, i != n);
            assert_true(ok || err.code == ERR_UNAVAILABLE);
            acknowledged += ok;
            assert_int_equal(counts(reader).events, acknowledged);
        }
        fault_load("");
        assert_true(store_fold(s, 100, &left, &err));
        assert_int_equal(counts(s).executions_open, acknowledged);
        store_close(reader);
        store_close(s);
        s = files_open(&f, false);
        assert_int_equal(counts(s).events, acknowledged);
        store_close(s);
        assert_int_equal(files_ask(&f, "SELECT count(*) FROM events"), acknowledged);
        files_release(&f);
    }
}

TEST(test_sqlite_commit__failure_loses_nothing_acknowledged_and_invents_nothing)
{
    fail_every_pass_of("store.commit");
}

TEST(test_sqlite_begin__failure_loses_nothing_acknowledged_and_invents_nothing)
{
    fail_every_pass_of("store.begin");
}

TEST(test_sqlite_commit__failure_opens_the_file_again_before_the_next_write)
{
    struct files f;
    struct error err;
    files_init(&f);
    struct store *s = files_open(&f, false);
    assert_true(append(s, 1, &err));
    fault_load("store.commit:1");
    assert_false(append(s, 2, &err));
    fault_load("");
    assert_true(sq_of(s)->broken);
    assert_int_equal(counts(s).events, 1); /* reading goes on */
    assert_true(append(s, 2, &err));
    assert_false(sq_of(s)->broken);
    assert_int_equal(counts(s).events, 2);
    store_close(s);
    files_release(&f);
}

TEST(test_sqlite_fold__failure_folds_nothing_twice)
{
    struct files f;
    struct error err;
    bool left = true;
    files_init(&f);
    struct store *s = files_open(&f, false);
    for (int i = 1; i <= 3; i++)
        assert_true(append(s, i, &err));
    fault_load("store.commit:1");
    assert_false(store_fold(s, 2, &left, &err));
    fault_load("");
    assert_int_equal(counts(s).executions_open, 0);
    assert_true(store_fold(s, 2, &left, &err));
    assert_true(left);
    assert_int_equal(counts(s).executions_open, 2);
    store_close(s);
    s = files_open(&f, false); /* has to find out by itself what is left */
    assert_true(store_fold(s, 2, &left, &err));
    assert_false(left);
    assert_int_equal(counts(s).executions_open, 3);
    assert_int_equal(counts(s).events, 3);
    store_close(s);
    files_release(&f);
}

/* A file that cannot grow is a full disk.  In a child, since the limit is the process's. */
static int run_on_full_disk(const struct files *f)
{
    struct rlimit limit;
    struct error err;
    struct stat st;
    char wal[128];
    int64_t stored = 0;
    struct store *s = files_open(f, false);
    struct store *reader = files_open(f, true);
    signal(SIGXFSZ, SIG_IGN);
    snprintf(wal, sizeof(wal), "%s-wal", f->db);
    if (!append(s, 1, &err) || stat(wal, &st) != 0 || getrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 1;
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = (rlim_t)st.st_size + 100000;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 2;
    int64_t id = 1;
    for (stored = 1; append(s, id + 1, &err); stored++)
        if (++id > 10000)
            return 3;
    if (err.code != ERR_UNAVAILABLE || counts(reader).events != stored)
        return 4;
    limit.rlim_cur = before;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 5;
    if (!append(s, id + 1, &err) || counts(reader).events != stored + 1)
        return 6;
    store_close(reader);
    store_close(s);
    return 0;
}

TEST(test_sqlite__a_full_disk_refuses_writes_serves_reads_and_recovers)
{
    struct files f;
    int status = 0;
    files_init(&f);
    pid_t child = fork();
    if (child == 0)
        _exit(run_on_full_disk(&f));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    files_release(&f);
}

TEST(test_sqlite_sync__that_fails_refuses_writes_until_the_file_was_opened_again)
{
    struct files f;
    struct error err;
    files_init(&f);
    clock_set_fake(1000000, 1000000);
    struct store *s = files_open(&f, false);
    struct store *reader = files_open(&f, true);
    sq_of(s)->checkpoint_frames = 1;
    assert_true(append(s, 1, &err));
    assert_int_equal(sqlite3_exec(sq_of(s)->db, "CREATE TEMP TABLE witness(x)", NULL, NULL, NULL),
                     SQLITE_OK); /* gone with the connection */
    fault_load("store.sync_db:1+");
    assert_true(append(s, 2, &err)); /* its commit stands; the checkpoint after it failed */
    for (int i = 0; i < 3; i++) {
        assert_false(append(s, 3, &err));
        assert_int_equal(err.code, ERR_UNAVAILABLE);
        assert_non_null(strstr(err.text, "disk reported an error"));
    }
    assert_int_equal(counts(reader).events, 2);
    fault_load("");
    assert_false(append(s, 3, &err)); /* the disk is not asked again at once */
    clock_advance_fake(100);
    assert_true(append(s, 3, &err));
    assert_int_not_equal(sqlite3_exec(sq_of(s)->db, "SELECT * FROM witness", NULL, NULL, NULL),
                         SQLITE_OK);
    assert_int_equal(counts(reader).events, 3);
    store_close(reader);
    store_close(s);
    clock_set_real();
    assert_int_equal(files_ask(&f, "SELECT count(*) FROM events"), 3);
    files_release(&f);
}

/* Another program that reads the database once told to: forked before this process has it open, as
 * SQLite's own notes of who holds which lock must not be inherited. */
static pid_t start_outsider(const struct files *f, int *ret_tell)
{
    int pipe_fd[2];
    char go;
    assert_int_equal(pipe(pipe_fd), 0);
    pid_t child = fork();
    if (child == 0) {
        close(pipe_fd[1]);
        _exit(read(pipe_fd[0], &go, 1) == 1 && files_ask(f, "SELECT count(*) FROM events") == 2
                  ? 0
                  : 1);
    }
    close(pipe_fd[0]);
    *ret_tell = pipe_fd[1];
    return child;
}

/* The last program that closes a database deletes its WAL, and what tells it that it is not the
 * last is our lock. */
TEST(test_sqlite_reopen__keeps_the_lock_that_keeps_its_wal)
{
    struct files f;
    struct error err;
    struct stat before, after;
    char wal[128];
    int tell, status = 0;
    files_init(&f);
    snprintf(wal, sizeof(wal), "%s-wal", f.db);
    pid_t outsider = start_outsider(&f, &tell);
    struct store *s = files_open(&f, false);
    struct store *reader = files_open(&f, true);
    assert_true(append(s, 1, &err));
    assert_int_equal(counts(reader).events, 1);
    fault_load("store.commit:1");
    assert_false(append(s, 2, &err));
    fault_load("");
    assert_true(append(s, 2, &err)); /* on the file that was opened again */
    assert_int_equal(stat(wal, &before), 0);
    assert_int_equal(write(tell, "x", 1), 1);
    assert_int_equal(waitpid(outsider, &status, 0), outsider);
    close(tell);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(stat(wal, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    assert_true(append(s, 3, &err));
    store_close(reader);
    store_close(s);
    assert_int_equal(files_ask(&f, "SELECT count(*) FROM events"), 3);
    files_release(&f);
}

TEST(test_sqlite_wal__is_measured_and_short_again_when_its_reader_has_gone)
{
    struct files f;
    struct error err;
    sqlite3 *reader = NULL;
    int64_t id = 1;
    files_init(&f);
    struct store *s = files_open(&f, false);
    sq_of(s)->checkpoint_frames = 10;
    assert_true(append(s, id++, &err));
    assert_int_equal(sqlite3_open(f.db, &reader), SQLITE_OK);
    assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM events", NULL, NULL, NULL),
                     SQLITE_OK);
    while (id < 60)
        assert_true(append(s, id++, &err));
    assert_true(metric_value(sq_of(s)->wal_bytes) > 30 * 8192);
    sqlite3_close(reader);
    for (int i = 0; i < 3; i++)
        assert_true(append(s, id++, &err));
    assert_true(metric_value(sq_of(s)->wal_bytes) < 15 * 8192);
    store_close(s);
    files_release(&f);
}

TEST(test_sqlite_write__gives_up_on_a_foreign_lock_and_works_when_it_is_gone)
{
    struct files f;
    struct error err;
    sqlite3 *other = NULL;
    files_init(&f);
    struct store *s = files_open(&f, false);
    assert_int_equal(sqlite3_open(f.db, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_busy_timeout(sq_of(s)->db, 10); /* two seconds otherwise */
    assert_false(append(s, 1, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "lock"));
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_true(append(s, 1, &err));
    sqlite3_close(other);
    store_close(s);
    files_release(&f);
}

TEST(test_sqlite_write__probe_really_writes)
{
    struct files f;
    struct error err;
    files_init(&f);
    struct store *s = files_open(&f, false);
    assert_true(store_write(s, NULL, 0, &err));
    assert_true(store_write(s, NULL, 0, &err));
    store_close(s);
    assert_int_equal(files_ask(&f, "SELECT count FROM store_probe"), 2);
    files_release(&f);
}

TEST(test_sqlite_page__past_its_deadline_is_interrupted_and_the_next_is_not)
{
    struct files f;
    struct error err;
    struct event_row *rows = NULL;
    struct event_filter filter = {.kind = -1, .tool = STR("none")};
    struct arena *mem = arena_new(1 << 20);
    size_t n = 7;
    files_init(&f);
    struct store *s = files_open(&f, false);
    for (int i = 1; i <= 300; i++)
        assert_true(append(s, i, &err));
    struct store *reader = files_open(&f, true);
    fault_load("store.page:1");
    assert_false(store_events_page(reader, &filter, 200, mem, &rows, &n, &err));
    fault_load("");
    assert_int_equal(err.code, ERR_TIMEOUT);
    assert_int_equal(n, 7);
    assert_true(store_events_page(reader, &filter, 200, mem, &rows, &n, &err));
    assert_int_equal(n, 0);
    store_close(reader);
    store_close(s);
    arena_free(mem);
    files_release(&f);
}

TEST(test_sqlite_page__past_its_deadline_says_how_far_it_got)
{
    struct files f;
    struct error err;
    struct event_row *rows = NULL;
    int64_t scanned = 0;
    struct event_filter filter = {.kind = -1, .exec = 0, .tool = STR("none")};
    struct arena *mem = arena_new(1 << 24);
    size_t n = 7;
    int pages = 0;
    files_init(&f);
    struct store *s = files_open(&f, false);
    for (int i = 1; i <= 600; i++)
        assert_true(append(s, i, &err));
    struct store *reader = files_open(&f, true);
    filter.ret_scanned = &scanned;
    fault_load("store.page:1+");
    for (; pages == 0 || scanned; pages++) {
        int64_t before = filter.after;
        if (!store_events_page(reader, &filter, 200, mem, &rows, &n, &err))
            continue; /* interrupted before the first event: asked again */
        assert_int_equal(n, 0);
        assert_true(!scanned || scanned > before);
        filter.after = scanned;
        assert_true(pages < 600);
    }
    fault_load("");
    assert_true(pages > 1);
    store_close(reader);
    store_close(s);
    arena_free(mem);
    files_release(&f);
}

static void append_outcome(struct store *s, int64_t id, int64_t exec, const char *how)
{
    struct error err;
    bool left = false;
    struct event_row e = {.id = id,
                          .tenant = STR("t"),
                          .seq = id,
                          .kind = EVENT_OUTCOME,
                          .exec = exec,
                          .outcome = str_of(how)};
    struct store_op op = {OP_EVENT_APPEND, NULL, {.event = &e}};
    assert_true(store_write(s, &op, 1, &err));
    if (id % 2)
        assert_true(store_fold(s, 10, &left, &err));
}

TEST(test_sqlite_fold__only_a_guess_gives_way_to_a_later_outcome)
{
    struct files f;
    struct error err;
    bool left = false;
    files_init(&f);
    struct store *s = files_open(&f, false);
    for (int i = 1; i <= 4; i++)
        assert_true(append(s, i, &err));
    append_outcome(s, 10, 1, "indeterminate");
    append_outcome(s, 11, 1, "ok"); /* folded together */
    append_outcome(s, 13, 2, "indeterminate");
    append_outcome(s, 15, 2, "ok"); /* one after the other */
    append_outcome(s, 16, 3, "ok");
    append_outcome(s, 17, 3, "error");
    append_outcome(s, 19, 4, "ok");
    append_outcome(s, 21, 4, "indeterminate");
    assert_true(store_fold(s, 10, &left, &err));
    store_close(s);
    assert_int_equal(files_ask(&f, "SELECT outcome_event FROM long_executions WHERE id = 2"), 15);
    assert_int_equal(files_ask(&f, "SELECT outcome_event FROM long_executions WHERE id = 3"), 16);
    assert_int_equal(files_ask(&f, "SELECT outcome_event FROM long_executions WHERE id = 4"), 19);
    assert_int_equal(files_ask(&f, "SELECT count(*) FROM long_executions WHERE state = 5"), 4);
    files_release(&f);
}

/* The counter that answers the limit is kept by triggers: it must equal the rows it stands for. */
TEST(test_sqlite_limit__counter_equals_the_rows_it_stands_for)
{
    struct files f;
    struct error err;
    size_t n = 0;
    struct principal who = {STR("t"), STR("o"), ROLE_MEMBER};
    files_init(&f);
    struct store *s = files_open(&f, false);
    for (int i = 0; i < 12; i++) {
        char id[16];
        snprintf(id, sizeof(id), "id-%d", i);
        struct session_row row = {.id = str_of(id),
                                  .handle = str_of(id),
                                  .edge_mcp_id = STR("n"),
                                  .counted = i % 2,
                                  .provisional = !(i % 2),
                                  .expires_ms = i < 6 ? INT64_MAX : clock_wall_ms() + 100000,
                                  .status = SESSION_ACTIVE};
        struct store_op ops[] = {{OP_SESSION_CREATE, &who, {.session = &row}, .max_counted = -1},
                                 {OP_SESSION_PROMOTE, &who, {.session = &row}, .max_counted = -1},
                                 {OP_SESSION_END, &who, {.session = &row}}};
        assert_true(store_write(s, ops, i % 3 == 0 ? 2 : 1, &err));
        row.status = SESSION_TERMINATED;
        if (i % 4 == 1)
            assert_true(store_write(s, &ops[2], 1, &err));
    }
    assert_true(reap_at(s, clock_wall_ms() + 200000, 100, &n, &err));
    assert_true(n > 0);
    store_close(s);
    int64_t live = files_ask(&f, "SELECT count(*) FROM edge_mcp_sessions "
                                 "WHERE counted = 1 AND status IN ('active', 'idle')");
    assert_true(live > 0);
    assert_int_equal(files_ask(&f, "SELECT counted_sessions FROM tenants WHERE id = 't'"), live);
    files_release(&f);
}
