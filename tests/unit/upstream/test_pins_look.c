/* SPDX-License-Identifier: Apache-2.0 */
#include "pins_world.h"

#include "upstream/pins_lookalike.h"

#define TOOL(name, text) "{\"name\":\"" name "\",\"description\":\"" text "\"}"
#define PINNED ",\"pin\":true"

static bool has(struct str text, const char *part)
{
    bool found = memmem(text.p, text.n, part, strlen(part)) != NULL;
    if (!found)
        print_message("%.*s\n", STR_ARG(text));
    return found;
}

/* How one list after another with this tool in it is taken. */
static unsigned changes_after(const char *first, const char *second)
{
    struct pins_world w;
    pins_world_open(&w, "");
    pins_world_list(&w, first);
    pins_world_list(&w, second);
    unsigned n = pins_world_events(&w, "tool/changed", NULL, NULL);
    assert_int_equal(pins_world_events(&w, "tool/added", NULL, NULL), 0);
    pins_world_close(&w);
    return n;
}

TEST(test_pins_look__what_tells_a_model_something_is_a_change)
{
    assert_int_equal(changes_after(TOOL("a", "x"), TOOL("a", "y")), 1);
    assert_int_equal(changes_after("{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"}}",
                                   "{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\","
                                   "\"properties\":{\"secret\":{}}}}"),
                     1);
    assert_int_equal(changes_after("{\"name\":\"a\",\"annotations\":{\"readOnlyHint\":true}}",
                                   "{\"name\":\"a\",\"annotations\":{\"readOnlyHint\":false}}"),
                     1);
    assert_int_equal(changes_after("{\"name\":\"a\"}", "{\"name\":\"a\",\"title\":\"b\"}"), 1);
    assert_int_equal(changes_after("{\"name\":\"a\"}", "{\"name\":\"a\",\"outputSchema\":{}}"), 1);
    assert_int_equal(changes_after("{\"name\":\"a\",\"description\":\"x\",\"description\":\"x\"}",
                                   "{\"name\":\"a\",\"description\":\"x\",\"description\":\"y\"}"),
                     1);
}

TEST(test_pins_look__how_it_is_written_is_none)
{
    assert_int_equal(
        changes_after("{\"name\":\"a\",\"inputSchema\":{\"x\":1,\"y\":2}}",
                      "{ \"inputSchema\" : {\"y\":2, \"x\":1},\n\"n\\u0061me\":\"a\"}"),
        0);
    assert_int_equal(changes_after("{\"name\":\"a\",\"_meta\":{\"at\":1}}",
                                   "{\"name\":\"a\",\"_meta\":{\"at\":2},\"icons\":[]}"),
                     0);
}

TEST(test_pins_look__one_that_comes_again_the_same_is_added_and_stands_approved)
{
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("a", "x") "," TOOL("b", "x"));
    pins_world_list(&w, TOOL("b", "x"));
    assert_int_equal(pins_world_events(&w, "tool/removed", "a", NULL), 1);
    assert_true(pins_world_row(&w, "a").gone_ms != 0);
    pins_world_list(&w, TOOL("a", "x") "," TOOL("b", "x"));
    assert_int_equal(pins_world_events(&w, "tool/added", "a", NULL), 1);
    assert_int_equal(pins_world_row(&w, "a").gone_ms, 0);
    assert_int_equal(pins_world_check(&w, "a"), PIN_FREE);
    pins_world_close(&w);
}

TEST(test_pins_look__one_that_comes_again_another_is_held_with_a_diff_against_what_it_was)
{
    struct event_row e;
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("a", "before") "," TOOL("b", "x"));
    pins_world_list(&w, TOOL("b", "x"));
    pins_world_list(&w, TOOL("a", "behind") "," TOOL("b", "x"));
    assert_int_equal(pins_world_events(&w, "tool/changed", "a", &e), 1);
    assert_true(has(e.body, "-  \\\"description\\\": \\\"before\\\""));
    assert_true(has(e.body, "+  \\\"description\\\": \\\"behind\\\""));
    assert_int_equal(pins_world_check(&w, "a"), PIN_CHANGED);
    assert_int_equal(pins_world_check(&w, "b"), PIN_FREE);
    pins_world_close(&w);
}

/* Each is offered after a first list with "read_file" and "plain". */
static const struct {
    const char *name;
    bool beside; /* "read_file" is still listed: is the name taken? */
    bool alone;  /* it is not: may the name take its place? */
} others[] = {
    {"re\xd0\xb0"
     "d_file",
     false, false},                                                          /* Cyrillic a */
    {"read_\xef\xac\x81le", false, false},                                   /* ligature fi */
    {"\xef\xbd\x92\xef\xbd\x85\xef\xbd\x81\xef\xbd\x84_file", false, false}, /* full-width */
    {"read\xe2\x80\x8d_file", false, false},                                 /* zero-width joiner */
    {"\xe2\x80\xaeread_file", false, false}, /* right-to-left override */
    {"read_file ", false, false},            /* a blank behind it */
    {"read\xcb\x8d"
     "file",
     false, false}, /* another low line */
    {"READ_FILE", false, true},
    {"read_fi1e", false, true},
    {"read_fiIe", false, true},
    {"read_files", true, true},
    {"read_fil\xc3\xa9", true, true}, /* an accent that anybody sees */
};

TEST(test_pins_look__a_name_that_looks_like_another_is_left_out_and_cannot_be_called)
{
    for (size_t i = 0; i < countof(others); i++) {
        struct pins_world w;
        struct buf text;
        buf_init(&text, 4096);
        buf_addf(&text, TOOL("%s", "x") "," TOOL("read_file", "x") "," TOOL("plain", "x"),
                 others[i].name);
        pins_world_open(&w, "");
        pins_world_list(&w, TOOL("read_file", "x") "," TOOL("plain", "x"));
        pins_world_list(&w, text.p);
        assert_true(pins_world_lists(&w, "read_file"));
        if (pins_world_lists(&w, others[i].name) != others[i].beside)
            fail_msg("%s beside read_file", others[i].name);
        assert_int_equal(pins_world_events(&w, "tool/refused", NULL, NULL), !others[i].beside);
        assert_int_equal(pins_world_check(&w, others[i].name),
                         others[i].beside ? PIN_FREE : PIN_UNKNOWN);
        buf_release(&text);
        pins_world_close(&w);
    }
}

TEST(test_pins_look__a_tool_may_be_renamed_in_plain_letters_only)
{
    for (size_t i = 0; i < countof(others); i++) {
        struct pins_world w;
        struct buf text;
        buf_init(&text, 4096);
        buf_addf(&text, TOOL("%s", "x") "," TOOL("plain", "x"), others[i].name);
        pins_world_open(&w, PINNED);
        pins_world_list(&w, TOOL("read_file", "x") "," TOOL("plain", "x"));
        for (int again = 0; again < 2; again++) {
            pins_world_list(&w, text.p);
            if (pins_world_lists(&w, others[i].name) != others[i].alone)
                fail_msg("%s for read_file", others[i].name);
            assert_int_equal(pins_world_check(&w, others[i].name),
                             others[i].alone ? PIN_NEW : PIN_UNKNOWN);
        }
        assert_int_equal(pins_world_events(&w, "tool/refused", NULL, NULL), !others[i].alone);
        buf_release(&text);
        pins_world_close(&w);
    }
}

TEST(test_pins_look__names_that_came_together_may_differ_in_a_digit)
{
    struct pins_world w;
    pins_world_open(&w, "");
    pins_world_list(&w, TOOL("page_1", "x") "," TOOL("page_l", "x"));
    pins_world_list(&w, TOOL("page_l", "x") "," TOOL("page_1", "x"));
    assert_true(pins_world_lists(&w, "page_1") && pins_world_lists(&w, "page_l"));
    pins_world_close(&w);
}

TEST(test_pins_look__a_sessions_own_list_has_no_look_alike_of_what_others_see)
{
    struct pins_world w;
    pins_world_open(&w, "");
    pins_world_list(&w, TOOL("read", "x"));
    pins_world_take(&w, STR(TOOL("READ", "x") "," TOOL("own", "x")), false);
    pins_world_wait_stored(&w);
    assert_false(pins_world_lists(&w, "READ"));
    assert_true(pins_world_lists(&w, "own"));
    assert_int_equal(pins_world_events(&w, "tool/removed", NULL, NULL), 0);
    pins_world_close(&w);
}

/* As if a version of Holdfast had approved it that knew fewer names that look alike. */
static void had_approved(struct pins_world *w, const char *name)
{
    struct watched_tool *t = pins_tool_new(pins_server(w->pins, STR("files")), str_of(name));
    memset(t->digest, 1, sizeof(t->digest));
    memset(t->approved, 1, sizeof(t->approved));
}

TEST(test_pins_look__approved_tools_keep_their_names_when_more_names_look_alike)
{
    struct pins_world w;
    pins_world_open(&w, "");
    had_approved(&w, "strasse");
    had_approved(&w, "stra\xc3\x9f"
                     "e");
    pins_world_list(&w, TOOL("stra\xc3\x9f"
                             "e",
                             "x") "," TOOL("strasse", "x") "," TOOL("Strasse", "x"));
    assert_true(pins_world_lists(&w, "strasse"));
    assert_true(pins_world_lists(&w, "stra\xc3\x9f"
                                     "e"));
    assert_false(pins_world_lists(&w, "Strasse"));
    assert_int_equal(pins_world_events(&w, "tool/refused", NULL, NULL), 1);
    pins_world_close(&w);
}

TEST(test_pins_look__new_tools_in_two_spellings_are_one_name)
{
    struct pins_world w;
    pins_world_open(&w, "");
    pins_world_list(&w, TOOL("stra\xc3\x9f"
                             "e",
                             "x") "," TOOL("strasse", "x"));
    assert_true(pins_world_lists(&w, "stra\xc3\x9f"
                                     "e"));
    assert_false(pins_world_lists(&w, "strasse"));
    pins_world_close(&w);
}

TEST(test_pins_look__a_definition_with_two_names_is_left_out)
{
    struct pins_world w;
    pins_world_open(&w, "");
    pins_world_list(&w, TOOL("a", "x"));
    pins_world_list(&w, TOOL("a", "x") ",{\"name\":\"b\",\"n\\u0061me\":\"a\"}");
    assert_false(pins_world_lists(&w, "b"));
    assert_int_equal(pins_world_check(&w, "b"), PIN_UNKNOWN);
    pins_world_close(&w);
}

static unsigned refused_of(struct pins_world *w, unsigned n)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_addz(&text, TOOL("fine", "x"));
    for (unsigned i = 0; i < n; i++)
        buf_addf(&text, ",{\"name\":\"t%u \"}", i);
    pins_world_take(w, buf_str(&text), true);
    pins_world_wait_stored(w);
    buf_release(&text);
    return w->catalog->lists[CATALOG_TOOLS].n;
}

TEST(test_pins_look__as_many_names_as_are_remembered_are_refused_one_by_one)
{
    struct pins_world w;
    pins_world_open(&w, "");
    assert_int_equal(refused_of(&w, PINS_MAX_REFUSED), 1);
    struct watched_server *s = pins_server(w.pins, STR("files"));
    assert_int_equal(s->refused.n, PINS_MAX_REFUSED);
    assert_int_equal(pins_world_check(&w, "unlisted"), PIN_FREE);
    assert_int_equal(pins_world_check(&w, "t999 "), PIN_UNKNOWN);
    pins_world_close(&w);
}

TEST(test_pins_look__one_more_and_whatever_is_not_listed_is_refused_which_is_told_once)
{
    struct event_row e;
    struct pins_world w;
    pins_world_open(&w, "");
    for (int again = 0; again < 3; again++) {
        clock_advance_fake(60000); /* so that the minute's events do not run out */
        assert_int_equal(refused_of(&w, PINS_MAX_REFUSED - 1), 1);
    }
    unsigned before = pins_world_events(&w, "tool/refused", NULL, NULL);
    clock_advance_fake(60000);
    refused_of(&w, PINS_MAX_REFUSED + 2);
    clock_advance_fake(60000);
    refused_of(&w, PINS_MAX_REFUSED + 2);
    assert_int_equal(pins_world_events(&w, "tool/refused", NULL, &e), before + 2);
    assert_true(has(e.error, "more than 1000 names"));
    assert_int_equal(pins_world_check(&w, "t1000 "), PIN_UNKNOWN);
    assert_int_equal(pins_world_check(&w, "unlisted"), PIN_UNKNOWN);
    assert_int_equal(pins_world_check(&w, "fine"), PIN_FREE);
    pins_world_close(&w);
}

TEST(test_pins_look__a_name_that_goes_on_for_ever_is_refused_and_not_kept_whole)
{
    struct event_row e;
    struct pins_world w;
    struct str key;
    struct buf text;
    size_t at = 0;
    void *value;

    pins_world_open(&w, "");
    buf_init(&text, 16u << 20);
    buf_addz(&text, "{\"name\":\"fine\"},{\"name\":\"");
    for (unsigned i = 0; i < 500000; i++)
        buf_addz(&text, "\xc3\xa9");
    buf_addz(&text, "\"}");
    for (int again = 0; again < 2; again++) {
        pins_world_take(&w, buf_str(&text), true);
        pins_world_wait_stored(&w);
        assert_int_equal(w.catalog->lists[CATALOG_TOOLS].n, 1);
    }
    struct watched_server *s = pins_server(w.pins, STR("files"));
    assert_int_equal(s->refused.n, 1);
    assert_true(map_next(&s->refused, &at, &key, &value));
    assert_true(key.n > LOOKALIKE_MAX && key.n <= LOOKALIKE_MAX + 4);
    assert_int_equal(pins_world_events(&w, "tool/refused", NULL, &e), 1);
    buf_release(&text);
    pins_world_close(&w);
}

/* As if the server had had so many tools before. */
static void had_tools(struct pins_world *w, unsigned n)
{
    struct watched_server *s = pins_server(w->pins, STR("files"));
    char name[32];
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "old%u", i);
        pins_tool_new(s, str_of(name))->gone = true;
    }
}

TEST(test_pins_look__the_last_tool_that_is_remembered_is_watched)
{
    struct pins_world w;
    pins_world_open(&w, PINNED);
    had_tools(&w, PINS_MAX_TOOLS - 1);
    pins_world_list(&w, TOOL("last", "x"));
    assert_int_equal(pins_world_events(&w, "tool/added", "last", NULL), 1);
    assert_int_equal(pins_world_check(&w, "last"), PIN_NEW);
    assert_int_equal(pins_world_events(&w, "tool/unwatched", NULL, NULL), 0);
    assert_true(pins_world_approve(&w, "last"));
    pins_world_close(&w);
}

TEST(test_pins_look__one_beyond_is_held_and_told_once_with_the_way_out)
{
    struct event_row e;
    struct pins_world w;
    pins_world_open(&w, PINNED);
    had_tools(&w, PINS_MAX_TOOLS);
    pins_world_list(&w, TOOL("beyond", "x"));
    pins_world_list(&w, TOOL("beyond", "y") "," TOOL("more", "x"));
    assert_int_equal(pins_world_events(&w, "tool/unwatched", NULL, &e), 1);
    assert_true(has(e.error, "another name in the configuration"));
    assert_int_equal(pins_world_check(&w, "beyond"), PIN_BEYOND);
    struct str shown = catalog_shown(catalog_tool(w.catalog, STR("beyond")));
    assert_true(has(shown, "another name in the configuration"));
    assert_false(pins_world_approve(&w, "beyond"));
    pins_world_close(&w);
}

static void list_definition_of(struct pins_world *w, size_t canon)
{
    struct buf text;
    size_t frame = strlen(TOOL("a", ""));
    buf_init(&text, 1 << 20);
    buf_addz(&text, "{\"name\":\"a\",\"description\":\"");
    for (size_t i = frame; i < canon; i++)
        buf_addc(&text, 'x');
    buf_addz(&text, "\"}");
    assert_int_equal(text.n, canon);
    pins_world_list(w, text.p);
    buf_release(&text);
}

TEST(test_pins_look__a_definition_is_kept_up_to_its_limit)
{
    struct event_row e;
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("a", "short"));
    list_definition_of(&w, PINS_MAX_DEFINITION);
    assert_int_equal(pins_world_row(&w, "a").definition.n, PINS_MAX_DEFINITION);
    pins_world_events(&w, "tool/changed", "a", &e);
    assert_true(has(e.body, "-  \\\"description\\\": \\\"short\\\""));
    assert_true(has(e.body, "holdfast servers diff"));
    pins_world_close(&w);
}

TEST(test_pins_look__of_a_longer_one_the_digest_is_and_the_diff_says_what_to_do)
{
    struct event_row e;
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("a", "short"));
    list_definition_of(&w, PINS_MAX_DEFINITION + 1);
    assert_null(pins_world_row(&w, "a").definition.p);
    assert_int_equal(pins_world_check(&w, "a"), PIN_CHANGED);
    pins_world_events(&w, "tool/changed", "a", &e);
    assert_true(has(e.body, "read it at the server itself"));
    list_definition_of(&w, PINS_MAX_DEFINITION + 2); /* and it is still watched */
    assert_int_equal(pins_world_events(&w, "tool/changed", "a", NULL), 2);
    pins_world_close(&w);
}

static void list_edition(struct pins_world *w, unsigned edition)
{
    char text[128];
    snprintf(text, sizeof(text), TOOL("a", "edition %u") "," TOOL("b", "x"), edition);
    pins_world_list(w, text);
}

TEST(test_pins_look__a_tool_is_told_four_times_in_ten_minutes)
{
    struct event_row e;
    struct pins_world w;
    pins_world_open(&w, "");
    for (unsigned i = 0; i <= PINS_TOOL_RECORDED; i++)
        list_edition(&w, i);
    assert_int_equal(pins_world_events(&w, "tool/changed", "a", &e), PINS_TOOL_RECORDED);
    assert_true(has(e.error, "one event in ten minutes"));
    clock_advance_fake(PINS_TOOL_PERIOD_MS);
    list_edition(&w, PINS_TOOL_RECORDED); /* there is nothing left to tell */
    assert_int_equal(pins_world_events(&w, "tool/changed", "a", NULL), PINS_TOOL_RECORDED);
    pins_world_close(&w);
}

TEST(test_pins_look__what_it_did_beyond_that_is_told_afterwards_against_what_was_approved)
{
    struct event_row e;
    struct pins_world w;
    pins_world_open(&w, "");
    for (unsigned i = 0; i <= PINS_TOOL_RECORDED + 2; i++)
        list_edition(&w, i);
    assert_int_equal(pins_world_events(&w, "tool/changed", "a", NULL), PINS_TOOL_RECORDED);
    assert_true(
        has(pins_world_row(&w, "a").definition, "edition 6")); /* it is recorded all along */
    clock_advance_fake(PINS_TOOL_PERIOD_MS - 1);
    list_edition(&w, PINS_TOOL_RECORDED + 2);
    assert_int_equal(pins_world_events(&w, "tool/changed", "a", NULL), PINS_TOOL_RECORDED);
    clock_advance_fake(1);
    list_edition(&w, PINS_TOOL_RECORDED + 2);
    assert_int_equal(pins_world_events(&w, "tool/changed", "a", &e), PINS_TOOL_RECORDED + 1);
    assert_true(has(e.error, "2 earlier changes"));
    assert_true(has(e.body, "edition 0") && has(e.body, "edition 6"));
    list_edition(&w, PINS_TOOL_RECORDED + 2);
    assert_int_equal(pins_world_events(&w, "tool/changed", "a", NULL), PINS_TOOL_RECORDED + 1);
    pins_world_close(&w);
}

TEST(test_pins_look__one_that_was_untold_when_it_went_is_told_too)
{
    struct pins_world w;
    pins_world_open(&w, "");
    for (unsigned i = 0; i <= PINS_TOOL_RECORDED; i++)
        list_edition(&w, i);
    pins_world_list(&w, TOOL("b", "x"));
    assert_int_equal(pins_world_events(&w, "tool/removed", "a", NULL), 0);
    clock_advance_fake(PINS_TOOL_PERIOD_MS);
    pins_world_list(&w, TOOL("b", "x"));
    assert_int_equal(pins_world_events(&w, "tool/removed", "a", NULL), 1);
    pins_world_close(&w);
}

TEST(test_pins_look__a_hundred_events_a_minute_and_the_rest_is_one)
{
    struct event_row e;
    struct pins_world w;
    pins_world_open(&w, "");
    pins_world_list_many(&w, "t", 103, "x");
    pins_world_list_many(&w, "t", 100, "y"); /* 100 change, 3 are removed */
    assert_int_equal(pins_world_events(&w, "tool/changed", NULL, &e), 100 + 1);
    assert_null(e.tool.p);
    assert_true(has(e.error, "files has 3 more changes") && has(e.error, "servers show files"));
    assert_int_equal(pins_world_events(&w, "tool/removed", NULL, NULL), 0);
    clock_advance_fake(59999); /* the same minute: one event that counts, and no other */
    pins_world_list_many(&w, "t", 100, "z");
    assert_int_equal(pins_world_events(&w, "tool/changed", NULL, &e), 101 + 1);
    assert_null(e.tool.p);
    assert_true(has(e.error, "files has 100 more changes"));
    clock_advance_fake(1);
    pins_world_list_many(&w, "t", 100, "u");
    assert_int_equal(pins_world_events(&w, "tool/changed", NULL, &e), 102 + 100);
    assert_non_null(e.tool.p);
    pins_world_close(&w);
}

/* So many looks wait to be recorded; then the store takes them all. */
static void look_often(struct pins_world *w, unsigned looks)
{
    char text[64];
    for (unsigned i = 0; i < looks; i++) {
        snprintf(text, sizeof(text), TOOL("t%u", "x"), i);
        pins_world_take(w, str_of(text), false);
    }
    pins_world_wait_stored(w);
}

TEST(test_pins_record__as_many_looks_wait_as_the_queue_has_room_for)
{
    struct pins_world w;
    pins_world_open(&w, "");
    pins_world_list(&w, TOOL("first", "x"));
    look_often(&w, PINS_MAX_QUEUE);
    assert_int_equal(pins_world_events(&w, "tool/added", NULL, NULL), PINS_MAX_QUEUE);
    pins_world_close(&w);
}

TEST(test_pins_record__one_that_finds_no_room_is_recorded_with_the_next_list)
{
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("first", "x"));
    look_often(&w, PINS_MAX_QUEUE + 1);
    assert_int_equal(pins_world_events(&w, "tool/added", NULL, NULL), PINS_MAX_QUEUE);
    assert_null(pins_world_row(&w, "t32").server.p);
    assert_int_equal(pins_world_check(&w, "t32"), PIN_NEW);
    assert_false(pins_world_approve(&w, "t32"));
    pins_world_take(&w, STR(TOOL("t32", "x")), false);
    pins_world_wait_stored(&w);
    assert_int_equal(pins_world_events(&w, "tool/added", "t32", NULL), 1);
    assert_true(pins_world_approve(&w, "t32"));
    assert_int_equal(pins_world_check(&w, "t32"), PIN_FREE);
    pins_world_close(&w);
}

TEST(test_pins_record__what_was_lost_keeps_its_kind)
{
    struct pins_world w;
    pins_world_open(&w, "");
    pins_world_list(&w, TOOL("a", "x") "," TOOL("b", "x") "," TOOL("c", "x"));
    look_often(&w, PINS_MAX_QUEUE - 1);
    for (unsigned i = 0; i < PINS_MAX_QUEUE; i++) { /* fill it up … */
        char text[64];
        snprintf(text, sizeof(text), TOOL("u%u", "x"), i);
        pins_world_take(&w, str_of(text), false);
    }
    pins_world_take(&w, STR(TOOL("a", "y") "," TOOL("b", "x") "," TOOL("b ", "x")), true);
    pins_world_wait_stored(&w); /* … so that this one is lost */
    assert_int_equal(pins_world_events(&w, "tool/changed", NULL, NULL), 0);
    assert_int_equal(pins_world_check(&w, "b "), PIN_UNKNOWN);
    clock_advance_fake(60000);
    pins_world_list(&w, TOOL("a", "y") "," TOOL("b", "x") "," TOOL("b ", "x"));
    assert_int_equal(pins_world_events(&w, "tool/changed", "a", NULL), 1);
    assert_int_equal(pins_world_events(&w, "tool/removed", "c", NULL), 1);
    assert_int_equal(pins_world_events(&w, "tool/refused", "b ", NULL), 1);
    assert_int_equal(pins_world_events(&w, "tool/changed", "b", NULL), 0);
    pins_world_close(&w);
}

TEST(test_pins_record__what_the_store_did_not_take_it_takes_with_the_next_list)
{
    struct event_row e;
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_fail(&w, true);
    pins_world_list(&w, TOOL("a", "x") "," TOOL("b", "x"));
    pins_world_fail(&w, false);
    assert_null(pins_world_row(&w, "a").server.p);
    pins_world_list(&w, TOOL("a", "x") "," TOOL("b", "x"));
    assert_int_equal(pins_world_events(&w, "tool/trusted", NULL, &e), 1);
    assert_true(has(e.error, "its 2 tools are approved"));
    assert_true(watched_is_approved(map_get(&pins_server(w.pins, STR("files"))->tools, STR("a"))));

    pins_world_fail(&w, true);
    pins_world_list(&w, TOOL("a", "y") "," TOOL("b", "x"));
    assert_int_equal(pins_world_check(&w, "a"), PIN_CHANGED); /* that needs no store */
    pins_world_list(&w, TOOL("a", "z") "," TOOL("b", "x"));
    pins_world_fail(&w, false);
    assert_int_equal(pins_world_events(&w, "tool/changed", NULL, NULL), 0);
    pins_world_list(&w, TOOL("a", "z") "," TOOL("b", "x"));
    assert_int_equal(pins_world_events(&w, "tool/changed", NULL, &e), 1);
    assert_true(has(e.body, "\\\"x\\\"") && has(e.body, "\\\"z\\\""));
    assert_true(pins_world_approve(&w, "a"));
    assert_int_equal(pins_world_check(&w, "a"), PIN_FREE);
    pins_world_list(&w, TOOL("a", "z") "," TOOL("b", "x"));
    assert_int_equal(pins_world_events(&w, "tool/changed", NULL, NULL), 1);
    pins_world_close(&w);
}
