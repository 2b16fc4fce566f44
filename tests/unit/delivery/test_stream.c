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
