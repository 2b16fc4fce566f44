/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile shows. */
#include "test.h"

#include "profile/profile.h"

#include <stdio.h>

static struct config *config;
static const struct profile_config *profile;

static void with_profile(const char *json)
{
    struct error err;
    char text[2048];

    snprintf(text, sizeof(text),
             "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"command\": \"x\"}}, "
             "\"holdfast\": {\"profiles\": {\"p\": %s}, \"toolsets\": {"
             "\"read\": {\"tools\": [\"a__get*\", \"b__list\"]}, "
             "\"write\": {\"tools\": [\"a__set\"]}, \"none\": {\"tools\": []}}}}",
             json);
    if (!config_parse(str_of(text), STR("t.json"), NULL, &config, &err))
        fail_msg("%s", err.text);
    profile = config_profile(config, STR("p"));
}

static bool shows(uint64_t toolsets, const char *server, const char *tool)
{
    return profile_shows(profile, toolsets, str_of(server), str_of(tool));
}

TEST(test_profile__without_servers_and_toolsets_has_everything)
{
    with_profile("{}");
    assert_true(profile_has_server(profile, STR("a")));
    assert_true(shows(PROFILE_ALL_TOOLSETS, "a", "anything"));
    assert_true(shows(0, "session", "context_get"));
    config_unref(config);
}

TEST(test_profile__has_its_servers_and_no_other)
{
    with_profile("{\"servers\": [\"a\"]}");
    assert_true(shows(PROFILE_ALL_TOOLSETS, "a", "x"));
    assert_false(shows(PROFILE_ALL_TOOLSETS, "b", "x"));
    assert_false(profile_has_server(profile, STR("session")));
    config_unref(config);
}

TEST(test_profile_reaches__goes_by_the_toolsets_that_count)
{
    with_profile("{\"toolsets\": [\"read\", \"write\", \"none\"]}");
    assert_true(profile_reaches(profile, 1, STR("a")) && profile_reaches(profile, 1, STR("b")));
    assert_true(profile_reaches(profile, 2, STR("a")));
    assert_false(profile_reaches(profile, 2, STR("b")));
    assert_false(profile_reaches(profile, 4, STR("a")) || profile_reaches(profile, 0, STR("a")));
    config_unref(config);
    with_profile("{\"servers\": [\"a\"]}");
    assert_true(profile_reaches(profile, 0, STR("a")));
    assert_false(profile_reaches(profile, PROFILE_ALL_TOOLSETS, STR("b")));
    config_unref(config);
}

TEST(test_profile__shows_what_its_toolsets_match)
{
    with_profile("{\"toolsets\": [\"read\", \"write\"]}");
    assert_true(shows(PROFILE_ALL_TOOLSETS, "a", "get_one"));
    assert_true(shows(PROFILE_ALL_TOOLSETS, "a", "set"));
    assert_false(shows(PROFILE_ALL_TOOLSETS, "a", "set_all"));
    assert_true(shows(PROFILE_ALL_TOOLSETS, "b", "list"));
    assert_false(shows(PROFILE_ALL_TOOLSETS, "b", "get_one"));
    assert_false(profile_has_server(profile, STR("session")));
    config_unref(config);
}

TEST(test_profile__only_toolsets_that_count_are_shown)
{
    with_profile("{\"toolsets\": [\"read\", \"write\"]}");
    assert_true(shows(1, "a", "get_one"));
    assert_false(shows(1, "a", "set"));
    assert_true(shows(2, "a", "set"));
    assert_false(shows(0, "a", "get_one"));
    config_unref(config);
}

TEST(test_profile__a_toolset_never_reaches_past_the_profiles_servers)
{
    with_profile("{\"servers\": [\"b\"], \"toolsets\": [\"read\", \"write\"]}");
    assert_false(shows(PROFILE_ALL_TOOLSETS, "a", "get_one"));
    assert_true(shows(PROFILE_ALL_TOOLSETS, "b", "list"));
    config_unref(config);
}

TEST(test_profile__an_empty_toolset_shows_nothing)
{
    with_profile("{\"toolsets\": [\"none\"]}");
    assert_false(shows(PROFILE_ALL_TOOLSETS, "a", "get_one"));
    assert_false(profile_has_server(profile, STR("a")));
    config_unref(config);
}

TEST(test_profile__a_name_longer_than_any_pattern_is_not_shown)
{
    char tool[600];

    memset(tool, 'x', sizeof(tool));
    memcpy(tool, "get", 3);
    with_profile("{\"toolsets\": [\"read\"]}");
    assert_true(profile_shows(profile, 1, STR("a"), str_n(tool, 512 - 3)));
    assert_false(profile_shows(profile, 1, STR("a"), str_n(tool, 512 - 2)));
    config_unref(config);
}

TEST(test_profile__policy_and_client_id_only_narrow)
{
    with_profile(
        "{\"mode\": \"dynamic\", \"toolsets\": [\"read\", \"write\", \"none\"], "
        "\"policy\": {\"allow\": [\"read\", \"write\"], \"deny\": [\"write\"]}, \"clients\": "
        "{\"ann\": {\"toolsets\": [\"read\", \"none\"]}, \"*\": {\"toolsets\": []}}}");
    assert_int_equal(profile_permitted(profile, STR("ann")), 1);
    assert_int_equal(profile_permitted(profile, STR("bob")), 0);
    assert_int_equal(profile_permitted(profile, STR_NONE), 0);
    assert_int_equal(profile_permitted(profile, STR("*")), 0);
    assert_true(profile_allows(profile, STR("write")));
    assert_true(profile_denies(profile, STR("write")));
    assert_false(profile_allows(profile, STR("none")));
    config_unref(config);
    with_profile("{\"toolsets\": [\"read\"], \"clients\": {\"ann\": {\"toolsets\": []}}}");
    assert_int_equal(profile_permitted(profile, STR("ann")), 0);
    assert_int_equal(profile_permitted(profile, STR("bob")), PROFILE_ALL_TOOLSETS);
    config_unref(config);
}

TEST(test_profile__enabled_keys_are_those_of_its_own_toolsets)
{
    with_profile("{\"toolsets\": [\"read\", \"write\"]}");
    assert_int_equal(profile_enabled(profile, STR_NONE), 0);
    assert_int_equal(profile_enabled(profile, STR("write")), 2);
    assert_int_equal(profile_enabled(profile, STR("write,none,read,gone")), 3);
    assert_int_equal(profile_enabled(profile, STR("rea,,writ")), 0);
    config_unref(config);
}

TEST(test_toolset_keys__are_added_once_and_taken_out_whole)
{
    struct arena *mem = arena_new(1 << 16);

    assert_str(toolset_keys_with(STR_NONE, STR("a"), mem), "a");
    assert_str(toolset_keys_with(STR("a,b"), STR("a"), mem), "b,a");
    assert_str(toolset_keys_without(STR("a,ab,b"), STR("a"), mem), "ab,b");
    assert_null(toolset_keys_without(STR("a"), STR("a"), mem).p);
    assert_null(toolset_keys_without(STR_NONE, STR("a"), mem).p);
    arena_free(mem);
}
