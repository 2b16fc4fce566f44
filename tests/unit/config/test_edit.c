/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of JSON with comments: what is written, which bytes stay, what is refused; and the atomic
 * replacement of a file. */
#include "test.h"

#include "base/fault.h"
#include "config/edit.h"
#include "json/read.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct error err;

/* "a.b" to keys. */
static size_t split(const char *path, struct str *keys)
{
    struct str rest = str_of(path);
    size_t n = 0;

    while (rest.p)
        keys[n++] = str_split(&rest, '.');
    return n;
}

static bool set(const char *text, const char *path, const char *value, struct buf *out)
{
    struct str keys[20];
    size_t n = split(path, keys);

    buf_init(out, SIZE_MAX);
    return config_edit_set(str_of(text), keys, n, str_of(value), out, &err);
}

static bool take(const char *text, const char *path, struct buf *out, bool *found)
{
    struct str keys[20];
    size_t n = split(path, keys);

    buf_init(out, SIZE_MAX);
    return config_edit_remove(str_of(text), keys, n, out, found, &err);
}

static void expect_set(const char *text, const char *path, const char *value, const char *want)
{
    struct buf out;

    if (!set(text, path, value, &out))
        fail_msg("%s: %s", text, err.text);
    if (!str_eq(buf_str(&out), str_of(want)))
        fail_msg("got:\n%s\nwanted:\n%s", out.p, want);
    buf_release(&out);
}

static void expect_removed(const char *text, const char *path, const char *want)
{
    struct buf out;
    bool found = false;

    if (!take(text, path, &out, &found))
        fail_msg("%s: %s", text, err.text);
    assert_true(found);
    if (!str_eq(buf_str(&out), str_of(want)))
        fail_msg("got:\n%s\nwanted:\n%s", out.p, want);
    buf_release(&out);
}

static void expect_refused(const char *text, const char *words)
{
    struct buf out;
    bool found;

    assert_false(set(text, "mcpServers.x", "1", &out));
    assert_int_equal(err.code, ERR_CONFIG);
    if (!strstr(err.text, words))
        fail_msg("%s: %s", text, err.text);
    assert_int_equal(out.n, 0);
    assert_false(take(text, "mcpServers.x", &out, &found));
    if (!strstr(err.text, words))
        fail_msg("%s: %s", text, err.text);
    buf_release(&out);
}

TEST(test_edit__an_empty_file_becomes_an_object)
{
    expect_set("", "a.b", "1", "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n");
    expect_set(" \n", "a", "1", "{\n  \"a\": 1\n}\n");
    expect_set("\r\n", "a", "1", "{\r\n  \"a\": 1\r\n}\r\n");
    expect_set("// mine\n", "a", "1", "// mine\n{\n  \"a\": 1\n}\n");
    expect_set("\xef\xbb\xbf", "a", "1", "\xef\xbb\xbf{\n  \"a\": 1\n}\n");
    expect_set("{}", "a", "1", "{\n  \"a\": 1\n}");
    expect_set("{}\n", "a", "{\"b\":[]}", "{\n  \"a\": {\n    \"b\": []\n  }\n}\n");
}

TEST(test_edit__a_new_member_comes_last_in_the_style_of_the_file)
{
    expect_set("{\n\t\"a\": 1\n}\n", "b.c", "[1,2]",
               "{\n\t\"a\": 1,\n\t\"b\": {\n\t\t\"c\": [1, 2]\n\t}\n}\n");
    expect_set("{\n    \"s\": {\n        \"a\": {}\n    }\n}\n", "s.b", "{\"x\":\"y\"}",
               "{\n    \"s\": {\n        \"a\": {},\n        \"b\": {\n            \"x\": \"y\"\n"
               "        }\n    }\n}\n");
    expect_set("{\r\n  \"a\": 1\r\n}\r\n", "b", "{\"c\":2}",
               "{\r\n  \"a\": 1,\r\n  \"b\": {\r\n    \"c\": 2\r\n  }\r\n}\r\n");
    expect_set("{\n  \"a\": 1,\n}\n", "b", "2", "{\n  \"a\": 1,\n  \"b\": 2,\n}\n");
    expect_set("{\n  \"s\": {},\n  \"t\": 1\n}", "s.a", "1",
               "{\n  \"s\": {\n    \"a\": 1\n  },\n  \"t\": 1\n}");
    expect_set("{\"a\":1}", "b", "{\"c\":[1, 2]}", "{\"a\":1,\"b\":{\"c\":[1,2]}}");
    expect_set("{ \"a\": 1 }", "b", "2", "{ \"a\": 1, \"b\": 2 }");
    expect_set("{\"a\": {}}", "a.b", "2", "{\"a\": {\"b\": 2}}");
    expect_set("{\"a\": { }}", "a.b", "2", "{\"a\": { \"b\": 2 }}");
    expect_set("{\"a\": {/* none */}}", "a.b", "2", "{\"a\": {/* none */ \"b\": 2}}");
}

TEST(test_edit__comments_stay_where_they_are)
{
    expect_set("{\n  // first\n  \"a\": 1 // one\n  // end\n}\n", "b", "2",
               "{\n  // first\n  \"a\": 1, // one\n  \"b\": 2\n  // end\n}\n");
    expect_set("{ // servers\n  // none yet\n}\n", "b", "2",
               "{ // servers\n  \"b\": 2\n  // none yet\n}\n");
    expect_set("{\r\n  \"a\": 1, // one\r\n}\r\n", "b", "2",
               "{\r\n  \"a\": 1, // one\r\n  \"b\": 2,\r\n}\r\n");
    expect_set("/* top */ {\n  \"a\": /* what */ 1 /* it */, // is\n  \"z\": 0\n}", "a", "{}",
               "/* top */ {\n  \"a\": /* what */ {} /* it */, // is\n  \"z\": 0\n}");
    expect_set("{\n  \"a\": \"// no comment, {\"\n}", "b", "2",
               "{\n  \"a\": \"// no comment, {\",\n  \"b\": 2\n}");
}

TEST(test_edit__an_existing_value_is_replaced_in_place)
{
    expect_set("{\n  \"a\": {\"x\": 1},\n  \"b\": 2\n}\n", "a", "{\"y\":\"\\u00e9\"}",
               "{\n  \"a\": {\n    \"y\": \"\\u00e9\"\n  },\n  \"b\": 2\n}\n");
    expect_set("{\"\\u0061\": 1}", "a", "2", "{\"\\u0061\": 2}");
    expect_set("\xef\xbb\xbf{\"a\": 1}\n", "a", "2", "\xef\xbb\xbf{\"a\": 2}\n");
}

TEST(test_edit__long_arrays_get_a_line_per_item)
{
    expect_set("{}\n", "a", "[\"0123456789012345678901234567890123456789\",\"0123456789012345\"]",
               "{\n  \"a\": [\n    \"0123456789012345678901234567890123456789\",\n"
               "    \"0123456789012345\"\n  ]\n}\n");
    expect_set("{}\n", "a", "[{}]", "{\n  \"a\": [\n    {}\n  ]\n}\n");
}

TEST(test_edit__remove_takes_the_member_with_its_comments)
{
    const char *text = "{\n"
                       "  // about the file\n"
                       "\n"
                       "  // about a\n"
                       "  /* more */\n"
                       "  \"a\": 1, // same line\n"
                       "  \"b\": {\n    \"x\": 1\n  },\n"
                       "\n"
                       "  // about c\n"
                       "  \"c\": 3 /* last */\n"
                       "  // end\n"
                       "}\n";
    const char *without_a = "{\n  // about the file\n\n  \"b\": {\n    \"x\": 1\n  },\n\n"
                            "  // about c\n  \"c\": 3 /* last */\n  // end\n}\n";
    const char *without_b = "{\n  // about the file\n\n  // about a\n  /* more */\n"
                            "  \"a\": 1, // same line\n\n"
                            "  // about c\n  \"c\": 3 /* last */\n  // end\n}\n";
    const char *without_c = "{\n  // about the file\n\n  // about a\n  /* more */\n"
                            "  \"a\": 1, // same line\n  \"b\": {\n    \"x\": 1\n  }\n\n"
                            "  // end\n}\n";

    expect_removed(text, "a", without_a);
    expect_removed(text, "b", without_b);
    expect_removed(text, "c", without_c);
}

TEST(test_edit__remove_keeps_the_rest_valid)
{
    expect_removed("{\n  \"a\": 1\n}\n", "a", "{}\n");
    expect_removed("{\n  \"a\": 1,\n}\n", "a", "{}\n");
    expect_removed("{\n  \"a\": 1,\n  \"b\": 2,\n}\n", "b", "{\n  \"a\": 1,\n}\n");
    expect_removed("{\n  \"a\": 1,\n\n  \"b\": 2\n}\n", "b", "{\n  \"a\": 1\n}\n");
    expect_removed("{\n  \"a\": 1, // x\n  \"b\": 2}\n", "b", "{\n  \"a\": 1 // x\n}\n");
    expect_removed("{\"a\": 1, \"b\": 2, \"c\": 3}", "a", "{\"b\": 2, \"c\": 3}");
    expect_removed("{\"a\": 1, \"b\": 2, \"c\": 3}", "b", "{\"a\": 1, \"c\": 3}");
    expect_removed("{\"a\": 1, \"b\": 2, \"c\": 3}", "c", "{\"a\": 1, \"b\": 2}");
    expect_removed("{\n  \"a\": 1, \"b\": 2\n}", "a", "{\n  \"b\": 2\n}");
    expect_removed("{\n  \"a\": 1, \"b\": 2\n}", "b", "{\n  \"a\": 1\n}");
    expect_removed("{\n  \"a\": 1\n  , \"b\": 2\n}", "b", "{\n  \"a\": 1\n  \n}");
    expect_removed("{\"s\": {\"a\": 1}}", "s.a", "{\"s\": {}}");
    expect_removed("{\r\n  \"a\": 1,\r\n  \"b\": 2\r\n}\r\n", "b", "{\r\n  \"a\": 1\r\n}\r\n");
}

TEST(test_edit__a_missing_member_changes_nothing)
{
    static const char *const texts[] = {"", "{}", "{\"a\": {}}", "// x\n", "{\"mcpServers\":{}}"};
    struct buf out;
    bool found = true;

    for (size_t i = 0; i < countof(texts); i++) {
        assert_true(take(texts[i], "mcpServers.x", &out, &found));
        assert_false(found);
        assert_str(buf_str(&out), texts[i]);
        buf_release(&out);
    }
}

TEST(test_edit__broken_text_is_refused_with_its_place)
{
    expect_refused("{\n  \"a\": 1\n  \"b\": 2\n}", "line 3, column 3: a comma or }");
    expect_refused("{\"a\": 1, \"a\": 2}", "line 1, column 10: this key occurs twice");
    expect_refused("{\"mcpServers\": {\"x\": 1, \"x\": 2}}", "occurs twice");
    expect_refused("{\"a\": 1", "the text ends too early");
    expect_refused("{\"a\": 1} {}", "nothing may follow");
    expect_refused("[1]", "the file must be an object {…}, not an array");
    expect_refused("\xef\xbb\xbf[1]", "line 1, column 1: the file must be an object");
    expect_refused("{\"mcpServers\": [1]}", "column 16: \"mcpServers\" must be an object");
    expect_refused("[mcp_servers.x]\ncommand = \"y\"\n", "line 1, column 2");
    expect_refused("{\"a\": /* open }", "line 1, column 7");
}

TEST(test_edit__a_value_that_is_not_json_is_refused)
{
    struct buf out;

    assert_false(set("{}", "a", "{nope", &out));
    assert_int_equal(err.code, ERR_INTERNAL);
    assert_int_equal(out.n, 0);
}

/* After a set the file parses and holds the value; after set and remove the bytes are as before. */
static void check_property(const char *text, const char *path, bool restores)
{
    struct str keys[20];
    size_t n = split(path, keys);
    struct arena *mem = arena_new(SIZE_MAX);
    const struct js_node *v;
    struct js_doc doc;
    struct buf with, without;
    bool found = false;

    if (!set(text, path, "{\"command\":\"npx\",\"args\":[\"-y\",\"x\"]}", &with))
        fail_msg("%s: %s", text, err.text);
    struct str body = buf_str(&with);
    if (str_starts(body, STR("\xef\xbb\xbf")))
        body = str_n(body.p + 3, body.n - 3);
    assert_true(js_parse(body, &js_limits_config, mem, &doc, NULL));
    v = js_root(&doc);
    for (size_t i = 0; i < n; i++)
        v = js_get(&doc, v, keys[i]);
    assert_true(js_is(&doc, js_get(&doc, v, STR("command")), STR("npx")));
    if (!take(with.p, path, &without, &found))
        fail_msg("%s: %s", with.p, err.text);
    assert_true(found);
    if (restores && !str_eq(buf_str(&without), str_of(text)))
        fail_msg("text:\n%s\nset:\n%s\nremoved:\n%s", text, with.p, without.p);
    buf_release(&with);
    buf_release(&without);
    arena_free(mem);
}

TEST(test_edit__set_and_remove_restore_the_bytes)
{
    static const char *const texts[] = {
        "{\"s\":{\"a\":1}}",
        "{\"s\": {\"a\": 1,}}",
        "{\"s\": { \"a\": 1, }, }",
        "{\"s\": {}}",
        "{\"s\": { }}",
        "{\"s\": {/* c */}}",
        "{\n  \"s\": {\n    \"a\": 1\n  }\n}\n",
        "{\n  \"s\": {\n    \"a\": 1,\n  },\n}\n",
        "{\n  \"s\": {},\n  \"t\": 2\n}\n",
        "{\r\n\t\"s\": {\r\n\t\t\"a\": 1 // one\r\n\t\t// end\r\n\t}\r\n}",
        "\xef\xbb\xbf{\n  \"s\": {\n    \"a\": {\"b\": [1,\n 2]} /* x */ , // y\n\n  }\n}\n",
        "{\n\"s\": {\n\"a\": 1}}",
        "{\n  \"s\": {\n    \"a\": 1 }\n}",
        "{\n  \"s\": { \"a\": 1 }\n}",
        "{\n  \"s\": { \"a\": 1 // c\n }\n}",
        "{\n  \"s\": {\n    \"a\": 1\n\n\n  }\n}",
        "{\n  \"s\": {\n    // only a comment\n  }\n}",
        "{\n  \"s\": { // here\n    // only a comment\n\n  }\n}",
        "{\n  \"s\": {\n      \"a\": 1\n    , \"b\": 2\n  }\n}",
        "// top\n{\n  \"s\": {\n    \"a\": 1 /* two\n lines */\n  }\n}\n// bottom",
    };

    for (size_t i = 0; i < countof(texts); i++)
        check_property(texts[i], "s.new", true);
    check_property("{\n}", "s.new", false);
    check_property("", "s.new", false);
}

/* Random objects with random blanks, comments and commas keep the property too. */
static unsigned seed;

static unsigned dice(unsigned n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % n;
}

static void add_space(struct buf *b)
{
    static const char *const spaces[] = {
        "", " ", "\n", "\n  ", "\n\n", " // c\n", "/* c */", "\t", "\r\n", "", "\n    // d\n    "};

    buf_addz(b, spaces[dice(countof(spaces))]);
}

static void add_object(struct buf *b, unsigned depth)
{
    unsigned n = 1 + dice(3);

    buf_addc(b, '{');
    for (unsigned i = 0; i < n; i++) {
        add_space(b);
        buf_addf(b, "\"%c\"", 'a' + (int)i);
        add_space(b);
        buf_addc(b, ':');
        add_space(b);
        if (depth && dice(2))
            add_object(b, depth - 1);
        else
            buf_addz(b, dice(2) ? "1" : "\"// {\"");
        add_space(b);
        if (i + 1 < n || dice(3) == 0)
            buf_addc(b, ',');
    }
    add_space(b);
    buf_addc(b, '}');
}

TEST(test_edit__random_files_keep_the_property)
{
    for (seed = 1; seed < 3000; seed++) {
        unsigned first = seed;
        struct buf text;

        buf_init(&text, SIZE_MAX);
        add_space(&text);
        add_object(&text, 2);
        add_space(&text);
        check_property(text.p, "new", true);
        check_property(text.p, "new.inner", false);
        buf_release(&text);
        seed = first;
    }
}

TEST(test_edit__random_members_can_be_removed)
{
    for (seed = 1; seed < 3000; seed++) {
        unsigned first = seed;
        struct buf text, out;
        bool found = false;

        buf_init(&text, SIZE_MAX);
        add_object(&text, 2);
        for (char key[] = "a"; key[0] <= 'c'; key[0]++) {
            if (!take(text.p, key, &out, &found))
                fail_msg("%s: %s", text.p, err.text);
            buf_release(&out);
        }
        buf_release(&text);
        seed = first;
    }
}

/* Files */

static char root[] = "/tmp/holdfast-edit-XXXXXX";

static int remove_one(const char *path, const struct stat *st unused_arg, int flag unused_arg,
                      struct FTW *ftw unused_arg)
{
    return remove(path);
}

static void remove_root(void)
{
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void enter(void)
{
    static bool made;

    if (!made) {
        assert_non_null(mkdtemp(root));
        made = true;
        atexit(remove_root);
    }
    assert_int_equal(chdir(root), 0);
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void expect_file(const char *path, const char *text)
{
    struct buf now;
    bool exists = false;

    buf_init(&now, SIZE_MAX);
    assert_true(config_edit_read(path, &now, &exists, &err));
    assert_int_equal(exists, text != NULL);
    if (text)
        assert_str(buf_str(&now), text);
    buf_release(&now);
}

static unsigned files_here(void)
{
    unsigned n = 0;
    FILE *f = popen("ls -A | wc -l", "r");

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u", &n), 1);
    pclose(f);
    return n;
}

TEST(test_edit_write__replaces_and_keeps_the_mode)
{
    struct stat st;
    unsigned before;

    enter();
    put("a.json", "one");
    assert_int_equal(chmod("a.json", 0640), 0);
    before = files_here();
    assert_true(config_edit_write("a.json", STR("one"), STR("two"), &err));
    expect_file("a.json", "two");
    assert_int_equal(stat("a.json", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(files_here(), before);
}

TEST(test_edit_write__creates_the_file_and_its_directories)
{
    struct stat st;

    enter();
    assert_true(config_edit_write("new/deep/a.json", STR_NONE, STR("one"), &err));
    expect_file("new/deep/a.json", "one");
    assert_int_equal(stat("new/deep/a.json", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat("new/deep", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_false(config_edit_write("new/deep/a.json", STR_NONE, STR("two"), &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    expect_file("new/deep/a.json", "one");
}

TEST(test_edit_write__removes_the_file)
{
    enter();
    put("gone.json", "one");
    assert_false(config_edit_write("gone.json", STR("two"), STR_NONE, &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_true(config_edit_write("gone.json", STR("one"), STR_NONE, &err));
    expect_file("gone.json", NULL);
}

TEST(test_edit_write__a_changed_file_is_left_alone)
{
    unsigned before;

    enter();
    put("b.json", "changed");
    before = files_here();
    assert_false(config_edit_write("b.json", STR("one"), STR("two"), &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_non_null(strstr(err.text, "b.json was changed by another program"));
    expect_file("b.json", "changed");
    assert_false(config_edit_write("missing.json", STR("one"), STR("two"), &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(files_here(), before);
}

TEST(test_edit_write__the_target_of_a_link_is_written)
{
    struct stat st;

    enter();
    put("target.json", "one");
    assert_int_equal(symlink("target.json", "link.json"), 0);
    assert_true(config_edit_write("link.json", STR("one"), STR("two"), &err));
    expect_file("target.json", "two");
    assert_int_equal(lstat("link.json", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(symlink("nowhere.json", "dangling.json"), 0);
    assert_false(config_edit_write("dangling.json", STR_NONE, STR("two"), &err));
    assert_non_null(strstr(err.text, "symbolic link to a file that does not exist"));
}

TEST(test_edit_write__a_failed_write_changes_nothing)
{
#ifdef HOLDFAST_FAULTS
    unsigned before;

    enter();
    put("c.json", "one");
    before = files_here();
    fault_load("config.edit:1");
    assert_false(config_edit_write("c.json", STR("one"), STR("two"), &err));
    fault_load("");
    assert_int_equal(err.code, ERR_CONFIG);
    expect_file("c.json", "one");
    assert_int_equal(files_here(), before);
#else
    skip_because("built without fault points");
#endif
}

TEST(test_edit_write__a_directory_that_cannot_be_written_is_named)
{
    enter();
    if (geteuid() == 0) { /* root may write everywhere but here */
        assert_false(config_edit_write("/proc/sys/holdfast.json", STR_NONE, STR("two"), &err));
        assert_non_null(strstr(err.text, "cannot write beside /proc/sys/holdfast.json"));
        return;
    }
    assert_int_equal(mkdir("closed", 0755), 0);
    put("closed/d.json", "one");
    assert_int_equal(chmod("closed", 0555), 0);
    assert_false(config_edit_write("closed/d.json", STR("one"), STR("two"), &err));
    assert_non_null(strstr(err.text, "check that its directory is writable"));
    expect_file("closed/d.json", "one");
    assert_int_equal(chmod("closed", 0755), 0);
}

TEST(test_edit_read__only_regular_files)
{
    struct buf out;
    bool exists;

    enter();
    buf_init(&out, SIZE_MAX);
    assert_false(config_edit_read("/", &out, &exists, &err));
    assert_non_null(strstr(err.text, "not a regular file"));
    buf_release(&out);
}
