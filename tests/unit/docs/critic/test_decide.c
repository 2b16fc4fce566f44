/* SPDX-License-Identifier: Apache-2.0 */
/* Review: what is listed, and what either verdict leaves of each kind. */
#include "docs/critic/critic.h"
#include "test.h"

static struct arena *mem;
static struct critic c;

static void parse(const char *source)
{
    mem = arena_new(SIZE_MAX);
    critic_parse(str_of(source), mem, &c);
}

static void done(void)
{
    arena_free(mem);
    mem = NULL;
}

TEST(test_decide__either_verdict_for_each_kind)
{
    static const struct {
        const char *source, *accepted, *rejected;
    } table[] = {
        {"a{++b++}c", "abc", "ac"},
        {"a{--b--}c", "ac", "abc"},
        {"a{--b--}{++x++}c", "axc", "abc"},
        {"a{~~b~>x~~}c", "axc", "abc"},
        {"a{>>b<<}c", "ac", "ac"},
        {"a{==b==}c", "abc", "abc"},
        {"a{++{\"author\":\"A\"}@@b++}c", "abc", "ac"},
    };

    for (size_t i = 0; i < countof(table); i++) {
        parse(table[i].source);
        assert_str(critic_decide(&c, (size_t[]){1}, (enum critic_verdict[]){CRITIC_ACCEPT}, 1, mem),
                   table[i].accepted);
        assert_str(critic_decide(&c, (size_t[]){1}, (enum critic_verdict[]){CRITIC_REJECT}, 1, mem),
                   table[i].rejected);
        assert_str(critic_decide(&c, NULL, NULL, 0, mem), table[i].source);
        done();
    }
}

TEST(test_decide__what_is_not_named_keeps_its_bytes)
{
    parse("{++a++} {--b--} {~~c~>d~~}");
    assert_str(critic_decide(&c, (size_t[]){4, 0},
                             (enum critic_verdict[]){CRITIC_REJECT, CRITIC_ACCEPT}, 2, mem),
               "a {--b--} c");
    assert_str(critic_decide_as(&c, 4, STR("mine"), mem), "{++a++} {--b--} mine");
    assert_str(critic_decide_as(&c, 0, STR(""), mem), " {--b--} {~~c~>d~~}");
    done();
}

TEST(test_decide__the_list_says_what_and_where)
{
    struct critic_suggestion *s;

    parse("one\n{++two\n++}three {--{\"author\":\"A\",\"time\":5}@@x--}{++{\"author\":\"A\"}@@y++} "
          "{>>note<<}{==h==}{--z--}");
    assert_int_equal(critic_suggestions(&c, mem, &s), 5);
    assert_string_equal(s[0].type, "addition");
    assert_int_equal(s[0].line, 2);
    assert_int_equal(s[0].from, 4);
    assert_int_equal(s[0].to, 14);
    assert_null(s[0].old_content.p);
    assert_str(s[0].new_content, "two\n");
    assert_str(s[0].context_before, "one\n");
    assert_string_equal(s[1].type, "substitution");
    assert_int_equal(s[1].line, 3);
    assert_str(s[1].old_content, "x");
    assert_str(s[1].new_content, "y");
    assert_str(s[1].meta.author, "A");
    assert_int_equal(s[1].meta.time_s, 5);
    assert_str(s[1].context_before, "one\ntwo\nthree ");
    assert_str(s[1].context_after, " {>>note<<}h");
    assert_true(str_eq(s[1].raw, str_n(c.source.p + s[1].from, s[1].to - s[1].from)));
    assert_string_equal(s[2].type, "comment");
    assert_str(s[2].new_content, "note");
    assert_string_equal(s[3].type, "highlight");
    assert_str(s[3].old_content, "h");
    assert_string_equal(s[4].type, "deletion");
    assert_str(s[4].old_content, "z");
    assert_null(s[4].new_content.p);
    done();
}

TEST(test_decide__contexts_are_short_and_whole_characters)
{
    struct critic_suggestion *s;

    parse("aaaaaaaaaaaaaaaaaaaa\xc3\xa9zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz{"
          "++x++}"
          "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\xc3\xa9zzz");
    assert_int_equal(critic_suggestions(&c, mem, &s), 1);
    assert_int_equal(s[0].context_before.n, 59);
    assert_int_equal(s[0].context_after.n, 59);
    done();
}
