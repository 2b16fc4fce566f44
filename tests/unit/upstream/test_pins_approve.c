/* SPDX-License-Identifier: Apache-2.0 */
#include "pins_world.h"

#define TOOL(name, text) "{\"name\":\"" name "\",\"description\":\"" text "\"}"
#define PINNED ",\"pin\":true"

static void digest_of(struct pins_world *w, const char *tool, char ret[2 * SHA256_BYTES + 1])
{
    hex_encode(pins_world_row(w, tool).digest, SHA256_BYTES, ret);
}

TEST(test_pins_approve__frees_a_held_tool_whose_words_were_not_shown)
{
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("a", "x"));
    pins_world_list(&w, TOOL("a", "y"));
    assert_int_equal(pins_world_check(&w, "a"), PIN_CHANGED);
    struct str shown = catalog_shown(catalog_tool(w.catalog, STR("a")));
    assert_null(memmem(shown.p, shown.n, "\"y\"", 3));
    assert_true(pins_world_approve(&w, "a"));
    assert_int_equal(pins_world_check(&w, "a"), PIN_FREE);
    assert_int_equal(pins_world_events(&w, "tool/approved", "a", NULL), 1);
    pins_world_close(&w);
}

TEST(test_pins_approve__a_tool_that_changed_since_it_was_shown_is_refused)
{
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("a", "x"));
    pins_world_list(&w, TOOL("a", "harmless"));
    pins_world_show(&w, "a");
    pins_world_list(&w, TOOL("a", "evil"));
    assert_false(pins_world_approve(&w, "a"));
    assert_int_equal(w.err.code, ERR_CONFLICT);
    assert_non_null(strstr(w.err.text, "holdfast servers diff"));
    assert_int_equal(pins_world_check(&w, "a"), PIN_CHANGED);
    pins_world_show(&w, "a");
    assert_true(pins_world_approve(&w, "a"));
    assert_int_equal(pins_world_check(&w, "a"), PIN_FREE);
    pins_world_close(&w);
}

TEST(test_pins_approve__a_tool_that_changed_back_to_what_was_shown_is_approved)
{
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("a", "x"));
    pins_world_list(&w, TOOL("a", "y"));
    pins_world_show(&w, "a");
    pins_world_list(&w, TOOL("a", "z"));
    pins_world_list(&w, TOOL("a", "y"));
    assert_true(pins_world_approve(&w, "a"));
    pins_world_close(&w);
}

/* A change that is found, and not yet recorded, while the approval is on its way. */
TEST(test_pins_approve__in_the_moment_of_a_change_nothing_is_approved)
{
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("a", "x"));
    pins_world_list(&w, TOOL("a", "y"));
    pins_world_take(&w, STR(TOOL("a", "z")), true);
    assert_false(pins_world_approve(&w, "a"));
    assert_int_equal(w.err.code, ERR_CONFLICT);
    pins_world_wait_stored(&w);
    assert_int_equal(pins_world_check(&w, "a"), PIN_CHANGED);
    assert_int_equal(pins_world_events(&w, "tool/approved", NULL, NULL), 0);
    pins_world_close(&w);
}

/* The write is on its way when the server changes its tool: what was approved is, the new is not.
 */
TEST(test_pins_approve__is_of_what_the_tool_was_and_not_of_what_it_became_meanwhile)
{
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("a", "x"));
    pins_world_list(&w, TOOL("a", "y"));
    struct pins_world_approval one = {.a = {.server = STR("files"),
                                            .tool = STR("a"),
                                            .by = STR("local"),
                                            .done = pins_on_approved},
                                      .world = &w};
    must(pins_approve(w.pins, &one.a, &must_err));
    pins_world_take(&w, STR(TOOL("a", "z")), true);
    while (!w.is_done)
        loop_turn(w.loop);
    pins_world_wait_stored(&w);
    assert_int_equal(w.approved, 1);
    assert_int_equal(pins_world_check(&w, "a"), PIN_CHANGED);
    pins_world_list(&w, TOOL("a", "y"));
    assert_int_equal(pins_world_check(&w, "a"), PIN_FREE);
    pins_world_close(&w);
}

TEST(test_pins_approve__a_digest_names_what_the_tool_must_be)
{
    char digest[2 * SHA256_BYTES + 1], cut[2 * SHA256_BYTES + 1];
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("a", "x"));
    pins_world_list(&w, TOOL("a", "y"));
    digest_of(&w, "a", digest);
    snprintf(cut, sizeof(cut), "%.*s", PINS_DIGEST_MIN - 1, digest);
    assert_false(pins_world_approve_as(&w, "a", cut));
    assert_false(pins_world_approve_as(&w, "a", ""));
    assert_false(pins_world_approve_as(&w, "a", "0123456789abcdef"));
    assert_int_equal(w.err.code, ERR_CONFLICT);
    assert_int_equal(pins_world_check(&w, "a"), PIN_CHANGED);
    snprintf(cut, sizeof(cut), "%.*s", PINS_DIGEST_MIN, digest);
    assert_true(pins_world_approve_as(&w, "a", cut));
    assert_int_equal(pins_world_check(&w, "a"), PIN_FREE);
    assert_true(pins_world_approve_as(&w, "a", digest));
    pins_world_close(&w);
}

TEST(test_pins_approve_all__leaves_what_came_or_changed_since_the_others_were_shown)
{
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("a", "x") "," TOOL("b", "x"));
    pins_world_list(&w, TOOL("a", "y") "," TOOL("b", "y"));
    pins_world_show(&w, "a");
    pins_world_show(&w, "b");
    pins_world_list(&w, TOOL("a", "y") "," TOOL("b", "evil") "," TOOL("evil", "x"));
    assert_true(pins_world_approve(&w, NULL));
    assert_int_equal(w.approved, 1);
    assert_int_equal(w.unseen, 2);
    assert_int_equal(pins_world_check(&w, "a"), PIN_FREE);
    assert_int_equal(pins_world_check(&w, "b"), PIN_CHANGED);
    assert_int_equal(pins_world_check(&w, "evil"), PIN_NEW);
    assert_false(pins_world_approve(&w, NULL)); /* and again */
    assert_int_equal(w.err.code, ERR_CONFLICT);
    pins_world_show(&w, "b");
    pins_world_show(&w, "evil");
    assert_true(pins_world_approve(&w, NULL));
    assert_int_equal(w.approved, 2);
    pins_world_close(&w);
}

static void add_names(struct pins_world *w, const char *prefix, unsigned n)
{
    pins_world_list(w, TOOL("first", "x"));
    pins_world_list_many(w, prefix, n, "y");
}

TEST(test_pins_approve_all__as_many_as_fit_at_once)
{
    struct pins_world w;
    pins_world_open(&w, PINNED);
    add_names(&w, "t", PINS_APPROVE_MAX);
    assert_true(pins_world_approve(&w, NULL));
    assert_int_equal(w.approved, PINS_APPROVE_MAX);
    assert_int_equal(w.left, 0);
    assert_false(pins_world_approve(&w, NULL));
    assert_int_equal(w.err.code, ERR_NOT_FOUND);
    pins_world_close(&w);
}

TEST(test_pins_approve_all__and_of_more_it_says_how_many_are_left)
{
    struct pins_world w;
    pins_world_open(&w, PINNED);
    add_names(&w, "t", PINS_APPROVE_MAX + 1);
    assert_true(pins_world_approve(&w, NULL));
    assert_int_equal(w.approved, PINS_APPROVE_MAX);
    assert_int_equal(w.left, 1);
    assert_true(pins_world_approve(&w, NULL));
    assert_int_equal(w.approved, 1);
    assert_int_equal(w.left, 0);
    pins_world_close(&w);
}

static unsigned count(struct str text, const char *part)
{
    unsigned n = 0;
    for (const char *at; (at = memmem(text.p, text.n, part, strlen(part)));
         text = str_n(at + 1, (size_t)(text.p + text.n - at - 1)))
        n++;
    return n;
}

TEST(test_pins_approve_all__the_event_names_all_of_them)
{
    struct event_row e;
    struct pins_world w;
    char prefix[250];
    memset(prefix, 'n', sizeof(prefix) - 1);
    prefix[sizeof(prefix) - 1] = 0;
    pins_world_open(&w, PINNED);
    add_names(&w, prefix, PINS_APPROVE_MAX);
    assert_true(pins_world_approve(&w, NULL));
    assert_int_equal(pins_world_events(&w, "tool/approved", NULL, &e), 1);
    assert_int_equal(count(e.body, "\"digest\""), PINS_APPROVE_MAX);
    pins_world_close(&w);
}

TEST(test_pins_approve__a_name_may_have_256_bytes_in_its_event)
{
    struct event_row e;
    struct pins_world w;
    char name[258], list[400];
    memset(name, 'n', sizeof(name));
    name[256] = 0;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("first", "x"));
    snprintf(list, sizeof(list), TOOL("%s", "x"), name);
    pins_world_list(&w, list);
    assert_int_equal(pins_world_events(&w, "tool/added", name, NULL), 1);
    assert_true(pins_world_approve(&w, name));
    assert_int_equal(pins_world_events(&w, "tool/approved", name, NULL), 1);
    name[256] = 'n';
    name[257] = 0;
    snprintf(list, sizeof(list), TOOL("%s", "x"), name);
    pins_world_list(&w, list);
    assert_true(pins_world_approve(&w, name));
    pins_world_events(&w, "tool/added", NULL, &e);
    assert_int_equal(e.tool.n, PINS_MAX_NAME);
    memcpy(name + 255, "\xc3\xa9", 2); /* not inside a character */
    snprintf(list, sizeof(list), TOOL("%s", "x"), name);
    pins_world_list(&w, list);
    pins_world_events(&w, "tool/added", NULL, &e);
    assert_int_equal(e.tool.n, PINS_MAX_NAME - 1);
    pins_world_close(&w);
}

TEST(test_pins_approve__what_is_not_there_cannot_be)
{
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("a", "x") "," TOOL("b", "x"));
    pins_world_list(&w, TOOL("a", "x"));
    assert_false(pins_world_approve(&w, "b"));
    assert_int_equal(w.err.code, ERR_NOT_FOUND);
    assert_false(pins_world_approve(&w, "c"));
    assert_int_equal(w.err.code, ERR_NOT_FOUND);
    pins_world_close(&w);
}

TEST(test_pins_approve__that_the_store_did_not_take_frees_nothing)
{
    struct pins_world w;
    pins_world_open(&w, PINNED);
    pins_world_list(&w, TOOL("a", "x"));
    pins_world_list(&w, TOOL("a", "y"));
    pins_world_fail(&w, true);
    assert_false(pins_world_approve(&w, "a"));
    assert_int_equal(pins_world_check(&w, "a"), PIN_CHANGED);
    pins_world_fail(&w, false);
    assert_true(pins_world_approve(&w, "a"));
    pins_world_close(&w);
}
