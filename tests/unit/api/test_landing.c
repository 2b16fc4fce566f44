/* SPDX-License-Identifier: Apache-2.0 */
/* The page at `/`: who gets it, and that names cannot be markup. */
#include "test.h"

#include "api/landing.h"

TEST(test_landing_wants_html__only_if_the_client_names_it)
{
    assert_true(landing_wants_html(STR("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")));
    assert_true(landing_wants_html(STR("application/json, TEXT/HTML;q=0.1")));
    assert_false(landing_wants_html(STR("*/*")));
    assert_false(landing_wants_html(STR("application/json;a=text/html")));
    assert_false(landing_wants_html(STR("text/htmlx")));
    assert_false(landing_wants_html(STR_NONE));
}

TEST(test_landing_escape__leaves_no_markup)
{
    struct buf out;

    buf_init(&out, 1024);
    landing_escape(&out, STR("<a href=\"x\" id='y'>&amp;é"));
    assert_string_equal(out.p, "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;amp;é");
    buf_release(&out);
}
