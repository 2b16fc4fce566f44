/* SPDX-License-Identifier: Apache-2.0 */
/* Kept results over a store in memory that fails on demand, with the clock in hand. */
#include "test.h"

#include "base/clock.h"
#include "call/undelivered.h"
#include "crypto/seal.h"

#include <stdio.h>
#include <stdlib.h>

#define NOW INT64_C(1800000000000)

static const struct principal alice = {STR("acme"), STR("user:alice"), ROLE_MEMBER};
static const struct principal bob = {STR("acme"), STR("user:bob"), ROLE_MEMBER};

/* `store` is the lanes'; it is shared by all of them and by the tests themselves. */
struct rig {
    struct loop *loop;
    struct store *store;
    struct lanes *lanes;
    struct undelivered *u;
    int64_t writer;
    unsigned done;
};

static struct undelivered *open_index(struct rig *r)
{
    struct undelivered *u = NULL;
    struct error err;
    struct undelivered_config config = {
        .loop = r->loop, .store = r->store, .writer = ++r->writer, .key = {1, 2, 3}};
    if (!undelivered_open(&config, &u, &err))
        fail_msg("%s", err.text);
    undelivered_use(u, r->lanes);
    return u;
}

static void create_session(struct rig *r, const struct principal *who, struct str id)
{
    struct error err;
    struct session_row row = {.id = id,
                              .handle = id,
                              .edge_mcp_id = STR("node"),
                              .created_ms = NOW,
                              .last_activity_ms = NOW};
    struct store_op op = {OP_SESSION_CREATE, who, {.session = &row}, .max_counted = -1};
    assert_true(store_write(r->store, &op, 1, &err));
    assert_int_equal(op.verdict, VERDICT_OK);
}

static void rig_open(struct rig *r)
{
    struct store *memory = NULL;
    struct error err;
    clock_set_fake(NOW, 1000);
    *r = (struct rig){.loop = loop_new()};
    assert_true(store_open_memory(&memory, &err));
    r->store = store_failing(memory);
    store_failing_set(r->store, 0, false);
    struct lanes_config config = {.write = r->store, .lookup = r->store, .query = r->store};
    r->lanes = lanes_new(r->loop, &config);
    create_session(r, &alice, STR("s1"));
    create_session(r, &alice, STR("s2"));
    create_session(r, &bob, STR("s3"));
    r->u = open_index(r);
}

static void rig_close(struct rig *r)
{
    lanes_free(r->lanes);
    undelivered_free(r->u);
    loop_free(r->loop);
    clock_set_real();
}

/* As a restart does: only the store remembers. */
static void restart(struct rig *r)
{
    undelivered_free(r->u);
    r->u = open_index(r);
}

static struct undelivered_ask ask_for(struct str session, struct str arguments)
{
    return (struct undelivered_ask){.who = &alice,
                                    .session_id = session,
                                    .server = STR("files"),
                                    .method = STR("tools/call"),
                                    .tool = STR("read"),
                                    .arguments = arguments};
}
static const char first_arguments[] = "{\"a\":1}";

static struct undelivered_ask the_ask(void)
{
    return ask_for(STR("s1"), str_of(first_arguments));
}

static void on_done(struct undelivered_take *t)
{
    struct rig *r = t->user;
    r->done++;
}

static void turn_until(struct rig *r, unsigned done)
{
    while (r->done < done)
        loop_turn(r->loop);
}

/* A write that is nobody's: when it is back, so is everything handed in before it. */
struct barrier {
    struct write_job job;
    bool is_back;
};

static void on_barrier(struct write_job *job)
{
    container_of(job, struct barrier, job)->is_back = true;
}

static void wait_written(struct rig *r)
{
    struct barrier b = {.job = {.done = on_barrier}};
    assert_true(lane_write(r->lanes, &b.job));
    while (!b.is_back)
        loop_turn(r->loop);
}

static void keep(struct rig *r, const struct undelivered_ask *ask, struct str result)
{
    struct undelivered_result *k = undelivered_expect(r->u, ask);
    assert_non_null(k);
    assert_true(undelivered_result_seal(k, 77, result, 0));
    undelivered_result_write(k);
    wait_written(r);
}

/* Asks and waits.  False: nothing is kept. */
static bool take(struct rig *r, const struct undelivered_ask *ask, struct undelivered_take *t)
{
    unsigned before = r->done;
    *t = (struct undelivered_take){.done = on_done, .user = r};
    if (!undelivered_find(r->u, ask, t))
        return false;
    turn_until(r, before + 1);
    return true;
}

static bool gets(struct rig *r, const struct undelivered_ask *ask)
{
    struct undelivered_take t;
    bool got = take(r, ask, &t) && t.ok && t.found;
    undelivered_take_release(&t);
    return got;
}

static struct undelivered_row *stored(struct rig *r, struct arena *mem, size_t *ret_n)
{
    struct undelivered_row *rows = NULL;
    struct error err;
    assert_true(store_undelivered_page(r->store, 0, STORE_PAGE_MAX, mem, &rows, ret_n, &err));
    return rows;
}

static size_t n_stored(struct rig *r)
{
    struct arena *mem = arena_new(1 << 20);
    size_t n;
    (void)stored(r, mem, &n);
    arena_free(mem);
    return n;
}

TEST(test_undelivered__gives_back_the_bytes_once)
{
    struct rig r;
    struct undelivered_take t;
    rig_open(&r);
    struct undelivered_ask ask = the_ask();
    assert_false(take(&r, &ask, &t));
    keep(&r, &ask, STR("{\"content\":[]}"));
    clock_set_fake(NOW + 5000, 6000);
    assert_true(take(&r, &ask, &t));
    assert_true(t.ok && t.found);
    assert_str(t.result, "{\"content\":[]}");
    assert_int_equal(t.exec, 77);
    assert_int_equal(t.at_ms, NOW);
    assert_int_equal(t.until_ms, NOW + UNDELIVERED_LIFE_MS);
    undelivered_take_release(&t);
    assert_false(take(&r, &ask, &t));
    assert_int_equal(undelivered_count(r.u), 0);
    assert_int_equal(n_stored(&r), 0);
    rig_close(&r);
}

TEST(test_undelivered__every_part_of_the_ask_counts)
{
    struct rig r;
    rig_open(&r);
    struct undelivered_ask ask = the_ask(), other[7];
    keep(&r, &ask, STR("{}"));
    for (size_t i = 0; i < countof(other); i++)
        other[i] = ask;
    other[0].who = &bob;
    other[1].session_id = STR("s2");
    other[2].server = STR("other");
    other[3].method = STR("prompts/get");
    other[4].tool = STR("write");
    other[5].arguments = STR("{\"a\": 1}");
    other[6].arguments = STR_NONE;
    for (size_t i = 0; i < countof(other); i++)
        assert_false(gets(&r, &other[i]));
    assert_true(gets(&r, &ask));
    rig_close(&r);
}

/* "read" with arguments "x" is not "readx" without any. */
TEST(test_undelivered__parts_of_the_ask_do_not_run_together)
{
    struct rig r;
    rig_open(&r);
    struct undelivered_ask ask = the_ask(), other = the_ask();
    ask.arguments = STR("x");
    other.tool = STR("readx");
    other.arguments = STR_NONE;
    keep(&r, &ask, STR("{}"));
    assert_false(gets(&r, &other));
    rig_close(&r);
}

TEST(test_undelivered__ends_after_ten_minutes)
{
    for (int late = 0; late < 2; late++) {
        struct rig r;
        rig_open(&r);
        struct undelivered_ask ask = the_ask();
        keep(&r, &ask, STR("{}"));
        clock_set_fake(NOW + UNDELIVERED_LIFE_MS - 1 + late, 1000);
        assert_int_equal(gets(&r, &ask), !late);
        assert_int_equal(undelivered_count(r.u), 0);
        rig_close(&r);
    }
}

TEST(test_undelivered__a_restart_remembers_it)
{
    struct rig r;
    rig_open(&r);
    struct undelivered_ask ask = the_ask(), second = ask_for(STR("s2"), STR("{}"));
    keep(&r, &ask, STR("{}"));
    keep(&r, &second, STR("{}"));
    restart(&r);
    assert_int_equal(undelivered_count(r.u), 2);
    assert_true(gets(&r, &ask));
    restart(&r);
    assert_int_equal(undelivered_count(r.u), 1);
    assert_false(gets(&r, &ask));
    assert_true(gets(&r, &second));
    rig_close(&r);
}

TEST(test_undelivered__more_than_a_page_is_remembered)
{
    struct rig r;
    rig_open(&r);
    for (int i = 0; i < STORE_PAGE_MAX + 5; i++) {
        struct undelivered_row row = {.id = 1000 + i,
                                      .session_id = STR("s1"),
                                      .created_ms = NOW,
                                      .expires_ms = NOW + 10,
                                      .sealed = STR("?")};
        struct store_op op = {.kind = OP_UNDELIVERED_PUT, .who = &alice, .undelivered = &row};
        struct error err;
        assert_true(store_write(r.store, &op, 1, &err));
    }
    restart(&r);
    assert_int_equal(undelivered_count(r.u), STORE_PAGE_MAX + 5);
    rig_close(&r);
}

TEST(test_undelivered__the_store_has_no_plain_text_and_other_rows_do_not_open)
{
    struct rig r;
    struct undelivered_take t;
    size_t n;
    rig_open(&r);
    struct arena *mem = arena_new(1 << 20);
    struct undelivered_ask ask = the_ask(), second = ask_for(STR("s2"), STR("{}"));
    struct str secret = STR("{\"secret\":\"never in clear\"}");
    keep(&r, &ask, secret);
    struct undelivered_row *rows = stored(&r, mem, &n), *row = NULL;
    struct error err;
    assert_int_equal(n, 1);
    assert_true(store_undelivered_get(r.store, &alice, rows[0].id, mem, &row, &err));
    assert_int_equal(row->sealed.n, secret.n + SEAL_OVERHEAD);
    assert_null(memmem(row->sealed.p, row->sealed.n, "never", 5));
    keep(&r, &second, STR("{}"));
    assert_true(
        gets(&r, &second)); /* its digest is known now: moved there, the bytes do not open */
    struct undelivered_row moved = *row;
    moved.id = 5;
    moved.session_id = STR("s2");
    struct store_op op = {.kind = OP_UNDELIVERED_PUT, .who = &alice, .undelivered = &moved};
    assert_true(store_write(r.store, &op, 1, &err));
    restart(&r);
    struct undelivered_ask there = ask;
    there.session_id = STR("s2");
    assert_true(take(&r, &there, &t));
    assert_true(t.ok);
    assert_false(t.found);
    undelivered_take_release(&t);
    assert_true(gets(&r, &ask));
    arena_free(mem);
    rig_close(&r);
}

TEST(test_undelivered_result_seal__takes_one_mebibyte_and_not_a_byte_more)
{
    struct rig r;
    rig_open(&r);
    struct undelivered_ask ask = the_ask();
    char *text = calloc(1, UNDELIVERED_MAX + 1);
    struct undelivered_result *k = undelivered_expect(r.u, &ask);
    assert_false(undelivered_result_seal(k, 0, str_n(text, UNDELIVERED_MAX + 1), 0));
    undelivered_result_end(k, false);
    assert_int_equal(undelivered_count(r.u), 0);
    keep(&r, &ask, str_n(text, UNDELIVERED_MAX));
    assert_true(gets(&r, &ask));
    free(text);
    rig_close(&r);
}

TEST(test_undelivered_expect__keeps_so_many_of_a_session_and_then_no_more)
{
    struct rig r;
    struct undelivered_result *kept[UNDELIVERED_PER_SESSION];
    rig_open(&r);
    struct undelivered_ask ask = the_ask(), other = ask_for(STR("s2"), STR("{}"));
    for (size_t i = 0; i < countof(kept); i++)
        assert_non_null(kept[i] = undelivered_expect(r.u, &ask));
    assert_null(undelivered_expect(r.u, &ask));
    struct undelivered_result *elsewhere = undelivered_expect(r.u, &other);
    assert_non_null(elsewhere);
    undelivered_result_end(elsewhere, false);
    undelivered_result_end(kept[0], false);
    assert_non_null(kept[0] = undelivered_expect(r.u, &ask));
    for (size_t i = 0; i < countof(kept); i++)
        undelivered_result_end(kept[i], false);
    rig_close(&r);
}

TEST(test_undelivered_expect__keeps_so_many_in_all_and_then_no_more)
{
    struct rig r;
    static struct undelivered_result *kept[UNDELIVERED_IN_ALL];
    char session[16];
    rig_open(&r);
    for (size_t i = 0; i < countof(kept); i++) {
        snprintf(session, sizeof(session), "x%zu", i / 16);
        struct undelivered_ask ask = ask_for(str_of(session), STR("{}"));
        assert_non_null(kept[i] = undelivered_expect(r.u, &ask));
    }
    struct undelivered_ask one_more = the_ask();
    assert_null(undelivered_expect(r.u, &one_more));
    for (size_t i = 0; i < countof(kept); i++)
        undelivered_result_end(kept[i], false);
    struct undelivered_result *k = undelivered_expect(r.u, &one_more);
    assert_non_null(k);
    undelivered_result_end(k, false);
    rig_close(&r);
}

TEST(test_undelivered_expect__makes_room_for_what_has_ended)
{
    struct rig r;
    rig_open(&r);
    struct undelivered_ask ask = the_ask();
    for (size_t i = 0; i < UNDELIVERED_PER_SESSION; i++)
        keep(&r, &ask, STR("{}"));
    assert_null(undelivered_expect(r.u, &ask));
    clock_set_fake(NOW + UNDELIVERED_LIFE_MS, 1000);
    struct undelivered_result *k = undelivered_expect(r.u, &ask);
    assert_non_null(k);
    undelivered_result_end(k, false);
    rig_close(&r);
}

TEST(test_undelivered_find__waits_for_a_call_that_still_runs)
{
    struct rig r;
    rig_open(&r);
    struct undelivered_ask ask = the_ask();
    struct undelivered_take t[3];
    struct undelivered_result *k = undelivered_expect(r.u, &ask);
    for (size_t i = 0; i < countof(t); i++) {
        t[i] = (struct undelivered_take){.done = on_done, .user = &r};
        assert_true(undelivered_find(r.u, &ask, &t[i]));
    }
    undelivered_take_cancel(&t[0]);
    turn_until(&r, 1);
    assert_true(t[0].was_cancelled && !t[0].found);
    assert_true(undelivered_result_seal(k, 77, STR("{\"x\":1}"), 0));
    undelivered_result_write(k);
    turn_until(&r, 3);
    assert_true(t[1].found);
    assert_str(t[1].result, "{\"x\":1}");
    assert_true(t[2].ok);
    assert_false(t[2].found);
    for (size_t i = 0; i < countof(t); i++)
        undelivered_take_release(&t[i]);
    assert_int_equal(undelivered_count(r.u), 0);
    rig_close(&r);
}

TEST(test_undelivered_find__who_waited_for_nothing_is_told)
{
    struct rig r;
    rig_open(&r);
    struct undelivered_ask ask = the_ask();
    struct undelivered_take t = {.done = on_done, .user = &r};
    struct undelivered_result *k = undelivered_expect(r.u, &ask);
    assert_true(undelivered_find(r.u, &ask, &t));
    undelivered_result_end(k, false);
    assert_int_equal(r.done, 0); /* from the loop, not from in here */
    turn_until(&r, 1);
    assert_true(t.ok && !t.found && !t.was_cancelled);
    rig_close(&r);
}

TEST(test_undelivered_find__one_of_two_that_ask_at_once_gets_it)
{
    struct rig r;
    rig_open(&r);
    struct undelivered_ask ask = the_ask();
    struct undelivered_take a = {.done = on_done, .user = &r}, b = a;
    keep(&r, &ask, STR("{}"));
    assert_true(undelivered_find(r.u, &ask, &a));
    assert_false(undelivered_find(r.u, &ask, &b));
    turn_until(&r, 1);
    assert_true(a.found);
    undelivered_take_release(&a);
    rig_close(&r);
}

TEST(test_undelivered_take_cancel__leaves_it_kept)
{
    struct rig r;
    rig_open(&r);
    struct undelivered_ask ask = the_ask();
    struct undelivered_take t = {.done = on_done, .user = &r};
    keep(&r, &ask, STR("{}"));
    assert_true(undelivered_find(r.u, &ask, &t));
    undelivered_take_cancel(&t);
    turn_until(&r, 1);
    assert_false(t.found);
    undelivered_take_release(&t);
    assert_true(gets(&r, &ask));
    rig_close(&r);
}

/* The read fails, then the deletion: each time it is still there afterwards. */
TEST(test_undelivered_find__a_failing_store_loses_nothing)
{
    struct rig r;
    struct undelivered_take t;
    rig_open(&r);
    struct undelivered_ask ask = the_ask();
    keep(&r, &ask, STR("{}"));
    for (int nth = 1; nth <= 2; nth++) {
        store_failing_set(r.store, nth, false);
        assert_true(take(&r, &ask, &t));
        assert_false(t.ok);
        assert_false(t.found);
        assert_int_equal(t.err.code, ERR_UNAVAILABLE);
        undelivered_take_release(&t);
        store_failing_set(r.store, 0, false);
        assert_int_equal(n_stored(&r), 1);
    }
    assert_true(gets(&r, &ask));
    rig_close(&r);
}

TEST(test_undelivered_result_write__that_fails_is_forgotten)
{
    struct rig r;
    rig_open(&r);
    struct undelivered_ask ask = the_ask(), foreign = the_ask();
    store_failing_set(r.store, 1, false); /* not once: a fold may come first */
    keep(&r, &ask, STR("{}"));
    store_failing_set(r.store, 0, false);
    assert_int_equal(undelivered_count(r.u), 0);
    foreign.session_id = STR("s3"); /* not alice's: the store refuses it */
    keep(&r, &foreign, STR("{}"));
    assert_int_equal(undelivered_count(r.u), 0);
    assert_int_equal(n_stored(&r), 0);
    rig_close(&r);
}

TEST(test_undelivered_drop__takes_it_away_whether_it_is_stored_or_on_its_way)
{
    for (int early = 0; early < 2; early++) {
        struct rig r;
        rig_open(&r);
        struct undelivered_ask ask = the_ask();
        struct undelivered_result *k = undelivered_expect(r.u, &ask);
        assert_int_equal(undelivered_result_id(k), 0);
        assert_true(undelivered_result_seal(k, 0, STR("{}"), 0));
        int64_t id = undelivered_result_id(k);
        undelivered_result_write(k);
        if (!early)
            wait_written(&r);
        undelivered_drop(r.u, id + 1);
        undelivered_drop(r.u, id);
        assert_false(gets(&r, &ask));
        wait_written(&r);
        wait_written(&r);
        assert_int_equal(n_stored(&r), 0);
        assert_int_equal(undelivered_count(r.u), 0);
        rig_close(&r);
    }
}

TEST(test_undelivered__what_is_kept_again_ends_when_it_would_have)
{
    struct rig r;
    struct undelivered_take t;
    rig_open(&r);
    struct undelivered_ask ask = the_ask();
    struct undelivered_result *k = undelivered_expect(r.u, &ask);
    assert_true(undelivered_result_seal(k, 0, STR("{}"), NOW + 50));
    undelivered_result_write(k);
    wait_written(&r);
    clock_set_fake(NOW + 49, 1000);
    assert_true(take(&r, &ask, &t));
    assert_int_equal(t.until_ms, NOW + 50);
    undelivered_take_release(&t);
    rig_close(&r);
}
