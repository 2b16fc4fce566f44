/* SPDX-License-Identifier: Apache-2.0 */
/* The method table: which era knows which method, and the order of log levels. */
#include "test.h"

#include "mcp/method.h"

TEST(test_method__is_found_in_its_own_era_only)
{
    static const struct {
        const char *name;
        bool legacy, modern;
    } rows[] = {
        {"initialize", true, false},
        {"server/discover", false, true},
        {"tools/call", true, true},
        {"resources/subscribe", true, false},
        {"subscriptions/listen", false, true},
        {"logging/setLevel", true, false},
        {"Tools/call", false, false},
        {"tools/call ", false, false},
        {"", false, false},
        {"GET", false, false},
    };

    for (size_t i = 0; i < countof(rows); i++) {
        struct str name = str_of(rows[i].name);
        assert_int_equal(mcp_method_find(name, MCP_LEGACY) != NULL, rows[i].legacy);
        assert_int_equal(mcp_method_find(name, MCP_MODERN) != NULL, rows[i].modern);
    }
}

TEST(test_method__that_goes_to_an_upstream_names_its_target)
{
    for (const struct mcp_method *m = mcp_methods; m->name.p; m++)
        assert_true(mcp_method_forwards(m) == (m->target != TARGET_ALL));
}

TEST(test_level__names_are_the_eight_of_the_protocol)
{
    assert_string_equal(mcp_level(STR("debug")), "debug");
    assert_string_equal(mcp_level(STR("emergency")), "emergency");
    assert_null(mcp_level(STR("Debug")));
    assert_null(mcp_level(STR("debugs")));
    assert_null(mcp_level(STR("")));
    assert_null(mcp_level(STR_NONE));
}

TEST(test_level__reaches_its_own_and_every_milder_threshold)
{
    static const char *const names[] = {"debug", "info",     "notice", "warning",
                                        "error", "critical", "alert",  "emergency"};

    for (size_t said = 0; said < countof(names); said++)
        for (size_t wanted = 0; wanted < countof(names); wanted++)
            assert_int_equal(
                mcp_level_reaches(mcp_level(str_of(names[said])), mcp_level(str_of(names[wanted]))),
                said >= wanted);
}
