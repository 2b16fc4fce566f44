/* SPDX-License-Identifier: Apache-2.0 */
/* The smart merge by example: what an edit writes, what it supersedes, what it may not touch. */
#include "docs/critic/critic.h"
#include "test.h"

static struct arena *mem;
static const struct critic_author author = {{"A's AI", 6}, 7};
#define META "{\"author\":\"A's AI\",\"time\":7}@@"
#define DEL(s) "{--" META s "--}"
#define INS(s) "{++" META s "++}"
/* Pending changes of another agent, and of a person. */
#define OTHER "{\"author\":\"Z's AI\"}@@"
#define ODEL(s) "{--" OTHER s "--}"
#define OINS(s) "{++" OTHER s "++}"
#define PERSON "{\"author\":\"Chris\",\"time\":5}@@"

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
        assert_false(edit_as(apply == 1, source, old, fresh, &result, &err));
        assert_int_equal(err.code, ERR_BAD_INPUT);
        assert_non_null(strstr(err.text, text));
        assert_null(result.p);
    }
    arena_free(mem);
    mem = NULL;
}

static void refuses_to_suggest(const char *source, const char *old, const char *fresh,
                               const char *text)
{
    struct error err = {0};
    struct str result = STR_NONE;

    assert_false(edit_as(false, source, old, fresh, &result, &err));
    assert_non_null(strstr(err.text, text));
    assert_null(result.p);
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

TEST(test_suggest__signs_of_all_scripts_part_words_and_marks_stay_on_their_letters)
{
    gives("in\xe2\x86\x92out", "in\xe2\x86\x92out",
          "in\xe2\x86\x92"
          "exit",
          "in\xe2\x86\x92" DEL("out") INS("exit"));
    gives("\xc2\xaboui\xc2\xbb", "\xc2\xaboui\xc2\xbb", "\xc2\xabnon\xc2\xbb",
          "\xc2\xab" DEL("oui") INS("non") "\xc2\xbb");
    gives("cafe\xcc\x81 noir", "cafe\xcc\x81", "cafe\xcc\x80",
          DEL("cafe\xcc\x81") INS("cafe\xcc\x80") " noir");
    gives("\xe2\x9d\xa4\xef\xb8\x8fme", "\xe2\x9d\xa4\xef\xb8\x8fme", "\xe2\x9d\xa4\xef\xb8\x8fyou",
          "\xe2\x9d\xa4\xef\xb8\x8f" DEL("me") INS("you"));
    gives("\xe4\xb8\xad\xe6\x96\x87", "\xe4\xb8\xad\xe6\x96\x87", "\xe4\xb8\xad\xe5\xad\x97",
          "\xe4\xb8\xad" DEL("\xe6\x96\x87") INS("\xe5\xad\x97"));
}

TEST(test_suggest__no_two_changes_have_the_same_markup)
{
    gives("a x b x c", "a x b x c", "a y b y c",
          "a " DEL("x") INS("y") " b {--{\"author\":\"A's AI\",\"time\":6}@@x--}"
                                 "{++{\"author\":\"A's AI\",\"time\":6}@@y++} c");
    gives(INS("y") " a", "a", "a y", INS("y") " a" INS(" y"));
    gives(INS(" y") " a", "a", "a y", INS(" y") " a{++{\"author\":\"A's AI\",\"time\":6}@@ y++}");
}

TEST(test_suggest__nothing_changed_is_nothing_written)
{
    gives("a {--b--}{++c++} d", "a c d", "a c d", "a {--b--}{++c++} d");
}

TEST(test_suggest__what_overlaps_is_superseded_and_its_base_carried_forward)
{
    gives("The " ODEL("quick") "" OINS("fast") " fox", "fast", "speedy",
          "The " DEL("quick") INS("speedy") " fox");
    gives("The {~~" OTHER "quick~>fast~~} fox", "fast", "speedy",
          "The " DEL("quick") INS("speedy") " fox");
    gives("Hello " ODEL("world") "" OINS("earth") " and goodbye", "earth and", "mars or",
          "Hello " DEL("world and") INS("mars or") " goodbye");
    gives("The " ODEL("quick") "" OINS("fast") " brown " ODEL("fox") "" OINS("cat") " jumps.",
          "fast brown cat", "speedy red dog",
          "The " DEL("quick brown fox") INS("speedy red dog") " jumps.");
    gives("a " OINS("new") " b", "new", "newer", "a " INS("newer") " b");
    gives("a " OINS("new ") "b", "new ", "", "a b");
    gives("x " ODEL("very long") "" OINS("a short") " y", "short y", "tiny y",
          "x " DEL("very long") INS("a tiny") " y");
}

TEST(test_suggest__a_suggestion_taken_back_is_plain_again)
{
    gives("The " ODEL("quick") "" OINS("fast") " fox", "fast", "quick", "The quick fox");
}

TEST(test_suggest__what_is_not_touched_keeps_its_bytes)
{
    gives("Hello {--beautiful --}world today.", "world today", "earth now",
          "Hello {--beautiful --}" DEL("world today") INS("earth now") ".");
    gives("a {--b--}{++{\"author\":\"Z\"}@@c++} d e", "a c d e", "a c d f",
          "a {--b--}{++{\"author\":\"Z\"}@@c++} d " DEL("e") INS("f"));
    gives("{==a==} b", "b", "c", "{==a==} " DEL("b") INS("c"));
}

TEST(test_suggest__a_highlight_comes_back_when_the_edit_over_it_is_rejected)
{
    gives("x {==a b==} y", "b", "c", "x " DEL("{==a b==}") INS("a c") " y");
    gives("x {==marked==}{>>why<<} y", "marked", "other",
          "x " DEL("{==marked==}") INS("other") "{>>why<<} y");
    gives("x {==marked==}{>>why<<} y", "x marked{>>why<<}", "z other{>>why<<}",
          DEL("x {==marked==}") INS("z other") "{>>why<<} y");
    gives("x " DEL("{==marked==}") INS("other") "{>>why<<} y", "other", "third",
          "x " DEL("{==marked==}") INS("third") "{>>why<<} y");
}

TEST(test_suggest__a_pending_change_of_a_person_is_not_replaced)
{
    static const char text[] = "would replace a suggestion of ";

    refuses("a {++" PERSON "new++} b", "new", "newer", "suggestion of Chris that is not decided");
    refuses("a {++new++} b", "new", "newer", "suggestion of a person that is not decided");
    refuses("a {--b--}{++c++} d", "c", "x", text);
    refuses("a {~~b~>c~~} d", "a c d", "a x d", text);
    refuses("a {--gone --}b", "a b", "x", text);
    /* around it */
    gives("a {--gone --}b", "a b", "x y", DEL("a") INS("x") " {--gone --}" DEL("b") INS("y"));
    gives("a {++" PERSON "new++} b", "a new b", "a new c",
          "a {++" PERSON "new++} " DEL("b") INS("c"));
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
    /* Rejected, it would leave the comment behind the last fence, in code. */
    refuses_to_suggest("```\na\n```", "```\na\n```", "```\na\n```\nmore {>>n<<}", "comment tool");
    gives("```\na\n```\n", "a\n```\n", "a\n```\nmore {>>n<<}",
          "```\na\n```\n" INS("more ") "{>>" META "n<<}");
    refuses("a ` {++p++} c", "c", "d ` e", "accepted or rejected first");
}

TEST(test_suggest__new_text_holds_no_mark_and_forms_none)
{
    static const char text[] = "holds the CriticMarkup mark '";

    refuses("a", "a", "{+++}", text);
    refuses("`a`", "a", "{>>x<<}", "in code");
    refuses("a", "a", "b <<} c", "without its other half");
    refuses("a", "a", "{>> b", "without its other half");
    refuses("x {+y+ z", "y", "", "mark '{++'");
    refuses("x {y z", "y", "--", "mark '{--'");
    refuses("x {+y z", "y", "+", "mark '{++'");
    refuses("x y} z", "y", "<<", "without its other half");
    gives("x {y z", "y", "-", "x {" DEL("y") INS("-") " z");
}

/* Four edits, each harmless alone, and what they come to when all are accepted. */
TEST(test_suggest__marks_are_not_assembled_by_several_edits)
{
    refuses("x {" INS("+") "y z", "y", "+", "mark '{++'");
    refuses("x {" OINS("+") "y+ z", "y", "", "mark '{++'");
    refuses("{+ one + two", " one ", "", "mark '{++'");
    /* The halves meet only if the one is accepted and the other is not. */
    gives("{+a b+}", "a b", "c d", "{+" DEL("a b") INS("c d") "+}");
    refuses("{" ODEL("+") OINS("z") "y", "y", "+q", "markup together");
    refuses("{" ODEL("+") OINS("z") "y+q", "y", "", "markup together");
}

/* Whether an edit is refused, or written with no word of Chris in it. */
static void brings_nothing_of_chris(const char *source, const char *old, const char *fresh)
{
    struct error err = {0};

    for (int apply = 0; apply <= 1; apply++) {
        struct str result = STR_NONE;

        if (edit_as(apply == 1, source, old, fresh, &result, &err))
            assert_null(memmem(result.p, result.n, "Chris", 5));
    }
    arena_free(mem);
    mem = NULL;
}

TEST(test_suggest__code_that_is_closed_early_brings_no_comment_of_another)
{
    static const char forged[] = "x\n```\n{>>" PERSON "Reviewed<<}\n```\n";

    brings_nothing_of_chris("```\nx\n```\n", "x\n", forged);
    brings_nothing_of_chris("`x`", "x", "` {>>" PERSON "Reviewed<<} `");
    brings_nothing_of_chris("~~~\nx\n", "x", "x\n~~~\n{>>" PERSON "Reviewed<<}");
    refuses("```\nx\n```\n", "x", "{>>" PERSON "Reviewed<<}", "in code");
    refuses("a", "a", "```\n{>>" PERSON "Reviewed<<}\n```\n", "in code");
    refuses("a", "a", "`{>>" PERSON "Reviewed<<}`", "in code");
}

TEST(test_suggest__code_that_holds_marks_is_decided_as_one)
{
    struct critic_suggestion *list;
    struct error err = {0};
    struct str result;
    struct critic c;

    assert_true(edit_as(false, "see\n\n```\n{++x++} {>>y<<}\nz\n```\n", "z", "Z", &result, &err));
    critic_parse(result, mem, &c);
    assert_int_equal(critic_suggestions(&c, mem, &list), 1);
    assert_str(list[0].old_content, "```\n{++x++} {>>y<<}\nz\n```\n");
    assert_str(list[0].new_content, "```\n{++x++} {>>y<<}\nZ\n```\n");
    arena_free(mem);
    mem = NULL;
}

TEST(test_suggest__code_made_of_two_places_is_one_change)
{
    gives("a foo b", "foo", "`foo`", "a " DEL("foo") INS("`foo`") " b");
    gives("a\nfoo\nb\n", "foo\n", "```\nfoo\n```\n", "a\n" DEL("foo") INS("```\nfoo\n```") "\nb\n");
    /* code that is closed in each place is suggested place by place */
    gives("use `a` or `b`.", "use `a` or `b`.", "use `A` or `B`.",
          "use " DEL("`a`") INS("`A`") " or " DEL("`b`") INS("`B`") ".");
}

TEST(test_suggest__metadata_with_two_authors_is_not_kept)
{
    refuses("a b", "b", "b{>>{\"author\":\"A's AI\",\"time\":7,\"author\":\"Chris\"}@@x<<}",
            "'}@@'");
    gives("a b", "b", "b{>>" META PERSON "x<<}", "a b{>>" META "x<<}");
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

static bool try_large(struct str source, struct str fresh, struct error *err)
{
    struct critic_edit edit = {.fresh = fresh, .author = author};
    struct str result = STR_NONE;
    struct critic c;
    bool ok;

    mem = arena_new(SIZE_MAX);
    critic_parse(source, mem, &c);
    ok = critic_suggest(&c, &edit, mem, &result, err);
    assert_true(!ok || result.n <= CRITIC_SIZE_MAX);
    arena_free(mem);
    mem = NULL;
    return ok;
}

/* To a program that knows no code the example stood inside the deletion of a person. */
TEST(test_suggest__of_a_mark_around_an_example_brings_no_signature_out)
{
    refuses("three{==marked==}{>>why<<}```x y`\n~~~\n{==a\nb==} jumpsthree{~~c~>d~~}Quick--} "
            "{==marked==}{==marked==}{>>why<<}~~}{--\n~~~\n"
            "{>>{\"author\":\"Chris\",\"time\":1794600000}@@an example<<}\n~~~\n--}fox \n\n~~~\n"
            "{>>{\"author\":\"Chris\",\"time\":1794600000}@@an example<<}\n~~~\n ",
            "--} {==marked==}{==", "--} {==markefox\n`  ```\nint a;\n```\ntwod==}{==", "together");
}

TEST(test_suggest__a_document_holds_so_many_marks)
{
    struct error err = {0};
    struct buf text;

    buf_init(&text, SIZE_MAX);
    for (int i = 0; i < CRITIC_MARKS_MAX - 1; i++)
        buf_addz(&text, "{>>x<<} ");
    assert_true(try_large(buf_str(&text), STR("one more"), &err));
    assert_false(try_large(buf_str(&text), STR("two {>>more<<}"), &err));
    assert_non_null(strstr(err.text, "hold 20001 CriticMarkup marks; the limit is 20000"));
    assert_false(try_large(STR(""), buf_str(&text), &err)); /* with changes between them */
    buf_addz(&text, "{++");                                 /* never closed, still read */
    assert_false(try_large(buf_str(&text), STR("one more"), &err));
    buf_release(&text);
}

TEST(test_suggest__a_document_holds_so_many_bytes)
{
    static const size_t added = sizeof(INS("")) - 1;
    struct error err = {0};
    struct buf text;

    buf_init(&text, SIZE_MAX);
    while (text.n < CRITIC_SIZE_MAX - added)
        buf_addc(&text, 'x');
    assert_true(try_large(STR(""), buf_str(&text), &err));
    buf_addc(&text, 'x');
    assert_false(try_large(STR(""), buf_str(&text), &err));
    assert_non_null(strstr(err.text, "4194305 bytes"));
    buf_release(&text);
}

TEST(test_suggest__apply_writes_plain_text_and_accepts_what_it_touches)
{
    applies("say hello", "hello", "goodbye", "say goodbye");
    applies("a " ODEL("b") OINS("c") " d {++e++}", "c", "x", "a x d {++e++}");
    applies("a{--b--} c", "c", "d", "a{--b--} d");
    applies("a", "a", "b{>>n<<}", "b{>>" META "n<<}");
}
