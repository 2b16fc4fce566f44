/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions found again and settled: by place, by markup and context, never by a guess. */
#include "test.h"

#include "docs/settle.h"

static struct arena *mem;
static enum settle_result results[SETTLE_ITEMS_MAX];

static void begin(void)
{
    mem = arena_new(1 << 24);
}

static void end(void)
{
    arena_free(mem);
}

/* The n-th suggestion as a list shows it. */
static struct settle_item item(const char *source, size_t which)
{
    struct critic_suggestion *list;
    struct critic c;

    critic_parse(str_of(source), mem, &c);
    assert_true(critic_suggestions(&c, mem, &list) > which);
    return (struct settle_item){
        .raw = list[which].raw,
        .from = (int64_t)list[which].from,
        .before = list[which].context_before,
        .after = list[which].context_after,
    };
}

static struct str act(enum settle_action action, const struct settle_item *items, size_t n,
                      const char *source)
{
    struct settle_request r = {.action = action, .items = items, .n = n};
    return settle(&r, str_of(source), mem, results);
}

#define THREE "a {--b--}{++c++} d {++e++} f {--g--} h"

TEST(test_settle__a_batch_settles_each_and_leaves_the_others_alone)
{
    begin();
    struct settle_item items[] = {item(THREE, 2), item(THREE, 0)};
    assert_str(act(SETTLE_ACCEPT, items, 2, THREE), "a c d {++e++} f  h");
    assert_int_equal(results[0], SETTLE_DONE);
    assert_int_equal(results[1], SETTLE_DONE);
    assert_str(act(SETTLE_REJECT, items, 2, THREE), "a b d {++e++} f g h");
    end();
}

#define HALVES "a {++`++}foo{++`++} b {++c++}"

TEST(test_settle__half_of_some_code_is_not_decided_alone)
{
    begin();
    struct settle_item items[] = {item(HALVES, 0), item(HALVES, 1), item(HALVES, 2)};
    assert_str(act(SETTLE_ACCEPT, items, 1, HALVES), HALVES);
    assert_int_equal(results[0], SETTLE_TOGETHER);
    assert_non_null(strstr(settle_reason(results[0]), "decide them together"));
    assert_str(act(SETTLE_ACCEPT, items, 2, HALVES), "a `foo` b {++c++}");
    assert_str(act(SETTLE_REJECT, items, 1, HALVES), "a foo{++`++} b {++c++}");
    assert_str(act(SETTLE_ACCEPT, items + 2, 1, HALVES), "a {++`++}foo{++`++} b c");
    assert_int_equal(results[0], SETTLE_DONE);
    end();
}

TEST(test_settle__one_named_twice_is_settled_once)
{
    begin();
    struct settle_item items[] = {item(THREE, 1), item(THREE, 1), item(THREE, 0)};
    assert_str(act(SETTLE_ACCEPT, items, 3, THREE), "a c d e f {--g--} h");
    assert_int_equal(results[0], SETTLE_DONE);
    assert_int_equal(results[1], SETTLE_TWICE);
    assert_int_equal(results[2], SETTLE_DONE);
    assert_string_equal(settle_reason(results[1]),
                        "suggestion overlaps another suggestion in this batch");
    end();
}

TEST(test_settle__one_that_is_gone_is_told_and_changes_nothing)
{
    begin();
    struct settle_item one = item(THREE, 1);
    const char *now = "a {--b--}{++c++} d e f {--g--} h";
    struct str fresh = act(SETTLE_REJECT, &one, 1, now);
    assert_true(fresh.p == now);
    assert_int_equal(results[0], SETTLE_GONE);
    assert_string_equal(settle_reason(results[0]), "suggestion no longer found in document");
    end();
}

TEST(test_settle__one_that_moved_is_found_by_its_markup)
{
    begin();
    struct settle_item one = item(THREE, 1);
    assert_str(act(SETTLE_ACCEPT, &one, 1, "Before it. a b d {++e++} f {--g--} h"),
               "Before it. a b d e f {--g--} h");
    one.before = one.after = STR_NONE;
    one.from = -1;
    assert_str(act(SETTLE_ACCEPT, &one, 1, "Elsewhere {++e++}!"), "Elsewhere e!");
    end();
}

TEST(test_settle__of_those_alike_the_context_tells_which)
{
    begin();
    const char *source = "One {++more++} apple.\nTwo {++more++} pears.\n";
    struct settle_item second = item(source, 1);
    assert_str(act(SETTLE_ACCEPT, &second, 1, source), "One {++more++} apple.\nTwo more pears.\n");
    second.from += 4; /* something was put before both */
    assert_str(act(SETTLE_ACCEPT, &second, 1, source), "One {++more++} apple.\nTwo more pears.\n");
    end();
}

TEST(test_settle__of_those_alike_none_is_guessed_at)
{
    begin();
    const char *source = "One {++more++} apple.\nTwo {++more++} pears.\n";
    struct settle_item lost = {.raw = STR("{++more++}"), .from = 7};
    assert_true(act(SETTLE_ACCEPT, &lost, 1, source).p == source);
    assert_int_equal(results[0], SETTLE_GONE);
    lost.before = STR("x");
    lost.after = STR("y");
    (void)act(SETTLE_ACCEPT, &lost, 1, source);
    assert_int_equal(results[0], SETTLE_GONE);
    end();
}

TEST(test_settle__another_at_the_same_place_is_not_taken_for_it)
{
    begin();
    struct settle_item one = item("a {++b++}", 0);
    assert_true(act(SETTLE_ACCEPT, &one, 1, "a {++c++}").n == 9);
    assert_int_equal(results[0], SETTLE_GONE);
    end();
}

TEST(test_settle__a_person_may_write_something_else_instead)
{
    begin();
    struct settle_item one = item(THREE, 0);
    struct settle_request r = {.action = SETTLE_ACCEPT, .items = &one, .n = 1, .text = STR("else")};
    assert_str(settle(&r, STR(THREE), mem, results), "a else d {++e++} f {--g--} h");
    r.text = STR("");
    assert_str(settle(&r, STR(THREE), mem, results), "a  d {++e++} f {--g--} h");
    end();
}

TEST(test_settle__a_reply_ends_the_thread_behind_the_suggestion)
{
    begin();
    const char *source = "a {--b--}{++c++}{>>why?<<} d";
    struct settle_item one = item(source, 0);
    struct settle_request r = {
        .action = SETTLE_REPLY,
        .items = &one,
        .n = 1,
        .text = STR("because"),
        .author = {.name = STR("Ada"), .time_s = 7},
    };
    assert_str(settle(&r, str_of(source), mem, results),
               "a {--b--}{++c++}{>>why?<<}{>>{\"author\":\"Ada\",\"time\":7}@@because<<} d");
    const char *last = "x {++y++}";
    one = item(last, 0);
    assert_str(settle(&r, str_of(last), mem, results),
               "x {++y++}{>>{\"author\":\"Ada\",\"time\":7}@@because<<}");
    end();
}

TEST(test_settle__comments_and_highlights_go_either_way)
{
    begin();
    const char *source = "a{>>note<<} {==b==}";
    struct settle_item items[] = {item(source, 0), item(source, 1)};
    assert_str(act(SETTLE_ACCEPT, items, 2, source), "a b");
    assert_str(act(SETTLE_REJECT, items, 2, source), "a b");
    end();
}

TEST(test_settle__requests_are_checked)
{
    static struct settle_item items[SETTLE_ITEMS_MAX + 1];
    static char longest[4001];
    memset(longest, 'x', sizeof(longest));
    const struct {
        struct settle_request r;
        bool ok;
    } rows[] = {
        {{.action = SETTLE_ACCEPT, .n = 0}, false},
        {{.action = SETTLE_ACCEPT, .n = SETTLE_ITEMS_MAX}, true},
        {{.action = SETTLE_ACCEPT, .n = SETTLE_ITEMS_MAX + 1}, false},
        {{.action = SETTLE_ACCEPT, .n = 1, .text = STR("{++ok++}")}, true},
        {{.action = SETTLE_ACCEPT, .n = 2, .text = STR("x")}, false},
        {{.action = SETTLE_REJECT, .n = 1, .text = STR("x")}, false},
        {{.action = SETTLE_REPLY, .n = 1}, false},
        {{.action = SETTLE_REPLY, .n = 1, .text = STR(" \t")}, false},
        {{.action = SETTLE_REPLY, .n = 2, .text = STR("x")}, false},
        {{.action = SETTLE_REPLY, .n = 1, .text = STR("x")}, true},
        {{.action = SETTLE_REPLY, .n = 1, .text = STR("a <<} b")}, false},
        {{.action = SETTLE_REPLY, .n = 1, .text = STR("a {>> b")}, false},
        {{.action = SETTLE_REPLY, .n = 1, .text = STR("{++b++}")}, false},
        {{.action = SETTLE_REPLY, .n = 1, .text = {longest, 4000}}, true},
        {{.action = SETTLE_REPLY, .n = 1, .text = {longest, 4001}}, false},
    };
    struct error err;

    for (size_t i = 0; i < countof(rows); i++) {
        struct settle_request r = rows[i].r;
        r.items = items;
        if (settle_check(&r, &err) != rows[i].ok)
            fail_msg("row %zu", i);
    }
}

TEST(test_settle__a_change_needs_nothing_but_itself_and_may_run_again)
{
    begin();
    struct arena *asked = arena_new(1 << 20), *out = arena_new(1 << 20);
    struct settle_item one = item(THREE, 1);
    one.raw = arena_dup(asked, one.raw);
    one.before = arena_dup(asked, one.before);
    one.after = arena_dup(asked, one.after);
    struct settle_request r = {.action = SETTLE_ACCEPT, .items = &one, .n = 1};
    struct docs_change *c = settle_change_new(&r);
    struct error err;
    struct str fresh;

    arena_free(asked);
    memset(&one, 0xa5, sizeof(one));
    assert_true(c->run(c, STR("nothing"), out, &fresh, &err));
    assert_str(fresh, "nothing");
    assert_int_equal(settle_change_results(c)[0], SETTLE_GONE);
    assert_true(c->run(c, STR("later " THREE), out, &fresh, &err));
    assert_str(fresh, "later a {--b--}{++c++} d e f {--g--} h");
    assert_int_equal(settle_change_results(c)[0], SETTLE_DONE);
    c->free(c);
    arena_free(out);
    end();
}
