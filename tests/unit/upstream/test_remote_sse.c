/* SPDX-License-Identifier: Apache-2.0 */
/* Servers of the HTTP transport of 2024: configured or found out, and what their channel does to
 * the link. */
#include "remote_world.h"

#define INITIALIZED                                                                                \
    "{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{}}"

static void say_endpoint(struct http_request *get, const char *endpoint)
{
    struct buf out;
    buf_init(&out, 1 << 16);
    sse_write(&out, STR("endpoint"), STR_NONE, str_of(endpoint));
    assert_true(http_stream_write(get, buf_str(&out)));
    buf_release(&out);
}

static struct http_request *open_channel(struct world *w, const char *endpoint)
{
    struct http_request *get = world_take(w, "GET");
    assert_str(request_header(get, "accept"), "text/event-stream");
    stream_begin(get);
    say_endpoint(get, endpoint);
    return get;
}

/* Takes in the next message of this method and answers it on the channel. */
static void serve(struct world *w, struct http_request *channel, const char *method,
                  const char *result)
{
    struct http_request *post = world_take(w, method);
    unsigned long long id = request_id(post);
    answer(post, 202, NULL, "");
    stream_result(channel, NULL, id, result);
}

static struct http_request *shake(struct world *w, const char *endpoint)
{
    struct http_request *channel = open_channel(w, endpoint);
    serve(w, channel, "initialize", INITIALIZED);
    answer(world_take(w, "notifications/initialized"), 202, NULL, "");
    return channel;
}

/* The whole probe of a server whose channel names this endpoint. */
static void probe(struct world *w, const char *endpoint)
{
    world_want(w);
    struct http_request *channel = shake(w, endpoint);
    serve(w, channel, "tools/list", "{\"tools\":[{\"name\":\"t\"}]}");
    world_until(w, &w->is_done);
    if (!w->catalog)
        fail_msg("%s", w->err.text);
    assert_non_null(catalog_tool(w->catalog, STR("t")));
    world_pass(w, 20); /* our end of the channel closes */
}

static void begin(struct world *w)
{
    world_open(w, ",\"type\":\"sse\"");
    probe(w, "/messages?s=1");
}

/* A second channel, for a link of a session. */
static struct http_request *begin_link(struct world *w, struct linking *k)
{
    struct link_identity who = {.key = STR("s:1"), .owner = STR("default/local")};
    struct error err;

    *k = (struct linking){.wait = {.done = on_linking}};
    assert_true(upstream_link(w->up, &who, &k->wait, &k->link, &err));
    struct http_request *channel = shake(w, "/messages?s=2");
    world_until(w, &k->is_done);
    assert_non_null(k->link);
    return channel;
}

TEST(test_remote_sse__a_configured_server_is_not_asked_for_anything_newer)
{
    struct world w;
    begin(&w);
    assert_int_equal(world_heard(&w, "server/discover"), 0);
    assert_int_equal(world_heard(&w, "initialize"), 1);
    assert_int_equal(world_heard(&w, "DELETE"), 0);
    assert_str(w.catalog->version, "2024-11-05");
    world_close(&w);
}

TEST(test_remote_sse__transport_says_the_same_as_type)
{
    struct world w;
    world_open(&w, ",\"transport\":\"sse\"");
    probe(&w, "/messages?s=1");
    world_close(&w);
}

TEST(test_remote_sse__endpoints_are_found_wherever_they_may_be)
{
    static const struct {
        const char *endpoint, *target; /* %d: the server's port */
    } rows[] = {
        {"/messages?s=1", "/messages?s=1"},
        {"messages?s=1", "/messages?s=1"},
        {"?s=1", "/mcp?s=1"},
        {"/a:b", "/a:b"},
        {"http://127.0.0.1:%d/m?x=http://y/", "/m?x=http://y/"},
    };

    for (size_t i = 0; i < countof(rows); i++) {
        struct world w;
        char endpoint[128];
        world_open(&w, ",\"type\":\"sse\"");
        world_want(&w);
        snprintf(endpoint, sizeof(endpoint), rows[i].endpoint, w.port);
        open_channel(&w, endpoint);
        assert_str(world_take(&w, "initialize")->head->target, rows[i].target);
        world_close(&w);
    }
}

TEST(test_remote_sse__endpoints_elsewhere_are_refused_in_words)
{
    static const char *const rows[] = {
        "http://localhost:%d/m", "https://127.0.0.1:%d/m", "http://127.0.0.1:1/m",
        "//127.0.0.1:%d/m",      "ftp://127.0.0.1/",       "http://127.0.0.1:%d@evil/m",
    };

    for (size_t i = 0; i < countof(rows); i++) {
        struct world w;
        char endpoint[128];
        world_open(&w, ",\"type\":\"sse\"");
        world_want(&w);
        snprintf(endpoint, sizeof(endpoint), rows[i], w.port);
        open_channel(&w, endpoint);
        world_until(&w, &w.is_done);
        assert_null(w.catalog);
        assert_non_null(strstr(w.err.text, "another origin"));
        assert_int_equal(world_heard(&w, "initialize"), 0);
        world_close(&w);
    }
}

TEST(test_remote_sse__endpoints_have_at_most_four_kilobytes)
{
    char endpoint[4098] = "/";
    struct world w;

    memset(endpoint + 1, 'e', 4095);
    world_open(&w, ",\"type\":\"sse\"");
    world_want(&w);
    open_channel(&w, endpoint);
    assert_int_equal(world_take(&w, "initialize")->head->target.n, 4096);
    world_close(&w);

    endpoint[4096] = 'e';
    world_open(&w, ",\"type\":\"sse\"");
    world_want(&w);
    open_channel(&w, endpoint);
    world_until(&w, &w.is_done);
    assert_null(w.catalog);
    world_close(&w);
}

TEST(test_remote_sse__a_server_is_found_out_and_remembered)
{
    static const int statuses[] = {400, 404, 405};

    for (size_t i = 0; i < countof(statuses); i++) {
        struct world w;
        world_open(&w, "");
        world_can(&w, (struct canned){"server/discover", statuses[i], NULL, "no"});
        world_want(&w);
        answer(world_take(&w, "initialize"), statuses[i], NULL, "<html>no</html>");
        open_channel(&w, "/messages?s=0"); /* the trial */
        struct http_request *channel = shake(&w, "/messages?s=1");
        serve(&w, channel, "tools/list", "{\"tools\":[{\"name\":\"t\"}]}");
        world_until(&w, &w.is_done);
        assert_non_null(w.catalog);
        assert_int_equal(world_heard(&w, "server/discover"), 1);
        assert_int_equal(world_heard(&w, "initialize"), 2);
        world_pass(&w, 20);

        struct linking k;
        begin_link(&w, &k);
        assert_int_equal(world_heard(&w, "initialize"), 3);
        upstream_changed(w.up, CATALOG_TOOLS);
        probe(&w, "/messages?s=3");
        assert_int_equal(world_heard(&w, "server/discover"), 1);
        world_close(&w);
    }
}

TEST(test_remote_sse__a_server_that_is_neither_fails_by_what_it_said_first)
{
    struct world w;
    world_open(&w, "");
    world_can(&w, (struct canned){"server/discover", 404, NULL, ""});
    world_can(&w, (struct canned){"initialize", 404, NULL, ""});
    world_can(&w, (struct canned){"GET", 503, NULL, ""});
    assert_null(world_catalog(&w));
    assert_non_null(strstr(w.err.text, "HTTP 404"));
    assert_int_equal(world_heard(&w, "GET"), 1);
    world_close(&w);
}

TEST(test_remote_sse__another_event_than_an_endpoint_is_no_such_server)
{
    struct world w;
    world_open(&w, "");
    world_can(&w, (struct canned){"server/discover", 404, NULL, ""});
    world_can(&w, (struct canned){"initialize", 405, NULL, ""});
    world_want(&w);
    struct http_request *get = world_take(&w, "GET");
    stream_begin(get);
    stream_event(get, NULL, -1, "{}");
    world_until(&w, &w.is_done);
    assert_null(w.catalog);
    assert_non_null(strstr(w.err.text, "HTTP 405"));
    world_close(&w);
}

TEST(test_remote_sse__a_json_rpc_error_is_an_answer_and_no_hint)
{
    struct world w;
    world_open(&w, "");
    world_can(&w, (struct canned){"server/discover", 404, NULL, ""});
    world_can(&w, (struct canned){"initialize", 400, "error",
                                  "{\"code\":-32000,\"message\":\"closed today\"}"});
    assert_null(world_catalog(&w));
    assert_non_null(strstr(w.err.text, "closed today"));
    assert_int_equal(world_heard(&w, "GET"), 0);
    world_close(&w);
}

TEST(test_remote_sse__a_configured_server_without_a_channel_says_where_to_look)
{
    struct world w;
    world_open(&w, ",\"type\":\"sse\"");
    world_can(&w, (struct canned){"GET", 405, NULL, ""});
    assert_null(world_catalog(&w));
    assert_non_null(strstr(w.err.text, "HTTP 405"));
    assert_non_null(strstr(w.err.text, "\"type\""));
    world_close(&w);
}

TEST(test_remote_sse__calls_are_answered_on_the_channel)
{
    struct world w;
    struct linking k;
    struct asking a = {.is_done = false};
    begin(&w);
    struct http_request *channel = begin_link(&w, &k);
    asking_send(&a, k.link, "tools/call");
    struct http_request *post = world_take(&w, "tools/call");
    assert_str(post->head->target, "/messages?s=2");
    assert_null(request_header(post, "mcp-session-id").p);
    stream_result(channel, NULL, a.pending.id, "{\"n\":1}"); /* before the POST is accepted */
    world_until(&w, &a.is_done);
    answer(post, 202, NULL, "Accepted");
    buf_release(&a.reply);

    asking_send(&a, k.link, "tools/call");
    serve(&w, channel, "tools/call", "{\"n\":2}");
    world_until(&w, &a.is_done);
    assert_false(a.failed);
    assert_int_equal(buf_count(&a.reply, "\"n\":2"), 1);
    buf_release(&a.reply);
    stream_event(channel, NULL, -1, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}");
    world_until_said(&w, "lone ");
    world_close(&w);
}

TEST(test_remote_sse__a_call_that_was_taken_in_can_be_cancelled)
{
    struct world w;
    struct linking k;
    struct asking a = {.is_done = false};
    begin(&w);
    begin_link(&w, &k);
    asking_send(&a, k.link, "tools/call");
    answer(world_take(&w, "tools/call"), 202, NULL, "");
    world_pass(&w, 50);
    pending_cancel(&a.pending, STR("test"));
    answer(world_take(&w, "notifications/cancelled"), 202, NULL, "");
    world_pass(&w, 50);
    assert_false(a.is_done);
    buf_release(&a.reply);
    world_close(&w);
}

TEST(test_remote_sse__the_link_ends_with_its_channel)
{
    struct world w;
    struct linking k;
    struct asking a = {.is_done = false};
    begin(&w);
    struct http_request *channel = begin_link(&w, &k);
    assert_true(link_is_stateful(k.link));
    asking_send(&a, k.link, "tools/call");
    answer(world_take(&w, "tools/call"), 202, NULL, "");
    http_stream_end(channel);
    world_until(&w, &a.is_done);
    assert_true(a.failed && a.left);
    assert_int_equal(a.err.code, ERR_UNREACHABLE);
    assert_int_equal(upstreams_links(w.set), 0);
    buf_release(&a.reply);
    world_close(&w);
}

TEST(test_remote_sse__an_endpoint_that_is_unknown_ends_the_link)
{
    struct world w;
    struct linking k;
    struct asking a = {.is_done = false};
    begin(&w);
    begin_link(&w, &k);
    asking_send(&a, k.link, "tools/call");
    answer(world_take(&w, "tools/call"), 404, NULL, "no such session");
    world_until(&w, &a.is_done);
    assert_true(a.failed);
    assert_false(a.left);
    assert_int_equal(a.err.code, ERR_SESSION_NOT_FOUND);
    assert_int_equal(upstreams_links(w.set), 0);
    buf_release(&a.reply);
    world_close(&w);
}
