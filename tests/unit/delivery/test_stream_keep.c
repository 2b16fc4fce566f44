/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept, what goes first, and the budgets at their limit and one past it. */
#include "stream_fixture.h"

#define FRAME 8 /* "data: " and two line ends */

/* One JSON text that costs `cost` when kept. */
static struct str text_of(size_t cost)
{
    static char text[2 << 20];
    size_t n = cost - STREAM_EVENT_COST - FRAME;
    assert_true(n < sizeof(text));
    memset(text, 'x', n);
    return str_n(text, n);
}

static unsigned kept(const struct stream *st)
{
    unsigned n = 0;
    list_each(&st->events, it)
    {
        n++;
    }
    return n;
}

static uint64_t oldest(const struct stream *st)
{
    return list_entry(st->events.next, struct stream_event, in_stream)->number;
}

static struct stream *a_stream(struct fixture *f, unsigned t)
{
    return stream_new(f->streams, fixture_transport(f, t), STR("7"));
}

TEST(test_stream_keep__a_transport_keeps_its_budget_and_not_a_byte_more)
{
    const size_t quarter = STREAM_STORED_PER_TRANSPORT / 4;

    for (size_t past = 0; past < 2; past++) {
        struct fixture f;
        setup(&f);
        struct stream *st = a_stream(&f, 1);
        for (int i = 0; i < 3; i++)
            stream_send(st, text_of(quarter), STREAM_MUST);
        stream_send(st, text_of(quarter + past), STREAM_MUST);
        assert_int_equal(kept(st), 4 - past);
        assert_int_equal(oldest(st), 1 + past);
        assert_int_equal(st->lost, past);
        assert_true(f.streams->stored_bytes <= STREAM_STORED_PER_TRANSPORT);
        stream_unref(st);
        teardown(&f);
    }
}

TEST(test_stream_keep__the_budget_is_the_transports_whichever_stream_uses_it)
{
    const size_t half = STREAM_STORED_PER_TRANSPORT / 2;
    struct fixture f;

    setup(&f);
    struct stream *a = a_stream(&f, 1), *b = a_stream(&f, 1), *other = a_stream(&f, 2);
    stream_send(a, text_of(half), STREAM_MUST);
    stream_send(other, text_of(half), STREAM_MUST);
    stream_send(b, text_of(half), STREAM_MUST);
    stream_send(b, text_of(half), STREAM_MUST);
    assert_int_equal(kept(a), 0);
    assert_int_equal(a->lost, 1);
    assert_int_equal(kept(b), 2);
    assert_int_equal(kept(other), 1);
    stream_unref(a);
    stream_unref(b);
    stream_unref(other);
    teardown(&f);
}

TEST(test_stream_keep__progress_and_logs_go_first_and_are_not_missed)
{
    const size_t quarter = STREAM_STORED_PER_TRANSPORT / 4;
    struct fixture f;

    setup(&f);
    struct stream *st = a_stream(&f, 1);
    stream_send(st, text_of(quarter), STREAM_MUST);
    stream_send(st, text_of(quarter), STREAM_MAY);
    stream_send(st, text_of(quarter), STREAM_MUST);
    stream_send(st, text_of(quarter), STREAM_PROGRESS);
    assert_int_equal(kept(st), 4);
    stream_send(st, text_of(quarter), STREAM_MUST);
    assert_int_equal(kept(st), 4); /* the log has gone */
    stream_send(st, text_of(quarter), STREAM_MUST);
    assert_int_equal(kept(st), 4); /* and the progress */
    assert_null(st->unsent);
    assert_int_equal(oldest(st), 1);
    assert_int_equal(st->lost, 0);
    stream_send(st, text_of(quarter), STREAM_MUST);
    assert_int_equal(st->lost, 1);
    stream_unref(st);
    teardown(&f);
}

TEST(test_stream_keep__the_newest_result_stays_whatever_its_size)
{
    const size_t big = 1 << 20;
    struct fixture f;
    struct client c;

    setup(&f);
    client_ask(&f, &c, "POST", "/post?t=1&id=7", NULL);
    wait_posts(&f, 1);
    client_wait(&c, "data: \n\n");
    struct seen *seen = client_events(&c);
    client_close(&c);
    while (stream_is_connected(f.post[0]))
        loop_turn(f.loop);
    stream_finish(f.post[0], text_of(big), false);
    struct stream *next = a_stream(&f, 1);
    stream_send(next, text_of(1000), STREAM_MUST); /* has to go, being no result */
    assert_int_equal(kept(next), 0);
    assert_int_equal(f.streams->stored_bytes, big);
    client_ask(&f, &c, "GET", "/get?t=1", seen->id[0]);
    client_wait_end(&c);
    assert_true(c.body.n > big - STREAM_EVENT_COST);
    client_close(&c);
    stream_finish(next, text_of(1000), false);
    assert_int_equal(kept(next), 1);
    assert_int_equal(kept(f.post[0]), 0); /* it is the newest no more */
    assert_int_equal(f.streams->stored_bytes, 1000);
    client_ask(&f, &c, "GET", "/get?t=1", seen->id[0]);
    client_wait_end(&c);
    assert_true(peer_has(&c.p, "no longer stored"));
    free(seen);
    client_close(&c);
    stream_unref(next);
    teardown(&f);
}

TEST(test_stream_keep__a_request_too_big_to_keep_is_told_as_lost)
{
    struct fixture f;

    setup(&f);
    struct stream *st = a_stream(&f, 1);
    stream_send(st, text_of(STREAM_STORED_PER_TRANSPORT), STREAM_MUST);
    assert_int_equal(kept(st), 1);
    stream_send(st, text_of(STREAM_STORED_PER_TRANSPORT + 1), STREAM_MUST);
    assert_int_equal(kept(st), 0);
    assert_int_equal(st->lost, 2);
    assert_int_equal(f.streams->stored_bytes, 0);
    stream_unref(st);
    teardown(&f);
}

TEST(test_stream_keep__the_process_keeps_its_budget_and_drops_the_oldest_of_all)
{
    enum { N = STREAM_STORED_IN_ALL / STREAM_STORED_PER_TRANSPORT };
    struct fixture f;
    struct stream *st[N + 1];

    setup(&f);
    for (unsigned i = 0; i < N; i++) {
        st[i] = a_stream(&f, i);
        stream_finish(st[i], text_of(STREAM_STORED_PER_TRANSPORT), false);
        clock_advance_fake(1);
    }
    assert_int_equal(f.streams->stored_bytes, STREAM_STORED_IN_ALL);
    assert_int_equal(kept(st[0]), 1);
    st[N] = a_stream(&f, N);
    stream_finish(st[N], text_of(STREAM_EVENT_COST + FRAME), false);
    assert_int_equal(kept(st[0]), 0);
    assert_int_equal(st[0]->lost, 1);
    assert_int_equal(kept(st[1]), 1);
    assert_int_equal(kept(st[N]), 1);
    assert_int_equal(f.streams->stored_bytes, STREAM_STORED_IN_ALL - STREAM_STORED_PER_TRANSPORT +
                                                  STREAM_EVENT_COST + FRAME);
    for (unsigned i = 0; i <= N; i++)
        stream_unref(st[i]);
    teardown(&f);
}

TEST(test_stream_keep__nothing_is_left_of_a_transport_whose_events_went)
{
    struct fixture f;

    setup(&f);
    for (int i = 0; i < 10; i++) {
        struct stream *st = a_stream(&f, 1);
        stream_finish(st, STR("{}"), i % 2);
        stream_unref(st);
    }
    assert_int_equal(f.streams->homes.n, 1);
    clock_advance_fake(STREAM_KEEP_MS);
    while (f.streams->homes.n)
        loop_turn(f.loop);
    assert_int_equal(f.streams->stored_bytes, 0);
    assert_int_equal(f.transports[1]->refs, 1); /* ours */
    teardown(&f);
}

TEST(test_stream_keep__a_flood_of_progress_without_a_reader_is_one_event)
{
    struct fixture f;

    setup(&f);
    struct stream *st = a_stream(&f, 1);
    stream_send(st, STR("{\"ask\":1}"), STREAM_MUST);
    for (int i = 0; i < 100000; i++)
        stream_send(st, STR("{\"progress\":1}"), STREAM_PROGRESS);
    assert_int_equal(kept(st), 2);
    for (int i = 0; i < 10000; i++)
        stream_send(st, STR("{\"log\":1}"), STREAM_MAY);
    assert_true(f.streams->stored_bytes <= STREAM_STORED_PER_TRANSPORT);
    assert_int_equal(oldest(st), 1);
    assert_int_equal(st->lost, 0);
    stream_unref(st);
    teardown(&f);
}
