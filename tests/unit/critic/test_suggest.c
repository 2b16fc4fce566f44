/* SPDX-License-Identifier: Apache-2.0 */
/* The smart merge by example: what an edit writes, what it supersedes, what it may not touch. */
#include "critic/critic.h"
#include "test.h"

static struct arena *mem;
static const struct critic_author author = {{"A", 1}, 7};
#define META "{\"author\":\"A\",\"time\":7}@@"
#define DEL(s) "{--" META s "--}"
#define INS(s) "{++" META s "++}"

static bool edit_as(bool apply, const char *source, const char *old, const char *fresh,
                    struct str *ret, struct error *err)
{
    struct critic c;
    struct critic_edit edit = {.fresh = str_of(fresh), .author = author};
    size_t count;

    arena_free(mem);
    mem = arena_new(SIZE_MAX);
    critic_parse(str_of(source), mem, &c);
    critic_find(critic_accepted(&c, mem), str_of(old), &edit.at, &edit.n, &count);
    if (*old)
        assert_int_equal(count, 1);
    return apply ? critic_apply(&c, &edit, mem, ret, err)
                 : critic_suggest(&c, &edit, mem, ret, err);
}

static void gives(const char *source, const char *old, const char *fresh, const char *want)
{
    struct error err = {0};
    struct str result = STR_NONE;

    assert_true(edit_as(false, source, old, fresh, &result, &err));
    if (result.n != strlen(want) || memcmp(result.p, want, result.n) != 0)
        print_error("got  %.*s\nwant %s\n", STR_ARG(result), want);
    assert_str(result, want);
    arena_free(mem);
    mem = NULL;
}

static void applies(const char *source, const char *old, const char *fresh, const char *want)
{
    struct error err = {0};
    struct str result = STR_NONE;

    assert_true(edit_as(true, source, old, fresh, &result, &err));
    assert_str(result, want);
    arena_free(mem);
    mem = NULL;
}

static void refuses(const char *source, const char *old, const char *fresh, const char *text)
{
    struct error err = {0};
    struct str result = STR_NONE;

    for (int apply = 0; apply <= 1; apply++) {
        assert_false(edit_as(apply, source, old, fresh, &result, &err));
        assert_int_equal(err.code, ERR_BAD_INPUT);
        assert_non_null(strstr(err.text, text));
        assert_null(result.p);
    }
    arena_free(mem);
    mem = NULL;
}

TEST(test_suggest__a_change_is_written_not_applied)
{
    gives("say hello there", "hello", "goodbye", "say " DEL("hello") INS("goodbye") " there");
    gives("say hello there", "hello ", "", "say " DEL("hello ") "there");
    gives("a\r\nb\r\nc\r\n", "a\r\nb\r\n", "a\r\nx\r\n", "a\r\n" DEL("b") INS("x") "\r\nc\r\n");
    gives("", "", "x", INS("x"));
}

TEST(test_suggest__changes_are_small_and_blanks_join_them)
{
    gives("one two three four five", "one two three four five", "one 2 three 4 five",
          "one " DEL("two") INS("2") " three " DEL("four") INS("4") " five");
    gives("one two three", "one two three", "one 2 3", "one " DEL("two three") INS("2 3"));
    gives("one\ntwo", "one\ntwo", "1\n2", DEL("one") INS("1") "\n" DEL("two") INS("2"));
    gives("caf\xc3\xa9 noir", "caf\xc3\xa9", "caf\xc3\xa8",
          DEL("caf\xc3\xa9") INS("caf\xc3\xa8") " noir");
}

TEST(test_suggest__nothing_changed_is_nothing_written)
{
    gives("a {--b--}{++c++} d", "a c d", "a c d", "a {--b--}{++c++} d");
}

TEST(test_suggest__what_overlaps_is_superseded_and_its_base_carried_forward)
{
    gives("The {--quick--}{++fast++} fox", "fast", "speedy",
          "The " DEL("quick") INS("speedy") " fox");
    gives("The {~~quick~>fast~~} fox", "fast", "speedy", "The " DEL("quick") INS("speedy") " fox");
    gives("Hello {--world--}{++earth++} and goodbye", "earth and", "mars or",
          "Hello " DEL("world and") INS("mars or") " goodbye");
    gives("The {--quick--}{++fast++} brown {--fox--}{++cat++} jumps.", "fast brown cat",
          "speedy red dog", "The " DEL("quick brown fox") INS("speedy red dog") " jumps.");
    gives("a {++new++} b", "new", "newer", "a " INS("newer") " b");
    gives("a {++new ++}b", "new ", "", "a b");
    gives("x {--very long--}{++a short++} y", "short y", "tiny y",
          "x " DEL("very long") INS("a tiny") " y");
}

TEST(test_suggest__a_suggestion_taken_back_is_plain_again)
{
    gives("The {--quick--}{++fast++} fox", "fast", "quick", "The quick fox");
}

TEST(test_suggest__what_is_not_touched_keeps_its_bytes)
{
    gives("Hello {--beautiful --}world today.", "world today", "earth now",
          "Hello {--beautiful --}" DEL("world today") INS("earth now") ".");
    gives("a {--b--}{++{\"author\":\"Z\"}@@c++} d e", "a c d e", "a c d f",
          "a {--b--}{++{\"author\":\"Z\"}@@c++} d " DEL("e") INS("f"));
    gives("{==a==} b", "b", "c", "{==a==} " DEL("b") INS("c"));
    gives("x {==a b==} y", "b", "c", "x " DEL("a b") INS("a c") " y");
}

TEST(test_suggest__a_change_in_code_takes_in_the_whole_code)
{
    gives("use `a b` now", "b", "c", "use " DEL("`a b`") INS("`a c`") " now");
    gives("x\n\n```\nint a;\n```\ny", "int a", "int b",
          "x\n\n" DEL("```\nint a;\n```\n") INS("```\nint b;\n```\n") "y");
    gives("```\nlong\n```\n\nword", "word", "words", "```\nlong\n```\n\n" DEL("word") INS("words"));
    gives("`{++x++}` y", "y", "z", "`{++x++}` " DEL("y") INS("z"));
}

TEST(test_suggest__markup_in_base_text_is_cut_apart)
{
    gives("a --} b", "a --} b", "", DEL("a -") DEL("-} b"));
    gives("a {++ b", "a {++ b", "", DEL("a {") DEL("++ b"));
    gives("`{--x--}`", "`{--x--}`", "y", DEL("`{") DEL("--x-") DEL("-}`") INS("y"));
    gives("`a++} b`", "b", "c", DEL("`a++} b`") INS("`a+") INS("+} c`"));
    gives("stray {-- here. Then this.", "this", "that",
          "stray {-- here. Then " DEL("this") INS("that") ".");
}

TEST(test_suggest__code_made_across_a_change_is_taken_in)
{
    gives("a ` b c", "c", "d ` e", DEL("a ` b c") INS("a ` b d ` e"));
    gives("x", "x", "```\ny", DEL("x") INS("```\ny"));
    gives("```\na\n```", "```\na\n```", "```\na\n```\nmore {>>n<<}",
          DEL("```\na\n```") INS("```\na\n```\nmore ") "{>>" META "n<<}");
    refuses("a ` {++p++} c", "c", "d ` e", "settled first");
}

TEST(test_suggest__halves_of_a_mark_do_not_meet)
{
    gives("x {+{++y++}+ z++}", "y", "",
          DEL("x {") DEL("++ z++}") INS("x {") INS("++ z+") INS("+}"));
    gives("{++ {++y ++}++}", "y ", "", DEL("{") DEL("++ ++}") INS("{") INS("++ +") INS("+}"));
    gives("a", "a", "{+++}", DEL("a") INS("{") INS("++") INS("+}"));
}

TEST(test_suggest__comments_of_people_are_protected)
{
    static const char text[] = "Cannot remove or modify non-AI comment: ";

    refuses("a {>>why?<<} b", "{>>why?<<}", "", text);
    refuses("a {>>why?<<} b", "why", "how", text);
    refuses("a {>>{\"author\":\"Chris\"}@@why?<<} b", "a {>>{\"author\":\"Chris\"}@@why?<<} b",
            "a b", text);
    refuses("a {>>1<<}{>>2<<} b", "{>>1<<}{>>2<<}", "{>>2<<}{>>1<<}", text);
    refuses("a {++x {>>why?<<} y++} b", "why", "how", text);
    gives("a {>>why?<<} b", "a {>>why?<<} b", "x {>>why?<<} y",
          DEL("a") INS("x") " {>>why?<<} " DEL("b") INS("y"));
}

TEST(test_suggest__comments_of_agents_are_not)
{
    gives("a {>>{\"author\":\"AI\"}@@n<<} b", " {>>{\"author\":\"AI\"}@@n<<}", "",
          "a" DEL(" ") " b");
    gives("a{>>{\"author\":\"Bo's AI\"}@@n<<} b", "n<<}", "m<<}", "a{>>" META "m<<} b");
    refuses("a{>>{\"author\":\"'s AI\"}@@n<<} b", "n<<}", "m<<}", "Cannot remove");
}

TEST(test_suggest__comments_it_adds_are_stamped_and_stand_outside)
{
    gives("a b", "b", "b {>>why?<<}", "a b" INS(" ") "{>>" META "why?<<}");
    gives("a b", "b", "c{>>{\"author\":\"Chris\"}@@x<<}d",
          "a " DEL("b") INS("c") "{>>" META "x<<}" INS("d"));
    gives("a {>>p<<} b", "{>>p<<}", "{>>p<<}{>>p<<}", "a {>>p<<}{>>" META "p<<} b");
}

TEST(test_suggest__an_edit_outside_the_document_is_refused)
{
    struct critic_edit edit = {.at = 2, .n = 2, .fresh = STR("x"), .author = author};
    struct error err = {0};
    struct critic c;
    struct str result;

    mem = arena_new(SIZE_MAX);
    critic_parse(STR("abc"), mem, &c);
    assert_false(critic_suggest(&c, &edit, mem, &result, &err));
    edit.n = 1;
    assert_true(critic_suggest(&c, &edit, mem, &result, &err));
    arena_free(mem);
    mem = NULL;
}

TEST(test_suggest__huge_rewrites_fall_back_to_lines)
{
    struct critic_edit edit = {.author = author};
    struct error err = {0};
    struct critic c;
    struct buf old, fresh;
    struct str result;

    buf_init(&old, SIZE_MAX);
    buf_init(&fresh, SIZE_MAX);
    for (int i = 0; i < 2000; i++) {
        buf_addf(&old, "line %d with words\n", i);
        buf_addf(&fresh, i % 20 ? "line %d with words\n" : "%d became another thing\n", i);
    }
    mem = arena_new(SIZE_MAX);
    critic_parse(buf_str(&old), mem, &c);
    edit.n = old.n;
    edit.fresh = buf_str(&fresh);
    assert_true(critic_suggest(&c, &edit, mem, &result, &err));
    critic_parse(result, mem, &c);
    assert_int_equal(c.n, 200); /* each changed line alone */
    assert_true(str_eq(critic_accepted(&c, mem), buf_str(&fresh)));
    buf_release(&old);
    buf_release(&fresh);
    arena_free(mem);
    mem = NULL;
}

TEST(test_suggest__apply_writes_plain_text_and_accepts_what_it_touches)
{
    applies("say hello", "hello", "goodbye", "say goodbye");
    applies("a {--b--}{++c++} d {++e++}", "c", "x", "a x d {++e++}");
    applies("a{--b--} c", "c", "d", "a{--b--} d");
    applies("a", "a", "b{>>n<<}", "b{>>" META "n<<}");
}
