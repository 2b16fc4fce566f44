/* SPDX-License-Identifier: Apache-2.0 */
/* The publish point: committed events reach subscribers once, in the order of their ids. */
#include "audit_db.h"

#include "audit/audit.h"
#include "audit/event_id.h"
#include "audit/publish.h"
#include "base/log.h"

#define SEEN_MAX 4096

struct follower {
    struct audit_subscriber sub;
    struct publish_point *point; /* or: */
    struct audit *audit;
    struct loop *loop;
    int64_t ids[SEEN_MAX];
    enum event_kind kinds[SEEN_MAX];
    size_t n, calls, want;
    char body[128];
    struct follower *adds, *removes; /* once, at the next call */
};

static void subscribe(struct follower *f)
{
    if (f->audit)
        audit_subscribe(f->audit, &f->sub);
    else
        publish_subscribe(f->point, &f->sub);
}

static void unsubscribe(struct follower *f)
{
    if (f->audit)
        audit_unsubscribe(f->audit, &f->sub);
    else
        publish_unsubscribe(f->point, &f->sub);
}

static void on_events(struct audit_subscriber *s, const struct event_row *rows, size_t n)
{
    struct follower *f = container_of(s, struct follower, sub);
    f->calls++;
    for (size_t i = 0; i < n; i++) {
        assert_true(f->n < SEEN_MAX);
        assert_false(rows[i].record.p != NULL);
        f->ids[f->n] = rows[i].id;
        f->kinds[f->n++] = rows[i].kind;
        snprintf(f->body, sizeof(f->body), "%.*s",
                 STR_ARG(rows[i].body.p ? rows[i].body : STR("")));
    }
    struct follower *adds = f->adds, *removes = f->removes;
    f->adds = f->removes = NULL;
    if (adds)
        subscribe(adds);
    if (removes)
        unsubscribe(removes);
    if (f->want && f->n >= f->want)
        loop_stop(f->loop);
}

/* The chain without lanes: this test plays the write lane. */
struct bare {
    struct audit_db db;
    struct loop *loop;
    struct publish_point *point;
};

static void bare_start(struct bare *b)
{
    log_setup(LOG_ERROR + 1, 0);
    audit_db_open(&b->db, true);
    b->loop = loop_new();
    b->point = publish_point_new(b->db.chain, b->loop);
}

static void bare_stop(struct bare *b)
{
    publish_point_free(b->point);
    loop_free(b->loop);
    audit_db_close(&b->db);
}

static struct follower *follower_new(struct bare *b)
{
    struct follower *f = calloc(1, sizeof(*f));
    f->sub.on_events = on_events;
    f->point = b->point;
    return f;
}

static void write_events(struct bare *b, size_t n)
{
    struct event_row events[8], *list[8];
    assert_true(n <= countof(events));
    for (size_t i = 0; i < n; i++) {
        events[i] = audit_db_event(EVENT_NOTE, i % 2 ? STR("other") : STR("default"));
        list[i] = &events[i];
    }
    audit_db_write(&b->db, list, n);
}

static void assert_ids(const struct bare *b, const struct follower *f, int64_t first, int64_t last)
{
    assert_int_equal(f->n, last - first + 1);
    for (size_t i = 0; i < f->n; i++)
        assert_int_equal(f->ids[i], event_id_make(b->db.writer, first + (int64_t)i));
}

TEST(test_publish__events_of_several_commits_come_in_order_and_once)
{
    struct bare b;
    bare_start(&b);
    struct follower *one = follower_new(&b), *two = follower_new(&b);
    write_events(&b, 2); /* before the subscription */
    subscribe(one);
    subscribe(two);
    write_events(&b, 3);
    write_events(&b, 4);
    assert_int_equal(one->n, 0); /* only the loop hands them out */
    loop_turn(b.loop);
    assert_ids(&b, one, 3, 9);
    assert_ids(&b, two, 3, 9);
    assert_int_equal(one->calls, 2);
    unsubscribe(two);
    write_events(&b, 1);
    loop_turn(b.loop);
    assert_ids(&b, one, 3, 10);
    assert_ids(&b, two, 3, 9);
    unsubscribe(one);
    bare_stop(&b);
    free(one);
    free(two);
}

TEST(test_publish__without_subscribers_nothing_is_copied)
{
    struct bare b;
    bare_start(&b);
    struct follower *f = follower_new(&b);
    write_events(&b, 8);
    assert_int_equal(publish_count_batches(b.point), 0);
    subscribe(f);
    write_events(&b, 8);
    assert_int_equal(publish_count_batches(b.point), 1);
    unsubscribe(f);
    write_events(&b, 8);
    assert_int_equal(publish_count_batches(b.point), 1);
    loop_turn(b.loop); /* the batch was posted while f was subscribed */
    assert_int_equal(f->n, 0);
    bare_stop(&b);
    free(f);
}

/* Numbers an event as the write lane does, writes it or not, and reports a failure. */
static void fail_commit(struct bare *b, struct event_row *e, bool reaches_store)
{
    struct write_hook hook = chain_hook(b->db.chain);
    struct store_op op = {.kind = OP_EVENT_APPEND, .event = e};
    must(hook.assign(hook.arg, b->db.store, &op, 1, &must_err));
    if (reaches_store)
        must(store_write(b->db.store, &op, 1, &must_err));
    hook.rollback(hook.arg);
}

TEST(test_publish__a_failed_commit_is_not_published)
{
    struct bare b;
    bare_start(&b);
    struct follower *f = follower_new(&b);
    struct event_row lost = audit_db_event(EVENT_NOTE, STR("default"));
    subscribe(f);
    write_events(&b, 2);
    fail_commit(&b, &lost, false);
    assert_int_equal(publish_count_batches(b.point), 1);
    write_events(&b, 2);
    loop_turn(b.loop);
    assert_ids(&b, f, 1, 4);
    unsubscribe(f);
    bare_stop(&b);
    free(f);
}

TEST(test_publish__a_commit_of_unknown_fate_is_published_before_later_events)
{
    struct bare b;
    bare_start(&b);
    struct follower *f = follower_new(&b);
    struct event_row unknown = audit_db_event(EVENT_OUTCOME, STR("default")), *list[] = {&unknown};
    audit_db_body(&unknown, STR("{\"kept\":1}"));
    subscribe(f);
    write_events(&b, 2);
    fail_commit(&b, &unknown, true); /* the store has it, and the answer was lost */
    loop_turn(b.loop);
    assert_ids(&b, f, 1, 2);
    f->body[0] = '\0';
    write_events(&b, 2);
    loop_turn(b.loop);
    assert_ids(&b, f, 1, 5);
    assert_int_equal(f->kinds[2], EVENT_OUTCOME);
    /* The retry of the same event finds it in the store: it is not published again. */
    audit_db_write(&b.db, list, 1);
    write_events(&b, 1);
    loop_turn(b.loop);
    assert_ids(&b, f, 1, 6);
    unsubscribe(f);
    bare_stop(&b);
    free(f);
}

TEST(test_publish__a_retry_publishes_what_the_store_already_has)
{
    struct bare b;
    bare_start(&b);
    struct follower *f = follower_new(&b);
    struct event_row unknown = audit_db_event(EVENT_OUTCOME, STR("default")), *list[] = {&unknown};
    audit_db_body(&unknown, STR("{\"kept\":1}"));
    subscribe(f);
    fail_commit(&b, &unknown, true);
    audit_db_write(&b.db, list, 1);
    loop_turn(b.loop);
    assert_ids(&b, f, 1, 1);
    assert_string_equal(f->body, "{\"kept\":1}");
    unsubscribe(f);
    bare_stop(&b);
    free(f);
}

TEST(test_publish__an_unreadable_store_delays_and_never_reorders)
{
    struct bare b;
    bare_start(&b);
    struct follower *f = follower_new(&b);
    struct event_row unknown = audit_db_event(EVENT_NOTE, STR("default"));
    b.db.store = store_failing(b.db.store);
    subscribe(f);
    fail_commit(&b, &unknown, true);
    store_failing_set(b.db.store, 2, true); /* 1: the heads, 2: the page of missed events */
    write_events(&b, 2);
    assert_int_equal(publish_count_batches(b.point), 0);
    write_events(&b, 2);
    loop_turn(b.loop);
    assert_ids(&b, f, 1, 5);
    unsubscribe(f);
    bare_stop(&b);
    free(f);
}

TEST(test_publish__callbacks_may_add_and_remove_subscribers)
{
    struct bare b;
    bare_start(&b);
    struct follower *one = follower_new(&b), *two = follower_new(&b), *three = follower_new(&b);
    subscribe(one);
    subscribe(two);
    one->adds = three;
    one->removes = two; /* the next one in the list */
    write_events(&b, 1);
    loop_turn(b.loop);
    assert_ids(&b, one, 1, 1);
    assert_int_equal(two->n, 0);
    assert_int_equal(three->n, 0);
    three->removes = three;
    one->removes = one;
    write_events(&b, 1);
    loop_turn(b.loop);
    assert_ids(&b, one, 1, 2);
    assert_ids(&b, three, 2, 2);
    write_events(&b, 1);
    assert_int_equal(publish_count_batches(b.point), 2);
    bare_stop(&b);
    free(one);
    free(two);
    free(three);
}

TEST(test_publish__batches_that_are_still_posted_are_dropped_with_the_point)
{
    struct bare b;
    bare_start(&b);
    struct follower *f = follower_new(&b);
    subscribe(f);
    write_events(&b, 2);
    write_events(&b, 2);
    bare_stop(&b);
    assert_int_equal(f->n, 0);
    free(f);
}

/* Real lanes and the whole audit. */
struct rig {
    struct audit_db db;
    struct store *inner, *failing;
    struct loop *loop;
    struct lanes *lanes;
    struct audit *audit;
    int waiting;
    struct follower *f;
    size_t n_failed;
};

static const struct principal local = {
    .tenant = STR("default"), .owner = STR("local"), .role = ROLE_ADMIN};

static void rig_start(struct rig *r)
{
    *r = (struct rig){0};
    log_setup(LOG_ERROR + 1, 0);
    audit_db_open(&r->db, true);
    r->inner = r->db.store;
    r->failing = store_failing(r->inner);
    r->db.store = NULL;
    r->loop = loop_new();
    struct lanes_config lanes = {.write = r->failing,
                                 .lookup = r->failing,
                                 .query = r->failing,
                                 .hook = chain_hook(r->db.chain),
                                 .batch_fill_us = 1000};
    r->lanes = lanes_new(r->loop, &lanes);
    struct audit_config config = {.lanes = r->lanes,
                                  .loop = r->loop,
                                  .chain = r->db.chain,
                                  .writer = r->db.writer,
                                  .max_body = 16384};
    r->audit = audit_new(&config);
    r->f = calloc(1, sizeof(*r->f));
    r->f->sub.on_events = on_events;
    r->f->audit = r->audit;
    r->f->loop = r->loop;
}

static void rig_stop(struct rig *r)
{
    lanes_free(r->lanes);
    audit_free(r->audit);
    loop_free(r->loop);
    audit_db_close(&r->db);
    free(r->f);
}

static struct exec_request what_of(void)
{
    return (struct exec_request){.who = &local,
                                 .server = STR("files"),
                                 .method = STR("tools/call"),
                                 .tool = STR("echo"),
                                 .body = STR("{\"arguments\":{\"password\":\"hunter2\"}}"),
                                 .mode = AUDIT_REDACTED};
}

static void on_ended(struct exec *x, const struct error *err)
{
    struct rig *r = x->user;
    r->n_failed += err != NULL;
    r->waiting--;
}

static void on_begun(struct exec *x, const struct error *err)
{
    static const struct exec_result fine = {.outcome = STR("ok"), .body = STR("{\"content\":[]}")};
    struct rig *r = x->user;
    if (err)
        on_ended(x, err);
    else
        exec_end(r->audit, x, &fine, on_ended);
}

/* Runs calls to their end. */
static void run_calls(struct rig *r, struct exec *xs, int n)
{
    struct exec_request what = what_of();
    r->waiting = n;
    for (int i = 0; i < n; i++) {
        xs[i].user = r;
        exec_begin(r->audit, &xs[i], &what, NULL, 0, on_begun);
    }
    while (r->waiting > 0)
        loop_turn(r->loop);
}

static void wait_for_events(struct rig *r, size_t n)
{
    r->f->want = n;
    while (r->f->n < n)
        loop_run(r->loop);
}

static void assert_consecutive(const struct follower *f)
{
    for (size_t i = 1; i < f->n; i++)
        assert_int_equal(f->ids[i], f->ids[i - 1] + 1);
}

TEST(test_publish__every_event_of_many_calls_comes_once_through_the_lanes)
{
    struct rig r;
    static struct exec xs[200];
    rig_start(&r);
    audit_subscribe(r.audit, &r.f->sub);
    for (int round = 0; round < 3; round++)
        run_calls(&r, xs, countof(xs));
    wait_for_events(&r, 3 * 2 * countof(xs));
    assert_consecutive(r.f);
    assert_int_equal(event_id_count(r.f->ids[0]), 1);
    size_t intents = 0, outcomes = 0;
    for (size_t i = 0; i < r.f->n; i++) {
        intents += r.f->kinds[i] == EVENT_INTENT;
        outcomes += r.f->kinds[i] == EVENT_OUTCOME;
    }
    assert_int_equal(intents, 600);
    assert_int_equal(outcomes, 600);
    audit_unsubscribe(r.audit, &r.f->sub);
    rig_stop(&r);
}

TEST(test_publish__bodies_are_redacted_and_notes_and_anchors_come_too)
{
    struct rig r;
    rig_start(&r);
    audit_subscribe(r.audit, &r.f->sub);
    struct exec_request what = what_of();
    static const struct exec_result fine = {.outcome = STR("ok")};
    exec_note(r.audit, &what, &fine);
    wait_for_events(&r, 1);
    assert_int_equal(r.f->kinds[0], EVENT_NOTE);
    assert_string_equal(r.f->body, "{\"arguments\":{\"password\":\"[redacted]\"}}");
    audit_anchor(r.audit, NULL, NULL);
    wait_for_events(&r, 2);
    assert_int_equal(r.f->kinds[1], EVENT_ANCHOR);
    audit_unsubscribe(r.audit, &r.f->sub);
    rig_stop(&r);
}

TEST(test_publish__outcomes_that_waited_for_the_store_come_once)
{
    struct rig r;
    static struct exec xs[20];
    rig_start(&r);
    audit_subscribe(r.audit, &r.f->sub);
    run_calls(&r, xs, 20);
    wait_for_events(&r, 40);
    store_failing_set(r.failing, 2, false);
    run_calls(&r, xs, 20); /* the intents may be durable; what follows fails */
    store_failing_set(r.failing, 0, false);
    size_t refused = 0;
    for (size_t i = 0; i < countof(xs); i++)
        refused += xs[i].state == EXEC_REFUSED;
    wait_for_events(&r, 40 + 2 * (countof(xs) - refused));
    run_calls(&r, xs, 20);
    wait_for_events(&r, 80 + 2 * (countof(xs) - refused));
    assert_consecutive(r.f);
    audit_unsubscribe(r.audit, &r.f->sub);
    rig_stop(&r);
}

struct bad_job {
    struct write_job job;
    struct store_op ops[2];
    struct event_row event;
    struct session_row session;
    struct rig *rig;
};

static void on_job(struct write_job *job)
{
    struct bad_job *j = container_of(job, struct bad_job, job);
    j->rig->n_failed += !job->ok;
    j->rig->waiting--;
}

TEST(test_publish__a_batch_that_is_replayed_by_halves_is_published_without_its_bad_job)
{
    struct rig r;
    static struct bad_job jobs[16];
    rig_start(&r);
    audit_subscribe(r.audit, &r.f->sub);
    lanes_set_in_flight(r.lanes, 16);
    r.waiting = (int)countof(jobs);
    for (size_t i = 0; i < countof(jobs); i++) {
        struct bad_job *j = &jobs[i];
        *j = (struct bad_job){.rig = &r, .event = audit_db_event(EVENT_NOTE, STR("default"))};
        j->session = (struct session_row){.id = STR("there is no such session")};
        size_t n = 0;
        if (i == 5) /* its required op is refused */
            j->ops[n++] = (struct store_op){.kind = OP_SESSION_USE,
                                            .who = &local,
                                            .session = &j->session,
                                            .is_in_event = true,
                                            .required = true};
        j->ops[n++] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &j->event};
        j->job = (struct write_job){.ops = j->ops, .n = n, .done = on_job};
        assert_true(lane_write(r.lanes, &j->job));
    }
    while (r.waiting > 0)
        loop_turn(r.loop);
    assert_int_equal(r.n_failed, 1);
    assert_false(jobs[5].job.ok);
    wait_for_events(&r, 15);
    assert_consecutive(r.f);
    for (size_t i = 0, k = 0; i < countof(jobs); i++)
        if (i != 5)
            assert_int_equal(r.f->ids[k++], jobs[i].event.id);
    audit_unsubscribe(r.audit, &r.f->sub);
    rig_stop(&r);
}
