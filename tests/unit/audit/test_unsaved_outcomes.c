/* SPDX-License-Identifier: Apache-2.0 */
/* Outcomes while the store is gone: with a spool they are durable at once, written first when it is
 * back, and each one once, whatever dies when. */
#include "audit_db.h"

#include "audit/audit.h"
#include "audit/event_id.h"
#include "base/fault.h"
#include "base/log.h"
#include "store/spool.h"
#include "store/store_impl.h"

#include <stdatomic.h>

struct rig {
    struct audit_db db;
    struct store *inner, *failing;
    struct spool *spool;
    struct loop *loop;
    struct lanes *lanes;
    struct audit *audit;
    struct arena *mem;
    struct loop_timer *poll;
    size_t want_events;
    int waiting;
    bool failed;
    struct error err;
};

static const struct principal local = {
    .tenant = STR("default"), .owner = STR("local"), .role = ROLE_ADMIN};

/* What runs for as long as a process does. */
static void run_start(struct rig *r)
{
    char path[128];
    r->failing = store_failing(r->inner);
    r->loop = loop_new();
    must(spool_open(audit_db_path(&r->db, "spool.db", path), &r->spool, &must_err));
    struct lanes_config lanes = {.write = r->failing,
                                 .lookup = r->failing,
                                 .query = r->failing,
                                 .hook = chain_hook(r->db.chain)};
    r->lanes = lanes_new(r->loop, &lanes);
    struct audit_config config = {.lanes = r->lanes,
                                  .loop = r->loop,
                                  .chain = r->db.chain,
                                  .writer = r->db.writer,
                                  .max_body = 16384,
                                  .spool = r->spool};
    r->audit = audit_new(&config);
}

static void run_stop(struct rig *r)
{
    lanes_free(r->lanes); /* closes the store */
    audit_free(r->audit);
    loop_free(r->loop);
    spool_close(r->spool);
    r->spool = NULL;
}

static void rig_open_store(struct rig *r)
{
    char path[128];
    struct store_config config = {.path = audit_db_path(&r->db, "holdfast.db", path)};
    must(store_open_sqlite(&config, &r->inner, &must_err));
}

static const char session_uuid[] = "01930000-0000-7000-8000-000000000001";

static void make_session(struct rig *r)
{
    struct session_row row = {.id = STR("01930000-0000-7000-8000-000000000001"),
                              .handle = STR("ses_x"),
                              .tenant = local.tenant,
                              .owner = local.owner,
                              .edge_mcp_id = STR("node"),
                              .carrier = STR("transport"),
                              .created_ms = clock_life_ms(),
                              .last_activity_ms = clock_life_ms(),
                              .expires_ms = clock_life_ms() + 3600000,
                              .version = 1};
    struct store_op op = {
        .kind = OP_SESSION_CREATE, .who = &local, .session = &row, .max_counted = -1};
    must(store_write(r->inner, &op, 1, &must_err));
    assert_int_equal(op.verdict, VERDICT_OK);
}

/* A store whose answer to a commit may be lost, after the commit or before it. */
static struct store_ops lossy_ops;
static const struct store_ops *true_ops;
static atomic_int lose; /* so many answers; negative: and the commits too */

static bool lossy_write(struct store *s, struct store_op *ops, size_t n, struct error *err)
{
    int left = atomic_load(&lose);
    if (left == 0 || n == 0)
        return true_ops->write(s, ops, n, err);
    if (left > 0 && !true_ops->write(s, ops, n, err))
        return false;
    atomic_store(&lose, left > 0 ? left - 1 : left + 1);
    return error_set(err, ERR_UNAVAILABLE, "the answer was lost");
}

/* Before the lanes start: their threads read the table. */
static void make_lossy(struct rig *r)
{
    true_ops = r->inner->ops;
    lossy_ops = *true_ops;
    lossy_ops.write = lossy_write;
    r->inner->ops = &lossy_ops;
}

static void rig_start(struct rig *r)
{
    *r = (struct rig){.mem = arena_new(SIZE_MAX / 4)};
    log_setup(LOG_ERROR + 1, 0);
    audit_db_open(&r->db, false);
    r->inner = r->db.store;
    r->db.store = NULL;
    make_session(r);
    make_lossy(r);
    run_start(r);
}

/* The start after a stop or a death: a new writer on the same files. */
static void rig_next_writer(struct rig *r)
{
    char path[128];
    rig_open_store(r);
    r->db.store = r->inner;
    audit_db_start(&r->db);
    must(spool_open(audit_db_path(&r->db, "spool.db", path), &r->spool, &must_err));
}

static void rig_end(struct rig *r)
{
    arena_free(r->mem);
    audit_db_close(&r->db);
}

static void rig_wait(struct rig *r, int n)
{
    r->waiting = n;
    loop_run(r->loop);
}

static void on_exec(struct exec *x, const struct error *err)
{
    struct rig *r = x->user;
    r->failed = err != NULL;
    if (err)
        r->err = *err;
    if (--r->waiting == 0)
        loop_stop(r->loop);
}

static void begin(struct rig *r, struct exec *x)
{
    struct exec_request what = {.who = &local,
                                .session_id = STR("s1"),
                                .server = STR("files"),
                                .method = STR("tools/call"),
                                .tool = STR("echo"),
                                .body = STR("{}"),
                                .mode = AUDIT_REDACTED};
    x->user = r;
    exec_begin(r->audit, x, &what, NULL, 0, on_exec);
    rig_wait(r, 1);
}

static void end(struct rig *r, struct exec *x, const char *word)
{
    struct exec_result result = {.outcome = str_of(word), .body = STR("{\"token\":\"CANARY\"}")};
    exec_end(r->audit, x, &result, on_exec);
    rig_wait(r, 1);
}

/* Without the anchors, which come every second. */
static size_t events_in(struct rig *r, struct store *store, struct event_row **ret_rows)
{
    struct event_filter filter = {.kind = -1, .with_bodies = true};
    size_t n, kept = 0;
    must(store_events_page(store, &filter, 200, r->mem, ret_rows, &n, &must_err));
    for (size_t i = 0; i < n; i++)
        if ((*ret_rows)[i].kind != EVENT_ANCHOR)
            (*ret_rows)[kept++] = (*ret_rows)[i];
    return kept;
}

/* Asks by a connection of its own, whatever the lanes are doing. */
static size_t events(struct rig *r, struct event_row **ret_rows)
{
    char path[128];
    struct store_config config = {.path = audit_db_path(&r->db, "holdfast.db", path),
                                  .read_only = true};
    struct store *reader;
    must(store_open_sqlite(&config, &reader, &must_err));
    size_t n = events_in(r, reader, ret_rows);
    store_close(reader);
    return n;
}

static int64_t spooled(struct rig *r)
{
    char path[128];
    struct spool *s;
    int64_t n = -1;
    must(spool_open(audit_db_path(&r->db, "spool.db", path), &s, &must_err));
    must(spool_count(s, &n, &must_err));
    spool_close(s);
    return n;
}

static void on_poll(void *arg)
{
    struct rig *r = arg;
    struct event_row *rows;
    if (events(r, &rows) >= r->want_events && spooled(r) == 0)
        loop_stop(r->loop);
}

/* Until so many events are stored and the spool is empty. */
static void rig_wait_stored(struct rig *r, size_t n)
{
    r->want_events = n;
    r->poll = loop_timer_new(r->loop, on_poll, r);
    loop_timer_start(r->poll, 10, 10);
    loop_run(r->loop);
    loop_timer_free(r->poll);
}

TEST(test_unsaved_outcomes__an_outcome_is_durable_in_the_spool_before_the_call_ends)
{
    struct rig r;
    struct exec x;
    struct event_row *rows;
    rig_start(&r);
    begin(&r, &x);
    store_failing_set(r.failing, 1, false);
    end(&r, &x, "tool_error");
    assert_false(r.failed);
    assert_int_equal(x.state, EXEC_CLOSED);
    assert_int_equal(spooled(&r), 1);
    assert_int_equal(events(&r, &rows), 1);
    store_failing_set(r.failing, 0, false);
    rig_wait_stored(&r, 2);
    assert_int_equal(events(&r, &rows), 2);
    assert_int_equal(rows[1].kind, EVENT_OUTCOME);
    assert_int_equal(rows[1].exec, rows[0].id);
    assert_str(rows[1].outcome, "tool_error");
    assert_str(rows[1].body, "{\"token\":\"[redacted]\"}");
    run_stop(&r);
    rig_end(&r);
}

TEST(test_unsaved_outcomes__secrets_do_not_reach_the_spool)
{
    struct rig r;
    struct exec x;
    char path[128], bytes[65536];
    rig_start(&r);
    begin(&r, &x);
    store_failing_set(r.failing, 1, false);
    end(&r, &x, "ok");
    FILE *f = fopen(audit_db_path(&r.db, "spool.db", path).p, "r");
    size_t n = fread(bytes, 1, sizeof(bytes), f);
    fclose(f);
    assert_non_null(memmem(bytes, n, "[redacted]", 10));
    assert_null(memmem(bytes, n, "CANARY", 6));
    run_stop(&r);
    rig_end(&r);
}

TEST(test_unsaved_outcomes__a_spool_that_fails_too_is_told_and_the_outcome_stays_in_memory)
{
    struct rig r;
    struct exec x;
    struct event_row *rows;
    rig_start(&r);
    begin(&r, &x);
    store_failing_set(r.failing, 1, false);
    fault_load("spool.commit:1");
    end(&r, &x, "ok");
    fault_load("");
    assert_true(r.failed);
    assert_int_equal(spooled(&r), 0);
    store_failing_set(r.failing, 0, false);
    rig_wait_stored(&r, 2);
    assert_int_equal(events(&r, &rows), 2);
    assert_str(rows[1].outcome, "ok");
    run_stop(&r);
    rig_end(&r);
}

TEST(test_unsaved_outcomes__new_calls_are_refused_at_once_while_one_waits)
{
    struct rig r;
    struct exec x, y;
    rig_start(&r);
    begin(&r, &x);
    store_failing_set(r.failing, 1, false);
    end(&r, &x, "ok");
    begin(&r, &y);
    assert_true(r.failed);
    assert_int_equal(y.state, EXEC_REFUSED);
    assert_int_equal(r.err.code, ERR_UNAVAILABLE);
    run_stop(&r);
    rig_end(&r);
}

static void on_healthy(void *arg)
{
    struct rig *r = arg;
    if (lanes_healthy(r->lanes))
        loop_stop(r->loop);
}

TEST(test_unsaved_outcomes__what_waited_is_written_before_the_first_new_intent)
{
    struct rig r;
    struct exec calls[5], x;
    struct event_row *rows;
    rig_start(&r);
    for (int i = 0; i < 5; i++)
        begin(&r, &calls[i]);
    store_failing_set(r.failing, 1, false);
    for (int i = 0; i < 5; i++)
        end(&r, &calls[i], "ok");
    assert_int_equal(spooled(&r), 5);
    store_failing_set(r.failing, 0, false);
    r.poll = loop_timer_new(r.loop, on_healthy, &r);
    loop_timer_start(r.poll, 1, 1);
    loop_run(r.loop);
    loop_timer_free(r.poll);
    begin(&r, &x);
    assert_true(exec_is_open(&x));
    assert_int_equal(events(&r, &rows), 11);
    for (int i = 5; i < 10; i++)
        assert_int_equal(rows[i].kind, EVENT_OUTCOME);
    assert_int_equal(rows[10].kind, EVENT_INTENT);
    end(&r, &x, "ok");
    rig_wait_stored(&r, 12);
    assert_int_equal(events(&r, &rows), 12);
    run_stop(&r);
    rig_end(&r);
}

/* A process that ended while the store was gone: n calls, their outcomes in the spool alone. */
static void die_with_spooled(struct rig *r, size_t n)
{
    struct exec *calls = xcalloc(n, sizeof(*calls));
    rig_start(r);
    for (size_t i = 0; i < n; i++)
        begin(r, &calls[i]);
    store_failing_set(r->failing, 1, false);
    for (size_t i = 0; i < n; i++)
        end(r, &calls[i], "ok");
    run_stop(r);
    free(calls);
    assert_int_equal(spooled(r), n);
}

static size_t drain(struct rig *r)
{
    size_t n = 99;
    must(audit_drain_spool(r->inner, r->db.chain, r->spool, &n, &must_err));
    return n;
}

static void check_outcomes(struct rig *r, size_t calls)
{
    struct event_row *rows;
    size_t n = events_in(r, r->inner, &rows), outcomes = 0;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].kind != EVENT_OUTCOME)
            continue;
        outcomes++;
        assert_str(rows[i].outcome, "ok");
        assert_int_equal(event_id_writer(rows[i].exec), event_id_writer(rows[0].id));
    }
    assert_int_equal(outcomes, calls);
}

TEST(test_audit_drain_spool__a_start_writes_what_the_last_run_knew)
{
    static const size_t counts[] = {1, 99, 100};
    for (size_t i = 0; i < countof(counts); i++) {
        struct rig r;
        size_t lost = 99;
        die_with_spooled(&r, counts[i]);
        rig_next_writer(&r);
        assert_int_equal(drain(&r), counts[i]);
        must(audit_close_lost(r.inner, r.db.chain, &lost, &must_err));
        assert_int_equal(lost, 0);
        if (counts[i] < 100)
            check_outcomes(&r, counts[i]);
        assert_int_equal(drain(&r), 0);
        spool_close(r.spool);
        assert_int_equal(spooled(&r), 0);
        rig_end(&r);
    }
}

TEST(test_audit_drain_spool__a_death_between_append_and_removal_appends_nothing_twice)
{
    struct rig r;
    size_t n;
    die_with_spooled(&r, 3);
    rig_next_writer(&r);
    fault_load("spool.commit:1");
    assert_false(audit_drain_spool(r.inner, r.db.chain, r.spool, &n, &must_err));
    fault_load("");
    check_outcomes(&r, 3);
    spool_close(r.spool);
    store_close(r.inner);
    assert_int_equal(spooled(&r), 3);
    rig_next_writer(&r);
    assert_int_equal(drain(&r), 0);
    check_outcomes(&r, 3);
    spool_close(r.spool);
    assert_int_equal(spooled(&r), 0);
    rig_end(&r);
}

TEST(test_audit_drain_spool__what_others_took_for_lost_gets_its_outcome_after_all)
{
    struct rig r;
    size_t lost;
    struct event_row *rows;
    die_with_spooled(&r, 1);
    rig_next_writer(&r);
    must(audit_close_lost(r.inner, r.db.chain, &lost, &must_err)); /* another node's reaper */
    assert_int_equal(lost, 1);
    assert_int_equal(drain(&r), 1);
    assert_int_equal(events_in(&r, r.inner, &rows), 3);
    assert_str(rows[1].outcome, "indeterminate");
    assert_str(rows[2].outcome, "ok");
    spool_close(r.spool);
    rig_end(&r);
}

TEST(test_audit_drain_spool__of_another_database_is_refused_and_kept)
{
    struct rig r;
    size_t n;
    char path[128];
    die_with_spooled(&r, 2);
    unlink(audit_db_path(&r.db, "holdfast.db", path).p);
    unlink(audit_db_path(&r.db, "holdfast.db-wal", path).p);
    rig_next_writer(&r);
    /* The same ids are there, of other calls. */
    for (int i = 0; i < 4; i++) {
        struct event_row intent = audit_db_event(EVENT_INTENT, STR("default"));
        audit_db_write(&r.db, (struct event_row *[]){&intent}, 1);
    }
    assert_false(audit_drain_spool(r.inner, r.db.chain, r.spool, &n, &must_err));
    assert_int_equal(must_err.code, ERR_CONFIG);
    assert_non_null(strstr(must_err.text, "another database"));
    spool_close(r.spool);
    assert_int_equal(spooled(&r), 2);
    rig_end(&r);
}

TEST(test_unknown_commits__an_intent_that_was_committed_and_refused_is_closed_as_refused)
{
    struct rig r;
    struct exec x, y;
    struct event_row *rows;
    rig_start(&r);
    begin(&r, &y);
    assert_true(exec_is_open(&y));
    atomic_store(&lose, 1);
    begin(&r, &x);
    assert_int_equal(x.state, EXEC_REFUSED);
    rig_wait_stored(&r, 3);
    assert_int_equal(events(&r, &rows), 3);
    assert_int_equal(rows[1].kind, EVENT_INTENT);
    assert_int_equal(rows[2].kind, EVENT_OUTCOME);
    assert_int_equal(rows[2].exec, rows[1].id);
    assert_str(rows[2].outcome, "refused");
    end(&r, &y, "ok");
    assert_int_equal(events(&r, &rows), 4);
    run_stop(&r);
    rig_end(&r);
}

TEST(test_unknown_commits__an_intent_that_was_not_committed_leaves_nothing)
{
    struct rig r;
    struct exec x;
    struct event_row *rows;
    rig_start(&r);
    atomic_store(&lose, -1);
    begin(&r, &x);
    assert_int_equal(x.state, EXEC_REFUSED);
    r.poll = loop_timer_new(r.loop, on_healthy, &r);
    loop_timer_start(r.poll, 1, 1);
    loop_run(r.loop);
    loop_timer_stop(r.poll);
    begin(&r, &x); /* takes the very id */
    assert_true(exec_is_open(&x));
    loop_timer_start(r.poll, 600, 0); /* the store has been asked by then */
    loop_run(r.loop);
    loop_timer_free(r.poll);
    end(&r, &x, "ok");
    assert_int_equal(events(&r, &rows), 2);
    run_stop(&r);
    rig_end(&r);
}

TEST(test_unsaved_outcomes__an_outcome_whose_commit_lost_its_answer_is_recorded_once)
{
    struct rig r;
    struct exec x;
    struct event_row *rows;
    rig_start(&r);
    begin(&r, &x);
    atomic_store(&lose, 1);
    end(&r, &x, "ok");
    assert_false(r.failed); /* it is in the spool, and in the store */
    rig_wait_stored(&r, 2);
    assert_int_equal(events(&r, &rows), 2);
    run_stop(&r);
    rig_end(&r);
}

/* Ends the call with a result that is to be kept for its client. */
static enum verdict end_and_keep(struct rig *r, struct exec *x)
{
    char sealed[] = "sealed bytes";
    struct undelivered_row row = {.id = 77,
                                  .tenant = local.tenant,
                                  .owner = local.owner,
                                  .session_id = str_of(session_uuid),
                                  .exec = x->id,
                                  .created_ms = clock_life_ms(),
                                  .expires_ms = clock_life_ms() + 60000,
                                  .sealed = str_of(sealed),
                                  .sealed_len = sizeof(sealed) - 1};
    struct store_op keep = {.kind = OP_UNDELIVERED_PUT, .who = &local, .undelivered = &row};
    struct exec_result result = {.outcome = STR("ok"), .extra = &keep, .n_extra = 1};
    exec_end(r->audit, x, &result, on_exec);
    rig_wait(r, 1);
    memset(sealed, 'x', sizeof(sealed) - 1); /* nobody needs it any more */
    return x->ops[0].verdict;
}

static bool is_kept(struct rig *r, struct store *store)
{
    struct undelivered_row *row = NULL;
    must(store_undelivered_get(store, &local, 77, r->mem, &row, &must_err));
    return row && str_eq(row->sealed, STR("sealed bytes"));
}

TEST(test_unsaved_outcomes__a_result_for_a_client_that_left_goes_along)
{
    struct rig r;
    struct exec x;
    char path[128];
    rig_start(&r);
    begin(&r, &x);
    store_failing_set(r.failing, 1, false);
    assert_int_equal(end_and_keep(&r, &x), VERDICT_OK);
    assert_false(r.failed);
    store_failing_set(r.failing, 0, false);
    rig_wait_stored(&r, 2);
    run_stop(&r);
    rig_open_store(&r);
    assert_true(is_kept(&r, r.inner));
    store_close(r.inner);
    unlink(audit_db_path(&r.db, "spool.db", path).p);
    rig_end(&r);
}

TEST(test_unsaved_outcomes__a_result_that_neither_takes_is_said_not_to_be_kept)
{
    struct rig r;
    struct exec x;
    rig_start(&r);
    begin(&r, &x);
    store_failing_set(r.failing, 1, false);
    fault_load("spool.commit:1");
    assert_int_equal(end_and_keep(&r, &x), VERDICT_FAILED);
    fault_load("");
    assert_true(r.failed);
    store_failing_set(r.failing, 0, false);
    rig_wait_stored(&r, 2);
    run_stop(&r);
    rig_open_store(&r);
    assert_false(is_kept(&r, r.inner));
    store_close(r.inner);
    rig_end(&r);
}

TEST(test_audit_drain_spool__gives_clients_that_left_their_results)
{
    struct rig r;
    struct exec x;
    rig_start(&r);
    begin(&r, &x);
    store_failing_set(r.failing, 1, false);
    assert_int_equal(end_and_keep(&r, &x), VERDICT_OK);
    run_stop(&r);
    rig_next_writer(&r);
    assert_int_equal(drain(&r), 1);
    check_outcomes(&r, 1);
    assert_true(is_kept(&r, r.inner));
    spool_close(r.spool);
    rig_end(&r);
}
