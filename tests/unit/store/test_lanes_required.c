/* SPDX-License-Identifier: Apache-2.0 */
/* Required ops on the write lane, with a real store and a real chain: whoever is refused is refused
 * alone, and the chain has no trace of it. */
#include <semaphore.h>

#include "audit_db.h"

#include "audit/event_id.h"
#include "store/lanes.h"

#define SESSION "00000000-0000-7000-8000-00000000000"

static const struct principal alice = {STR("acme"), STR("user:alice"), ROLE_MEMBER};

struct held {
    struct write_job write;
    sem_t held, release;
};

struct job {
    struct write_job write;
    unsigned *done;
    struct session_row session;
    struct event_row event;
    struct store_op ops[2];
};

static void hold_up(struct write_job *write)
{
    struct held *h = container_of(write, struct held, write);
    sem_post(&h->held);
    sem_wait(&h->release);
}

static void on_done(struct write_job *write)
{
    ++*container_of(write, struct job, write)->done;
}

static void on_released(struct write_job *write)
{
    (void)write;
}

/* As REST records an execution. */
static void init_job(struct job *job, const char *session, unsigned *done)
{
    *job = (struct job){.done = done};
    job->session = (struct session_row){.id = str_of(session), .last_activity_ms = 5};
    job->event = (struct event_row){.tenant = STR("acme"),
                                    .kind = EVENT_RECORD,
                                    .session_id = str_of(session),
                                    .tool = STR("t"),
                                    .outcome = STR("ok"),
                                    .body_len = -1};
    job->ops[0] =
        (struct store_op){OP_SESSION_USE, &alice, {.session = &job->session}, .required = true};
    job->ops[1] = (struct store_op){OP_EVENT_APPEND, NULL, {.event = &job->event}};
    job->write = (struct write_job){.ops = job->ops, .n = 2, .done = on_done};
}

static void make_session(struct store *s, const char *id, bool ended)
{
    struct session_row row = {.id = str_of(id),
                              .handle = str_of(id),
                              .edge_mcp_id = STR("node"),
                              .origin = ORIGIN_REST,
                              .status = ended ? SESSION_TERMINATED : SESSION_ACTIVE,
                              .created_ms = 1,
                              .last_activity_ms = 1};
    struct store_op op = {OP_SESSION_CREATE, &alice, {.session = &row}, .max_counted = -1};
    must(store_write(s, &op, 1, &must_err));
    assert_int_equal(op.verdict, VERDICT_OK);
}

/* Holds the lane up with a job of its own, so that all others wait together. */
static void run_together(struct loop *loop, struct lanes *lanes, struct job *jobs, unsigned n,
                         const unsigned *done)
{
    struct writer_row writer = {.number = 1, .lease_until_ms = INT64_MAX};
    struct store_op renew = {OP_WRITER_RENEW, NULL, {.writer = &writer}};
    struct held h = {.write = {.ops = &renew, .n = 1, .prepare = hold_up, .done = on_released}};
    sem_init(&h.held, 0, 0);
    sem_init(&h.release, 0, 0);
    assert_true(lane_write(lanes, &h.write));
    sem_wait(&h.held);
    for (unsigned i = 0; i < n; i++)
        assert_true(lane_write(lanes, &jobs[i].write));
    sem_post(&h.release);
    while (*done < n)
        loop_turn(loop);
    sem_destroy(&h.held);
    sem_destroy(&h.release);
}

/* Every event there is, read on the lane that owns the connection. */
struct reading {
    struct read_job job;
    struct arena *mem;
    struct event_row *rows;
    size_t n;
    bool done;
};

static bool on_read(struct read_job *job, struct store *store)
{
    struct reading *r = container_of(job, struct reading, job);
    struct event_filter filter = {.kind = -1};
    return store_events_page(store, &filter, STORE_PAGE_MAX, r->mem, &r->rows, &r->n, &job->err);
}

static void on_read_done(struct read_job *job)
{
    container_of(job, struct reading, job)->done = true;
}

/* They are in order, each sealed behind the one before; how many. */
static size_t verify(const struct audit_db *db, struct loop *loop, struct lanes *lanes)
{
    struct reading r = {.job = {.run = on_read, .done = on_read_done}, .mem = arena_new(1 << 20)};
    struct chain_verifier *v = chain_verifier_new(db->chain);
    assert_true(lane_maintain(lanes, &r.job));
    while (!r.done)
        loop_turn(loop);
    assert_true(r.job.ok);
    for (size_t i = 0; i < r.n; i++) {
        assert_int_equal(r.rows[i].id, event_id_make(db->writer, (int64_t)i + 1));
        must(chain_verify_event(v, &r.rows[i], &must_err));
    }
    chain_verifier_free(v);
    arena_free(r.mem);
    return r.n;
}

static void refused_alone(bool memory)
{
    struct audit_db db;
    struct job jobs[9];
    unsigned done = 0;
    audit_db_open(&db, memory);
    make_session(db.store, SESSION "1", false);
    make_session(db.store, SESSION "2", true);
    struct loop *loop = loop_new();
    struct lanes *lanes = lanes_new(loop, &(struct lanes_config){.write = db.store,
                                                                 .lookup = db.store,
                                                                 .query = db.store,
                                                                 .hook = chain_hook(db.chain)});
    for (int i = 0; i < 9; i++)
        init_job(&jobs[i],
                 i == 4 || i == 8 ? SESSION "2"
                 : i == 1         ? SESSION "3"
                                  : SESSION "1",
                 &done);
    run_together(loop, lanes, jobs, 9, &done);
    for (int i = 0; i < 9; i++) {
        bool refused = i == 1 || i == 4 || i == 8;
        assert_int_equal(jobs[i].write.ok, !refused);
        assert_int_equal(jobs[i].ops[0].verdict, i == 1    ? VERDICT_MISSING
                                                 : refused ? VERDICT_NOT_ACTIVE
                                                           : VERDICT_OK);
        assert_int_equal(jobs[i].ops[1].verdict, refused ? VERDICT_FAILED : VERDICT_OK);
        if (refused)
            assert_int_equal(jobs[i].write.err.code, ERR_CONFLICT);
    }
    assert_true(lanes_healthy(lanes));
    assert_int_equal(verify(&db, loop, lanes), 6);
    done = 0;
    init_job(&jobs[0], SESSION "1", &done); /* and it goes on from there */
    run_together(loop, lanes, jobs, 1, &done);
    assert_true(jobs[0].write.ok);
    assert_int_equal(verify(&db, loop, lanes), 7);
    db.store = NULL; /* taken */
    lanes_free(lanes);
    loop_free(loop);
    audit_db_close(&db);
}

TEST(test_lane_write__whoever_is_refused_is_refused_alone_and_the_chain_holds)
{
    refused_alone(true);
}

TEST(test_lane_write__in_sqlite_too_the_refused_leaves_no_gap_in_the_chain)
{
    refused_alone(false);
}
