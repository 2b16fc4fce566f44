/* SPDX-License-Identifier: Apache-2.0 */
/* Coming back with Last-Event-ID: what is replayed, to whom, and what is said when it cannot be. */
#include "stream_fixture.h"

#define RESTARTED                                                                                  \
    "\"error\":{\"code\":-32000,\"message\":\"Holdfast was restarted while this request was "      \
    "under way; its outcome is in the audit log, look it up before sending it again\"}}"
#define NO_LONGER_KEPT                                                                             \
    "\"error\":{\"code\":-32000,\"message\":\"Some messages of this request are no longer "        \
    "stored; "                                                                                     \
    "look its outcome up in the audit, or send it again\"}}"
#define EVENTS 12

static void send_n(struct stream *st, int from, int to)
{
    for (int i = from; i <= to; i++) {
        char json[32];
        snprintf(json, sizeof(json), "{\"n\":%d}", i);
        if (i == EVENTS)
            stream_finish(st, str_of(json), false);
        else
            stream_send(st, str_of(json), i % 3 ? STREAM_MUST : STREAM_MAY);
    }
}

/* The events of a replay that follow number `after` are there, each once, in order, ids the same as
 * the first time. */
static void assert_replayed(struct client *c, const struct seen *first, unsigned after)
{
    struct seen *seen = client_events(c);
    assert_int_equal(seen->n, 1 + EVENTS - after);
    assert_string_equal(seen->data[0], "");
    for (unsigned i = 0; i < seen->n; i++) {
        assert_string_equal(seen->id[i], first->id[after + i]);
        assert_string_equal(seen->data[i], i ? first->data[after + i] : "");
    }
    free(seen);
}

TEST(test_stream_resume__every_cut_point_replays_exactly_what_came_after)
{
    struct fixture f;
    struct client c;

    setup(&f);
    client_ask(&f, &c, "POST", "/post?t=1&id=7", NULL);
    wait_posts(&f, 1);
    send_n(f.post[0], 1, EVENTS);
    client_wait_end(&c);
    struct seen *first = client_events(&c);
    client_close(&c);
    assert_int_equal(first->n, EVENTS + 1);
    for (unsigned after = 0; after <= EVENTS; after++) {
        client_ask(&f, &c, "GET", "/get?t=1", first->id[after]);
        client_wait_end(&c); /* it is complete, so it ends */
        assert_replayed(&c, first, after);
        client_close(&c);
    }
    free(first);
    teardown(&f);
}

TEST(test_stream_resume__a_connection_cut_anywhere_loses_and_repeats_nothing)
{
    for (int cut = 0; cut < EVENTS; cut++) {
        struct fixture f;
        struct client c, again;
        char last[32] = "data: \n\n";

        setup(&f);
        client_ask(&f, &c, "POST", "/post?t=1&id=7", NULL);
        wait_posts(&f, 1);
        send_n(f.post[0], 1, cut);
        if (cut)
            snprintf(last, sizeof(last), "{\"n\":%d}", cut);
        client_wait(&c, last);
        struct seen *before = client_events(&c);
        assert_int_equal(before->n, cut + 1);
        client_close(&c);
        while (stream_is_connected(f.post[0]))
            loop_turn(f.loop);
        send_n(f.post[0], cut + 1, (cut + EVENTS) / 2);
        client_ask(&f, &again, "GET", "/get?t=1", before->id[cut]);
        while (!stream_is_connected(f.post[0]) && !f.post[0]->is_finished)
            loop_turn(f.loop);
        send_n(f.post[0], (cut + EVENTS) / 2 + 1, EVENTS);
        client_wait_end(&again);
        struct seen *after = client_events(&again);
        assert_int_equal(after->n, 1 + EVENTS - cut);
        for (unsigned i = 1; i < after->n; i++) {
            char want[32];
            snprintf(want, sizeof(want), "{\"n\":%u}", (unsigned)cut + i);
            assert_string_equal(after->data[i], want);
        }
        assert_int_equal(f.n_gone, 1); /* of the attach; resumed ones are ours */
        free(before);
        free(after);
        client_close(&again);
        teardown(&f);
    }
}

TEST(test_stream_resume__a_stream_replays_only_its_own_events)
{
    struct fixture f;
    struct client a, b, get, again;

    setup(&f);
    client_ask(&f, &a, "POST", "/post?t=1&id=1", NULL);
    wait_posts(&f, 1);
    client_ask(&f, &b, "POST", "/post?t=1&id=2", NULL);
    wait_posts(&f, 2);
    client_ask(&f, &get, "GET", "/get?t=1", NULL);
    while (streams_connected(f.streams) < 3)
        loop_turn(f.loop);
    stream_send(f.post[1], STR("{\"of\":2}"), STREAM_MUST);
    stream_send(streams_standalone(f.streams, f.transports[1]), STR("{\"of\":0}"), STREAM_MUST);
    stream_finish(f.post[0], STR("{\"of\":1}"), false);
    stream_finish(f.post[1], STR("{\"of\":2}"), false);
    client_wait_end(&a);
    client_wait_end(&b);
    struct seen *seen = client_events(&a);
    client_ask(&f, &again, "GET", "/get?t=1", seen->id[0]);
    client_wait_end(&again);
    assert_int_equal(peer_count(&again.p, "{\"of\":1}"), 1);
    assert_int_equal(peer_count(&again.p, "{\"of\""), 1);
    free(seen);
    client_close(&a);
    client_close(&b);
    client_close(&get);
    client_close(&again);
    teardown(&f);
}

static void assert_unknown(struct fixture *f, const char *target, const char *id)
{
    struct client c;
    client_ask(f, &c, "GET", target, id);
    peer_wait(&c.p, "refused");
    assert_true(peer_has(&c.p, "HTTP/1.1 404 "));
    assert_int_equal(f->last_err, ERR_NOT_FOUND);
    client_close(&c);
}

TEST(test_stream_resume__an_id_of_another_transport_is_unknown_and_disturbs_nobody)
{
    struct fixture f;
    struct client c;

    setup(&f);
    client_ask(&f, &c, "POST", "/post?t=1&id=7", NULL);
    wait_posts(&f, 1);
    client_wait(&c, "data: \n\n");
    struct seen *seen = client_events(&c);
    assert_unknown(&f, "/get?t=2", seen->id[0]);
    assert_unknown(&f, "/get?t=3", seen->id[0]);
    send_n(f.post[0], 1, EVENTS);
    client_wait_end(&c);
    free(seen);
    seen = client_events(&c);
    assert_int_equal(seen->n, EVENTS + 1);
    free(seen);
    client_close(&c);
    teardown(&f);
}

/* Without the wire: a header cannot carry every byte. */
static bool parses(struct fixture *f, struct str id)
{
    struct stream_id ignored;
    return stream_id_parse(f->streams, f->transports[1], id, &ignored);
}

TEST(test_stream_resume__no_bit_of_an_id_can_be_changed_and_no_byte_added_or_left_out)
{
    struct fixture f;
    char id[STREAM_ID_TEXT + 1], bad[STREAM_ID_TEXT + 1];
    static const char *const requests[] = {"7", "\"abc\"", NULL};

    setup(&f);
    fixture_transport(&f, 1);
    for (size_t i = 0; i < countof(requests); i++) {
        struct stream *st = stream_make(f.streams, f.transports[1], str_of(requests[i]));
        size_t n = stream_id_format(st, 3, id);
        assert_true(parses(&f, str_n(id, n)));
        for (size_t bit = 0; bit < 8 * n; bit++) {
            memcpy(bad, id, n);
            bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
            assert_false(parses(&f, str_n(bad, n)));
        }
        for (size_t cut = 0; cut < n; cut++) {
            assert_false(parses(&f, str_n(id, cut)));
            assert_false(parses(&f, str_n(id + cut + 1, n - cut - 1)));
            memcpy(bad, id, cut);
            memcpy(bad + cut, id + cut + 1, n - cut - 1);
            assert_false(parses(&f, str_n(bad, n - 1)));
            memcpy(bad, id, cut);
            bad[cut] = '0';
            memcpy(bad + cut + 1, id + cut, n - cut);
            assert_false(parses(&f, str_n(bad, n + 1)));
        }
        stream_free_if_unused(st);
    }
    teardown(&f);
}

TEST(test_stream_resume__flipped_and_foreign_text_is_refused_on_the_wire)
{
    static const char *const texts[] = {"x", "1", "....", "1.1.1.-.AAAAAAAAAAAAAAAA", "-"};
    struct fixture f;

    setup(&f);
    for (size_t i = 0; i < countof(texts); i++)
        assert_unknown(&f, "/get?t=1", texts[i]);
    teardown(&f);
}

TEST(test_stream_resume__another_key_means_unknown)
{
    struct fixture f;
    struct client c;
    struct streams_config config = {.writer = 1, .key = {8}};

    setup(&f);
    client_ask(&f, &c, "POST", "/post?t=1&id=7", NULL);
    wait_posts(&f, 1);
    client_wait(&c, "data: \n\n");
    struct seen *seen = client_events(&c);
    streams_free(f.streams);
    config.loop = f.loop;
    f.streams = streams_new(&config);
    assert_unknown(&f, "/get?t=1", seen->id[0]);
    free(seen);
    client_close(&c);
    teardown(&f);
}

TEST(test_stream_resume__request_ids_travel_raw_up_to_their_limit)
{
    struct fixture f;
    struct client c;
    char target[160], want[160];

    setup(&f);
    for (int n = 63; n <= 66; n++) { /* STREAM_ID_REQUEST is 64 */
        char request[80];
        memset(request, 'z', (size_t)n);
        request[0] = request[n - 1] = '"';
        request[n] = '\0';
        snprintf(target, sizeof(target), "/post?t=1&id=%%22%.*s%%22", n - 2, request + 1);
        snprintf(want, sizeof(want), "{\"jsonrpc\":\"2.0\",\"id\":%s," RESTARTED,
                 n <= STREAM_ID_REQUEST ? request : "null");
        client_ask(&f, &c, "POST", target, NULL);
        wait_posts(&f, f.n_post + 1);
        client_wait(&c, "data: \n\n");
        struct seen *seen = client_events(&c);
        client_close(&c);
        streams_free(f.streams);
        fixture_streams(&f, n); /* a restart */
        client_ask(&f, &c, "GET", "/get?t=1", seen->id[0]);
        client_wait_end(&c);
        assert_true(peer_has(&c.p, want));
        assert_false(peer_has(&c.p, "\nid: "));
        free(seen);
        client_close(&c);
    }
    teardown(&f);
}

TEST(test_stream_resume__after_a_restart_the_standalone_stream_begins_anew)
{
    struct fixture f;
    struct client c, again, late;

    setup(&f);
    client_ask(&f, &c, "GET", "/get?t=1", NULL);
    client_wait(&c, "data: \n\n");
    struct seen *seen = client_events(&c);
    client_close(&c);
    streams_free(f.streams);
    fixture_streams(&f, 2);
    client_ask(&f, &again, "GET", "/get?t=1", seen->id[0]);
    client_wait(&again, "data: \n\n");
    stream_send(streams_standalone(f.streams, f.transports[1]), STR("{\"n\":1}"), STREAM_MUST);
    client_wait(&again, "{\"n\":1}");
    /* An id of a stream that is no more is no licence to take the new one. */
    client_ask(&f, &late, "GET", "/get?t=1", seen->id[0]);
    peer_wait(&late.p, "refused");
    assert_int_equal(f.last_err, ERR_CONFLICT);
    free(seen);
    client_close(&again);
    client_close(&late);
    teardown(&f);
}

TEST(test_stream_resume__a_valid_id_takes_its_stream_over_from_a_connection_that_hangs)
{
    static const char *const targets[] = {"/get?t=1", "/post?t=1&id=7"};

    for (int post = 0; post < 2; post++) {
        struct fixture f;
        struct client c, again;

        setup(&f);
        client_ask(&f, &c, post ? "POST" : "GET", targets[post], NULL);
        client_wait(&c, "data: \n\n");
        struct stream *st = post ? f.post[0] : streams_standalone(f.streams, f.transports[1]);
        stream_send(st, STR("{\"n\":1}"), STREAM_MUST);
        client_wait(&c, "{\"n\":1}");
        struct seen *seen = client_events(&c);
        stream_send(st, STR("{\"n\":2}"), STREAM_MUST);
        client_ask(&f, &again, "GET", "/get?t=1", seen->id[1]);
        client_wait(&again, "{\"n\":2}");
        peer_wait_end(&c.p);
        assert_int_equal(streams_connected(f.streams), 1);
        assert_int_equal(f.n_gone, post);
        assert_int_equal(f.n_aborted, 0);
        stream_send(st, STR("{\"n\":3}"), STREAM_MUST);
        client_wait(&again, "{\"n\":3}");
        assert_false(peer_has(&again.p, "{\"n\":1}"));
        assert_false(peer_has(&c.p, "{\"n\":3}"));
        free(seen);
        client_close(&c);
        client_close(&again);
        teardown(&f);
    }
}

TEST(test_stream_resume__events_are_kept_five_minutes_and_then_said_to_be_gone)
{
    for (int late = 0; late < 2; late++) {
        struct fixture f;
        struct client c;

        setup(&f);
        client_ask(&f, &c, "POST", "/post?t=1&id=%22a%22", NULL);
        wait_posts(&f, 1);
        stream_finish(f.post[0], STR("{\"n\":1}"), false);
        client_wait_end(&c);
        struct seen *seen = client_events(&c);
        client_close(&c);
        stream_unref(f.post[0]);
        f.n_post = 0;
        clock_advance_fake(STREAM_KEEP_MS - 1 + late);
        sweep(&f);
        assert_int_equal(f.streams->stored_bytes == 0, late);
        assert_int_equal(f.streams->homes.n, !late); /* nothing is left behind */
        client_ask(&f, &c, "GET", "/get?t=1", seen->id[0]);
        client_wait_end(&c);
        assert_int_equal(peer_has(&c.p, "{\"n\":1}"), !late);
        assert_int_equal(peer_has(&c.p, "{\"jsonrpc\":\"2.0\",\"id\":\"a\"," NO_LONGER_KEPT), late);
        free(seen);
        client_close(&c);
        teardown(&f);
    }
}

TEST(test_stream_resume__a_standalone_stream_waits_five_minutes_for_its_client)
{
    struct fixture f;
    struct client c;

    setup(&f);
    client_ask(&f, &c, "GET", "/get?t=1", NULL);
    client_wait(&c, "data: \n\n");
    struct seen *seen = client_events(&c);
    client_close(&c);
    while (streams_connected(f.streams))
        loop_turn(f.loop);
    clock_advance_fake(STREAM_KEEP_MS - 1);
    sweep(&f);
    struct stream *st = streams_standalone(f.streams, f.transports[1]);
    assert_non_null(st);
    stream_send(st, STR("{\"n\":1}"), STREAM_MUST);
    clock_advance_fake(1);
    while (streams_standalone(f.streams, f.transports[1]))
        loop_turn(f.loop);
    assert_int_equal(f.streams->homes.n, 0);
    assert_int_equal(f.streams->stored_bytes, 0);
    client_ask(&f, &c, "GET", "/get?t=1", seen->id[0]);
    client_wait(&c, "data: \n\n"); /* a new one */
    assert_false(peer_has(&c.p, "{\"n\":1}"));
    assert_true(streams_standalone(f.streams, f.transports[1])->number > 1);
    free(seen);
    client_close(&c);
    teardown(&f);
}

struct heard {
    unsigned n_gone, n_back;
    int64_t undelivered;
};

static void hear_connected(void *arg, bool is_connected)
{
    struct heard *h = arg;
    h->n_back += is_connected;
    h->n_gone += !is_connected;
}

static void hear_undelivered_sent(void *arg, int64_t id)
{
    struct heard *h = arg;
    assert_int_equal(h->undelivered, 0);
    h->undelivered = id;
}

TEST(test_stream_resume__its_owner_hears_of_every_connection_and_of_the_undelivered_result_once)
{
    struct fixture f;
    struct client c, second, third;
    struct heard h = {0};

    setup(&f);
    streams_on_undelivered_sent(f.streams, hear_undelivered_sent, &h);
    client_ask(&f, &c, "POST", "/post?t=1&id=7", NULL);
    client_wait(&c, "data: \n\n");
    stream_on_connected(f.post[0], hear_connected, &h);
    struct seen *seen = client_events(&c);
    client_close(&c);
    while (!h.n_gone)
        loop_turn(f.loop);
    client_ask(&f, &second, "GET", "/get?t=1", seen->id[0]);
    client_wait(&second, "data: \n\n");
    assert_int_equal(h.n_back, 1);
    client_close(&second);
    while (h.n_gone < 2)
        loop_turn(f.loop);
    stream_set_undelivered(f.post[0], 42);
    stream_on_connected(f.post[0], NULL, NULL);
    stream_finish(f.post[0], STR("{\"r\":1}"), false);
    assert_int_equal(h.undelivered, 0);
    for (int i = 0; i < 2; i++) { /* the second time it is told no more */
        client_ask(&f, &third, "GET", "/get?t=1", seen->id[0]);
        client_wait(&third, "{\"r\":1}");
        assert_int_equal(h.undelivered, 42);
        client_close(&third);
    }
    assert_int_equal(h.n_back, 1);
    free(seen);
    teardown(&f);
}
