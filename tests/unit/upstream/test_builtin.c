/* SPDX-License-Identifier: Apache-2.0 */
/* Built-in servers: tools that answer at once, tools that wait, and what becomes of those when
 * nobody waits for them any more. */
#include "test.h"

#include "base/clock.h"
#include "upstream/builtin.h"
#include "upstream/upstream_impl.h"

#include <stdio.h>

static struct loop *loop;
static struct upstreams *set;
static struct upstream *up;
static struct config *config;
static struct link *session_link;
static struct builtin_call *waiting; /* the last call that waits */
static char seen[256];               /* who called, for what session, with what */

static void run_echo(struct builtin_call *call)
{
    const struct js_node *text = js_get(call->doc, call->arguments, STR("text"));
    builtin_text(call, js_text(call->doc, text, call->mem), false);
}

static void run_wait(struct builtin_call *call)
{
    const struct js_node *text = js_get(call->doc, call->arguments, STR("text"));
    waiting = call;
    call->waits = true;
    snprintf(seen, sizeof(seen), "%.*s/%.*s %.*s %.*s %s", STR_ARG(call->who->tenant),
             STR_ARG(call->who->owner), STR_ARG(call->session_id),
             STR_ARG(js_text(call->doc, text, call->mem)), (const char *)call->arg);
}

static const struct builtin_tool tools[] = {
    {.name = "echo", .definition = "{\"name\":\"echo\",\"inputSchema\":{}}", .run = run_echo},
    {.name = "wait", .definition = "{\"name\":\"wait\",\"inputSchema\":{}}", .run = run_wait},
    {.name = NULL},
};
static const struct builtin server = {.name = "sample", .instructions = "", .tools = tools};

static void on_message(void *arg unused_arg, struct link *l, struct pending *about unused_arg,
                       struct str text)
{
    struct arena *mem = arena_new(1 << 20);
    struct mcp_message m;
    struct error err;
    uint64_t id;

    assert_true(mcp_parse_upstream(arena_dup(mem, text), mem, &m, &err));
    assert_true(str_to_u64(m.id, UINT64_MAX, &id));
    struct pending *p = pending_find(l, id);
    assert_non_null(p); /* whatever comes is still waited for */
    pending_take(p);
    p->on_reply(p, &m, mem);
}

struct asking {
    struct pending pending;
    bool is_done, failed;
    char reply[512];
};

static void on_reply(struct pending *p, struct mcp_message *m, struct arena *mem)
{
    struct asking *a = container_of(p, struct asking, pending);
    a->is_done = true;
    snprintf(a->reply, sizeof(a->reply), "%.*s", STR_ARG(m->doc.text));
    arena_free(mem);
}

static void on_fail(struct pending *p, const struct error *err unused_arg, bool left unused_arg)
{
    struct asking *a = container_of(p, struct asking, pending);
    a->is_done = a->failed = true;
}

static void turn(void)
{
    struct loop_timer *t = loop_timer_new(loop, (void (*)(void *))loop_stop, loop);
    loop_timer_start(t, 0, 0);
    loop_run(loop);
    loop_timer_free(t);
}

static void on_link(struct link_wait *w unused_arg, struct link *l, const struct error *err)
{
    assert_null(err);
    session_link = l;
}

static void begin(void)
{
    struct error err;
    struct link_identity who = {.key = STR("s:1"), .owner = STR("default/local")};
    static struct link_wait wait;

    loop = loop_new();
    assert_true(config_parse(STR("{}"), STR("h.json"), NULL, &config, &err));
    builtin_register(&server, "given");
    struct upstreams_config c = {.loop = loop, .sink = {.on_message = on_message}};
    set = upstreams_new(&c);
    upstreams_apply(set, config);
    up = upstreams_find(set, STR("sample"));
    session_link = NULL;
    waiting = NULL;
    wait = (struct link_wait){.done = on_link};
    assert_true(upstream_link(up, &who, &wait, &session_link, &err));
    for (int i = 0; i < 10 && !session_link; i++)
        turn();
    assert_non_null(session_link);
}

static void end(void)
{
    upstreams_free(set);
    config_unref(config);
    loop_free(loop);
}

static void ask(struct asking *a, const char *tool, const char *text)
{
    struct exec token = exec_housekeeping(EXEC_PROBE);
    struct principal who = {.tenant = STR("acme"), .owner = STR("user:1")};
    struct error err;
    char request[512];

    *a = (struct asking){.pending = {.on_reply = on_reply, .on_fail = on_fail}};
    a->pending.id = upstream_next_id_for(up);
    int n = snprintf(request, sizeof(request),
                     "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"tools/call\",\"params\":{"
                     "\"name\":\"%s\",\"arguments\":{\"text\":\"%s\"}}}",
                     (unsigned long long)a->pending.id, tool, text);
    struct outgoing m = {.method = STR("tools/call"),
                         .text = str_n(request, (size_t)n),
                         .who = &who,
                         .session_id = STR("row-1")};
    assert_true(upstream_send(session_link, &token, &a->pending, &m, &err));
    memset(request, 'x', sizeof(request)); /* what a tool needs of it, it has by now */
}

TEST(test_builtin__answers_from_the_loop_and_never_before)
{
    struct asking a;
    begin();
    ask(&a, "echo", "hello");
    assert_false(a.is_done);
    turn();
    assert_true(a.is_done && !a.failed);
    assert_non_null(strstr(a.reply, "\"text\":\"hello\""));
    end();
}

TEST(test_builtin__a_tool_that_waits_is_answered_when_it_is_done)
{
    struct asking slow, quick;
    begin();
    ask(&slow, "wait", "later");
    ask(&quick, "echo", "now");
    turn();
    turn();
    assert_true(quick.is_done);
    assert_false(slow.is_done);
    assert_string_equal(seen, "acme/user:1 row-1 later given");
    builtin_text(waiting, STR("done"), false);
    builtin_finish(waiting);
    assert_true(slow.is_done && !slow.failed);
    assert_non_null(strstr(slow.reply, "\"text\":\"done\""));
    end();
}

TEST(test_builtin__a_tool_may_end_after_its_call_was_given_up)
{
    struct asking a;
    begin();
    ask(&a, "wait", "x");
    turn();
    pending_cancel(&a.pending, STR("nobody waits"));
    builtin_text(waiting, STR("done"), false);
    builtin_finish(waiting);
    turn();
    assert_false(a.is_done);
    end();
}

TEST(test_builtin__a_tool_may_end_after_its_link_did)
{
    struct asking a;
    begin();
    ask(&a, "wait", "x");
    turn();
    end();
    assert_true(a.is_done && a.failed);
    assert_string_equal(seen, "acme/user:1 row-1 x given");
    builtin_text(waiting, STR("done"), false);
    builtin_finish(waiting);
    assert_true(a.failed);
}

TEST(test_builtin__an_answer_on_its_way_is_dropped_with_its_call)
{
    struct asking a;
    begin();
    ask(&a, "echo", "x");
    pending_cancel(&a.pending, STR("nobody waits"));
    turn();
    assert_false(a.is_done);
    end();
}

static struct link *least_recently_used(void)
{
    return list_entry(list_first(&up->lru), struct link, lru);
}

TEST(test_link__without_a_process_is_ordered_by_use_to_the_second)
{
    struct link_identity who = {.key = STR("s:2"), .owner = STR("default/local")};
    struct link_wait wait = {.done = on_link};
    struct link *first, *second = NULL;
    struct asking a;
    struct error err;

    clock_set_fake(1000, 1000);
    begin();
    first = session_link;
    session_link = NULL;
    assert_true(upstream_link(up, &who, &wait, &second, &err));
    for (int i = 0; i < 10 && !second && !session_link; i++)
        turn();
    second = second ? second : session_link;
    assert_ptr_equal(least_recently_used(), first);
    session_link = first;
    clock_advance_fake(999);
    ask(&a, "echo", "x");
    assert_ptr_equal(least_recently_used(), first);
    turn();
    clock_advance_fake(1);
    ask(&a, "echo", "x");
    assert_ptr_equal(least_recently_used(), second);
    turn();
    session_link = second; /* used all the time, it still moves once a second */
    for (int i = 0; i < 4; i++) {
        clock_advance_fake(300);
        ask(&a, "echo", "x");
        turn();
    }
    assert_ptr_equal(least_recently_used(), first);
    clock_set_real();
    end();
}
