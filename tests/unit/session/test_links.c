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
    struct session_new_args args = {
        .who = &who, .origin = ORIGIN_TRANSPORT, .carrier = STR("transport")};
    home = sessions_new(&config);
    session = session_new(home, &args);
}

static void end(void)
{
    session_unref(session);
    sessions_free(home);
}

static enum link_change note(const char *server, uint64_t generation, bool was_open,
                             const char *resume)
{
    struct link_seen seen = {.generation = generation,
                             .was_open = was_open,
                             .resume = str_of(resume),
                             .reason = "child_restarted"};
    return session_note_link(session, str_of(server), &seen);
}

TEST(test_session_links__another_live_end_than_before_is_lost_state)
{
    begin();
    assert_int_equal(note("a", 1, false, NULL), LINK_FIRST);
    assert_int_equal(note("a", 1, true, NULL), LINK_SAME);
    assert_int_equal(note("b", 2, false, NULL), LINK_FIRST);
    assert_int_equal(note("a", 3, false, NULL), LINK_STATE_LOST);
    assert_int_equal(note("a", 3, true, NULL), LINK_STATE_LOST); /* until told */
    session_link_of(session, STR("a"))->lost = false;
    assert_int_equal(note("a", 3, true, NULL), LINK_SAME);
    end();
}

TEST(test_session_links__a_session_loaded_again_goes_on_with_the_link_that_still_stands)
{
    begin();
    session_add_link(session, STR("a"))->stored = true; /* a row of this process */
    assert_int_equal(note("a", 5, true, NULL), LINK_SAME);
    session_add_link(session, STR("b"))->stored = true;
    assert_int_equal(note("b", 6, false, NULL), LINK_STATE_LOST);
    end();
}

TEST(test_session_links__a_row_of_an_earlier_process_is_lost_state)
{
    begin();
    struct session_link *l = session_add_link(session, STR("a"));
    l->is_old = l->stored = true; /* the intent of this call has been written meanwhile */
    assert_int_equal(note("a", 5, true, NULL), LINK_STATE_LOST);
    assert_string_equal(l->reason, "holdfast_restarted");
    l->lost = false;
    assert_int_equal(note("a", 6, false, NULL), LINK_STATE_LOST);
    assert_string_equal(l->reason, "child_restarted");
    end();
}

TEST(test_session_links__a_row_of_another_node_does_not_blame_a_restart)
{
    begin();
    home->is_shared = true;
    struct session_link *l = session_add_link(session, STR("a"));
    l->is_old = true;
    assert_int_equal(note("a", 5, false, NULL), LINK_STATE_LOST);
    assert_string_equal(l->reason, "child_restarted");
    end();
}

TEST(test_session_links__the_same_remote_session_is_the_same_state)
{
    begin();
    struct session_link *l = session_add_link(session, STR("a"));
    l->is_old = true;
    session_link_take_resume(l, STR("v d one"));
    assert_int_equal(note("a", 5, false, "v d one"), LINK_SAME);
    assert_int_equal(note("a", 6, false, "v d other"), LINK_STATE_LOST);
    assert_string_equal(l->reason, "child_restarted");
    end();
}
