/* SPDX-License-Identifier: Apache-2.0 */
/* How long a session in memory lives: what moves its end, and what does not. */
#include "test.h"

#include "base/clock.h"
#include "session/session.h"
#include "session/session_impl.h"

#define START INT64_C(1794733323456)
#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)

static struct sessions *home;

static struct session *make_session(bool provisional, int64_t life_ms)
{
    struct principal who = {.tenant = STR("default"), .owner = STR("local")};
    struct session_new_args args = {.who = &who,
                                    .origin = ORIGIN_TRANSPORT,
                                    .carrier = STR("transport"),
                                    .provisional = provisional,
                                    .life_ms = life_ms};
    struct session *s = session_new(home, &args);
    s->stored = true;
    return s;
}

static void begin(void)
{
    struct sessions_config config = {.node = STR("node"), .writer = 7, .max_resident = 4};
    clock_set_fake(START, 0);
    home = sessions_new(&config);
}

static void end(void)
{
    sessions_free(home);
    clock_set_real();
}

TEST(test_session__ends_its_life_after_the_last_use)
{
    begin();
    struct session *s = make_session(false, 2 * HOUR);
    struct session_row row;
    clock_advance_fake(HOUR);
    session_used(s);
    assert_false(session_is_over(s, START + 3 * HOUR - 1));
    assert_true(session_is_over(s, START + 3 * HOUR));
    session_fill_row(s, &row);
    assert_int_equal(row.expires_ms, START + 3 * HOUR);
    assert_int_equal(row.last_activity_ms, START + HOUR);
    session_unref(s);
    end();
}

TEST(test_session__of_a_handle_nobody_used_yet_lives_an_hour)
{
    begin();
    struct session *s = make_session(true, DAY);
    assert_false(session_is_over(s, START + HOUR - 1));
    assert_true(session_is_over(s, START + HOUR));
    session_unref(s);
    end();
}

TEST(test_session__lives_thirty_days_however_often_it_is_used)
{
    begin();
    struct session *s = make_session(false, DAY);
    for (int i = 0; i < 40; i++) {
        clock_advance_fake(DAY - 1);
        session_used(s);
    }
    assert_true(session_is_over(s, START + 30 * DAY));
    assert_false(session_is_over(s, START + 30 * DAY - 1));
    session_unref(s);
    end();
}

TEST(test_session__with_a_lifetime_of_its_own_is_not_prolonged_by_use)
{
    begin();
    struct session *s = make_session(false, DAY);
    s->ttl_ms = HOUR;
    s->expires_ms = START + HOUR;
    clock_advance_fake(HOUR / 2);
    session_used(s);
    assert_true(session_is_over(s, START + HOUR));
    session_unref(s);
    end();
}

TEST(test_session__neither_ends_nor_outlives_when_the_wall_clock_jumps)
{
    static const int64_t jumps[] = {HOUR, -HOUR, 365 * DAY, -365 * DAY};
    for (size_t i = 0; i < countof(jumps); i++) {
        begin();
        struct session *s = make_session(false, DAY);
        clock_jump_fake(jumps[i]);
        clock_advance_fake(HOUR);
        session_used(s);
        assert_int_equal(s->last_used_ms, START + HOUR);
        assert_int_equal(s->expires_ms, START + HOUR + DAY);
        assert_false(session_is_over(s, clock_life_ms()));
        clock_advance_fake(DAY);
        assert_true(session_is_over(s, clock_life_ms()));
        session_unref(s);
        end();
    }
}

TEST(test_sessions_drop_over__lets_go_of_what_nobody_uses_and_is_over)
{
    begin();
    struct session *used = make_session(false, HOUR), *over = make_session(false, HOUR),
                   *live = make_session(false, DAY);
    session_unref(over);
    session_unref(live);
    assert_int_equal(sessions_resident(home), 3);
    sessions_drop_over(home, START + HOUR - 1, 10);
    assert_int_equal(sessions_resident(home), 3);
    sessions_drop_over(home, START + HOUR, 10);
    assert_int_equal(sessions_resident(home), 2); /* one is still referred to */
    session_unref(used);
    sessions_drop_over(home, START + DAY, 1);
    assert_int_equal(sessions_resident(home), 1);
    sessions_drop_over(home, START + DAY, 1);
    assert_int_equal(sessions_resident(home), 0);
    end();
}
