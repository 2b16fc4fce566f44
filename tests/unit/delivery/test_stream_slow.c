/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that do not read: what waits for them is bounded, and each kind of message has its own
 * fate. */
#include "stream_fixture.h"

#include "base/metric.h"

static char big[1 << 20];

/* A POST whose client has stopped reading, with something in its queue. */
static void begin_slow(struct fixture *f, struct client *c)
{
    memset(big, 'x', sizeof(big));
    setup(f);
    client_ask(f, c, "POST", "/post?t=1&id=7", NULL);
    wait_posts(f, 1);
    client_wait(c, "data: \n\n");
    conn_pause(c->p.conn, true);
    while (http_stream_queued(f->held) == 0)
        stream_send(f->post[0], str_n(big, 8192), STREAM_MAY);
}

/* The JSON that makes the queue exactly `queue` bytes long. */
static struct str filling(const struct fixture *f, size_t queue)
{
    char id[STREAM_ID_TEXT], size[20];
    size_t room = queue - http_stream_queued(f->held);
    size_t event = room - 2 - 2 - 5; /* line ends of the chunk, five digits */
    size_t id_n = stream_id_format(f->post[0], f->post[0]->last + 1, id);

    assert_int_equal(snprintf(size, sizeof(size), "%zx", event), 5);
    return str_n(big, event - strlen("id: \n") - id_n - strlen("data: \n\n"));
}

static void end(struct fixture *f, struct client *c)
{
    client_close(c);
    teardown(f);
}

static int64_t dropped(void)
{
    struct metric *m = metric_register(METRIC_COUNTER, "holdfast_stream_dropped_total", "", "", 1);
    return metric_value(metric_cell(m, NULL, 0));
}

TEST(test_stream_slow__what_fits_the_queue_exactly_is_taken)
{
    struct fixture f;
    struct client c;

    begin_slow(&f, &c);
    stream_send(f.post[0], filling(&f, STREAM_MAX_QUEUE), STREAM_MUST);
    assert_true(stream_is_connected(f.post[0]));
    assert_int_equal(http_stream_queued(f.held), STREAM_MAX_QUEUE);
    end(&f, &c);
}

TEST(test_stream_slow__one_byte_more_of_what_must_arrive_closes_the_connection_and_is_resumed)
{
    struct fixture f;
    struct client c, again;

    begin_slow(&f, &c);
    struct str text = filling(&f, STREAM_MAX_QUEUE + 1);
    stream_send(f.post[0], text, STREAM_MUST);
    assert_false(stream_is_connected(f.post[0]));
    assert_int_equal(f.post[0]->lost, 0);
    while (!f.n_gone)
        loop_turn(f.loop);
    assert_int_equal(f.n_aborted, 0);
    /* The client comes back with the last id it has, reads on, and gets the rest. */
    char last[STREAM_ID_TEXT];
    stream_id_format(f.post[0], f.post[0]->last - 1, last);
    client_ask(&f, &again, "GET", "/get?t=1", last);
    stream_finish(f.post[0], STR("{\"result\":1}"), false);
    client_wait_end(&again);
    assert_true(again.body.n > text.n);
    assert_true(peer_has(&again.p, "{\"result\":1}"));
    client_close(&again);
    end(&f, &c);
}

TEST(test_stream_slow__a_result_that_does_not_fit_is_fetched_by_resuming)
{
    struct fixture f;
    struct client c, again;

    begin_slow(&f, &c);
    char last[STREAM_ID_TEXT];
    stream_id_format(f.post[0], f.post[0]->last, last);
    stream_finish(f.post[0], str_n(big, sizeof(big)), false);
    peer_wait(&c.p, "HTTP"); /* nothing new: it does not read */
    while (!f.n_gone)
        loop_turn(f.loop);
    client_ask(&f, &again, "GET", "/get?t=1", last);
    client_wait_end(&again);
    assert_true(again.body.n > sizeof(big));
    client_close(&again);
    end(&f, &c);
}

TEST(test_stream_slow__logs_without_room_are_dropped_and_counted)
{
    struct fixture f;
    struct client c;

    begin_slow(&f, &c);
    int64_t before = dropped();
    stream_send(f.post[0], STR("{\"log\":1}"), STREAM_MAY); /* there is room yet */
    assert_int_equal(dropped(), before);
    size_t stored_bytes = f.streams->stored_bytes;
    stream_send(f.post[0], filling(&f, STREAM_MAX_QUEUE + 1), STREAM_MAY);
    assert_true(stream_is_connected(f.post[0]));
    assert_int_equal(dropped(), before + 1);
    assert_int_equal(f.streams->stored_bytes, stored_bytes);
    stream_send(f.post[0], filling(&f, STREAM_MAX_QUEUE), STREAM_MAY);
    assert_int_equal(dropped(), before + 1);
    conn_pause(c.p.conn, false);
    stream_finish(f.post[0], STR("{}"), false); /* no room: closed */
    assert_false(stream_is_connected(f.post[0]));
    end(&f, &c);
}

TEST(test_stream_slow__only_the_newest_progress_waits_for_the_reader)
{
    struct fixture f;
    struct client c;

    begin_slow(&f, &c);
    size_t queued = http_stream_queued(f.held);
    for (int i = 0; i < 10000; i++) {
        char json[40];
        snprintf(json, sizeof(json), "{\"progress\":%d}", i);
        stream_send(f.post[0], str_of(json), STREAM_PROGRESS);
    }
    assert_int_equal(http_stream_queued(f.held), queued);
    conn_pause(c.p.conn, false);
    client_wait(&c, "{\"progress\":9999}"); /* without another message to push it */
    assert_int_equal(peer_count(&c.p, "{\"progress\":"), 1);
    stream_send(f.post[0], STR("{\"progress\":10000}"), STREAM_PROGRESS);
    stream_finish(f.post[0], STR("{\"result\":1}"), false);
    client_wait_end(&c);
    assert_true(peer_has(&c.p, "{\"progress\":10000}"));
    assert_true(peer_has(&c.p, "{\"result\":1}"));
    end(&f, &c);
}

TEST(test_stream_slow__progress_that_waits_goes_before_what_comes_after_it)
{
    struct fixture f;
    struct client c;

    begin_slow(&f, &c);
    stream_send(f.post[0], STR("{\"progress\":1}"), STREAM_PROGRESS);
    stream_send(f.post[0], STR("{\"ask\":2}"), STREAM_MUST);
    stream_send(f.post[0], STR("{\"progress\":3}"), STREAM_PROGRESS);
    conn_pause(c.p.conn, false);
    stream_finish(f.post[0], STR("{\"result\":4}"), false);
    client_wait_end(&c);
    struct seen *seen = client_events(&c);
    assert_string_equal(seen->data[seen->n - 4], "{\"progress\":1}");
    assert_string_equal(seen->data[seen->n - 3], "{\"ask\":2}");
    assert_string_equal(seen->data[seen->n - 2], "{\"progress\":3}");
    assert_string_equal(seen->data[seen->n - 1], "{\"result\":4}");
    free(seen);
    end(&f, &c);
}

TEST(test_stream_slow__a_reader_that_stalls_gets_no_comments_on_top)
{
    struct fixture f;
    struct client c;

    begin_slow(&f, &c);
    size_t queued = http_stream_queued(f.held);
    clock_advance_fake(STREAM_QUIET_MS + 1);
    sweep(&f);
    assert_true(stream_is_connected(f.post[0]));
    assert_int_equal(http_stream_queued(f.held), queued);
    end(&f, &c);
}

TEST(test_stream_slow__a_broadcast_that_does_not_fit_closes_the_connection_and_is_resumed)
{
    struct fixture f;
    struct client c, again;

    memset(big, 'x', sizeof(big));
    setup(&f);
    client_ask(&f, &c, "GET", "/get?t=1", NULL);
    client_wait(&c, "data: \n\n");
    struct stream *st = streams_standalone(f.streams, f.transports[1]);
    struct seen *seen = client_events(&c);
    conn_pause(c.p.conn, true);
    while (http_stream_queued(st->conn->r) == 0)
        stream_send(st, str_n(big, 8192), STREAM_MAY);
    stream_send(st, str_n(big, STREAM_MAX_QUEUE - 32768), STREAM_MAY);
    streams_broadcast(f.streams, NULL, NULL, str_n(big, 32768));
    stream_send(st, STR("{\"progress\":1}"), STREAM_PROGRESS);
    assert_false(stream_is_connected(st));
    client_ask(&f, &again, "GET", "/get?t=1", seen->id[0]);
    client_wait(&again, "{\"progress\":1}");
    struct seen *after = client_events(&again);
    assert_int_equal(after->data[after->n - 2][0], 'x');
    free(seen);
    free(after);
    client_close(&again);
    end(&f, &c);
}
