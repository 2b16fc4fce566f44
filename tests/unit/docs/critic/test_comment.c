/* SPDX-License-Identifier: Apache-2.0 */
/* What agents may send, how they sign, and where their comments go. */
#include "docs/critic/critic.h"
#include "test.h"

#include "base/utf8.h"

static struct arena *mem;
static const struct critic_author author = {{"A", 1}, 7};
#define META "{\"author\":\"A\",\"time\":7}@@"

static bool comment(const char *source, size_t at, const char *text, struct str *ret,
                    struct error *err)
{
    struct critic c;

    arena_free(mem);
    mem = arena_new(SIZE_MAX);
    critic_parse(str_of(source), mem, &c);
    return critic_comment(&c, at, str_of(text), &author, mem, ret, err);
}

static void gives(const char *source, size_t at, const char *want)
{
    struct error err = {0};
    struct str result = STR_NONE;

    assert_true(comment(source, at, "n", &result, &err));
    assert_str(result, want);
    arena_free(mem);
    mem = NULL;
}

#define NOTE "{>>" META "n<<}"

TEST(test_comment__stands_where_it_is_asked_to)
{
    gives("ab", 0, NOTE "ab");
    gives("ab", 1, "a" NOTE "b");
    gives("ab", 2, "ab" NOTE);
    gives("", 0, NOTE);
    gives("ab", 99, "ab" NOTE);
}

TEST(test_comment__follows_the_thread)
{
    gives("a {>>x<<}{>>y<<} b", 2, "a {>>x<<}{>>y<<}" NOTE " b");
    gives("a {>>x<<}{>>y<<} b", 4, "a {>>x<<}{>>y<<}" NOTE " b");
    gives("a {>>x<<}{>>y<<} b", 16, "a {>>x<<}{>>y<<}" NOTE " b");
    gives("{>>x<<}b", 0, "{>>x<<}" NOTE "b");
}

TEST(test_comment__never_stands_inside_marks_code_or_characters)
{
    gives("a {++new++} b", 3, "a {++new++}" NOTE " b");
    gives("a {==new==}{>>x<<} b", 3, "a {==new==}{>>x<<}" NOTE " b");
    gives("a `bc` d", 3, "a `bc`" NOTE " d");
    gives("```\nx\n```\ny", 5, "```\nx\n```\n" NOTE "y");
    gives("\xc3\xa9", 1, "\xc3\xa9" NOTE);
}

TEST(test_comment__is_refused_where_it_could_not_be_read_or_says_nothing)
{
    static const char *const bad[] = {"", " \n", "a {++ b", "--}", "{>>x<<}", "x<<}"};
    struct error err = {0};
    struct str result = STR_NONE;

    for (size_t i = 0; i < countof(bad); i++) {
        assert_false(comment("ab", 1, bad[i], &result, &err));
        assert_int_equal(err.code, ERR_BAD_INPUT);
        assert_null(result.p);
    }
    assert_false(comment("```\nunclosed", 5, "n", &result, &err));
    assert_non_null(strstr(err.text, "outside code"));
    arena_free(mem);
    mem = NULL;
}

TEST(test_comment__markup_is_forbidden_in_input_but_comments_are_not)
{
    static const char *const marks[] = {"{++", "++}", "{--", "--}", "{~~", "~~}", "{==", "==}"};

    for (size_t i = 0; i < countof(marks); i++) {
        char input[16] = "a ";
        strcat(strcat(input, marks[i]), "b");
        assert_str(critic_forbidden(str_of(input)), marks[i]);
    }
    assert_null(critic_forbidden(STR("a {>>b<<} {+ -} ~> {-")).p);
    assert_null(critic_forbidden(STR("")).p);
    assert_str(critic_forbidden(STR("--} {++")), "--}");
}

TEST(test_comment__stamping_signs_every_comment_once)
{
    struct str once;

    mem = arena_new(SIZE_MAX);
    once = critic_stamp(STR("a {>>x<<} `{>>y<<}` {>>{\"author\":\"Chris\"}@@z<<}"), &author, mem);
    assert_str(once, "a {>>" META "x<<} `{>>y<<}` {>>" META "z<<}");
    assert_true(str_eq(critic_stamp(once, &author, mem), once));
    assert_str(critic_stamp(STR("plain"), &author, mem), "plain");
    arena_free(mem);
    mem = NULL;
}

TEST(test_comment__an_author_is_a_harmless_name)
{
    static const struct {
        const char *person, *author;
    } table[] = {
        {"Chris", "Chris's AI"},
        {"Ch\"ris\\", "Chris's AI"},
        {"", "AI"},
        {"  \t ", "AI"},
        {" O'Brien ", "O'Brien's AI"},
        {"a\nb\x7f", "ab's AI"},
        {"{++x++}", "++x++'s AI"},
        {"\xc3\xa9\xff\xe2\x80\xae", "\xc3\xa9's AI"},
    };

    mem = arena_new(SIZE_MAX);
    for (size_t i = 0; i < countof(table); i++)
        assert_str(critic_author_name(str_of(table[i].person), mem), table[i].author);
    assert_str(critic_author_name(STR_NONE, mem), "AI");
    arena_free(mem);
    mem = NULL;
}

TEST(test_comment__an_author_is_at_most_80_bytes)
{
    char person[101];
    struct str name;

    mem = arena_new(SIZE_MAX);
    memset(person, 'x', 100);
    assert_int_equal(critic_author_name(str_n(person, 75), mem).n, 80);
    assert_int_equal(critic_author_name(str_n(person, 76), mem).n, 80);
    for (size_t i = 0; i < 100; i += 2)
        memcpy(person + i, "\xc3\xa9", 2);
    name = critic_author_name(str_n(person, 100), mem);
    assert_int_equal(name.n, 79);
    assert_true(utf8_is_valid(name));
    arena_free(mem);
    mem = NULL;
}
