/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "session/session.h"
#include "session/session_impl.h"

static struct sessions *home;
static struct session *session;

static void begin(void)
{
    struct sessions_config config = {.node = STR("node"), .writer = 7, .max_resident = 4};
    struct principal who = {.tenant = STR("default"), .owner = STR("local")};
    struct session_birth birth = {
        .who = &who, .origin = ORIGIN_TRANSPORT, .carrier = STR("transport")};
    home = sessions_new(&config);
    session = session_new(home, &birth);
}

static void end(void)
{
    session_unref(session);
    sessions_free(home);
}

TEST(test_session_links__another_live_end_than_before_is_lost_state)
{
    begin();
    assert_int_equal(session_note_link(session, STR("a"), 1, false), LINK_NEWS_FIRST);
    assert_int_equal(session_note_link(session, STR("a"), 1, true), LINK_NEWS_SAME);
    assert_int_equal(session_note_link(session, STR("b"), 2, false), LINK_NEWS_FIRST);
    assert_int_equal(session_note_link(session, STR("a"), 3, false), LINK_NEWS_STATE_LOST);
    assert_int_equal(session_note_link(session, STR("a"), 3, true),
                     LINK_NEWS_STATE_LOST); /* until told */
    session_link_of(session, STR("a"))->lost = false;
    assert_int_equal(session_note_link(session, STR("a"), 3, true), LINK_NEWS_SAME);
    end();
}

TEST(test_session_links__a_session_loaded_again_goes_on_with_the_link_that_still_stands)
{
    begin();
    session_add_link(session, STR("a"))->stored = true; /* a row of this process */
    assert_int_equal(session_note_link(session, STR("a"), 5, true), LINK_NEWS_SAME);
    session_add_link(session, STR("b"))->stored = true;
    assert_int_equal(session_note_link(session, STR("b"), 6, false), LINK_NEWS_STATE_LOST);
    end();
}

TEST(test_session_links__a_row_of_an_earlier_process_is_lost_state)
{
    begin();
    session_add_link(session, STR("a"));
    assert_int_equal(session_note_link(session, STR("a"), 5, true), LINK_NEWS_STATE_LOST);
    end();
}
