/* SPDX-License-Identifier: Apache-2.0 */
/* The table of revisions: what is found by name, and what is assumed without one. */
#include "test.h"

#include "mcp/version.h"

TEST(test_version_find__knows_every_row_and_nothing_else)
{
    for (const struct mcp_version *v = mcp_versions; v->name.p; v++)
        assert_ptr_equal(mcp_version_find(v->name), v);
    assert_null(mcp_version_find(STR("2025-11-26")));
    assert_null(mcp_version_find(STR("2025-11-2")));
    assert_null(mcp_version_find(STR("")));
}

TEST(test_version__a_request_that_does_not_say_speaks_the_revision_before_the_header)
{
    assert_true(str_eq(mcp_version_default->name, STR("2025-03-26")));
    assert_false(mcp_version_default->version_header);
}
