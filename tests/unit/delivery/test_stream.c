/* SPDX-License-Identifier: Apache-2.0 */
/* Streams as a client sees them: what comes, in which form, and when the connection ends. */
#include "stream_fixture.h"

TEST(test_stream__a_request_gets_its_messages_and_its_result_and_then_the_end)
{
    struct fixture f;
    struct client c;

    setup(&f);
    client_ask(&f, &c, "POST", "/post?t=1&id=7", NULL);
    wait_posts(&f, 1);
    assert_true(stream_is_connected(f.post[0]));
    assert_int_equal(streams_connected(f.streams), 1);
    stream_send(f.post[0], STR("{\"n\":1}"), STREAM_PROGRESS);
    stream_send(f.post[0], STR("{\"n\":2}"), STREAM_MUST);
    stream_finish(f.post[0], STR("{\"n\":3}"), false);
    assert_int_equal(f.n_gone, 0); /* that comes from the loop */
    client_wait_end(&c);
    assert_int_equal(f.n_gone, 1);
    assert_int_equal(f.n_aborted, 0);
    assert_int_equal(streams_connected(f.streams), 0);
    assert_true(peer_has(&c.p, "HTTP/1.1 200 OK\r\n"));
    assert_true(peer_has(&c.p, "Content-Type: text/event-stream\r\n"));
    assert_true(peer_has(&c.p, "Cache-Control: no-cache, no-transform\r\n"));
    assert_true(peer_has(&c.p, "X-Accel-Buffering: no\r\n"));

    struct seen *seen = client_events(&c);
    assert_int_equal(seen->n, 4);
    assert_string_equal(seen->data[0], "");
    for (int i = 1; i < 4; i++) {
        char want[16];
        snprintf(want, sizeof(want), "{\"n\":%d}", i);
        assert_string_equal(seen->data[i], want);
        assert_true(seen->has_id[i]);
        assert_string_not_equal(seen->id[i], seen->id[i - 1]);
    }
    free(seen);
    client_close(&c);
    teardown(&f);
}

TEST(test_stream__only_versions_that_know_it_get_a_priming_event)
{
    for (int version = 0; version < 2; version++) {
        struct fixture f;
        struct client c;

        setup(&f);
        client_ask(&f, &c, "POST", version ? "/post?t=1&id=7" : "/post?t=0&id=7", NULL);
        wait_posts(&f, 1);
        stream_send(f.post[0], STR("{\"n\":1}"), STREAM_MUST);
        client_wait(&c, "{\"n\":1}");
        struct seen *seen = client_events(&c);
        assert_int_equal(seen->n, version ? 2 : 1);
        assert_int_equal(str_starts(buf_str(&c.body), STR("retry: 1000\nid: ")), version);
        assert_int_equal(peer_count(&c.p, "data: \n\n"), version);
        free(seen);
        client_close(&c);
        teardown(&f);
    }
}

TEST(test_stream__an_error_has_no_id_on_the_wire_but_is_kept)
{
    struct fixture f;
    struct client c, again;

    setup(&f);
    client_ask(&f, &c, "POST", "/post?t=1&id=7", NULL);
    wait_posts(&f, 1);
    stream_finish(f.post[0], STR("{\"error\":{}}"), true);
    client_wait_end(&c);
    struct seen *seen = client_events(&c);
    assert_int_equal(seen->n, 2);
    assert_true(seen->has_id[0]);
    assert_false(seen->has_id[1]);
    client_ask(&f, &again, "GET", "/get?t=1", seen->id[0]);
    client_wait_end(&again);
    assert_true(peer_has(&again.p, "data: {\"error\":{}}\n\n"));
    free(seen);
    client_close(&c);
    client_close(&again);
    teardown(&f);
}

TEST(test_stream__line_ends_in_data_cannot_forge_a_field_or_an_event)
{
    static const char *const evil[] = {"{\r\n\r\ndata: {\"evil\":1}\r\n\r\n}", "{\n\nid: 1\n\n}",
                                       "{\r\rretry: 1\r\r}", "\n", "\r\n"};
    struct fixture f;
    struct client c;

    setup(&f);
    client_ask(&f, &c, "POST", "/post?t=0&id=7", NULL);
    wait_posts(&f, 1);
    for (size_t i = 0; i < countof(evil); i++)
        stream_send(f.post[0], str_of(evil[i]), STREAM_MUST);
    stream_finish(f.post[0], STR("{\"result\":0}"), false);
    client_wait_end(&c);
    struct seen *seen = client_events(&c);
    assert_int_equal(seen->n, countof(evil) + 1);
    assert_string_equal(seen->data[0], "{    data: {\"evil\":1}    }");
    assert_string_equal(seen->data[1], "{  id: 1  }");
    assert_string_equal(seen->data[2], "{  retry: 1  }");
    assert_int_equal(peer_count(&c.p, "\nid: 0.") + peer_count(&c.p, "\nid: 1\n"), 0);
    assert_false(peer_has(&c.p, "\nretry:"));
    assert_false(memchr(c.body.p, '\r', c.body.n));
    free(seen);
    client_close(&c);
    teardown(&f);
}

TEST(test_stream__a_silent_connection_gets_a_comment_after_fifteen_seconds)
{
    struct fixture f;
    struct client busy, silent;
    const int64_t quiet_ms = 15000; /* proxies close connections that are silent for longer */

    setup(&f);
    client_ask(&f, &busy, "POST", "/post?t=1&id=7", NULL);
    client_ask(&f, &silent, "GET", "/get?t=2", NULL);
    wait_posts(&f, 1);
    while (streams_connected(f.streams) < 2)
        loop_turn(f.loop);
    clock_advance_fake(quiet_ms - 1);
    sweep(&f);
    stream_send(f.post[0], STR("{}"), STREAM_MUST);
    client_wait(&busy, "data: {}");
    assert_false(peer_has(&silent.p, "keep-alive\n"));
    clock_advance_fake(1);
    client_wait(&silent, ": keep-alive\n\n");
    assert_false(peer_has(&busy.p, ": keep-alive\n\n"));
    clock_advance_fake(quiet_ms - 1);
    client_wait(&busy, ": keep-alive\n\n");
    clock_advance_fake(1);
    while (peer_count(&silent.p, ": keep-alive\n\n") < 2)
        loop_turn(f.loop);
    client_close(&busy);
    client_close(&silent);
    teardown(&f);
}

TEST(test_stream__a_client_that_leaves_is_reported_once_and_the_stream_lives_on)
{
    struct fixture f;
    struct client c;

    setup(&f);
    client_ask(&f, &c, "POST", "/post?t=1&id=7", NULL);
    wait_posts(&f, 1);
    client_close(&c);
    while (!f.n_gone)
        loop_turn(f.loop);
    assert_int_equal(f.n_aborted, 1);
    assert_false(stream_is_connected(f.post[0]));
    assert_int_equal(streams_connected(f.streams), 0);
    stream_send(f.post[0], STR("{}"), STREAM_MUST);
    stream_finish(f.post[0], STR("{}"), false);
    stream_finish(f.post[0], STR("{}"), false); /* once is enough */
    assert_int_equal(f.post[0]->last, 2);
    assert_int_equal(f.n_gone, 1);
    assert_ptr_equal(stream_transport(f.post[0]), f.transports[1]);
    teardown(&f);
}

TEST(test_stream__without_on_gone_the_stream_frees_the_request_itself)
{
    for (int leaves = 0; leaves < 2; leaves++) {
        struct fixture f;
        struct client c;

        setup(&f);
        client_ask(&f, &c, "POST", "/post?t=1&id=7", NULL);
        wait_posts(&f, 1);
        stream_on_gone(f.post[0], NULL, NULL);
        if (!leaves) {
            stream_finish(f.post[0], STR("{}"), false);
            client_wait_end(&c);
        }
        client_close(&c);
        while (http_server_open(f.server))
            loop_turn(f.loop);
        assert_int_equal(f.n_gone, 0);
        teardown(&f); /* the sanitizer tells of a request that is left */
    }
}

TEST(test_stream__what_was_sent_before_the_connection_comes_first)
{
    struct fixture f;
    struct client c;

    setup(&f);
    client_ask(&f, &c, "GET", "/get?t=1", NULL);
    while (!f.n_answered)
        loop_turn(f.loop);
    client_close(&c);
    while (streams_connected(f.streams))
        loop_turn(f.loop);
    struct stream *st = streams_standalone(f.streams, f.transports[1]);
    assert_non_null(st);
    stream_send(st, STR("{\"n\":1}"), STREAM_MUST);
    stream_send(st, STR("{\"n\":2}"), STREAM_MUST);
    client_ask(&f, &c, "GET", "/get?t=1", NULL);
    client_wait(&c, "{\"n\":2}");
    assert_ptr_equal(streams_standalone(f.streams, f.transports[1]), st);
    stream_send(st, STR("{\"n\":3}"), STREAM_MUST);
    client_wait(&c, "{\"n\":3}");
    struct seen *seen = client_events(&c);
    assert_int_equal(seen->n, 4);
    free(seen);
    client_close(&c);
    teardown(&f);
}

TEST(test_stream__nobody_left_to_send_ends_the_connection)
{
    struct fixture f;
    struct client c, again;

    setup(&f);
    client_ask(&f, &c, "POST", "/post?t=1&id=7", NULL);
    wait_posts(&f, 1);
    stream_send(f.post[0], STR("{}"), STREAM_MUST);
    stream_unref(f.post[0]);
    f.n_post = 0;
    client_wait_end(&c);
    struct seen *seen = client_events(&c);
    client_ask(&f, &again, "GET", "/get?t=1", seen->id[1]);
    client_wait_end(&again);
    assert_true(peer_has(&again.p, "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32000,"));
    free(seen);
    client_close(&c);
    client_close(&again);
    teardown(&f);
}

TEST(test_stream__a_second_get_is_a_conflict_and_takes_nothing)
{
    struct fixture f;
    struct client c, second, other;

    setup(&f);
    client_ask(&f, &c, "GET", "/get?t=1", NULL);
    while (!streams_connected(f.streams))
        loop_turn(f.loop);
    client_ask(&f, &second, "GET", "/get?t=1", NULL);
    peer_wait(&second.p, "refused");
    assert_int_equal(f.last_err, ERR_CONFLICT);
    client_ask(&f, &other, "GET", "/get?t=2", NULL); /* others have their own */
    while (streams_connected(f.streams) < 2)
        loop_turn(f.loop);
    for (int i = 0; i < 100; i++) {
        char json[32];
        snprintf(json, sizeof(json), "{\"n\":%d}", i);
        stream_send(streams_standalone(f.streams, f.transports[1]), str_of(json), STREAM_MUST);
    }
    client_wait(&c, "{\"n\":99}");
    struct seen *seen = client_events(&c);
    assert_int_equal(seen->n, 101);
    free(seen);
    client_close(&c);
    client_close(&second);
    client_close(&other);
    teardown(&f);
}

static bool wants_odd(void *arg, const struct transport *t)
{
    (void)arg;
    return t->version->priming_event;
}

TEST(test_stream__a_broadcast_reaches_those_that_want_it_here_or_away)
{
    struct fixture f;
    struct client c[6];
    char target[32];

    setup(&f);
    for (int i = 0; i < 6; i++) {
        snprintf(target, sizeof(target), "/get?t=%d", i);
        client_ask(&f, &c[i], "GET", target, NULL);
    }
    while (streams_connected(f.streams) < 6)
        loop_turn(f.loop);
    client_close(&c[5]);
    while (streams_connected(f.streams) > 5)
        loop_turn(f.loop);
    assert_int_equal(streams_broadcast(f.streams, wants_odd, NULL, STR("{\"changed\":1}")), 3);
    client_wait(&c[1], "{\"changed\":1}");
    client_wait(&c[3], "{\"changed\":1}");
    client_ask(&f, &c[5], "GET", "/get?t=5", NULL);
    client_wait(&c[5], "{\"changed\":1}");
    assert_int_equal(streams_broadcast(f.streams, NULL, NULL, STR("{\"changed\":2}")), 6);
    for (int i = 0; i < 6; i++) {
        client_wait(&c[i], "{\"changed\":2}");
        assert_int_equal(peer_count(&c[i].p, "{\"changed\":1}"), i % 2);
        client_close(&c[i]);
    }
    teardown(&f);
}

TEST(test_stream__a_broadcast_keeps_its_place_among_other_messages)
{
    struct fixture f;
    struct client c;

    setup(&f);
    client_ask(&f, &c, "GET", "/get?t=0", NULL);
    while (!streams_connected(f.streams))
        loop_turn(f.loop);
    struct stream *st = streams_standalone(f.streams, f.transports[0]);
    stream_send(st, STR("{\"n\":1}"), STREAM_MUST);
    streams_broadcast(f.streams, NULL, NULL, STR("{\"n\":2}"));
    streams_broadcast(f.streams, NULL, NULL, STR("{\"n\":3}"));
    stream_send(st, STR("{\"n\":4}"), STREAM_PROGRESS);
    streams_broadcast(f.streams, NULL, NULL, STR("{\"n\":5}"));
    client_wait(&c, "{\"n\":5}");
    stream_send(st, STR("{\"n\":6}"), STREAM_MAY);
    client_wait(&c, "{\"n\":6}");
    struct seen *seen = client_events(&c);
    assert_int_equal(seen->n, 6);
    for (unsigned i = 0; i < 6; i++) {
        char want[16];
        snprintf(want, sizeof(want), "{\"n\":%u}", i + 1);
        assert_string_equal(seen->data[i], want);
    }
    free(seen);
    client_close(&c);
    streams_broadcast(f.streams, NULL, NULL, STR("{\"n\":7}")); /* and the end comes first */
    teardown(&f);
}

static unsigned n_behind(const struct fixture *f)
{
    unsigned n = 0;
    list_each(&f->streams->standing, it)
    {
        struct stream *st = list_entry(it, struct stream, standing);
        n += st->written < st->last;
    }
    return n;
}

TEST(test_stream__a_broadcast_is_written_a_few_connections_a_turn)
{
    enum { N = 150 };
    struct fixture f;
    static struct client c[N];
    char target[32];

    setup(&f);
    for (int i = 0; i < N; i++) {
        snprintf(target, sizeof(target), "/get?t=%d", i);
        client_ask(&f, &c[i], "GET", target, NULL);
    }
    while (streams_connected(f.streams) < N)
        loop_turn(f.loop);
    assert_int_equal(streams_broadcast(f.streams, NULL, NULL, STR("{\"changed\":1}")), N);
    streams_forget(f.streams, f.transports[0]); /* its turn has not come */
    assert_int_equal(n_behind(&f), N - 1);
    for (unsigned before = N - 1, now; before; before = now) {
        loop_turn(f.loop);
        now = n_behind(&f);
        assert_true(before - now <= 128); /* a slow turn may hold two portions of 64 */
    }
    for (int i = 1; i < N; i++)
        client_wait(&c[i], "{\"changed\":1}");
    client_wait_end(&c[0]);
    for (int i = 0; i < N; i++)
        client_close(&c[i]);
    teardown(&f);
}

TEST(test_stream__forgetting_a_transport_ends_its_streams_and_no_others)
{
    struct fixture f;
    struct client post, get, other;

    setup(&f);
    client_ask(&f, &post, "POST", "/post?t=1&id=7", NULL);
    client_ask(&f, &get, "GET", "/get?t=1", NULL);
    client_ask(&f, &other, "GET", "/get?t=2", NULL);
    while (streams_connected(f.streams) < 3)
        loop_turn(f.loop);
    stream_send(f.post[0], STR("{}"), STREAM_MUST);
    streams_forget(f.streams, f.transports[1]);
    streams_forget(f.streams, f.transports[1]);
    client_wait_end(&post);
    client_wait_end(&get);
    assert_null(streams_standalone(f.streams, f.transports[1]));
    assert_int_equal(streams_connected(f.streams), 1);
    assert_int_equal(f.streams->stored_bytes, 0);
    assert_int_equal(f.n_gone, 1);
    /* A shell takes whatever its owner still has to say. */
    stream_send(f.post[0], STR("{}"), STREAM_MUST);
    stream_finish(f.post[0], STR("{}"), false);
    assert_ptr_equal(stream_transport(f.post[0]), f.transports[1]);
    stream_send(streams_standalone(f.streams, f.transports[2]), STR("{\"n\":1}"), STREAM_MUST);
    client_wait(&other, "{\"n\":1}");
    client_close(&post);
    client_close(&get);
    client_close(&other);
    teardown(&f);
}

TEST(test_stream__draining_ends_standalone_streams_and_lets_requests_finish)
{
    struct fixture f;
    struct client post, get, late;

    setup(&f);
    client_ask(&f, &post, "POST", "/post?t=1&id=7", NULL);
    client_ask(&f, &get, "GET", "/get?t=1", NULL);
    while (streams_connected(f.streams) < 2)
        loop_turn(f.loop);
    streams_drain(f.streams);
    client_wait_end(&get);
    client_ask(&f, &late, "GET", "/get?t=1", NULL);
    peer_wait(&late.p, "refused");
    assert_int_equal(f.last_err, ERR_UNAVAILABLE);
    stream_finish(f.post[0], STR("{\"n\":1}"), false);
    client_wait_end(&post);
    assert_true(peer_has(&post.p, "{\"n\":1}"));
    client_close(&post);
    client_close(&get);
    client_close(&late);
    teardown(&f);
}

TEST(test_stream__freeing_all_closes_what_is_open_and_leaves_shells)
{
    struct fixture f;
    struct client post, get;

    setup(&f);
    client_ask(&f, &post, "POST", "/post?t=1&id=7", NULL);
    client_ask(&f, &get, "GET", "/get?t=1", NULL);
    while (streams_connected(f.streams) < 2)
        loop_turn(f.loop);
    streams_free(f.streams);
    f.streams = NULL;
    stream_send(f.post[0], STR("{}"), STREAM_MUST);
    stream_finish(f.post[0], STR("{}"), false);
    client_wait_end(&post);
    client_wait_end(&get);
    assert_int_equal(f.n_gone, 1);
    client_close(&post);
    client_close(&get);
    teardown(&f);
}
