/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions found again and decided: by place, by markup and context, never by a guess. */
#include "test.h"

#include "docs/decide.h"

static struct arena *mem;
static enum decide_result results[DECIDE_ITEMS_MAX];

static void begin(void)
{
    mem = arena_new(1 << 24);
}

static void end(void)
{
    arena_free(mem);
}

/* The n-th suggestion as a list shows it. */
static struct decide_item item(const char *source, size_t which)
{
    struct critic_suggestion *list;
    struct critic c;

    critic_parse(str_of(source), mem, &c);
    assert_true(critic_suggestions(&c, mem, &list) > which);
    return (struct decide_item){
        .raw = list[which].raw,
        .from = (int64_t)list[which].from,
        .before = list[which].context_before,
        .after = list[which].context_after,
    };
}

static struct str act(enum decide_action action, const struct decide_item *items, size_t n,
                      const char *source)
{
    struct decide_request r = {.action = action, .items = items, .n = n};
    return suggestions_decide(&r, str_of(source), mem, results);
}

#define THREE "a {--b--}{++c++} d {++e++} f {--g--} h"

TEST(test_decide__a_batch_decides_each_and_leaves_the_others_alone)
{
    begin();
    struct decide_item items[] = {item(THREE, 2), item(THREE, 0)};
    assert_str(act(DECIDE_ACCEPT, items, 2, THREE), "a c d {++e++} f  h");
    assert_int_equal(results[0], DECIDE_DONE);
    assert_int_equal(results[1], DECIDE_DONE);
    assert_str(act(DECIDE_REJECT, items, 2, THREE), "a b d {++e++} f g h");
    end();
}

#define HALVES "a {++`++}foo{++`++} b {++c++}"

TEST(test_decide__half_of_some_code_is_not_decided_alone)
{
    begin();
    struct decide_item items[] = {item(HALVES, 0), item(HALVES, 1), item(HALVES, 2)};
    assert_str(act(DECIDE_ACCEPT, items, 1, HALVES), HALVES);
    assert_int_equal(results[0], DECIDE_TOGETHER);
    assert_non_null(strstr(decide_reason(results[0]), "decide them together"));
    assert_str(act(DECIDE_ACCEPT, items, 2, HALVES), "a `foo` b {++c++}");
    assert_str(act(DECIDE_REJECT, items, 1, HALVES), "a foo{++`++} b {++c++}");
    assert_str(act(DECIDE_ACCEPT, items + 2, 1, HALVES), "a {++`++}foo{++`++} b c");
    assert_int_equal(results[0], DECIDE_DONE);
    end();
}

TEST(test_decide__one_named_twice_is_decided_once)
{
    begin();
    struct decide_item items[] = {item(THREE, 1), item(THREE, 1), item(THREE, 0)};
    assert_str(act(DECIDE_ACCEPT, items, 3, THREE), "a c d e f {--g--} h");
    assert_int_equal(results[0], DECIDE_DONE);
    assert_int_equal(results[1], DECIDE_TWICE);
    assert_int_equal(results[2], DECIDE_DONE);
    assert_string_equal(decide_reason(results[1]),
                        "suggestion overlaps another suggestion in this batch");
    end();
}

TEST(test_decide__one_that_is_gone_is_told_and_changes_nothing)
{
    begin();
    struct decide_item one = item(THREE, 1);
    const char *now = "a {--b--}{++c++} d e f {--g--} h";
    struct str fresh = act(DECIDE_REJECT, &one, 1, now);
    assert_true(fresh.p == now);
    assert_int_equal(results[0], DECIDE_GONE);
    assert_string_equal(decide_reason(results[0]), "suggestion no longer found in document");
    end();
}

TEST(test_decide__one_that_moved_is_found_by_its_markup)
{
    begin();
    struct decide_item one = item(THREE, 1);
    assert_str(act(DECIDE_ACCEPT, &one, 1, "Before it. a b d {++e++} f {--g--} h"),
               "Before it. a b d e f {--g--} h");
    one.before = one.after = STR_NONE;
    one.from = -1;
    assert_str(act(DECIDE_ACCEPT, &one, 1, "Elsewhere {++e++}!"), "Elsewhere e!");
    end();
}

TEST(test_decide__of_those_alike_the_context_tells_which)
{
    begin();
    const char *source = "One {++more++} apple.\nTwo {++more++} pears.\n";
    struct decide_item second = item(source, 1);
    assert_str(act(DECIDE_ACCEPT, &second, 1, source), "One {++more++} apple.\nTwo more pears.\n");
    second.from += 4; /* something was put before both */
    assert_str(act(DECIDE_ACCEPT, &second, 1, source), "One {++more++} apple.\nTwo more pears.\n");
    end();
}

TEST(test_decide__of_those_alike_none_is_guessed_at)
{
    begin();
    const char *source = "One {++more++} apple.\nTwo {++more++} pears.\n";
    struct decide_item lost = {.raw = STR("{++more++}"), .from = 7};
    assert_true(act(DECIDE_ACCEPT, &lost, 1, source).p == source);
    assert_int_equal(results[0], DECIDE_GONE);
    lost.before = STR("x");
    lost.after = STR("y");
    (void)act(DECIDE_ACCEPT, &lost, 1, source);
    assert_int_equal(results[0], DECIDE_GONE);
    end();
}

TEST(test_decide__another_at_the_same_place_is_not_taken_for_it)
{
    begin();
    struct decide_item one = item("a {++b++}", 0);
    assert_true(act(DECIDE_ACCEPT, &one, 1, "a {++c++}").n == 9);
    assert_int_equal(results[0], DECIDE_GONE);
    end();
}

TEST(test_decide__a_person_may_write_something_else_instead)
{
    begin();
    struct decide_item one = item(THREE, 0);
    struct decide_request r = {.action = DECIDE_ACCEPT, .items = &one, .n = 1, .text = STR("else")};
    assert_str(suggestions_decide(&r, STR(THREE), mem, results), "a else d {++e++} f {--g--} h");
    r.text = STR("");
    assert_str(suggestions_decide(&r, STR(THREE), mem, results), "a  d {++e++} f {--g--} h");
    end();
}

TEST(test_decide__a_reply_ends_the_thread_behind_the_suggestion)
{
    begin();
    const char *source = "a {--b--}{++c++}{>>why?<<} d";
    struct decide_item one = item(source, 0);
    struct decide_request r = {
        .action = DECIDE_REPLY,
        .items = &one,
        .n = 1,
        .text = STR("because"),
        .author = {.name = STR("Ada"), .time_s = 7},
    };
    assert_str(suggestions_decide(&r, str_of(source), mem, results),
               "a {--b--}{++c++}{>>why?<<}{>>{\"author\":\"Ada\",\"time\":7}@@because<<} d");
    const char *last = "x {++y++}";
    one = item(last, 0);
    assert_str(suggestions_decide(&r, str_of(last), mem, results),
               "x {++y++}{>>{\"author\":\"Ada\",\"time\":7}@@because<<}");
    end();
}

TEST(test_decide__comments_and_highlights_go_either_way)
{
    begin();
    const char *source = "a{>>note<<} {==b==}";
    struct decide_item items[] = {item(source, 0), item(source, 1)};
    assert_str(act(DECIDE_ACCEPT, items, 2, source), "a b");
    assert_str(act(DECIDE_REJECT, items, 2, source), "a b");
    end();
}

TEST(test_decide__requests_are_checked)
{
    static struct decide_item items[DECIDE_ITEMS_MAX + 1];
    static char longest[4001];
    memset(longest, 'x', sizeof(longest));
    const struct {
        struct decide_request r;
        bool ok;
    } rows[] = {
        {{.action = DECIDE_ACCEPT, .n = 0}, false},
        {{.action = DECIDE_ACCEPT, .n = DECIDE_ITEMS_MAX}, true},
        {{.action = DECIDE_ACCEPT, .n = DECIDE_ITEMS_MAX + 1}, false},
        {{.action = DECIDE_ACCEPT, .n = 1, .text = STR("{++ok++}")}, true},
        {{.action = DECIDE_ACCEPT, .n = 2, .text = STR("x")}, false},
        {{.action = DECIDE_REJECT, .n = 1, .text = STR("x")}, false},
        {{.action = DECIDE_REPLY, .n = 1}, false},
        {{.action = DECIDE_REPLY, .n = 1, .text = STR(" \t")}, false},
        {{.action = DECIDE_REPLY, .n = 2, .text = STR("x")}, false},
        {{.action = DECIDE_REPLY, .n = 1, .text = STR("x")}, true},
        {{.action = DECIDE_REPLY, .n = 1, .text = STR("a <<} b")}, false},
        {{.action = DECIDE_REPLY, .n = 1, .text = STR("a {>> b")}, false},
        {{.action = DECIDE_REPLY, .n = 1, .text = STR("{++b++}")}, false},
        {{.action = DECIDE_REPLY, .n = 1, .text = {longest, 4000}}, true},
        {{.action = DECIDE_REPLY, .n = 1, .text = {longest, 4001}}, false},
    };
    struct error err;

    for (size_t i = 0; i < countof(rows); i++) {
        struct decide_request r = rows[i].r;
        r.items = items;
        if (decide_check(&r, &err) != rows[i].ok)
            fail_msg("row %zu", i);
    }
}

TEST(test_decide__a_change_needs_nothing_but_itself_and_may_run_again)
{
    begin();
    struct arena *asked = arena_new(1 << 20), *out = arena_new(1 << 20);
    struct decide_item one = item(THREE, 1);
    one.raw = arena_dup(asked, one.raw);
    one.before = arena_dup(asked, one.before);
    one.after = arena_dup(asked, one.after);
    struct decide_request r = {.action = DECIDE_ACCEPT, .items = &one, .n = 1};
    struct docs_change *c = decide_change_new(&r);
    struct error err;
    struct str fresh;

    arena_free(asked);
    memset(&one, 0xa5, sizeof(one));
    assert_true(c->run(c, STR("nothing"), out, &fresh, &err));
    assert_str(fresh, "nothing");
    assert_int_equal(decide_change_results(c)[0], DECIDE_GONE);
    assert_true(c->run(c, STR("later " THREE), out, &fresh, &err));
    assert_str(fresh, "later a {--b--}{++c++} d e f {--g--} h");
    assert_int_equal(decide_change_results(c)[0], DECIDE_DONE);
    c->free(c);
    arena_free(out);
    end();
}
