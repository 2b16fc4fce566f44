/* SPDX-License-Identifier: Apache-2.0 */
/* Folding what memory knows of the events and folding the events as they stand in the file must
 * give the same projections, however they were appended, folded, failed or repeated. */
#include "store_files.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/fault.h"
#include "base/random.h"
#include "store/sqlite_impl.h"

#define SESSIONS 4
#define STEPS 60

static const struct principal who = {STR("t"), STR("o"), ROLE_MEMBER};

static void must(bool ok, const struct error *err)
{
    if (!ok)
        fail_msg("%s", err->text);
}

static void make_sessions(struct store *s)
{
    static const char *const ids[SESSIONS] = {"s0", "s1", "s2", "s3"};
    struct error err;
    for (size_t i = 0; i < SESSIONS; i++) {
        struct session_row row = {
            .id = str_of(ids[i]), .handle = str_of(ids[i]), .edge_mcp_id = STR("n")};
        struct store_op op = {OP_SESSION_CREATE, &who, {.session = &row}, .max_counted = -1};
        must(store_write(s, &op, 1, &err), &err);
    }
}

/* Event `id` of writer 1: the same one however often it is asked for. */
static struct event_row event_of(int64_t id)
{
    static const char *const sessions[] = {"s0", "s1", "s2", "s3", "unknown"};
    static const char *const outcomes[] = {"ok", "indeterminate", "refused", "tool_error"};
    static const enum event_kind kinds[] = {EVENT_INTENT,  EVENT_INTENT, EVENT_OUTCOME,
                                            EVENT_OUTCOME, EVENT_NOTE,   EVENT_ANCHOR};
    uint64_t dice = (uint64_t)id * 0x9e3779b97f4a7c15u;
    struct event_row e = {.id = INT64_C(1) << EVENT_WRITER_SHIFT | id,
                          .tenant = dice >> 60 ? STR("t") : STR("u"),
                          .seq = id,
                          .at_ms = 1000 + id,
                          .kind = kinds[(dice >> 8) % countof(kinds)],
                          .body_len = -1};
    e.exec = e.id;
    if (e.kind != EVENT_ANCHOR && (dice >> 20) % 8)
        e.session_id = str_of(sessions[(dice >> 24) % countof(sessions)]);
    if (e.kind == EVENT_OUTCOME) {
        e.outcome = str_of(outcomes[(dice >> 32) % countof(outcomes)]);
        e.exec -= (int64_t)((dice >> 40) % 7);
    }
    memcpy(e.mac, &e.id, sizeof(e.id));
    e.mac[31] = 1;
    return e;
}

/* Appends some events, a few of them again; `fail`: the commit does not come about. */
static void append(struct store *s, int64_t first, int64_t n, bool fail)
{
    struct event_row events[16];
    struct store_op ops[16];
    struct error err;
    for (int64_t i = 0; i < n; i++) {
        events[i] = event_of(first + i > 0 ? first + i : 1);
        ops[i] = (struct store_op){OP_EVENT_APPEND, NULL, {.event = &events[i]}};
    }
    if (fail) {
        struct event_row bad = events[n - 1];
        bad.mac[0] ^= 1; /* another event under that id */
        ops[n] = (struct store_op){OP_EVENT_APPEND, NULL, {.event = &bad}};
        assert_false(store_write(s, ops, (size_t)n + 1, &err));
        return;
    }
    must(store_write(s, ops, (size_t)n, &err), &err);
}

static void fold(struct store *s, unsigned max)
{
    struct error err;
    bool left = true;
    while (left)
        must(store_fold(s, max, &left, &err), &err);
}

/* Everything the fold writes, as one text. */
static char *projections_of(const struct files *f)
{
    static const char sql[] =
        "SELECT group_concat(line, x'0a') FROM ("
        "SELECT * FROM (SELECT 'exec ' || id || ' ' || ifnull(outcome_event, '-') || ' ' || state "
        "AS line FROM long_executions ORDER BY id) UNION ALL "
        "SELECT * FROM (SELECT 'session ' || id || ' ' || tool_execution_count || ' ' || "
        "last_activity_at AS line FROM edge_mcp_sessions ORDER BY id) UNION ALL "
        "SELECT 'fold ' || writer || tenant || ' ' || seq || ' ' || last_id || ' ' || hex(mac) || "
        "' ' || events AS line FROM fold_state)";
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    char *text = strdup((const char *)sqlite3_column_text(st, 0));
    sqlite3_finalize(st);
    sqlite3_close(db);
    return text;
}

TEST(test_sqlite_fold__memory_and_the_file_tell_the_same)
{
    struct files kept, reopened;
    random_set_fake(20261115);
    files_init(&kept);
    files_init(&reopened);
    struct store *a = files_open(&kept, false);
    struct store *b = files_open(&reopened, false);
    make_sessions(a);
    make_sessions(b);
    fold(a, 100);
    int64_t next = 1;
    for (int step = 0; step < STEPS; step++) {
        int64_t n = 1 + (int64_t)random_below(10);
        int64_t again = (int64_t)random_below(3);
        bool fail = random_below(5) == 0;
        append(a, next - again, n + again, fail);
        append(b, next - again, n + again, fail);
        next += fail ? 0 : n;
        if (random_below(4))
            continue;
        unsigned max = 1 + (unsigned)random_below(12);
        fold(a, max);
        assert_true(sq_of(a)->unfolded_events_complete);
        store_close(b); /* has to read it all back */
        b = files_open(&reopened, false);
        fold(b, max);
    }
    fold(a, 1000);
    fold(b, 1000);
    store_close(a);
    store_close(b);
    char *one = projections_of(&kept), *other = projections_of(&reopened);
    assert_string_equal(one, other);
    assert_non_null(strstr(one, "exec"));
    free(one);
    free(other);
    files_release(&kept);
    files_release(&reopened);
}

TEST(test_sqlite_fold__after_a_failed_commit_the_file_is_asked)
{
    struct files f;
    struct error err;
    struct event_row e = event_of(1);
    struct store_op op = {OP_EVENT_APPEND, NULL, {.event = &e}};
    files_init(&f);
    struct store *s = files_open(&f, false);
    fold(s, 10);
    append(s, 1, 5, false);
    e = event_of(6);
    fault_load("store.commit:1");
    assert_false(store_write(s, &op, 1, &err));
    fault_load("");
    fold(s, 10);
    assert_int_equal(files_ask(&f, "SELECT sum(events) FROM fold_state"), 5);
    append(s, 6, 1, false);
    fold(s, 10);
    assert_int_equal(files_ask(&f, "SELECT sum(events) FROM fold_state"), 6);
    store_close(s);
    files_release(&f);
}

/* One note in each of `n` sessions, from the first event on. */
static void append_everywhere(struct store *s, int64_t n)
{
    struct event_row events[500];
    struct store_op ops[500];
    char names[500][16];
    struct error err;
    for (int64_t at = 0; at < n; at += (int64_t)countof(events)) {
        size_t count = 0;
        for (; count < countof(events) && at + (int64_t)count < n; count++) {
            int64_t id = at + (int64_t)count + 1;
            snprintf(names[count], sizeof(names[count]), "n%" PRId64, id);
            events[count] = event_of(id);
            events[count].kind = EVENT_NOTE;
            events[count].tenant = STR("t");
            events[count].session_id = str_of(names[count]);
            ops[count] = (struct store_op){OP_EVENT_APPEND, NULL, {.event = &events[count]}};
        }
        must(store_write(s, ops, count, &err), &err);
    }
}

/* However many events may be folded, nobody waits for more sessions than a slice has. */
TEST(test_sqlite_fold__a_slice_has_only_so_many_sessions)
{
    for (int read_back = 0; read_back < 2; read_back++) {
        struct files f;
        struct error err;
        bool left = false;
        files_init(&f);
        struct store *s = files_open(&f, false);
        fold(s, 10);
        append_everywhere(s, SQ_SLICE_SESSIONS + 1000);
        if (read_back) {
            store_close(s);
            s = files_open(&f, false);
        }
        assert_int_equal(sq_of(s)->unfolded_events_complete, !read_back);
        must(store_fold(s, 100000, &left, &err), &err);
        assert_true(left);
        assert_int_equal(files_ask(&f, "SELECT sum(events) FROM fold_state"), SQ_SLICE_SESSIONS);
        must(store_fold(s, 100000, &left, &err), &err);
        assert_false(left);
        assert_int_equal(files_ask(&f, "SELECT sum(events) FROM fold_state"),
                         SQ_SLICE_SESSIONS + 1000);
        store_close(s);
        files_release(&f);
    }
}
