/* SPDX-License-Identifier: Apache-2.0 */
/* What is markup and what is text: every form, both dialects of metadata, code, the unclosed. */
#include "docs/critic/critic.h"
#include "test.h"

static struct arena *mem;

static struct critic parsed(const char *source)
{
    struct critic c;

    arena_free(mem);
    mem = arena_new(SIZE_MAX);
    critic_parse(str_of(source), mem, &c);
    return c;
}

static void done(void)
{
    arena_free(mem);
    mem = NULL;
}

static void reads_as(const char *source, const char *accepted, const char *base)
{
    struct critic c = parsed(source);
    size_t n = 0;

    for (size_t i = 0; i < c.n; i++) {
        assert_ptr_equal(c.spans[i].raw.p, c.source.p + n);
        assert_true(c.spans[i].raw.n > 0);
        n += c.spans[i].raw.n;
    }
    assert_int_equal(n, strlen(source));
    assert_str(critic_accepted(&c, mem), accepted);
    assert_str(critic_base(&c, mem), base);
    done();
}

static void is_text(const char *source)
{
    struct critic c = parsed(source);

    assert_true(critic_is_plain(str_of(source)));
    assert_true(c.n <= 1);
    if (c.n)
        assert_int_equal(c.spans[0].kind, CRITIC_PLAIN);
    done();
    reads_as(source, source, source);
}

TEST(test_critic__every_form_has_its_two_readings)
{
    reads_as("a{++b++}c", "abc", "ac");
    reads_as("a{--b--}c", "ac", "abc");
    reads_as("a{~~b~>x~~}c", "axc", "abc");
    reads_as("a{--b--}{++x++}c", "axc", "abc");
    reads_as("a{==b==}c", "abc", "abc");
    reads_as("a{>>b<<}c", "a{>>b<<}c", "a{>>b<<}c");
    reads_as("{----}{++++}", "", "");
    reads_as("a{--b\r\n\r\nc--}\r\n", "a\r\n", "ab\r\n\r\nc\r\n");
    assert_false(critic_is_plain(STR("a{++b++}")));
}

TEST(test_critic__text_without_markup_is_its_own_view)
{
    struct critic c = parsed("{ + } {+ {x} a");

    assert_ptr_equal(critic_accepted(&c, mem).p, c.source.p);
    done();
    is_text("");
    is_text("{ + } {+ {x} -- ++} --}");
}

TEST(test_critic__unclosed_markup_is_text)
{
    is_text("a {++ b");
    is_text("a {-- b");
    is_text("a {~~ b ~> c");
    is_text("a {~~ b ~~}");
    is_text("a {>> b");
    is_text("a {== b");
    is_text("{--}");
    is_text("{---}");
    is_text("a {++ b --}");
}

TEST(test_critic__changes_are_never_nested)
{
    reads_as("{++ a {++b++} c", "{++ a b c", "{++ a  c");
    reads_as("{++ a {--b--} c++}", "{++ a  c++}", "{++ a b c++}");
    reads_as("{== a {--b--} c==}", "{== a  c==}", "{== a b c==}");
    reads_as("{++a {>>c<<} b++}", "a {>>c<<} b", "");
    reads_as("{>>a {>>b<<}", "{>>a {>>b<<}", "{>>a {>>b<<}");
}

TEST(test_critic__markup_in_code_is_text)
{
    is_text("a `{++b++}` c");
    is_text("a ``{++`b++}`` c");
    is_text("```\n{++b++}\n```\n");
    is_text("   ```c\n{++b++}\n``` \r\n");
    is_text("~~~ `\n{++b++}\n~~~~~");
    is_text("````\n```\n{++b++}\n````\n");
    is_text("```\n{++b++}\n~~~\n");
    is_text("```\n{++b++}");
    is_text("a `b\n{--c--}` d");
    is_text("a `b\r\n{--c--}` d");
}

TEST(test_critic__what_only_looks_like_code_hides_nothing)
{
    reads_as("a `{++b++} c", "a `b c", "a ` c");
    reads_as("a `x\n\n{++b++}` c", "a `x\n\nb` c", "a `x\n\n` c");
    reads_as("a `x\n \t\r\n{++b++}` c", "a `x\n \t\r\nb` c", "a `x\n \t\r\n` c");
    reads_as("a ``{++b++}` c", "a ``b` c", "a ``` c");
    reads_as("a \\`{++b++}` c", "a \\`b` c", "a \\`` c");
    reads_as("``` a ` b\n{++c++}\n", "``` a ` b\nc\n", "``` a ` b\n\n");
    reads_as("    ```\n{++c++}\n\n```", "    ```\nc\n\n```", "    ```\n\n\n```");
    reads_as("```\nx\n```\n{++c++}", "```\nx\n```\nc", "```\nx\n```\n");
    reads_as("a ` b\n```\n{++x++} `\n```\n{++c++}", "a ` b\n```\n{++x++} `\n```\nc",
             "a ` b\n```\n{++x++} `\n```\n");
}

TEST(test_critic__markup_that_opens_first_takes_in_code)
{
    reads_as("{--```\na `x\n```\n--}{++```\nb\n```\n++}", "```\nb\n```\n", "```\na `x\n```\n");
    reads_as("{--`--}{++`++}", "`", "`");
    reads_as("{++x\n++}```\n{++y++}\n```\n", "x\n```\n{++y++}\n```\n", "```\n{++y++}\n```\n");
}

TEST(test_critic__both_dialects_of_metadata_are_read)
{
    struct critic c = parsed("{++{\"author\":\"A\",\"time\":17}@@x++}"
                             "{--{\"timestamp\":17500,\"author\":\"\\u0042\",\"z\":[{}]}@@y--}"
                             "{>>{\"author\":3}@@z<<}{==q==}{~~{\"author\":\"C\"}@@a~>b~~}");

    assert_int_equal(c.n, 5);
    assert_str(c.spans[0].meta.author, "A");
    assert_int_equal(c.spans[0].meta.time_s, 17);
    assert_str(c.spans[0].inserted, "x");
    assert_str(c.spans[1].meta.author, "B");
    assert_int_equal(c.spans[1].meta.time_s, 17);
    assert_str(c.spans[1].deleted, "y");
    assert_null(c.spans[2].meta.author.p);
    assert_str(c.spans[2].text, "z");
    assert_null(c.spans[3].meta.author.p);
    assert_str(c.spans[4].deleted, "a");
    assert_str(c.spans[4].inserted, "b");
    assert_str(c.spans[4].meta.author, "C");
    done();
}

TEST(test_critic__marks_inside_metadata_do_not_close)
{
    reads_as("{++{\"author\":\"a++} {++b }@@\"}@@x++}", "x", "");
    reads_as("{>>{\"author\":\"<<}\"}@@x<<}y", "{>>{\"author\":\"<<}\"}@@x<<}y",
             "{>>{\"author\":\"<<}\"}@@x<<}y");
}

TEST(test_critic__what_is_no_metadata_is_text)
{
    reads_as("{++{author}@@x++}", "{author}@@x", "");
    reads_as("{++{\"author\":\"A\"}x++}", "{\"author\":\"A\"}x", "");
    reads_as("{++@@x++}", "@@x", "");
    reads_as("{++[1]@@x++}", "[1]@@x", "");
}

/* With what stands behind its closing mark it would be metadata, and the mark no mark. */
TEST(test_critic__metadata_that_leaves_no_mark_is_text)
{
    reads_as("{--{\"a--} b\":1}@@c", " b\":1}@@c", "{\"a b\":1}@@c");
    reads_as("{~~{\"a~>b~~} c\":1}@@d~~}", "b c\":1}@@d~~}", "{\"a c\":1}@@d~~}");
}

TEST(test_critic__metadata_is_read_however_full_the_memory_is)
{
    struct arena *full = arena_new(1);
    struct critic c;

    critic_parse(STR("{++{\"author\":\"\\u0041\",\"time\":17}@@x++}"), full, &c);
    assert_int_equal(c.n, 1);
    assert_str(c.spans[0].inserted, "x");
    assert_str(c.spans[0].meta.author, "A");
    arena_free(full);
}

TEST(test_critic__metadata_is_read_up_to_its_limit)
{
    for (int over = 0; over <= 1; over++) {
        char source[700] = "{++{\"author\":\"", want[700];
        struct critic c;

        memset(source + strlen(source), 'x', (size_t)(512 - 13 + over));
        strcat(source, "\"}@@y++}");
        memcpy(want, source + 3, strlen(source) - 6);
        want[strlen(source) - 6] = '\0';
        c = parsed(source);
        assert_int_equal(c.n, 1);
        assert_str(c.spans[0].inserted, over ? want : "y");
        done();
    }
}

TEST(test_critic__a_deletion_and_an_insertion_are_one_change_of_one_author)
{
    struct critic c =
        parsed("{--{\"author\":\"A\",\"time\":1}@@x--}{++{\"author\":\"A\",\"time\":2}@@y++}"
               "{--x--}{++{\"author\":\"A\"}@@y++}{--{\"author\":\"B\"}@@x--}"
               "{++{\"author\":\"A\"}@@y++}{--x--}{++y++}{++z++}");

    assert_int_equal(c.n, 7);
    assert_str(c.spans[0].deleted, "x");
    assert_str(c.spans[0].inserted, "y");
    assert_int_equal(c.spans[0].meta.time_s, 2);
    assert_null(c.spans[1].inserted.p);
    assert_null(c.spans[2].deleted.p);
    assert_null(c.spans[3].inserted.p);
    assert_str(c.spans[5].raw, "{--x--}{++y++}");
    assert_str(c.spans[6].inserted, "z");
    done();
}

TEST(test_critic__places_in_the_accepted_view_map_to_spans)
{
    struct critic c = parsed("ab{--x--}{++yz++}c{--q--}d");

    assert_int_equal(critic_span_at(&c, 0), 0);
    assert_int_equal(critic_span_at(&c, 2), 1);
    assert_int_equal(critic_span_at(&c, 3), 1);
    assert_int_equal(critic_span_at(&c, 4), 2);
    assert_int_equal(critic_span_at(&c, 5), 4);
    assert_int_equal(critic_span_at(&c, 99), 4);
    assert_int_equal(critic_accepted_offset(&c, 1), 2);
    assert_int_equal(critic_accepted_offset(&c, 3), 5);
    assert_int_equal(critic_accepted_offset(&c, 4), 5);
    done();
}

TEST(test_critic__hostile_documents_take_linear_time)
{
    static const char *const parts[] = {
        "{++", "{--{\"", "` `` ``` ", "{>>{==", "```\n", "{~~a~>", "{----}", "\\`{++`"};

    for (size_t i = 0; i < countof(parts); i++) {
        struct arena *own = arena_new(SIZE_MAX);
        struct critic c;
        struct buf b;

        buf_init(&b, SIZE_MAX);
        while (b.n < 200000)
            buf_addz(&b, parts[i]);
        critic_parse(buf_str(&b), own, &c);
        assert_true(critic_base(&c, own).n <= b.n);
        buf_release(&b);
        arena_free(own);
    }
}

/* Bytes that are looked at for a document of `n` bytes that repeats `unit`. */
static size_t steps_for(const char *unit, size_t n)
{
    size_t width = strlen(unit), steps;
    struct arena *own = arena_new(SIZE_MAX);
    char *text = arena_alloc(own, n);
    struct critic c;

    for (size_t i = 0; i < n; i++)
        text[i] = unit[i % width];
    critic_parse(str_n(text, n), own, &c);
    steps = c.steps;
    arena_free(own);
    return steps;
}

TEST(test_critic__reading_costs_a_few_looks_at_each_byte)
{
    static const char *const units[] = {
        "{>>{",    "{>>{\"", "{>>{\"a\":\"", "{>>{\"a\":{", "{++{",   "{++",   "{==",
        "{~~{==",  "{=={>>", "{--}",         "`",           "a`\n\n", "`` ` ", "```\n",
        "``` `\n", "~~~\n",  "{>>{\"}",      "{>>{\"\\",    "{",
    };
    const size_t n = 1 << 16;

    for (size_t i = 0; i < countof(units); i++) {
        size_t once = steps_for(units[i], n), twice = steps_for(units[i], 2 * n);

        if (once > 24 * n || twice > 2 * once + once / 8)
            print_error("'%s': %zu steps, %zu for twice as much\n", units[i], once, twice);
        assert_true(once <= 24 * n);
        assert_true(twice <= 2 * once + once / 8);
    }
}
