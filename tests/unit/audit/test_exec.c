/* SPDX-License-Identifier: Apache-2.0 */
/* Exec tokens over real lanes: nothing opens before its intent is durable, nothing ends without an
 * outcome that is durable or being retried. */
#include "audit_db.h"

#include "audit/audit.h"
#include "audit/event_id.h"
#include "base/log.h"
#include "base/metric.h"
#include "json/read.h"

struct rig {
    struct audit_db db;
    struct store *inner; /* may be asked at any time: it serialises itself */
    struct store *failing;
    struct loop *loop;
    struct lanes *lanes;
    struct audit *audit;
    struct arena *mem;
    int waiting;
    bool failed;
    struct error err;
};

static const struct principal local = {
    .tenant = STR("default"), .owner = STR("local"), .role = ROLE_ADMIN};

static void rig_start(struct rig *r)
{
    char path[128];
    *r = (struct rig){0};
    log_setup(LOG_ERROR + 1, 0);
    audit_db_open(&r->db, true);
    r->inner = r->db.store;
    r->failing = store_failing(r->inner);
    r->db.store = NULL;
    r->loop = loop_new();
    r->mem = arena_new(SIZE_MAX / 4);
    struct lanes_config lanes = {.write = r->failing,
                                 .lookup = r->failing,
                                 .query = r->failing,
                                 .hook = chain_hook(r->db.chain),
                                 .max_queue = 65536,
                                 .max_batch = 512,
                                 .batch_fill_us = 1000};
    r->lanes = lanes_new(r->loop, &lanes);
    struct audit_config config = {.lanes = r->lanes,
                                  .loop = r->loop,
                                  .chain = r->db.chain,
                                  .writer = r->db.writer,
                                  .max_body = 16384,
                                  .anchor_file = audit_db_path(&r->db, "anchors.jsonl", path)};
    r->audit = audit_new(&config);
}

static void rig_stop(struct rig *r)
{
    lanes_free(r->lanes);
    audit_free(r->audit);
    loop_free(r->loop);
    arena_free(r->mem);
    audit_db_close(&r->db);
}

/* Turns the loop until `n` completions have come. */
static void rig_wait(struct rig *r, int n)
{
    r->waiting = n;
    loop_run(r->loop);
}

static void completed(struct rig *r)
{
    if (--r->waiting == 0)
        loop_stop(r->loop);
}

static void on_exec(struct exec *x, const struct error *err)
{
    struct rig *r = x->user;
    r->failed = err != NULL;
    if (err)
        r->err = *err;
    completed(r);
}

static struct exec_request what_of(enum server_audit mode)
{
    return (struct exec_request){.who = &local,
                                 .session_id = STR("s1"),
                                 .transport = STR("0a0b0c0d"),
                                 .carrier = STR("header"),
                                 .server = STR("files"),
                                 .method = STR("tools/call"),
                                 .tool = STR("echo"),
                                 .era = STR("2025-11-25>2025-11-25"),
                                 .body = STR("{\"arguments\":{\"password\":\"hunter2\"}}"),
                                 .mode = mode,
                                 .parent = 0};
}

static const struct exec_result fine = {.outcome = STR("ok"), .body = STR("{\"content\":[]}")};

static size_t events(struct rig *r, struct event_row **ret_rows)
{
    struct event_filter filter = {.kind = -1, .with_bodies = true};
    size_t n;
    must(store_events_page(r->inner, &filter, 200, r->mem, ret_rows, &n, &must_err));
    return n;
}

static void begin(struct rig *r, struct exec *x, enum server_audit mode)
{
    struct exec_request what = what_of(mode);
    x->user = r;
    exec_begin(r->audit, x, &what, NULL, 0, on_exec);
    assert_false(exec_is_open(x));
    rig_wait(r, 1);
}

TEST(test_exec__opens_once_its_intent_is_durable_and_closes_with_its_outcome)
{
    struct rig r;
    struct exec x;
    struct event_row *rows;
    rig_start(&r);
    begin(&r, &x, AUDIT_REDACTED);
    assert_true(exec_is_open(&x));
    assert_int_equal(events(&r, &rows), 1);
    assert_int_equal(rows[0].kind, EVENT_INTENT);
    assert_int_equal(rows[0].id, x.id);
    assert_int_equal(rows[0].exec, x.id);
    assert_str(rows[0].tenant, "default");
    assert_str(rows[0].owner, "local");
    assert_str(rows[0].server, "files");
    assert_str(rows[0].tool, "echo");
    assert_str(rows[0].session_id, "s1");
    assert_int_equal(rows[0].body_len, 36);
    assert_str(rows[0].body, "{\"arguments\":{\"password\":\"[redacted]\"}}");
    uint8_t sha[32];
    sha256(STR("{\"arguments\":{\"password\":\"hunter2\"}}"), sha);
    assert_memory_equal(rows[0].body_sha, sha, 32);

    exec_end(r.audit, &x, &fine, on_exec);
    assert_false(exec_is_open(&x));
    rig_wait(&r, 1);
    assert_false(r.failed);
    assert_int_equal(x.state, EXEC_CLOSED);
    assert_int_equal(events(&r, &rows), 2);
    assert_int_equal(rows[1].kind, EVENT_OUTCOME);
    assert_int_equal(rows[1].exec, x.id);
    assert_str(rows[1].outcome, "ok");
    assert_str(rows[1].server, "files");
    assert_str(rows[1].body, "{\"content\":[]}");
    assert_true(rows[1].duration_us >= 0);
    rig_stop(&r);
}

TEST(test_exec__modes_keep_all_some_or_none_of_a_body)
{
    static const struct {
        enum server_audit mode;
        const char *body; /* NULL: none */
    } cases[] = {
        {AUDIT_FULL, "{\"arguments\":{\"password\":\"hunter2\"}}"},
        {AUDIT_REDACTED, "{\"arguments\":{\"password\":\"[redacted]\"}}"},
        {AUDIT_DIGEST, NULL},
    };
    struct rig r;
    struct event_row *rows;
    rig_start(&r);
    for (size_t i = 0; i < countof(cases); i++) {
        struct exec x;
        begin(&r, &x, cases[i].mode);
        exec_end(r.audit, &x, &fine, on_exec);
        rig_wait(&r, 1);
        assert_int_equal(events(&r, &rows), 2 * i + 2);
        const struct event_row *intent = &rows[2 * i];
        assert_int_equal(intent->body_len, 36);
        if (cases[i].body)
            assert_str(intent->body, cases[i].body);
        else
            assert_null(intent->body.p);
    }
    rig_stop(&r);
}

/* Bodies at the limit that the request sets, and one past it; a smaller limit has no effect. */
TEST(test_exec__a_request_may_store_more_of_a_body_but_not_less)
{
    static const size_t limits[] = {100000, 100000, 200};
    static const size_t sizes[] = {100000, 100001, 16384};
    struct rig r;
    struct event_row *rows;
    char *text = xmalloc(100001);

    rig_start(&r);
    for (size_t i = 0; i < countof(sizes); i++) {
        struct exec x;
        memset(text, 'x', sizes[i]);
        text[0] = text[sizes[i] - 1] = '"';
        struct exec_request what = {.who = &local,
                                    .session_id = STR("s"),
                                    .server = STR("files"),
                                    .method = STR("tools/call"),
                                    .tool = STR("read"),
                                    .mode = AUDIT_FULL,
                                    .max_body = limits[i],
                                    .body = str_n(text, sizes[i])};
        exec_begin(r.audit, &x, &what, NULL, 0, on_exec);
        rig_wait(&r, 1);
        exec_end(r.audit, &x, &fine, on_exec);
        rig_wait(&r, 1);
        assert_int_equal(events(&r, &rows), 2 * i + 2);
        const struct event_row *intent = &rows[2 * i];
        assert_int_equal(intent->body_len, sizes[i]);
        if (sizes[i] <= limits[i] || limits[i] == 200)
            assert_int_equal(intent->body.n, sizes[i]);
        else
            assert_true(intent->body.n <= limits[i] &&
                        str_starts(intent->body, STR("{\"holdfast/cut\"")));
    }
    rig_stop(&r);
    free(text);
}

TEST(test_exec__an_unaudited_server_leaves_no_rows)
{
    struct rig r;
    struct exec x;
    struct event_row *rows;
    rig_start(&r);
    begin(&r, &x, AUDIT_NONE);
    assert_true(exec_is_open(&x));
    assert_int_equal(x.id, 0);
    exec_end(r.audit, &x, &fine, on_exec);
    rig_wait(&r, 1);
    assert_int_equal(x.state, EXEC_CLOSED);
    assert_int_equal(events(&r, &rows), 0);
    rig_stop(&r);
}

TEST(test_exec__writes_its_extra_ops_with_the_intent_even_unaudited)
{
    struct rig r;
    rig_start(&r);
    for (int i = 0; i < 2; i++) {
        struct exec x = {.user = &r};
        struct transport_row transport = {.endpoint = STR("/mcp"),
                                          .protocol_version = STR("2025-11-25"),
                                          .initialize_params = STR("{}"),
                                          .created_ms = 1,
                                          .last_used_ms = 1};
        transport.id_hash[0] = (uint8_t)i;
        struct store_op extra = {.kind = OP_TRANSPORT_CREATE,
                                 .who = &local,
                                 .transport = &transport,
                                 .verdict = VERDICT_FAILED};
        struct exec_request what = what_of(i == 0 ? AUDIT_REDACTED : AUDIT_NONE);
        struct transport_row *found = NULL;
        exec_begin(r.audit, &x, &what, &extra, 1, on_exec);
        rig_wait(&r, 1);
        assert_true(exec_is_open(&x));
        assert_int_equal(x.ops[0].verdict, VERDICT_OK);
        must(store_transport_get(r.inner, &local, transport.id_hash, r.mem, &found, &must_err));
        assert_non_null(found);
        exec_end(r.audit, &x, &fine, on_exec);
        rig_wait(&r, 1);
    }
    rig_stop(&r);
}

TEST(test_exec__a_store_that_fails_refuses_the_call_and_keeps_nothing)
{
    struct rig r;
    struct exec x;
    struct event_row *rows;
    rig_start(&r);
    store_failing_set(r.failing, 1, false);
    begin(&r, &x, AUDIT_REDACTED);
    assert_true(r.failed);
    assert_int_equal(x.state, EXEC_REFUSED);
    assert_false(exec_is_open(&x));
    assert_int_equal(events(&r, &rows), 0);
    store_failing_set(r.failing, 0, false);
    begin(&r, &x, AUDIT_REDACTED);
    assert_true(exec_is_open(&x));
    assert_int_equal(x.id, event_id_make(r.db.writer, 1));
    exec_end(r.audit, &x, &fine, on_exec);
    rig_wait(&r, 1);
    rig_stop(&r);
}

static void on_poll(void *arg)
{
    struct rig *r = arg;
    struct event_row *rows;
    if (events(r, &rows) == 2)
        completed(r);
}

TEST(test_exec__an_outcome_that_could_not_be_written_is_told_at_once_and_retried)
{
    struct rig r;
    struct event_row *rows;
    rig_start(&r);
    struct exec *x = xcalloc(1, sizeof(*x));
    begin(&r, x, AUDIT_REDACTED);
    int64_t id = x->id;
    store_failing_set(r.failing, 1, false);
    char *body = strdup("{\"token\":\"CANARY\"}");
    struct exec_result result = {
        .outcome = STR("tool_error"), .error = STR("It failed."), .body = str_of(body)};
    exec_end(r.audit, x, &result, on_exec);
    rig_wait(&r, 1);
    assert_true(r.failed);
    assert_int_equal(x->state, EXEC_CLOSED);
    /* Nothing of the call is needed any more. */
    free(body);
    free(x);
    assert_int_equal(events(&r, &rows), 1);
    store_failing_set(r.failing, 0, false);
    struct loop_timer *poll = loop_timer_new(r.loop, on_poll, &r);
    loop_timer_start(poll, 5, 5);
    rig_wait(&r, 1);
    loop_timer_free(poll);
    assert_int_equal(events(&r, &rows), 2);
    assert_int_equal(rows[1].exec, id);
    assert_str(rows[1].outcome, "tool_error");
    assert_str(rows[1].error, "It failed.");
    assert_str(rows[1].body, "{\"token\":\"[redacted]\"}");
    rig_stop(&r);
}

TEST(test_exec__refuses_new_calls_when_too_many_outcomes_wait)
{
    struct rig r;
    rig_start(&r);
    struct exec *calls = xcalloc(AUDIT_UNSAVED_MAX, sizeof(*calls)), x;
    struct exec_request what = what_of(AUDIT_DIGEST);
    for (int i = 0; i < AUDIT_UNSAVED_MAX; i++) {
        calls[i].user = &r;
        exec_begin(r.audit, &calls[i], &what, NULL, 0, on_exec);
    }
    rig_wait(&r, AUDIT_UNSAVED_MAX);
    store_failing_set(r.failing, 1, false);
    for (int i = 0; i < AUDIT_UNSAVED_MAX - 1; i++)
        exec_end(r.audit, &calls[i], &fine, on_exec);
    rig_wait(&r, AUDIT_UNSAVED_MAX - 1);
    assert_true(r.failed);
    begin(&r, &x, AUDIT_NONE);
    assert_true(exec_is_open(&x)); /* one below the limit */
    exec_end(r.audit, &x, &fine, on_exec);
    rig_wait(&r, 1);
    exec_end(r.audit, &calls[AUDIT_UNSAVED_MAX - 1], &fine, on_exec);
    rig_wait(&r, 1);
    begin(&r, &x, AUDIT_NONE);
    assert_int_equal(x.state, EXEC_REFUSED);
    assert_non_null(strstr(r.err.text, "outcomes wait"));
    rig_stop(&r);
    free(calls);
}

TEST(test_exec__long_texts_are_cut_at_their_limit)
{
    struct rig r;
    struct exec x = {.user = &r};
    struct event_row *rows;
    char tool[AUDIT_TEXT_MAX + 2];
    rig_start(&r);
    memset(tool, 't', sizeof(tool));
    memcpy(tool + AUDIT_TEXT_MAX - 1, "\xc3\xa9", 2); /* the limit goes through this one */
    for (size_t i = 0; i < 3; i++) {
        struct exec_request what = what_of(AUDIT_DIGEST);
        what.tool = str_n(tool, AUDIT_TEXT_MAX - 1 + i);
        what.server = str_n(tool, 200);
        exec_begin(r.audit, &x, &what, NULL, 0, on_exec);
        rig_wait(&r, 1);
        assert_int_equal(events(&r, &rows), 2 * i + 1);
        /* 255 and 256 bytes are kept as they are; of 257, whole characters. */
        assert_int_equal(rows[2 * i].tool.n, i == 1 ? AUDIT_TEXT_MAX : AUDIT_TEXT_MAX - 1);
        assert_int_equal(rows[2 * i].server.n, 200);
        exec_end(r.audit, &x, &fine, on_exec);
        rig_wait(&r, 1);
    }
    rig_stop(&r);
}

static void on_anchored(void *arg)
{
    completed(arg);
}

TEST(test_exec_note__is_recorded_with_what_was_asked)
{
    struct rig r;
    struct event_row *rows;
    struct exec_request what = what_of(AUDIT_REDACTED);
    rig_start(&r);
    assert_true((exec_is_open(&(struct exec[]){exec_for_note()}[0])));
    what.method = STR("resources/read");
    exec_note(r.audit, &what, &fine);
    audit_anchor(r.audit, on_anchored, &r); /* behind it in the queue */
    rig_wait(&r, 1);
    assert_true(events(&r, &rows) >= 1);
    assert_int_equal(rows[0].kind, EVENT_NOTE);
    assert_int_equal(rows[0].exec, rows[0].id);
    assert_str(rows[0].method, "resources/read");
    assert_str(rows[0].outcome, "ok");
    assert_str(rows[0].body, "{\"arguments\":{\"password\":\"[redacted]\"}}");
    rig_stop(&r);
}

/* The note is sealed on the write lane, when its writer has already dropped the set. */
TEST(test_exec_note__holds_the_secrets_of_the_session)
{
    struct rig r;
    struct event_row *rows;
    struct exec_request what = what_of(AUDIT_REDACTED);
    struct exec_result refused = {.outcome = STR("refused"),
                                  .error = STR("no tool plum-tree-on-the-hill")};
    struct known *k = known_new(false);

    rig_start(&r);
    known_add(k, STR("plum-tree-on-the-hill"), STR("credential a of the session"));
    known_finish(k);
    what.body = STR("{\"arguments\":{\"text\":\"plum-tree-on-the-hill\"}}");
    what.own.session = k;
    exec_note(r.audit, &what, &refused);
    known_unref(k);
    audit_anchor(r.audit, on_anchored, &r); /* behind it in the queue */
    rig_wait(&r, 1);
    assert_true(events(&r, &rows) >= 1);
    assert_str(rows[0].body,
               "{\"arguments\":{\"text\":\"[redacted: credential a of the session]\"}}");
    assert_str(rows[0].error, "no tool [redacted: credential a of the session]");
    rig_stop(&r);
}

/* Writes a note with a body of n bytes; gives how many notes were dropped by that. */
static int64_t drops_of_note(struct rig *r, size_t n)
{
    struct metric *m = metric_register(METRIC_COUNTER, "holdfast_audit_failures_total", "", "", 1);
    struct metric_cell *failures = metric_cell(m, NULL, 0);
    int64_t before = metric_value(failures);
    char *body = xcalloc(1, n);
    struct exec_request what = what_of(AUDIT_DIGEST);

    what.body = str_n(body, n);
    exec_note(r->audit, &what, &fine);
    free(body);
    return metric_value(failures) - before;
}

/* The bodies of the notes that are in the store, oldest first. */
static size_t stored_notes(struct rig *r, int64_t ret_body_len[4])
{
    struct event_row *rows;
    size_t found = 0;

    audit_anchor(r->audit, on_anchored, r); /* behind the notes in the queue */
    rig_wait(r, 1);
    size_t n = (size_t)events(r, &rows);
    for (size_t i = 0; i < n && found < 4; i++)
        if (rows[i].kind == EVENT_NOTE)
            ret_body_len[found++] = rows[i].body_len;
    return found;
}

/* 16 MiB of notes may be on their way to the store.  A note has less than a page beside its body.
 */
TEST(test_exec_note__past_the_limit_of_bytes_is_dropped_and_counted)
{
    const size_t limit = (size_t)16 << 20, page = 4096;
    int64_t body_len[4];
    struct rig r;
    rig_start(&r);
    assert_int_equal(drops_of_note(&r, limit), 1);
    assert_int_equal(drops_of_note(&r, limit - page), 0);
    assert_int_equal(drops_of_note(&r, page), 1); /* no room beside the one before */
    assert_int_equal(stored_notes(&r, body_len), 1);
    assert_int_equal(body_len[0], limit - page);
    /* It is stored, and its bytes are free again. */
    assert_int_equal(drops_of_note(&r, page), 0);
    assert_int_equal(drops_of_note(&r, limit - 3 * page), 0);
    assert_int_equal(stored_notes(&r, body_len), 3);
    assert_int_equal(body_len[1], page);
    assert_int_equal(body_len[2], limit - 3 * page);
    rig_stop(&r);
}

TEST(test_exec_housekeeping__is_open_and_leaves_nothing)
{
    struct exec x = exec_housekeeping(EXEC_PING);
    assert_true(exec_is_open(&x));
    assert_int_equal(x.kind, EXEC_HOUSEKEEPING);
    assert_int_equal(x.reason, EXEC_PING);
}

TEST(test_exec__counts_executions_by_server_and_outcome)
{
    struct rig r;
    struct exec x;
    struct metric *m =
        metric_register(METRIC_COUNTER, "holdfast_executions_total", "", "server,outcome", 1000);
    const struct str labels[] = {STR("files"), STR("ok")};
    rig_start(&r);
    int64_t before = metric_value(metric_cell(m, labels, 2));
    begin(&r, &x, AUDIT_REDACTED);
    exec_end(r.audit, &x, &fine, on_exec);
    rig_wait(&r, 1);
    assert_int_equal(metric_value(metric_cell(m, labels, 2)), before + 1);
    rig_stop(&r);
}

static size_t read_lines(struct rig *r, char *text, size_t size)
{
    char path[128];
    audit_db_path(&r->db, "anchors.jsonl", path);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    size_t n = fread(text, 1, size - 1, f);
    text[n] = '\0';
    fclose(f);
    return n;
}

TEST(test_audit_anchor__names_the_heads_and_is_copied_to_the_second_sink)
{
    struct rig r;
    struct exec x;
    struct event_row *rows;
    char text[4096], mac[65];
    rig_start(&r);
    begin(&r, &x, AUDIT_DIGEST);
    exec_end(r.audit, &x, &fine, on_exec);
    rig_wait(&r, 1);
    audit_anchor(r.audit, on_anchored, &r);
    rig_wait(&r, 1);
    assert_int_equal(events(&r, &rows), 3);
    assert_int_equal(rows[2].kind, EVENT_ANCHOR);
    hex_encode(rows[1].mac, 32, mac);
    assert_non_null(memmem(rows[2].body.p, rows[2].body.n, mac, 64));
    size_t n = read_lines(&r, text, sizeof(text));
    assert_true(n > 0 && text[n - 1] == '\n');
    assert_non_null(strstr(text, mac));
    hex_encode(rows[2].mac, 32, mac);
    assert_non_null(strstr(text, mac));
    rig_stop(&r);
}

TEST(test_audit_anchor__is_not_written_again_when_nothing_happened)
{
    struct rig r;
    struct exec x;
    struct event_row *rows;
    rig_start(&r);
    begin(&r, &x, AUDIT_DIGEST);
    exec_end(r.audit, &x, &fine, on_exec);
    rig_wait(&r, 1);
    for (int i = 0; i < 3; i++) {
        audit_anchor(r.audit, on_anchored, &r);
        rig_wait(&r, 1);
    }
    assert_int_equal(events(&r, &rows), 3);
    /* Asked twice at once, both are told. */
    audit_anchor(r.audit, on_anchored, &r);
    audit_anchor(r.audit, on_anchored, &r);
    rig_wait(&r, 2);
    assert_int_equal(events(&r, &rows), 3);
    rig_stop(&r);
}

TEST(test_audit_anchor__begins_a_new_line_after_a_torn_one)
{
    struct rig r;
    struct exec x;
    char text[4096], path[128];
    rig_start(&r);
    audit_db_path(&r.db, "anchors.jsonl", path);
    FILE *f = fopen(path, "w");
    fputs("{\"id\":\"1.", f);
    fclose(f);
    begin(&r, &x, AUDIT_DIGEST);
    exec_end(r.audit, &x, &fine, on_exec);
    rig_wait(&r, 1);
    audit_anchor(r.audit, on_anchored, &r);
    rig_wait(&r, 1);
    read_lines(&r, text, sizeof(text));
    assert_non_null(strstr(text, "{\"id\":\"1.\n{\"id\":\""));
    rig_stop(&r);
}

TEST(test_audit_anchor__that_fails_is_told_and_tried_again)
{
    struct rig r;
    struct exec x;
    struct event_row *rows;
    rig_start(&r);
    begin(&r, &x, AUDIT_DIGEST);
    exec_end(r.audit, &x, &fine, on_exec);
    rig_wait(&r, 1);
    store_failing_set(r.failing, 1, false);
    audit_anchor(r.audit, on_anchored, &r);
    rig_wait(&r, 1);
    assert_int_equal(events(&r, &rows), 2);
    store_failing_set(r.failing, 0, false);
    audit_anchor(r.audit, on_anchored, &r);
    rig_wait(&r, 1);
    assert_int_equal(events(&r, &rows), 3);
    rig_stop(&r);
}

/* A run that ended in the middle of its calls, and the start after it. */
static void check_close_lost(bool memory, size_t n)
{
    struct audit_db db;
    struct event_row *rows;
    size_t closed = 99, seen;
    struct arena *mem = arena_new(SIZE_MAX / 4);
    audit_db_open(&db, memory);
    for (size_t i = 0; i < n + 1; i++) {
        struct event_row intent = audit_db_event(EVENT_INTENT, STR("default"));
        audit_db_write(&db, (struct event_row *[]){&intent}, 1);
        if (i > 0)
            continue;
        struct event_row outcome = audit_db_event(EVENT_OUTCOME, STR("default"));
        outcome.exec = intent.id;
        outcome.outcome = STR("ok");
        audit_db_write(&db, (struct event_row *[]){&outcome}, 1);
    }
    audit_db_start(&db);
    must(audit_close_lost(db.store, db.chain, &closed, &must_err));
    assert_int_equal(closed, n);
    struct event_filter filter = {.kind = EVENT_OUTCOME, .after = event_id_make(db.writer, 0)};
    must(store_events_page(db.store, &filter, 200, mem, &rows, &seen, &must_err));
    assert_int_equal(seen, n < 200 ? n : 200);
    for (size_t i = 0; i < seen; i++) {
        assert_str(rows[i].outcome, "indeterminate");
        assert_str(rows[i].tool, "echo");
        assert_int_equal(event_id_writer(rows[i].exec), db.writer - 1);
    }
    must(audit_close_lost(db.store, db.chain, &closed, &must_err));
    assert_int_equal(closed, 0);
    arena_free(mem);
    audit_db_close(&db);
}

TEST(test_audit_close_lost__closes_what_an_earlier_run_left_open)
{
    static const size_t counts[] = {0, 1, 199, 200, 201, 450};
    for (size_t i = 0; i < countof(counts); i++) {
        check_close_lost(true, counts[i]);
        check_close_lost(false, counts[i]);
    }
}

TEST(test_audit_close_lost__refuses_a_key_that_did_not_seal_the_database)
{
    struct audit_db db;
    char path[128];
    size_t closed;
    audit_db_open(&db, false);
    struct event_row e = audit_db_event(EVENT_NOTE, STR("default"));
    audit_db_write(&db, (struct event_row *[]){&e}, 1);
    must(audit_close_lost(db.store, db.chain, &closed, &must_err));
    audit_db_path(&db, "audit.key", path);
    assert_int_equal(unlink(path), 0);
    audit_db_start(&db);
    assert_false(audit_close_lost(db.store, db.chain, &closed, &must_err));
    assert_int_equal(must_err.code, ERR_CONFIG);
    audit_db_close(&db);
}
