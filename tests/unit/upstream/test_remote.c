/* SPDX-License-Identifier: Apache-2.0 */
/* Links to Streamable HTTP servers: streams that go on after a break, the standalone stream,
 * clocks that stand still, errors that teach, batches, and watch links. */
#include "remote_world.h"

#include "base/clock.h"

#define CLIENT_PARAMS                                                                              \
    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"roots\":{}},\"clientInfo\":"          \
    "{\"name\":\"c\",\"version\":\"1\"}}"
#define CHANGED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}"
#define NOTE(text)                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":\"" text "\"}" \
    "}"

/* A legacy server whose catalog is known, and an open link to it. */
static struct link *begin(struct world *w, const char *more, const char *params)
{
    world_open(w, more);
    world_legacy(w, "{}");
    world_catalog(w);
    world_uncan(w, "GET");
    struct link *l = world_link(w, params, NULL);
    assert_non_null(l);
    return l;
}

static void asking_end(struct asking *a)
{
    buf_release(&a->reply);
}

TEST(test_remote__a_link_of_a_client_listens_to_what_belongs_to_no_request)
{
    struct world w;
    begin(&w, "", CLIENT_PARAMS);
    struct http_request *get = world_take(&w, "GET");
    assert_str(request_header(get, "mcp-session-id"), "remote-1");
    assert_str(request_header(get, "mcp-protocol-version"), "2025-11-25");
    assert_str(request_header(get, "accept"), "text/event-stream");
    assert_null(request_header(get, "last-event-id").p);
    stream_begin(get);
    stream_event(get, NULL, -1, NOTE("one"));
    world_until_said(&w, "lone " NOTE("one"));
    http_stream_end(get);
    world_close(&w);
}

TEST(test_remote__a_link_opens_when_its_standalone_stream_has_begun)
{
    struct world w;
    struct link_identity who = {
        .key = STR("s:1"), .owner = STR("default/local"), .initialize_params = STR(CLIENT_PARAMS)};
    struct linking k = {.wait = {.done = on_linking}};
    struct error err;

    world_open(&w, "");
    world_legacy(&w, "{}");
    world_catalog(&w);
    world_uncan(&w, "GET");
    assert_true(upstream_link(w.up, &who, &k.wait, &k.link, &err));
    struct http_request *get = world_take(&w, "GET");
    assert_null(k.link);
    assert_false(k.is_done);
    stream_begin(get);
    world_until(&w, &k.is_done);
    assert_non_null(k.link);
    http_stream_end(get);
    world_close(&w);
}

TEST(test_remote__a_standalone_stream_that_does_not_begin_keeps_nobody_waiting)
{
    struct world w;
    struct asking a = {.is_done = false};
    struct link *l = begin(&w, "", CLIENT_PARAMS);
    assert_int_equal(world_heard(&w, "GET"), 1);
    asking_send(&a, l, "tools/call");
    answer(world_take(&w, "tools/call"), 200, "result", "{}");
    world_until(&w, &a.is_done);
    assert_int_equal(w.n_waiting, 1); /* the GET, without an answer to this day */
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__a_link_of_our_own_does_not)
{
    struct world w;
    struct asking a = {.is_done = false};
    struct link *l = begin(&w, "", NULL);
    asking_send(&a, l, "tools/call");
    answer(world_take(&w, "tools/call"), 200, "result", "{}");
    world_until(&w, &a.is_done);
    assert_int_equal(world_heard(&w, "GET"), 0);
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__a_refused_standalone_stream_is_silently_fine)
{
    struct world w;
    struct asking a = {.is_done = false};
    struct link *l = begin(&w, "", CLIENT_PARAMS);
    answer(world_take(&w, "GET"), 405, NULL, "");
    asking_send(&a, l, "tools/call");
    answer(world_take(&w, "tools/call"), 200, "result", "{}");
    world_until(&w, &a.is_done);
    assert_false(a.failed);
    assert_int_equal(world_heard(&w, "GET"), 1);
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__the_standalone_stream_goes_on_from_its_last_event)
{
    struct world w;
    begin(&w, "", CLIENT_PARAMS);
    struct http_request *get = world_take(&w, "GET");
    stream_begin(get);
    stream_event(get, "ev 1", 5, NOTE("one"));
    world_until_said(&w, "one");
    http_stream_end(get);
    get = world_take(&w, "GET");
    assert_str(request_header(get, "last-event-id"), "ev 1");
    answer(get, 503, NULL, "busy");
    get = world_take(&w, "GET");
    assert_str(request_header(get, "last-event-id"), "ev 1");
    stream_begin(get);
    stream_event(get, NULL, -1, NOTE("two"));
    world_until_said(&w, "two");
    http_stream_abort(get);
    get = world_take(&w, "GET");
    assert_str(request_header(get, "last-event-id"), "ev 1");
    stream_begin(get);
    world_close(&w);
}

TEST(test_remote__a_broken_answer_is_gone_on_with)
{
    struct world w;
    struct asking a = {.is_done = false};
    struct link *l = begin(&w, "", NULL);
    asking_send(&a, l, "tools/call");
    struct http_request *post = world_take(&w, "tools/call");
    stream_begin(post);
    stream_event(post, "s1-0", 5, "");
    stream_event(post, "s1-1", -1, NOTE("half"));
    world_until_said(&w, "about " NOTE("half"));
    http_stream_end(post);
    for (int i = 0; i < 2; i++) { /* the server lets us ask twice */
        struct http_request *get = world_take(&w, "GET");
        assert_str(request_header(get, "last-event-id"), i ? "s1-2" : "s1-1");
        assert_str(request_header(get, "mcp-session-id"), "remote-1");
        stream_begin(get);
        if (i)
            stream_result(get, NULL, a.pending.id, "{\"done\":1}");
        else
            stream_event(get, "s1-2", -1, NOTE("more"));
        http_stream_end(get);
    }
    world_until(&w, &a.is_done);
    assert_false(a.failed);
    assert_int_equal(world_heard(&w, "tools/call"), 1);
    assert_int_equal(buf_count(&w.said, "about"), 2);
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__a_connection_that_breaks_is_gone_on_with)
{
    struct world w;
    struct asking a = {.is_done = false};
    struct link *l = begin(&w, "", NULL);
    asking_send(&a, l, "tools/call");
    struct http_request *post = world_take(&w, "tools/call");
    stream_begin(post);
    stream_event(post, "x", 5, NOTE("half"));
    world_until_said(&w, "half");
    http_stream_abort(post);
    struct http_request *get = world_take(&w, "GET");
    stream_begin(get);
    stream_result(get, "y", a.pending.id, "{}");
    http_stream_end(get);
    world_until(&w, &a.is_done);
    assert_false(a.failed);
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__event_ids_of_two_streams_are_kept_apart)
{
    struct world w;
    struct asking a = {.is_done = false}, b = {.is_done = false};
    struct link *l = begin(&w, "", NULL);
    struct asking *each[] = {&a, &b};
    const char *ids[] = {"first", "second"};

    for (int i = 0; i < 2; i++) {
        asking_send(each[i], l, "tools/call");
        struct http_request *post = world_take(&w, "tools/call");
        stream_begin(post);
        stream_event(post, ids[i], 5, NOTE("x"));
        http_stream_end(post);
    }
    for (int i = 0; i < 2; i++) {
        struct http_request *get = world_take(&w, "GET");
        bool is_first = str_eq(request_header(get, "last-event-id"), STR("first"));
        if (!is_first)
            assert_str(request_header(get, "last-event-id"), "second");
        stream_begin(get);
        stream_result(get, "z", each[!is_first]->pending.id, "{}");
        http_stream_end(get);
        world_until(&w, &each[!is_first]->is_done);
    }
    assert_false(a.failed || b.failed);
    asking_end(&a);
    asking_end(&b);
    world_close(&w);
}

/* Answers a call with a stream that ends after one event with this id. */
static void end_early(struct world *w, struct asking *a, struct link *l, const char *id)
{
    asking_send(a, l, "tools/call");
    struct http_request *post = world_take(w, "tools/call");
    stream_begin(post);
    stream_event(post, id, 5, NOTE("half"));
    http_stream_end(post);
}

TEST(test_remote__a_stream_without_event_ids_is_lost_when_it_ends)
{
    struct world w;
    struct asking a = {.is_done = false};
    end_early(&w, &a, begin(&w, "", NULL), NULL);
    world_until(&w, &a.is_done);
    assert_true(a.failed && a.left);
    assert_int_equal(a.err.code, ERR_UNREACHABLE);
    assert_int_equal(world_heard(&w, "GET"), 0);
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__event_ids_are_sent_back_up_to_a_kilobyte)
{
    struct world w;
    struct asking a = {.is_done = false};
    struct link *l = begin(&w, "", NULL);
    char id[1026] = "";

    memset(id, 'i', 1024);
    end_early(&w, &a, l, id);
    struct http_request *get = world_take(&w, "GET");
    assert_int_equal(request_header(get, "last-event-id").n, 1024);
    stream_begin(get);
    stream_result(get, NULL, a.pending.id, "{}");
    http_stream_end(get);
    world_until(&w, &a.is_done);
    assert_false(a.failed);
    asking_end(&a);
    id[1024] = 'i';
    end_early(&w, &a, l, id);
    world_until(&w, &a.is_done);
    assert_true(a.failed);
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__a_server_that_does_not_resume_fails_the_call)
{
    struct world w;
    struct asking a = {.is_done = false};
    end_early(&w, &a, begin(&w, "", NULL), "e");
    answer(world_take(&w, "GET"), 405, NULL, "");
    world_until(&w, &a.is_done);
    assert_true(a.failed && a.left);
    assert_int_equal(a.err.code, ERR_UNREACHABLE);
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__a_session_that_is_gone_meanwhile_ends_the_link)
{
    struct world w;
    struct asking a = {.is_done = false};
    end_early(&w, &a, begin(&w, "", NULL), "e");
    answer(world_take(&w, "GET"), 404, NULL, "");
    world_until(&w, &a.is_done);
    assert_int_equal(a.err.code, ERR_SESSION_NOT_FOUND);
    assert_int_equal(upstreams_links(w.set), 0);
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__a_call_is_cancelled_while_it_waits_to_go_on)
{
    struct world w;
    struct asking a = {.is_done = false};
    struct link *l = begin(&w, "", NULL);
    world_can(&w, (struct canned){"notifications/cancelled", 202, NULL, ""});
    asking_send(&a, l, "tools/call");
    struct http_request *post = world_take(&w, "tools/call");
    stream_begin(post);
    stream_event(post, "e", 600, NOTE("half"));
    http_stream_end(post);
    world_until_said(&w, "half");
    world_pass(&w, 50);
    pending_cancel(&a.pending, STR("test"));
    world_pass(&w, 700);
    assert_int_equal(world_heard(&w, "GET"), 0);
    assert_false(a.is_done);
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__a_call_waits_for_its_deadline_and_no_longer)
{
    struct world w;
    struct asking a = {.is_done = false};
    struct link *l = begin(&w, ",\"timeout\":2", NULL);
    world_can(&w, (struct canned){"notifications/cancelled", 202, NULL, ""});
    clock_set_fake(1000000, 1000000);
    end_early(&w, &a, l, "e");
    struct http_request *get = world_take(&w, "GET");
    stream_begin(get);
    clock_advance_fake(1990);
    world_pass(&w, 150);
    assert_false(a.is_done);
    clock_advance_fake(100);
    world_until(&w, &a.is_done);
    assert_int_equal(a.err.code, ERR_TIMEOUT);
    clock_set_real();
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__a_held_clock_stands_still_and_starts_afresh)
{
    struct world w;
    struct asking a = {.is_done = false};
    struct link *l = begin(&w, ",\"timeout\":2", NULL);
    world_can(&w, (struct canned){"notifications/cancelled", 202, NULL, ""});
    clock_set_fake(1000000, 1000000);
    asking_send(&a, l, "tools/call");
    world_take(&w, "tools/call");
    pending_hold(&a.pending, true);
    clock_advance_fake(3600 * 1000);
    world_pass(&w, 150);
    assert_false(a.is_done);
    pending_hold(&a.pending, false);
    clock_advance_fake(1900);
    world_pass(&w, 150);
    assert_false(a.is_done);
    clock_advance_fake(200);
    world_until(&w, &a.is_done);
    assert_int_equal(a.err.code, ERR_TIMEOUT);
    clock_set_real();
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__a_patient_request_has_no_deadline)
{
    struct world w;
    struct asking a = {.pending = {.patient = true}};
    struct link *l = begin(&w, ",\"timeout\":2", NULL);
    clock_set_fake(1000000, 1000000);
    asking_send(&a, l, "subscriptions/listen");
    struct http_request *post = world_take(&w, "subscriptions/listen");
    clock_advance_fake(3600 * 1000);
    world_pass(&w, 150);
    assert_false(a.is_done);
    clock_set_real();
    answer(post, 200, "result", "{}");
    world_until(&w, &a.is_done);
    assert_false(a.failed);
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__a_batch_is_its_messages)
{
    struct world w;
    struct asking a = {.is_done = false};
    struct link *l = begin(&w, "", NULL);
    char text[512];

    asking_send(&a, l, "tools/call");
    struct http_request *post = world_take(&w, "tools/call");
    snprintf(text, sizeof(text), " [%s,{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":{}},%s]",
             NOTE("one"), (unsigned long long)a.pending.id, NOTE("two"));
    answer(post, 200, NULL, text);
    world_until(&w, &a.is_done);
    assert_false(a.failed);
    assert_int_equal(buf_count(&w.said, "about " NOTE("one")), 1);
    assert_int_equal(buf_count(&w.said, "lone " NOTE("two")), 1);
    asking_end(&a);
    world_close(&w);
}

static struct link *begin_modern(struct world *w, const char *capabilities)
{
    world_open(w, "");
    world_modern(w, capabilities);
    world_can(w, (struct canned){"tools/list", 200, "result", "{\"tools\":[]}"});
    world_catalog(w);
    return world_link(w, NULL, NULL);
}

TEST(test_remote__a_version_that_is_refused_and_named_may_be_sent_again_once)
{
    struct world w;
    struct asking a = {.is_done = false};
    struct link *l = begin_modern(&w, "{\"tools\":{}}");
    world_can(&w, (struct canned){"tools/call", 400, "error",
                                  "{\"code\":-32022,\"message\":\"no\",\"data\":{\"supported\":["
                                  "\"2026-07-28\"]}}"});
    asking_send(&a, l, "tools/call");
    world_until(&w, &a.is_done);
    assert_true(a.failed);
    assert_false(a.left);
    assert_int_equal(a.err.code, ERR_UNREACHABLE);
    asking_end(&a);
    asking_send(&a, l, "tools/call");
    world_until(&w, &a.is_done);
    assert_false(a.failed);
    assert_int_equal(buf_count(&a.reply, "-32022"), 1);
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__a_header_mismatch_refreshes_the_tools_and_is_told)
{
    struct world w;
    struct asking a = {.is_done = false};
    struct link *l = begin_modern(&w, "{\"tools\":{}}");
    world_can(&w, (struct canned){"tools/call", 400, "error",
                                  "{\"code\":-32020,\"message\":\"mismatch\"}"});
    world_uncan(&w, "tools/list");
    asking_send(&a, l, "tools/call");
    world_until(&w, &a.is_done);
    assert_false(a.failed);
    assert_int_equal(buf_count(&a.reply, "-32020"), 1);
    answer(world_take(&w, "tools/list"), 200, "result", "{\"tools\":[{\"name\":\"new\"}]}");
    asking_end(&a);
    assert_non_null(catalog_tool(world_catalog(&w), STR("new")));
    asking_send(&a, l, "tools/call"); /* not again so soon */
    world_until(&w, &a.is_done);
    world_pass(&w, 100);
    assert_int_equal(world_heard(&w, "tools/list"), 2);
    asking_end(&a);
    world_close(&w);
}

TEST(test_remote__a_legacy_server_is_watched_on_its_standalone_stream)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, "{\"tools\":{\"listChanged\":true}}");
    world_can(&w, (struct canned){"tools/list", 200, "result", "{\"tools\":[]}"});
    world_uncan(&w, "GET");
    world_catalog(&w);
    upstreams_watch(w.set, STR("far"), 1);
    struct http_request *get = world_take(&w, "GET");
    stream_begin(get);
    stream_event(get, NULL, -1, CHANGED);
    world_until_said(&w, "lone " CHANGED);
    assert_int_equal(upstreams_links(w.set), 1);
    upstreams_watch(w.set, STR("far"), -1);
    world_close(&w);
}

TEST(test_remote__a_server_that_tells_nothing_is_not_watched)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, "{\"tools\":{}}");
    world_can(&w, (struct canned){"tools/list", 200, "result", "{\"tools\":[]}"});
    world_catalog(&w);
    upstreams_watch(w.set, STR_NONE, 1);
    world_pass(&w, 1200);
    assert_int_equal(upstreams_links(w.set), 0);
    upstreams_watch(w.set, STR_NONE, -1);
    world_close(&w);
}

TEST(test_remote__a_server_without_a_standalone_stream_is_asked_once)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, "{\"tools\":{\"listChanged\":true}}");
    world_can(&w, (struct canned){"tools/list", 200, "result", "{\"tools\":[]}"});
    world_catalog(&w);
    upstreams_watch(w.set, STR_NONE, 1);
    world_pass(&w, 3200);
    assert_int_equal(world_heard(&w, "GET"), 1);
    assert_int_equal(upstreams_links(w.set), 0);
    upstreams_watch(w.set, STR_NONE, -1);
    world_close(&w);
}

TEST(test_remote__a_modern_server_is_watched_by_subscription)
{
    struct world w;
    world_open(&w, "");
    world_modern(&w, "{\"tools\":{},\"prompts\":{\"listChanged\":true}}");
    world_can(&w, (struct canned){"tools/list", 200, "result", "{\"tools\":[]}"});
    world_can(&w, (struct canned){"prompts/list", 200, "result", "{\"prompts\":[]}"});
    world_catalog(&w);
    upstreams_watch(w.set, STR_NONE, 1);
    struct http_request *post = world_take(&w, "subscriptions/listen");
    assert_str(request_header(post, "mcp-method"), "subscriptions/listen");
    assert_non_null(memmem(post->body.p, post->body.n, "\"toolsListChanged\":false", 24));
    assert_non_null(memmem(post->body.p, post->body.n, "\"promptsListChanged\":true", 25));
    stream_begin(post);
    stream_event(post, NULL, -1,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}");
    http_stream_end(post);
    world_take(&w, "subscriptions/listen"); /* again, when it ended */
    assert_int_equal(w.changed[CATALOG_PROMPTS], 1);
    upstreams_watch(w.set, STR_NONE, -1);
    world_close(&w);
}

TEST(test_remote__listeners_outlive_a_changed_definition)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, "{\"tools\":{\"listChanged\":true}}");
    world_can(&w, (struct canned){"tools/list", 200, "result", "{\"tools\":[]}"});
    world_uncan(&w, "GET");
    upstreams_watch(w.set, STR("far"), 1); /* the catalog is fetched for it */
    stream_begin(world_take(&w, "GET"));
    world_apply(&w, ",\"timeout\":9");
    stream_begin(world_take(&w, "GET"));
    upstreams_watch(w.set, STR("far"), -1);
    world_close(&w);
}

TEST(test_remote__a_watch_ends_half_a_minute_after_its_last_listener)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, "{\"tools\":{\"listChanged\":true}}");
    world_can(&w, (struct canned){"tools/list", 200, "result", "{\"tools\":[]}"});
    world_uncan(&w, "GET");
    world_catalog(&w);
    upstreams_watch(w.set, STR("far"), 1);
    stream_begin(world_take(&w, "GET"));
    clock_set_fake(clock_wall_ms(), clock_mono_ms());
    upstreams_watch(w.set, STR("far"), -1);
    clock_advance_fake(29000);
    world_pass(&w, 1100);
    assert_int_equal(upstreams_links(w.set), 1);
    clock_advance_fake(2000);
    world_pass(&w, 1100);
    assert_int_equal(upstreams_links(w.set), 0);
    clock_set_real();
    world_close(&w);
}

TEST(test_remote__a_change_said_a_thousand_times_is_told_twice)
{
    struct world w;
    world_open(&w, "");
    for (int i = 0; i < 1000; i++)
        upstream_changed(w.up, CATALOG_TOOLS);
    upstream_changed(w.up, CATALOG_PROMPTS);
    assert_int_equal(w.changed[CATALOG_TOOLS], 1);
    assert_int_equal(w.changed[CATALOG_PROMPTS], 1);
    world_pass(&w, 1200);
    assert_int_equal(w.changed[CATALOG_TOOLS], 2);
    assert_int_equal(w.changed[CATALOG_PROMPTS], 1);
    world_close(&w);
}

TEST(test_remote__standalone_streams_leave_the_places_of_requests_free)
{
    struct world w;
    struct asking a = {.is_done = false};
    struct link *l = begin(&w, "", CLIENT_PARAMS);
    char key[16];

    stream_begin(world_take(&w, "GET"));
    for (int i = 0; i < 257; i++) {
        int n = snprintf(key, sizeof(key), "s:%d", 100 + i);
        struct link_identity who = {.key = str_n(key, (size_t)n),
                                    .owner = STR("default/local"),
                                    .initialize_params = STR(CLIENT_PARAMS)};
        struct linking k = {.wait = {.done = on_linking}};
        struct error err;
        assert_true(upstream_link(w.up, &who, &k.wait, &k.link, &err));
        stream_begin(world_take(&w, "GET"));
        world_until(&w, &k.is_done);
    }
    asking_send(&a, l, "tools/call");
    answer(world_take(&w, "tools/call"), 200, "result", "{}");
    world_until(&w, &a.is_done);
    assert_false(a.failed);
    asking_end(&a);
    world_close(&w);
}
