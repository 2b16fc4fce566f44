/* SPDX-License-Identifier: Apache-2.0 */
/* The reaper over a real store and lanes: the timers are the loop's, the lifetimes the fake
 * clock's. */
#include "test.h"

#include "base/clock.h"
#include "base/metric.h"
#include "session/reaper.h"

#include <stdio.h>

#define START INT64_C(1794733323456)
#define HOUR INT64_C(3600000)
#define TURNS 20000 /* far more than any wait here takes */

struct rig {
    struct loop *loop;
    struct store *store, *failing;
    struct lanes *lanes;
    struct sessions *sessions;
    struct reaper *reaper;
    struct config config;
    struct loop_timer *tick;
};

static const struct principal who = {.tenant = {"default", 7}, .owner = {"local", 5}};

static void on_tick(void *arg)
{
    (void)arg;
}

static void begin(struct rig *r, int64_t interval_ms, unsigned batch)
{
    struct error err;
    *r = (struct rig){.loop = loop_new()};
    clock_set_fake(START, 1000);
    assert_true(store_open_memory(&r->store, &err));
    r->failing = store_failing(r->store);
    struct lanes_config lanes = {
        .write = r->failing, .lookup = r->failing, .query = r->failing, .batch_fill_us = -1};
    r->lanes = lanes_new(r->loop, &lanes);
    struct sessions_config sessions = {
        .lanes = r->lanes, .node = STR("node"), .writer = 1, .max_resident = 10};
    r->sessions = sessions_new(&sessions);
    r->config = (struct config){
        .cleanup_interval_ms = interval_ms, .cleanup_batch = batch, .session_idle_ms = HOUR / 2};
    r->tick = loop_timer_new(r->loop, on_tick, r); /* so that a turn always ends */
    loop_timer_start(r->tick, 1, 1);
}

static void end(struct rig *r)
{
    loop_timer_free(r->tick);
    lanes_free(r->lanes);
    reaper_free(r->reaper);
    sessions_free(r->sessions);
    loop_free(r->loop);
    clock_set_real();
}

static unsigned made; /* sessions, by all tests */

static struct str id_of(unsigned number, char buf[40])
{
    snprintf(buf, 40, "01890a5d-ac96-774b-bcce-%012x", number);
    return str_of(buf);
}

static void add(struct rig *r, unsigned n, int64_t used_ms, int64_t expires_ms)
{
    struct error err;
    for (unsigned i = 0; i < n; i++) {
        char id[40];
        id_of(++made, id);
        struct session_row row = {.id = str_of(id),
                                  .handle = str_of(id),
                                  .edge_mcp_id = STR("node"),
                                  .carrier = STR("rest"),
                                  .created_ms = used_ms,
                                  .last_activity_ms = used_ms,
                                  .expires_ms = expires_ms,
                                  .version = 1};
        struct store_op op = {
            .kind = OP_SESSION_CREATE, .who = &who, .session = &row, .max_counted = -1};
        assert_true(store_write(r->store, &op, 1, &err));
        assert_int_equal(op.verdict, VERDICT_OK);
    }
}

static size_t with_status(struct rig *r, enum session_status status)
{
    struct arena *mem = arena_new(64u << 20);
    struct session_filter all = {0};
    struct session_row *rows;
    struct error err;
    size_t n, found = 0;
    assert_true(store_sessions_page(r->store, &who, &all, 200, mem, &rows, &n, &err));
    for (size_t i = 0; i < n; i++)
        found += rows[i].status == status;
    arena_free(mem);
    return found;
}

static int64_t metric(const char *name)
{
    return metric_value(metric_cell(metric_register(METRIC_COUNTER, name, "", "", 1), NULL, 0));
}

TEST(test_reaper__ends_all_that_is_over_however_small_the_batches)
{
    struct rig r;
    begin(&r, HOUR, 3); /* one run, and no other in this test's life */
    add(&r, 10, START, START + HOUR);
    add(&r, 2, START, START + 3 * HOUR);
    clock_advance_fake(2 * HOUR);
    int64_t before = metric("sessions_expired_total");
    r.config.cleanup_interval_ms = 1;
    r.reaper = reaper_new(r.loop, r.lanes, r.sessions, &r.config);
    for (int i = 0; i < TURNS && metric("sessions_expired_total") < before + 10; i++)
        loop_turn(r.loop);
    assert_int_equal(metric("sessions_expired_total"), before + 10);
    assert_int_equal(with_status(&r, SESSION_EXPIRED), 10);
    for (int i = 0; i < TURNS && with_status(&r, SESSION_IDLE) < 2; i++)
        loop_turn(r.loop);
    assert_int_equal(with_status(&r, SESSION_IDLE), 2);
    end(&r);
}

/* Gives each of the sessions that add() made last a link that `writer` opened. */
static void add_links(struct rig *r, unsigned n, int64_t writer)
{
    struct error err;
    char id[40];
    for (unsigned i = 0; i < n; i++) {
        struct link_row link = {.session_id = id_of(made - i, id),
                                .server = STR("far"),
                                .writer = writer,
                                .remote_id = STR("2025-11-25 0 remote"),
                                .opened_ms = START};
        struct store_op op = {.kind = OP_LINK_PUT, .who = &who, .link = &link};
        assert_true(store_write(r->store, &op, 1, &err));
        assert_int_equal(op.verdict, VERDICT_OK);
    }
}

static void on_link(void *arg, const struct link_row *row)
{
    unsigned *told = arg;
    assert_str(row->server, "far");
    assert_str(row->remote_id, "2025-11-25 0 remote");
    ++*told;
}

/* Of n links, `first` are told by the first run and the rest by later ones. */
static void check_runs(unsigned n, int64_t writer, unsigned first)
{
    struct rig r;
    unsigned told = 0;
    begin(&r, HOUR, 1000);
    add(&r, n, START, START + HOUR);
    add_links(&r, n, writer);
    clock_advance_fake(2 * HOUR);
    r.reaper = reaper_new(r.loop, r.lanes, r.sessions, &r.config);
    reaper_on_links(r.reaper, on_link, &told);
    for (int i = 0; i < TURNS && told < first; i++)
        loop_turn(r.loop);
    for (int i = 0; i < 100; i++) /* time for a batch more than there should be */
        loop_turn(r.loop);
    assert_int_equal(told, first);
    r.config.cleanup_interval_ms = 1; /* now the other runs */
    reaper_apply(r.reaper, &r.config);
    for (int i = 0; i < TURNS && told < n; i++)
        loop_turn(r.loop);
    assert_int_equal(told, n);
    end(&r);
}

TEST(test_reaper__a_run_tells_of_200_links_of_earlier_processes_and_all_of_its_own)
{
    check_runs(200, 7, 200);
    check_runs(350, 7, 200);
    check_runs(350, 1, 350);
}

TEST(test_reaper__a_run_that_fails_is_counted_and_the_next_one_comes)
{
    struct rig r;
    begin(&r, 1, 100);
    add(&r, 4, START, START + HOUR);
    clock_advance_fake(2 * HOUR);
    int64_t failures = metric("holdfast_cleanup_failures_total");
    int64_t expired = metric("sessions_expired_total");
    store_failing_set(r.failing, 1, false);
    r.reaper = reaper_new(r.loop, r.lanes, r.sessions, &r.config);
    for (int i = 0; i < TURNS && metric("holdfast_cleanup_failures_total") < failures + 2; i++)
        loop_turn(r.loop);
    assert_true(metric("holdfast_cleanup_failures_total") >= failures + 2);
    assert_int_equal(metric("sessions_expired_total"), expired);
    store_failing_set(r.failing, 0, false);
    for (int i = 0; i < TURNS && metric("sessions_expired_total") < expired + 4; i++)
        loop_turn(r.loop);
    assert_int_equal(metric("sessions_expired_total"), expired + 4);
    end(&r);
}

TEST(test_reaper__goes_by_a_new_configuration_at_once)
{
    struct rig r;
    begin(&r, 24 * HOUR, 1);
    add(&r, 3, START, START + HOUR);
    clock_advance_fake(2 * HOUR);
    int64_t expired = metric("sessions_expired_total");
    r.reaper = reaper_new(r.loop, r.lanes, r.sessions, &r.config);
    for (int i = 0; i < 20; i++)
        loop_turn(r.loop);
    assert_int_equal(metric("sessions_expired_total"), expired);
    r.config.cleanup_interval_ms = 1;
    r.config.cleanup_batch = 50;
    reaper_apply(r.reaper, &r.config);
    for (int i = 0; i < TURNS && metric("sessions_expired_total") < expired + 3; i++)
        loop_turn(r.loop);
    assert_int_equal(metric("sessions_expired_total"), expired + 3);
    end(&r);
}

TEST(test_reaper__lets_memory_go_of_what_is_over)
{
    struct rig r;
    begin(&r, 1, 10);
    struct session_new_args args = {
        .who = &who, .origin = ORIGIN_TRANSPORT, .carrier = STR("transport"), .life_ms = HOUR};
    struct session *s = session_new(r.sessions, &args);
    s->stored = true;
    session_unref(s);
    assert_int_equal(sessions_resident(r.sessions), 1);
    clock_advance_fake(HOUR);
    r.reaper = reaper_new(r.loop, r.lanes, r.sessions, &r.config);
    for (int i = 0; i < TURNS && sessions_resident(r.sessions); i++)
        loop_turn(r.loop);
    assert_int_equal(sessions_resident(r.sessions), 0);
    end(&r);
}

TEST(test_reaper__what_was_used_in_the_future_is_as_if_used_now)
{
    struct rig r;
    struct arena *mem = arena_new(64u << 20);
    struct session_filter all = {0};
    struct session_row *rows;
    struct error err;
    size_t n;
    begin(&r, 1, 10);
    add(&r, 1, START + 8760 * HOUR, START + 8784 * HOUR);
    r.reaper = reaper_new(r.loop, r.lanes, r.sessions, &r.config);
    int i = 0;
    do {
        loop_turn(r.loop);
        assert_true(store_sessions_page(r.store, &who, &all, 200, mem, &rows, &n, &err));
    } while (i++ < TURNS && rows[0].last_activity_ms != START);
    assert_int_equal(rows[0].last_activity_ms, START);
    assert_int_equal(rows[0].expires_ms, START + 24 * HOUR);
    assert_int_equal(rows[0].status, SESSION_ACTIVE);
    end(&r);
    arena_free(mem);
}
