/* SPDX-License-Identifier: Apache-2.0 */
/* Entity tags: versions for changes, everything shown for what is known already. */
#include "api/tags.h"

#include "session/session_json.h"
#include "test.h"

TEST(test_tag__has_the_version_and_moves_with_what_is_shown)
{
    char a[SESSION_TAG_TEXT], b[SESSION_TAG_TEXT];
    int64_t version = 0;

    session_tag(INT64_MAX, STR("{\"n\":1}"), a);
    session_tag(INT64_MAX, STR("{\"n\":2}"), b);
    assert_string_not_equal(a, b);
    assert_true(session_tag_version(str_of(a), &version));
    assert_true(version == INT64_MAX);
}

TEST(test_tag_version__is_read_from_our_tags_alone)
{
    static const char *const bad[] = {
        "",        "7",   "\"\"", "\"x\"",  "\"-1\"",
        "W/\"7\"", "\"7", "7\"",  "\" 7\"", "\"99999999999999999999\""};
    int64_t version = 0;

    assert_true(session_tag_version(STR("\"7\""), &version) && version == 7);
    assert_true(session_tag_version(STR("\"8-abc\""), &version) && version == 8);
    for (size_t i = 0; i < countof(bad); i++)
        assert_false(session_tag_version(str_of(bad[i]), &version));
    assert_true(version == 8);
}

TEST(test_tags_match__takes_the_version_in_a_list_and_never_a_weak_one)
{
    int64_t version = 0;

    assert_true(tags_match(STR("\"1-aa\", \"3-bb\""), 3, &version) && version == 3);
    assert_true(tags_match(STR("*"), 9, &version) && version == 9);
    assert_false(tags_match(STR("\"1-aa\", \"3-bb\""), 2, &version));
    assert_false(tags_match(STR("W/\"3-bb\""), 3, &version));
    assert_false(tags_match(STR(""), 3, &version));
}

TEST(test_tags_have__compares_all_of_a_tag)
{
    assert_true(tags_have(STR("\"x\",W/\"3-bb\""), STR("\"3-bb\"")));
    assert_true(tags_have(STR("*"), STR("\"3-bb\"")));
    assert_false(tags_have(STR("\"3-cc\""), STR("\"3-bb\"")));
}
