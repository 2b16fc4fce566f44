/* SPDX-License-Identifier: Apache-2.0 */
/* Binding: every kind, its bounds, and messages that help whoever wrote the file. */
#include "test.h"

#include "base/buf.h"
#include "json/bind.h"

enum share { SHARE_SESSION, SHARE_ALL };

struct inner {
    int64_t depth;
};
struct thing {
    struct str listen;
    bool on;
    int64_t number;
    unsigned count;
    int64_t wait_ms;
    size_t body;
    enum share share;
    struct str *origins;
    size_t n_origins;
    struct inner inner;
    int64_t doubled;
};

static bool read_doubled(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *value, void *place, struct error *err)
{
    int64_t v;

    if (!js_to_i64(b->doc, value, &v))
        return js_bind_fault(b, value, err, "\"%s\" must be a number to double", f->name);
    *(int64_t *)place = 2 * v;
    return true;
}

static const char *const share_names[] = {"session", "all", NULL};
static const struct js_field inner_fields[] = {
    {.name = "depth",
     .kind = JS_BIND_INT,
     .offset = offsetof(struct inner, depth),
     .min = 1,
     .max = 64,
     .default_text = "8"},
    {0},
};
#define AT(member) .offset = offsetof(struct thing, member)
static const struct js_field fields[] = {
    {.name = "listen", .kind = JS_BIND_STRING, AT(listen), .default_text = "127.0.0.1:4653"},
    {.name = "on", .kind = JS_BIND_BOOL, AT(on), .default_text = "true"},
    {.name = "number", .kind = JS_BIND_INT, AT(number)},
    {.name = "count", .kind = JS_BIND_UINT, AT(count), .min = 1, .max = 10, .default_text = "5"},
    {.name = "wait", .kind = JS_BIND_DURATION, AT(wait_ms), .min = 1000, .default_text = "30m"},
    {.name = "body", .kind = JS_BIND_SIZE, AT(body), .max = 16 << 20, .default_text = "4MiB"},
    {.name = "share", .kind = JS_BIND_ENUM, AT(share), .names = share_names, .default_text = "all"},
    {.name = "origins",
     .kind = JS_BIND_STRINGS,
     AT(origins),
     .max_items = 3,
     .count_offset = offsetof(struct thing, n_origins),
     .default_text = "a, b"},
    {.name = "inner", .kind = JS_BIND_OBJECT, AT(inner), .fields = inner_fields},
    {.name = "doubled",
     .kind = JS_BIND_CUSTOM,
     AT(doubled),
     .read = read_doubled,
     .default_text = "set elsewhere"},
    {.name = "old", .kind = JS_BIND_IGNORED},
    {0},
};

static struct arena *mem;
static struct js_doc doc;
static struct error err;
static struct thing thing;
static struct js_binding binding;

static bool bind_to(const char *text, const struct js_field *rows)
{
    arena_free(mem);
    mem = arena_new(1 << 20);
    memset(&thing, 0, sizeof(thing));
    memset(&err, 0, sizeof(err));
    binding.doc = &doc;
    binding.mem = mem;
    binding.code = ERR_CONFIG;
    assert_true(js_parse(str_of(text), &js_limits_config, mem, &doc, NULL));
    return js_bind(&binding, js_root(&doc), rows, &thing, &err);
}

static void refused(const char *text, const char *message)
{
    binding = (struct js_binding){.file = STR("f.json")};
    assert_false(bind_to(text, fields));
    assert_string_equal(err.text, message);
    assert_int_equal(err.code, ERR_CONFIG);
}

static void done(void)
{
    arena_free(mem);
    mem = NULL;
}

TEST(test_js_bind__reads_every_kind)
{
    binding = (struct js_binding){0};
    assert_true(bind_to("{\"listen\":\"\\u0061b\",\"on\":true,\"number\":-7,\"count\":10,\"wait\":"
                        "\"1h30m\",\"body\":\"64KiB\",\"share\":\"all\",\"origins\":[\"x\",\"y\"],"
                        "\"inner\":{\"depth\":64},\"doubled\":21,\"old\":[1,{}]}",
                        fields));
    assert_str(thing.listen, "ab");
    assert_true(thing.on);
    assert_int_equal(thing.number, -7);
    assert_int_equal(thing.count, 10);
    assert_int_equal(thing.wait_ms, 5400000);
    assert_int_equal(thing.body, 65536);
    assert_int_equal(thing.share, SHARE_ALL);
    assert_int_equal(thing.n_origins, 2);
    assert_str(thing.origins[1], "y");
    assert_int_equal(thing.inner.depth, 64);
    assert_int_equal(thing.doubled, 42);
    done();
}

TEST(test_js_bind__numbers_are_seconds_and_bytes)
{
    binding = (struct js_binding){0};
    assert_true(bind_to("{\"wait\":90,\"body\":1000,\"origins\":[]}", fields));
    assert_int_equal(thing.wait_ms, 90000);
    assert_int_equal(thing.body, 1000);
    assert_int_equal(thing.n_origins, 0);
    done();
}

TEST(test_js_bind__what_is_kept_does_not_need_the_document)
{
    char text[] = "{\"listen\":\"abc\"}";

    binding = (struct js_binding){0};
    assert_true(bind_to(text, fields));
    memset(text, 'x', sizeof(text) - 1);
    assert_str(thing.listen, "abc");
    done();
}

TEST(test_js_bind__unknown_keys_name_the_place_and_the_nearest)
{
    refused("{\n  \"lisen\": 1\n}", "f.json:2:3: unknown key \"lisen\"; did you mean \"listen\"?");
    refused("{\"inner\":{\"dept\":1}}",
            "f.json:1:11: unknown key \"dept\"; did you mean \"depth\"?");
    refused("{\"inner\":{\"\\u001b[1mzzzzzz\":1}}",
            "f.json:1:11: unknown key \"\\x1b[1mzzzzzz\"; the keys here are depth");
    done();
}

TEST(test_js_bind__wrong_values_say_what_is_expected)
{
    refused("{\"listen\":1}", "f.json:1:11: \"listen\" must be a string");
    refused("{\"listen\":\"a\\u0000b\"}", "f.json:1:11: \"listen\" must be a string");
    refused("{\"on\":1}", "f.json:1:7: \"on\" must be true or false");
    refused("{\"on\":\"true\"}", "f.json:1:7: \"on\" must be true or false");
    refused("{\"number\":1.5}", "f.json:1:11: \"number\" must be a whole number");
    refused("{\"number\":\"1\"}", "f.json:1:11: \"number\" must be a whole number");
    refused("{\"count\":11}", "f.json:1:10: \"count\" must be a whole number, from 1 to 10");
    refused("{\"count\":0}", "f.json:1:10: \"count\" must be a whole number, from 1 to 10");
    refused("{\"wait\":\"999ms\"}", "f.json:1:9: \"wait\" must be a duration such as \"30m\", or a "
                                    "number of seconds, at least 1 s");
    refused("{\"wait\":true}", "f.json:1:9: \"wait\" must be a duration such as \"30m\", or a "
                               "number of seconds, at least 1 s");
    refused("{\"body\":\"17MiB\"}", "f.json:1:9: \"body\" must be a size such as \"4MiB\", or a "
                                    "number of bytes, from 0 bytes to 16 MiB");
    refused("{\"share\":\"some\"}", "f.json:1:10: \"share\" must be \"session\" or \"all\"");
    refused("{\"origins\":\"x\"}", "f.json:1:12: \"origins\" must be an array of strings");
    refused("{\"origins\":[\"x\",2]}", "f.json:1:17: \"origins\" must be an array of strings");
    refused("{\"origins\":[\"x\",\"x\",\"x\",\"x\"]}",
            "f.json:1:12: \"origins\" has 4 entries; at most 3 are taken");
    refused("{\"inner\":[]}", "f.json:1:10: \"inner\" must be an object");
    refused("{\"listen\":null}", "f.json:1:11: \"listen\" must be a string");
    refused("[]", "f.json:1:1: an object is expected here, not an array; put its members in { }");
    refused("{\"doubled\":\"x\"}", "f.json:1:12: \"doubled\" must be a number to double");
    done();
}

TEST(test_js_bind__bounds_hold_at_the_limit)
{
    binding = (struct js_binding){0};
    assert_true(
        bind_to("{\"count\":1,\"wait\":1,\"body\":16777216,\"origins\":[\"\",\"\",\"\"]}", fields));
    assert_int_equal(thing.body, 16 << 20);
    assert_int_equal(thing.n_origins, 3);
    done();
}

TEST(test_js_bind__required_fields_are_missed)
{
    static const struct js_field rows[] = {
        {.name = "listen", .kind = JS_BIND_STRING, AT(listen), .required = true},
        {.name = "on", .kind = JS_BIND_BOOL, AT(on), .required = true},
        {0},
    };

    binding = (struct js_binding){.null_is_absent = true};
    assert_false(bind_to("{\"on\":true}", rows));
    assert_string_equal(err.text, "\"listen\" is missing; add it");
    assert_false(bind_to("{\"on\":true,\"listen\":null}", rows));
    assert_true(bind_to("{\"on\":true,\"listen\":\"\"}", rows));
    done();
}

static void count_seen(const struct js_binding *b, const struct js_field *field unused_arg,
                       const struct js_node *key unused_arg)
{
    ++*(int *)b->user;
}

TEST(test_js_bind__leniency_and_notice_when_asked_for)
{
    int seen = 0;

    binding = (struct js_binding){.unknown_ok = true, .seen = count_seen, .user = &seen};
    assert_true(bind_to("{\"tenant_id\":1,\"on\":true,\"old\":1}", fields));
    assert_true(thing.on);
    assert_int_equal(seen, 2);
    done();
}

TEST(test_js_bind_defaults__fills_every_field_nested_too)
{
    binding = (struct js_binding){0};
    assert_true(bind_to("{}", fields));
    js_bind_defaults(fields, &thing, mem);
    assert_str(thing.listen, "127.0.0.1:4653");
    assert_true(thing.on);
    assert_int_equal(thing.number, 0);
    assert_int_equal(thing.count, 5);
    assert_int_equal(thing.wait_ms, 1800000);
    assert_int_equal(thing.body, 4 << 20);
    assert_int_equal(thing.share, SHARE_ALL);
    assert_int_equal(thing.n_origins, 2);
    assert_str(thing.origins[1], "b");
    assert_int_equal(thing.inner.depth, 8);
    done();
}

TEST(test_js_bind_text__reads_plain_text_and_refuses_in_the_same_words)
{
    binding = (struct js_binding){0};
    assert_true(bind_to("{}", fields));
    assert_true(js_bind_text(&fields[1], STR("true"), &thing, mem, ERR_USAGE, &err));
    assert_true(thing.on);
    assert_true(js_bind_text(&fields[2], STR("-12"), &thing, mem, ERR_USAGE, &err));
    assert_int_equal(thing.number, -12);
    assert_false(js_bind_text(&fields[3], STR("11"), &thing, mem, ERR_USAGE, &err));
    assert_int_equal(err.code, ERR_USAGE);
    assert_string_equal(err.text, "\"count\" must be a whole number, from 1 to 10");
    assert_true(js_bind_text(&fields[7], STR(""), &thing, mem, ERR_USAGE, &err));
    assert_int_equal(thing.n_origins, 0);
    assert_false(js_bind_text(&fields[7], STR("a,b,c,d"), &thing, mem, ERR_USAGE, &err));
    assert_false(js_bind_text(&fields[8], STR("{}"), &thing, mem, ERR_USAGE, &err));
    done();
}

TEST(test_js_parse_size__reads_what_people_write)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},          {"512", 512},     {"512B", 512},
                {"10kB", 10000},   {"64KiB", 65536}, {"4MiB", 4 << 20},
                {"1GiB", 1 << 30}, {"2MB", 2000000}, {"17179869183GiB", 17179869183ull << 30}};
    static const char *const bad[] = {"",
                                      "MiB",
                                      "1.5MiB",
                                      "-1",
                                      "1 MiB",
                                      "1mib",
                                      "1TiB",
                                      "17179869184GiB",
                                      "99999999999999999999"};
    uint64_t v = 3;

    for (size_t i = 0; i < countof(good); i++) {
        assert_true(js_parse_size(str_of(good[i].text), &v));
        assert_true(v == good[i].bytes);
    }
    v = 3;
    for (size_t i = 0; i < countof(bad); i++)
        assert_false(js_parse_size(str_of(bad[i]), &v));
    assert_int_equal(v, 3);
}

TEST(test_js_bind_parse_fault__names_the_place)
{
    struct js_fault fault;

    mem = arena_new(1000);
    assert_false(js_parse(STR("{\n\"a\" 1}"), &js_limits_config, mem, &doc, &fault));
    assert_false(js_bind_parse_fault(STR("f.json"), &fault, ERR_CONFIG, &err));
    assert_string_equal(err.text, "f.json:2:5: a colon must follow the key");
    assert_false(js_bind_parse_fault(STR_NONE, &fault, ERR_PARSE, &err));
    assert_string_equal(err.text, "line 2, column 5: a colon must follow the key");
    done();
}

static bool shout(const struct js_binding *b, const struct js_node *v, struct str *text,
                  struct error *e)
{
    if (str_eq(*text, STR("no")))
        return js_bind_fault(b, v, e, "not this");
    if (str_eq(*text, STR("long")))
        *text = arena_dup(b->mem, STR("1h"));
    return true;
}

TEST(test_js_bind__string_values_pass_the_text_hook)
{
    binding = (struct js_binding){.file = STR("f.json"), .text = shout};
    assert_true(bind_to("{\"listen\":\"long\",\"wait\":\"long\",\"origins\":[\"a\",\"long\"],"
                        "\"old\":\"no\"}",
                        fields));
    assert_str(thing.listen, "1h");
    assert_int_equal(thing.wait_ms, 3600000);
    assert_str(thing.origins[0], "a");
    assert_str(thing.origins[1], "1h");
    assert_false(bind_to("{\"listen\":\"no\"}", fields));
    assert_string_equal(err.text, "f.json:1:11: not this");
    assert_false(bind_to("{\"origins\":[\"a\",\"no\"]}", fields));
    assert_string_equal(err.text, "f.json:1:17: not this");
    done();
}

TEST(test_js_bind__ignored_keys_are_not_offered)
{
    static const struct js_field rows[] = {
        {.name = "old", .kind = JS_BIND_IGNORED},
        {.name = "on", .kind = JS_BIND_BOOL, AT(on)},
        {0},
    };

    binding = (struct js_binding){.file = STR("f.json")};
    assert_false(bind_to("{\"zzzzzz\":1}", rows));
    assert_string_equal(err.text, "f.json:1:2: unknown key \"zzzzzz\"; the keys here are on");
    done();
}
