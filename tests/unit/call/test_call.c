/* SPDX-License-Identifier: Apache-2.0 */
/* Calls without any exchange: listeners of the tests' own, a built-in server whose tool answers
 * when the test wants it, real lanes and a real audit over the reference store. */
#include "audit_db.h"

#include "audit/audit.h"
#include "base/log.h"
#include "call/call_impl.h"
#include "mcp/method.h"
#include "session/session_metrics.h"
#include "upstream/builtin.h"
#include "upstream/upstream_impl.h"

#define REQUEST                                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"wait\","       \
    "\"arguments\":{\"text\":\"hello\"}}}"

static const struct principal alice = {STR("acme"), STR("user:alice"), ROLE_MEMBER};

struct rig {
    struct audit_db db;
    struct store *inner, *failing;
    struct loop *loop;
    struct lanes *lanes;
    struct audit *audit;
    struct sessions *sessions;
    struct undelivered *undelivered;
    struct config *config;
    struct upstreams *set;
    struct upstream *up;
    struct catalog *catalog;
    struct calls *calls;
    struct arena *mem;
};

static struct builtin_call *waiting; /* the last call of the tool, which has not answered yet */
static unsigned n_runs;
static void (*at_message)(void); /* called before and after each message of the server; or NULL */

static void run_wait(struct builtin_call *call)
{
    waiting = call;
    call->waits = true;
    n_runs++;
}

static const struct builtin_tool tools[] = {
    {.name = "wait", .definition = "{\"name\":\"wait\",\"inputSchema\":{}}", .run = run_wait},
    {.name = NULL},
};
static const struct builtin server = {.name = "sample", .instructions = "", .tools = tools};

/* As delivery does it. */
static void on_upstream_message(void *arg unused_arg, struct link *l,
                                struct pending *about unused_arg, struct str text)
{
    struct arena *mem = arena_new(1 << 20);
    struct mcp_message m;
    struct error err;
    uint64_t id;

    assert_true(mcp_parse_upstream(arena_dup(mem, text), mem, &m, &err));
    assert_true(str_to_u64(m.id, UINT64_MAX, &id));
    struct pending *p = pending_find(l, id);
    if (!p) {
        arena_free(mem);
        return;
    }
    if (at_message)
        at_message();
    pending_take(p);
    p->on_reply(p, &m, mem);
    if (at_message)
        at_message();
}

static void on_catalog(struct catalog_want *w unused_arg, struct catalog *c unused_arg,
                       const struct error *err)
{
    assert_null(err);
}

static void find_catalog(struct rig *r)
{
    struct catalog_want want = {.done = on_catalog};
    struct catalog *found = NULL;
    struct error err;

    assert_true(upstream_catalog(r->up, false, &want, &found, &err));
    while (!found && !(found = upstream_known(r->up)))
        loop_turn(r->loop);
    r->catalog = catalog_ref(found);
}

static void rig_open(struct rig *r)
{
    char path[128];
    struct error err;

    *r = (struct rig){.loop = loop_new(), .mem = arena_new(SIZE_MAX / 4)};
    log_setup(LOG_ERROR + 1, 0);
    session_metrics_start();
    waiting = NULL;
    at_message = NULL;
    n_runs = 0;
    audit_db_open(&r->db, true);
    r->inner = r->db.store;
    r->failing = store_failing(r->inner);
    r->db.store = NULL;
    struct lanes_config lanes = {.write = r->failing,
                                 .lookup = r->failing,
                                 .query = r->failing,
                                 .hook = chain_hook(r->db.chain),
                                 .max_queue = 65536,
                                 .max_batch = 512,
                                 .batch_fill_us = 1000};
    r->lanes = lanes_new(r->loop, &lanes);
    struct audit_config audit = {.lanes = r->lanes,
                                 .loop = r->loop,
                                 .chain = r->db.chain,
                                 .writer = r->db.writer,
                                 .max_body = 16384,
                                 .anchor_file = audit_db_path(&r->db, "anchors.jsonl", path)};
    r->audit = audit_new(&audit);
    struct sessions_config sessions = {
        .lanes = r->lanes, .node = STR("node"), .writer = r->db.writer, .max_resident = 16};
    r->sessions = sessions_new(&sessions);
    struct undelivered_config undelivered = {
        .loop = r->loop, .store = r->inner, .writer = r->db.writer, .key = {1, 2, 3}};
    must(undelivered_open(&undelivered, &r->undelivered, &must_err));
    undelivered_use(r->undelivered, r->lanes);
    assert_true(config_parse(STR("{}"), STR("h.json"), NULL, &r->config, &err));
    builtin_register(&server, NULL);
    struct upstreams_config upstreams = {.loop = r->loop,
                                         .sink = {.on_message = on_upstream_message}};
    r->set = upstreams_new(&upstreams);
    upstreams_apply(r->set, r->config);
    r->up = upstreams_find(r->set, STR("sample"));
    find_catalog(r);
    struct calls_config calls = {.loop = r->loop,
                                 .audit = r->audit,
                                 .lanes = r->lanes,
                                 .undelivered = r->undelivered,
                                 .config = &r->config};
    r->calls = calls_new(&calls);
}

static void rig_close(struct rig *r)
{
    assert_int_equal(calls_in_flight(r->calls), 0);
    catalog_unref(r->catalog);
    upstreams_free(r->set);
    lanes_free(r->lanes);
    audit_free(r->audit);
    calls_free(r->calls);
    undelivered_free(r->undelivered);
    sessions_free(r->sessions);
    config_unref(r->config);
    loop_free(r->loop);
    arena_free(r->mem);
    audit_db_close(&r->db);
}

/* A listener of the tests. */
struct ear {
    struct call_listener listener;
    bool is_away; /* its client is gone */
    unsigned n_over, n_progress, n_messages;
    char reply[512];
};

static struct ear *ear_of(const struct call_listener *l)
{
    return container_of(l, struct ear, listener);
}

static void ear_over(struct call_listener *l)
{
    struct ear *e = ear_of(l);
    struct buf out;

    e->n_over++;
    if (l->call->has_answer) {
        struct call_reply reply = {.id = STR("7"), .is_seen = !e->is_away, .mem = l->call->mem};
        buf_init(&out, sizeof(e->reply));
        call_write_reply(l->call, &reply, &out);
        (void)call_replied(l->call, call_reply_result(buf_str(&out), STR("7")), e->is_away);
        snprintf(e->reply, sizeof(e->reply), "%.*s", (int)out.n, out.p);
        buf_release(&out);
    } else {
        snprintf(e->reply, sizeof(e->reply), "%s", l->call->err.text);
    }
    call_detach(l);
}

static void ear_progress(struct call_listener *l, const struct mcp_message *m unused_arg)
{
    ear_of(l)->n_progress++;
}

static bool ear_message(struct call_listener *l, const struct mcp_message *m unused_arg)
{
    struct ear *e = ear_of(l);

    e->n_messages += !e->is_away;
    return !e->is_away;
}

static bool ear_is_connected(const struct call_listener *l)
{
    return !ear_of(l)->is_away;
}

static const struct call_listener_ops ear_ops = {
    .over = ear_over,
    .progress = ear_progress,
    .message = ear_message,
    .is_connected = ear_is_connected,
};

static void ear_attach(struct ear *e, struct call *c)
{
    *e = (struct ear){.listener = {.ops = &ear_ops}};
    call_attach(c, &e->listener);
}

/* The memory of the arguments is freed before the call starts: the call has copies of all of it. */
static struct call *new_call(struct rig *r)
{
    struct arena *mem = arena_new(1 << 20);
    struct principal who = principal_dup(&alice, mem);
    struct mcp_message request;
    struct str id;
    struct error err;
    bool is_batch;
    struct session_new_args session = {.who = &who,
                                       .origin = ORIGIN_KEYED,
                                       .carrier = STR("client-id"),
                                       .carrier_key = STR("laptop"),
                                       .counted = true,
                                       .life_ms = 3600000};

    assert_true(
        mcp_parse_request(arena_dup(mem, STR(REQUEST)), mem, &request, &id, &is_batch, &err));
    struct session *s = session_new(r->sessions, &session);
    struct call_args args = {
        .kind = EXEC_DURABLE,
        .method = mcp_method_find(STR("tools/call"), r->catalog->era),
        .who = &who,
        .request = &request,
        .client_era = r->catalog->era,
        .client_version = r->catalog->version,
        .tool = arena_dup(mem, STR("wait")),
        .up = r->up,
        .catalog = r->catalog,
        .item = catalog_tool(r->catalog, STR("wait")),
        .session = s,
        .plan = {.who = &who, .session = s, .max_counted = -1, .life_ms = 3600000},
    };
    struct call *c = call_new(r->calls, &args);
    session_unref(s);
    arena_free(mem);
    return c;
}

static void wait_sent(struct rig *r)
{
    while (!waiting)
        loop_turn(r->loop);
}

static void answer(const char *text)
{
    assert_non_null(waiting);
    builtin_text(waiting, str_of(text), false);
    builtin_finish(waiting);
    waiting = NULL;
}

/* The call under test, its listener, and what the test does in which state. */
static struct call *the_call;
static struct ear the_ear;
static enum call_state act_state;
static void (*act)(void);

static void act_once(void)
{
    void (*now)(void) = act;

    if (!act || the_call->state != act_state)
        return;
    act = at_message = NULL;
    now();
}

/* Runs the call until it has that state, acts, answers the call if it was sent, and waits for its
 * end.  LINKING and ENDING may begin and end within one turn of the loop: before the message that
 * opens the link, and after the one that answers the call. */
static void act_in(struct rig *r, enum call_state state, void (*what)(void))
{
    the_call = new_call(r);
    ear_attach(&the_ear, the_call);
    act = what;
    act_state = state;
    at_message = act_once;
    call_start(the_call);
    while (calls_in_flight(r->calls)) {
        act_once();
        if (waiting && (!act || state == CALL_ENDING))
            answer("done");
        if (calls_in_flight(r->calls))
            loop_turn(r->loop);
    }
    assert_null(act); /* the state was met */
    if (waiting)
        answer("too late");
}

static void wait_over(struct rig *r)
{
    while (calls_in_flight(r->calls))
        loop_turn(r->loop);
}

/* The outcome of the only call, or "open". */
static struct str recorded_outcome(struct rig *r)
{
    struct event_filter filter = {.kind = -1, .with_bodies = true};
    struct event_row *rows;
    struct str outcome = STR("none");
    size_t n;

    must(store_events_page(r->inner, &filter, 200, r->mem, &rows, &n, &must_err));
    for (size_t i = 0; i < n; i++)
        if (rows[i].kind == EVENT_INTENT)
            outcome = STR("open");
        else if (rows[i].kind == EVENT_OUTCOME)
            outcome = rows[i].outcome;
    return outcome;
}

static size_t n_kept(struct rig *r)
{
    struct undelivered_row *rows;
    size_t n;

    must(store_undelivered_page(r->inner, 0, STORE_PAGE_MAX, r->mem, &rows, &n, &must_err));
    return n;
}

TEST(test_call__runs_to_its_durable_outcome_without_a_listener)
{
    struct rig r;

    rig_open(&r);
    struct call *c = new_call(&r);
    call_start(c);
    wait_sent(&r);
    assert_str(recorded_outcome(&r), "open");
    answer("done");
    wait_over(&r);
    assert_str(recorded_outcome(&r), "ok");
    assert_int_equal(n_runs, 1);
    assert_int_equal(n_kept(&r), 1); /* for the client, should it ask again */
    rig_close(&r);
}

TEST(test_call__answers_each_of_two_listeners_once)
{
    struct ear first, second;
    struct rig r;

    rig_open(&r);
    struct call *c = new_call(&r);
    ear_attach(&first, c);
    ear_attach(&second, c);
    call_start(c);
    wait_sent(&r);
    answer("done");
    wait_over(&r);
    assert_int_equal(first.n_over, 1);
    assert_int_equal(second.n_over, 1);
    assert_non_null(strstr(first.reply, "\"text\":\"done\""));
    assert_string_equal(first.reply, second.reply);
    assert_int_equal(n_runs, 1);
    assert_int_equal(n_kept(&r), 0);
    rig_close(&r);
}

TEST(test_call__goes_on_while_one_listener_leaves_and_another_joins)
{
    struct ear first, second;
    struct rig r;

    rig_open(&r);
    struct call *c = new_call(&r);
    ear_attach(&first, c);
    call_start(c);
    wait_sent(&r);
    call_detach(&first.listener);
    call_client_lost(c);
    assert_int_equal(undelivered_count(r.undelivered), 1);
    ear_attach(&second, c);
    call_client_back(c);
    assert_int_equal(undelivered_count(r.undelivered), 0);
    answer("done");
    wait_over(&r);
    assert_int_equal(first.n_over, 0);
    assert_int_equal(second.n_over, 1);
    assert_non_null(strstr(second.reply, "\"text\":\"done\""));
    assert_int_equal(n_kept(&r), 0);
    rig_close(&r);
}

TEST(test_call__keeps_its_result_only_if_no_listener_has_a_client)
{
    static const struct {
        bool first_away, second_away;
        size_t n_kept;
    } cases[] = {{true, true, 1}, {true, false, 0}, {false, true, 0}, {false, false, 0}};

    for (size_t i = 0; i < countof(cases); i++) {
        struct ear first, second;
        struct rig r;
        rig_open(&r);
        struct call *c = new_call(&r);
        ear_attach(&first, c);
        ear_attach(&second, c);
        first.is_away = cases[i].first_away;
        second.is_away = cases[i].second_away;
        call_start(c);
        wait_sent(&r);
        answer("done");
        wait_over(&r);
        assert_int_equal(first.n_over + second.n_over, 2);
        assert_int_equal(n_kept(&r), cases[i].n_kept);
        rig_close(&r);
    }
}

static void client_leaves(void)
{
    the_ear.is_away = true;
}

TEST(test_call__stores_the_result_of_a_client_that_left_while_the_outcome_was_written)
{
    struct rig r;

    rig_open(&r);
    act_in(&r, CALL_ENDING, client_leaves);
    while (n_kept(&r) == 0)
        loop_turn(r.loop);
    assert_int_equal(the_ear.n_over, 1);
    rig_close(&r);
}

static const enum call_state states[] = {CALL_BEGINNING, CALL_LINKING, CALL_SENT, CALL_ENDING};

static void listener_leaves(void)
{
    call_detach(&the_ear.listener);
}

TEST(test_call__survives_the_loss_of_its_listener_in_every_state)
{
    for (size_t i = 0; i < countof(states); i++) {
        struct rig r;
        rig_open(&r);
        act_in(&r, states[i], listener_leaves);
        assert_int_equal(the_ear.n_over, 0);
        assert_int_equal(n_runs, 1);
        assert_str(recorded_outcome(&r), "ok");
        rig_close(&r);
    }
}

/* In the memory of the call, as the exchange leaves it there. */
static struct ear *stand_in;

static void stand_in_takes_over(void)
{
    stand_in = arena_alloc(the_call->mem, sizeof(*stand_in));
    ear_attach(stand_in, the_call);
    stand_in->is_away = true;
    call_detach(&the_ear.listener);
    call_client_lost(the_call);
}

static unsigned stand_in_over; /* the stand-in itself is freed with the call */

static void count_over(struct call_listener *l)
{
    stand_in_over += l->call->has_answer;
    ear_over(l);
}

static void counted_stand_in_takes_over(void)
{
    static struct call_listener_ops ops;

    ops = ear_ops;
    ops.over = count_over;
    stand_in_takes_over();
    stand_in->listener.ops = &ops;
}

TEST(test_call__keeps_its_result_when_a_stand_in_takes_over_in_every_state)
{
    for (size_t i = 0; i < countof(states); i++) {
        struct rig r;
        rig_open(&r);
        stand_in_over = 0;
        act_in(&r, states[i], counted_stand_in_takes_over);
        while (n_kept(&r) == 0)
            loop_turn(r.loop);
        assert_int_equal(the_ear.n_over, 0);
        assert_int_equal(stand_in_over, 1);
        assert_int_equal(n_runs, 1);
        assert_str(recorded_outcome(&r), "ok");
        assert_int_equal(n_kept(&r), 1);
        rig_close(&r);
    }
}

static void client_cancels(void)
{
    call_cancel(the_call, STR("test"));
}

/* Before the call is sent, nothing runs.  Once it is answered, it is too late. */
TEST(test_call__ends_once_when_it_is_cancelled_in_every_state)
{
    for (size_t i = 0; i < countof(states); i++) {
        struct rig r;
        rig_open(&r);
        act_in(&r, states[i], client_cancels);
        assert_int_equal(the_ear.n_over, 1);
        assert_int_equal(n_runs, states[i] >= CALL_SENT);
        assert_str(recorded_outcome(&r), states[i] == CALL_ENDING ? "ok" : "cancelled");
        rig_close(&r);
    }
}

TEST(test_call__is_cancelled_by_its_last_listener_alone)
{
    struct ear first, second;
    struct rig r;

    rig_open(&r);
    struct call *c = new_call(&r);
    ear_attach(&first, c);
    ear_attach(&second, c);
    call_start(c);
    wait_sent(&r);
    call_abandon(&first.listener, STR("gone"));
    assert_int_equal(c->state, CALL_SENT);
    call_detach(&first.listener);
    call_abandon(&second.listener, STR("gone"));
    wait_over(&r);
    assert_int_equal(second.n_over, 1);
    assert_str(recorded_outcome(&r), "cancelled");
    answer("too late");
    rig_close(&r);
}

TEST(test_call__executes_nothing_when_the_intent_cannot_be_stored)
{
    struct ear ear;
    struct rig r;

    rig_open(&r);
    struct call *c = new_call(&r);
    ear_attach(&ear, c);
    store_failing_set(r.failing, 1, false);
    call_start(c);
    wait_over(&r);
    assert_int_equal(ear.n_over, 1);
    assert_int_equal(n_runs, 0);
    store_failing_set(r.failing, 0, false);
    assert_str(recorded_outcome(&r), "none");
    rig_close(&r);
}

static struct mcp_message parse(struct rig *r, const char *text)
{
    struct mcp_message m;
    struct error err;

    assert_true(mcp_parse_upstream(str_of(text), r->mem, &m, &err));
    return m;
}

TEST(test_call__sends_notifications_to_all_listeners_and_a_question_to_one)
{
    struct ear away, first, second;
    struct rig r;

    rig_open(&r);
    struct call *c = new_call(&r);
    ear_attach(&away, c);
    ear_attach(&first, c);
    ear_attach(&second, c);
    away.is_away = true;
    call_start(c);
    wait_sent(&r);
    struct mcp_message note =
        parse(&r, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}");
    struct mcp_message question =
        parse(&r, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}");
    c->pending.on_progress(&c->pending, &note);
    assert_true(c->pending.on_message(&c->pending, &note));
    assert_int_equal(first.n_messages + second.n_messages, 2);
    assert_true(c->pending.on_message(&c->pending, &question));
    assert_int_equal(first.n_messages + second.n_messages, 3);
    assert_int_equal(away.n_progress + first.n_progress + second.n_progress, 3);
    first.is_away = second.is_away = true;
    assert_false(c->pending.on_message(&c->pending, &question));
    answer("done");
    wait_over(&r);
    rig_close(&r);
}

TEST(test_call__that_is_never_started_is_freed_with_its_listener)
{
    struct ear ear;
    struct rig r;

    rig_open(&r);
    struct call *c = new_call(&r);
    ear_attach(&ear, c);
    call_detach(&ear.listener);
    assert_int_equal(ear.n_over, 0);
    rig_close(&r);
}
