/* SPDX-License-Identifier: Apache-2.0 */
/* Selections: reading of filters from texts and JSON, limits, and the events that pass. */
#include "test.h"

#include "audit/selection.h"

#include <stdlib.h>

static struct arena *mem;

static int open_mem(void **state unused_arg)
{
    mem = arena_new(1 << 20);
    return 0;
}

static int close_mem(void **state unused_arg)
{
    arena_free(mem);
    return 0;
}

static struct selection with(const char *name, const char *value)
{
    struct selection s = {.kinds = 0};
    struct error err;
    if (!selection_set(&s, str_of(name), str_of(value), mem, &err))
        fail_msg("%s=%s: %s", name, value, err.text);
    return s;
}

static struct error refused(const char *name, const char *value)
{
    struct selection s = {.kinds = 7};
    struct error err;
    assert_false(selection_set(&s, str_of(name), str_of(value), mem, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    assert_int_equal(s.kinds, 7);
    return err;
}

static struct event_row event_of(enum event_kind kind)
{
    return (struct event_row){.kind = kind,
                              .session_id = STR("s1"),
                              .server = STR("files"),
                              .tool = STR("read"),
                              .outcome = kind == EVENT_OUTCOME ? STR("ok") : STR_NONE};
}

TEST(test_selection__an_empty_one_passes_every_event)
{
    struct selection s = {.kinds = 0};
    for (int kind = EVENT_INTENT; kind <= EVENT_RECORD; kind++) {
        struct event_row e = event_of((enum event_kind)kind);
        assert_true(selection_matches(&s, &e));
    }
    assert_true(selection_matches(&s, &(struct event_row){.kind = EVENT_ANCHOR}));
}

TEST(test_selection__each_filter_is_a_list_and_all_filters_must_fit)
{
    struct event_row intent = event_of(EVENT_INTENT), outcome = event_of(EVENT_OUTCOME);
    open_mem(NULL);
    struct selection s = with("types", "note, outcome");
    assert_false(selection_matches(&s, &intent));
    assert_true(selection_matches(&s, &outcome));
    s = with("server", "web,files");
    assert_true(selection_matches(&s, &intent));
    assert_false(selection_matches(&s, &(struct event_row){.kind = EVENT_SYSTEM}));
    s = with("session", "s2");
    assert_false(selection_matches(&s, &intent));
    s = with("outcome", "ok");
    assert_false(selection_matches(&s, &intent));
    assert_true(selection_matches(&s, &outcome));
    struct error err;
    assert_true(selection_set(&s, STR("server"), STR("web"), mem, &err));
    assert_false(selection_matches(&s, &outcome));
    close_mem(NULL);
}

TEST(test_selection__a_tool_is_named_alone_or_with_its_server)
{
    struct event_row e = event_of(EVENT_INTENT);
    open_mem(NULL);
    static const char *const fit[] = {"read", "files__read", "x,read"}, *const other[] = {
                                                                            "files__rea",
                                                                            "web__read",
                                                                            "files_read", "files"};
    for (size_t i = 0; i < countof(fit); i++) {
        struct selection s = with("tool", fit[i]);
        assert_true(selection_matches(&s, &e));
    }
    for (size_t i = 0; i < countof(other); i++) {
        struct selection s = with("tool", other[i]);
        assert_false(selection_matches(&s, &e));
    }
    struct selection s = with("tool", "files__");
    e.tool = STR_NONE;
    assert_false(selection_matches(&s, &e));
    close_mem(NULL);
}

TEST(test_selection__a_refusal_lists_what_is_allowed)
{
    open_mem(NULL);
    assert_non_null(strstr(refused("types", "outcome,call").text,
                           "\"call\"; types are intent, outcome, note, anchor, writer, session"));
    assert_non_null(strstr(refused("outcome", "fine").text, "outcomes are ok, tool_error"));
    assert_non_null(strstr(refused("tools", "x").text, "filters are types, session"));
    (void)refused("server", "");
    (void)refused("server", "a,,b");
    (void)refused("server", "a,");
    (void)refused("server", "\xff");
    close_mem(NULL);
}

TEST(test_selection__limits)
{
    char long_name[SELECTION_NAME_MAX + 2], many[2 * SELECTION_ITEMS_MAX + 2] = "a";
    open_mem(NULL);
    memset(long_name, 'x', sizeof(long_name));
    long_name[SELECTION_NAME_MAX] = '\0';
    (void)with("server", long_name);
    long_name[SELECTION_NAME_MAX] = 'x';
    long_name[SELECTION_NAME_MAX + 1] = '\0';
    (void)refused("server", long_name);
    for (int i = 1; i < SELECTION_ITEMS_MAX; i++)
        strcat(many, ",a");
    assert_int_equal(with("server", many).lists[SELECT_SERVER].n, SELECTION_ITEMS_MAX);
    strcat(many, ",");
    (void)refused("server", many);
    close_mem(NULL);
}

static bool read_json(const char *text, struct selection *ret, struct error *err)
{
    struct js_doc doc;
    assert_true(js_parse(str_of(text), &js_limits_request, mem, &doc, NULL));
    return selection_from_json(&doc, js_root(&doc), mem, ret, err);
}

TEST(test_selection__json_takes_texts_and_arrays)
{
    struct selection s;
    struct error err;
    open_mem(NULL);
    assert_true(
        read_json("{\"types\":[\"intent\",\"outcome\"],\"server\":\"files,web\"}", &s, &err));
    assert_int_equal(s.kinds, 1 << EVENT_INTENT | 1 << EVENT_OUTCOME);
    assert_int_equal(s.lists[SELECT_SERVER].n, 2);
    assert_true(read_json("{}", &s, &err));
    assert_int_equal(s.kinds, 0);
    static const char *const bad[] = {"[]",
                                      "{\"types\":3}",
                                      "{\"types\":[]}",
                                      "{\"types\":[3]}",
                                      "{\"nope\":\"x\"}",
                                      "{\"types\":\"\"}"};
    for (size_t i = 0; i < countof(bad); i++)
        assert_false(read_json(bad[i], &s, &err));
    close_mem(NULL);
}

TEST(test_selection__narrows_a_page_without_losing_events)
{
    struct event_filter filter = {.kind = -1};
    open_mem(NULL);
    struct selection s = with("types", "outcome");
    selection_narrow(&s, &filter);
    assert_int_equal(filter.kind, EVENT_OUTCOME);
    filter.kind = -1;
    s = with("types", "outcome,note");
    selection_narrow(&s, &filter);
    assert_int_equal(filter.kind, -1);
    s = with("server", "a,b");
    selection_narrow(&s, &filter);
    assert_null(filter.server.p);
    s = with("server", "a");
    selection_narrow(&s, &filter);
    assert_true(str_eq(filter.server, STR("a")));
    close_mem(NULL);
}
