/* SPDX-License-Identifier: Apache-2.0 */
/* Positions of readers: text both ways, what is unread, steps, order. */
#include "test.h"

#include "audit/position.h"

#include <stdio.h>

static struct position at(const char *text)
{
    struct position p;
    if (!position_parse(str_of(text), &p))
        fail_msg("\"%s\" is no position", text);
    return p;
}

static void assert_text(const struct position *p, const char *text)
{
    char room[POSITION_TEXT];
    assert_string_equal(position_format(p, room), text);
}

TEST(test_position__text_both_ways)
{
    static const char *const texts[] = {"0", "7.120", "7.120,9.44",
                                        "1.0,2.1099511627775,8388607.1"};
    for (size_t i = 0; i < countof(texts); i++) {
        struct position p = at(texts[i]);
        assert_text(&p, texts[i]);
    }
}

TEST(test_position__bad_texts_are_refused)
{
    static const char *const texts[] = {
        "",        "7",    "0.5",   "7.1,", ",7.1",     "7.1,7.2",   "9.1,7.1",        "7.1 ",
        "7.1;9.1", "7.-1", "0,1.1", "x",    "7.1,,9.1", "8388608.1", "7.1099511627776"};
    struct position p = at("3.3");
    for (size_t i = 0; i < countof(texts); i++)
        if (position_parse(str_of(texts[i]), &p))
            fail_msg("\"%s\" was accepted", texts[i]);
    assert_text(&p, "3.3");
}

/* "1.0,2.0,…" */
static const char *many(unsigned n, char *room)
{
    size_t k = 0;
    for (unsigned i = 1; i <= n; i++)
        k += (size_t)sprintf(room + k, "%s%u.0", i > 1 ? "," : "", i);
    return room;
}

TEST(test_position__as_many_writers_as_fit_and_one_more)
{
    char room[POSITION_TEXT + 32];
    struct position p = at(many(POSITION_WRITERS_MAX, room));

    assert_int_equal(p.n, POSITION_WRITERS_MAX);
    assert_false(position_parse(str_of(many(POSITION_WRITERS_MAX + 1, room)), &p));
    position_advance(&p, event_id_make(POSITION_WRITERS_MAX + 1, 5));
    assert_int_equal(p.n, POSITION_WRITERS_MAX);
    assert_true(p.last[0] == event_id_make(2, 0));
    assert_false(position_is_before(&p, event_id_make(1, 9)));
    for (size_t i = 0; i < p.n; i++)
        p.last[i] =
            event_id_make((INT64_C(1) << 23) - POSITION_WRITERS_MAX + (int64_t)i, EVENT_COUNT_MASK);
    struct position back = at(position_format(&p, room));
    assert_int_equal(position_compare(&p, &back), POSITION_SAME);
}

TEST(test_position__unread_events)
{
    struct position p = at("7.120,9.44"), nothing = at("0");

    assert_true(position_is_before(&nothing, event_id_make(1, 1)));
    assert_false(position_is_before(&p, event_id_make(7, 120)));
    assert_true(position_is_before(&p, event_id_make(7, 121)));
    assert_false(position_is_before(&p, event_id_make(6, 999)));
    assert_false(position_is_before(&p, event_id_make(8, 1)));
    assert_false(position_is_before(&p, event_id_make(9, 44)));
    assert_true(position_is_before(&p, event_id_make(9, 45)));
    assert_true(position_is_before(&p, event_id_make(10, 1)));
    assert_true(position_lowest(&p) == event_id_make(7, 120));
    assert_true(position_lowest(&nothing) == 0);
}

TEST(test_position__advances_per_writer)
{
    struct position p = at("0");

    position_advance(&p, event_id_make(7, 1));
    assert_text(&p, "7.1");
    position_advance(&p, event_id_make(7, 2));
    position_advance(&p, event_id_make(7, 1));
    position_advance(&p, event_id_make(6, 5));
    assert_text(&p, "7.2");
    position_advance(&p, event_id_make(10, 3));
    assert_text(&p, "7.2,8.0,9.0,10.3");
    assert_true(position_is_before(&p, event_id_make(8, 1)));
    position_advance(&p, event_id_make(8, 4));
    assert_text(&p, "7.2,8.4,9.0,10.3");
    position_forget(&p, 7);
    position_forget(&p, 9);
    position_forget(&p, 10);
    position_forget(&p, 11);
    assert_text(&p, "8.4,10.3");
    position_advance(&p, event_id_make(5000, 1));
    assert_int_equal(p.n, POSITION_WRITERS_MAX);
    assert_true(position_is_before(&p, event_id_make(4990, 1)));
}

TEST(test_position__order)
{
    static const struct {
        const char *a, *b;
        enum position_order order;
    } rows[] = {
        {"0", "0", POSITION_SAME},
        {"0", "1.0", POSITION_SAME},
        {"0", "1.1", POSITION_BEFORE},
        {"0", "2.0", POSITION_BEFORE},
        {"7.1", "7.2", POSITION_BEFORE},
        {"7.1", "8.0", POSITION_BEFORE},
        {"7.1", "7.1,8.0", POSITION_SAME},
        {"7.1", "7.1,8.0,9.0", POSITION_SAME},
        {"7.1", "7.1,9.0", POSITION_BEFORE},
        {"7.1,9.44", "7.2,9.43", POSITION_APART},
        {"7.1,9.44", "9.44", POSITION_BEFORE},
        {"7.1,9.44", "9.43", POSITION_APART},
        {"7.1,9.44", "7.1,8.0,9.44", POSITION_AFTER},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct position a = at(rows[i].a), b = at(rows[i].b);
        enum position_order back = rows[i].order == POSITION_BEFORE  ? POSITION_AFTER
                                   : rows[i].order == POSITION_AFTER ? POSITION_BEFORE
                                                                     : rows[i].order;
        if (position_compare(&a, &b) != rows[i].order || position_compare(&b, &a) != back)
            fail_msg("%s and %s are in the wrong order", rows[i].a, rows[i].b);
    }
}
