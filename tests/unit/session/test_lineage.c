/* SPDX-License-Identifier: Apache-2.0 */
/* The lineage of a session: its text, and what is refused. */
#include "test.h"

#include "session/lineage.h"

#include <stdio.h>

TEST(test_lineage__is_read_as_it_was_written)
{
    struct arena *mem = arena_new(1 << 20);
    struct lineage l;
    struct str text =
        lineage_write(LINEAGE_IMPORT, STR("0197"), STR("{\"key\":\"ab\\\"c\",\"calls\":12}"), mem);

    assert_str(text, "{\"kind\":\"import\",\"session\":\"0197\",\"key\":\"ab\\\"c\",\"calls\":12}");
    assert_true(lineage_read(text, mem, &l));
    assert_int_equal(l.kind, LINEAGE_IMPORT);
    assert_str(l.session, "0197");
    assert_str(lineage_text(&l, STR("key"), mem), "ab\"c");
    assert_null(lineage_text(&l, STR("calls"), mem).p);
    assert_null(lineage_text(&l, STR("other"), mem).p);
    assert_int_equal(lineage_number(&l, STR("calls"), -1), 12);
    assert_int_equal(lineage_number(&l, STR("other"), -1), -1);
    assert_str(lineage_write(LINEAGE_FORK, STR("0197"), STR_NONE, mem),
               "{\"kind\":\"fork\",\"session\":\"0197\"}");
    assert_str(lineage_write(LINEAGE_REPLAY, STR("0197"), STR("{ }"), mem),
               "{\"kind\":\"replay\",\"session\":\"0197\"}");
    arena_free(mem);
}

TEST(test_lineage_is__tells_the_kinds_apart)
{
    assert_true(lineage_is(STR("{\"kind\":\"fork\",\"session\":\"a\"}"), LINEAGE_FORK));
    assert_false(lineage_is(STR("{\"kind\":\"fork\",\"session\":\"a\"}"), LINEAGE_IMPORT));
    assert_false(lineage_is(STR_NONE, LINEAGE_FORK));
}

TEST(test_lineage_read__refuses_other_texts)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{\"kind\":\"fork\"}",
        "{\"session\":\"a\"}",
        "{\"kind\":\"clone\",\"session\":\"a\"}",
        "{\"kind\":\"fork\",\"session\":1}",
        "{\"kind\":\"fork\",\"session\":\"\"}",
    };
    struct arena *mem = arena_new(1 << 20);
    struct lineage l;

    for (size_t i = 0; i < countof(bad); i++)
        assert_false(lineage_read(str_of(bad[i]), mem, &l));
    assert_false(lineage_read(STR_NONE, mem, &l));
    arena_free(mem);
}

TEST(test_lineage_write__has_a_limit)
{
    struct arena *mem = arena_new(1 << 20);
    size_t rest = LINEAGE_BYTES_MAX - strlen("{\"kind\":\"fork\",\"session\":\"a\",\"x\":\"\"}");
    char *more = arena_alloc(mem, LINEAGE_BYTES_MAX + 16);

    snprintf(more, LINEAGE_BYTES_MAX, "{\"x\":\"%0*d\"}", (int)rest, 0);
    assert_int_equal(lineage_write(LINEAGE_FORK, STR("a"), str_of(more), mem).n, LINEAGE_BYTES_MAX);
    snprintf(more, LINEAGE_BYTES_MAX, "{\"x\":\"%0*d\"}", (int)rest + 1, 0);
    assert_null(lineage_write(LINEAGE_FORK, STR("a"), str_of(more), mem).p);
    arena_free(mem);
}
