/* SPDX-License-Identifier: Apache-2.0 */
/* Cursors: they come back to whoever got them, for what was asked, unchanged, or not at all. */
#include "api/cursor.h"

#include "test.h"

static const struct principal anna = {.tenant = {"t", 1}, .owner = {"anna", 4}};
static const struct principal bert = {.tenant = {"t", 1}, .owner = {"bert", 4}};
static const struct principal boss = {
    .tenant = {"t", 1}, .owner = {"boss", 4}, .tenant_wide = true};
static const struct principal other = {.tenant = {"u", 1}, .owner = {"anna", 4}};

TEST(test_cursor__comes_back_to_who_got_it)
{
    struct arena *mem = arena_new(1 << 20);
    struct str cursor = cursor_make(&anna, STR("list"), STR("row-1"), mem), row = STR_NONE;

    assert_true(cursor_read(cursor, &anna, STR("list"), mem, &row));
    assert_true(str_eq(row, STR("row-1")));
    assert_false(cursor_read(cursor, &bert, STR("list"), mem, &row));
    assert_false(cursor_read(cursor, &boss, STR("list"), mem, &row));
    assert_false(cursor_read(cursor, &other, STR("list"), mem, &row));
    assert_false(cursor_read(cursor, &anna, STR("other list"), mem, &row));
    arena_free(mem);
}

TEST(test_cursor__no_changed_character_is_taken)
{
    struct arena *mem = arena_new(1 << 20);
    struct str cursor = cursor_make(&anna, STR("list"), STR("row-1"), mem), row;

    for (size_t i = 0; i < cursor.n; i++) {
        struct str copy = arena_dup(mem, cursor);
        ((char *)copy.p)[i] = cursor.p[i] == 'A' ? 'B' : 'A';
        assert_false(cursor_read(copy, &anna, STR("list"), mem, &row));
        assert_false(cursor_read(str_n(cursor.p, i), &anna, STR("list"), mem, &row));
    }
    arena_free(mem);
}

TEST(test_cursor__holds_the_longest_row_and_no_longer_text)
{
    char name[CURSOR_ROW_MAX], text[3 * CURSOR_ROW_MAX];
    struct arena *mem = arena_new(1 << 20);
    struct str row;

    memset(name, 'r', sizeof(name));
    memset(text, 'A', sizeof(text));
    struct str cursor = cursor_make(&anna, STR("list"), str_n(name, sizeof(name)), mem);
    assert_true(cursor_read(cursor, &anna, STR("list"), mem, &row));
    assert_false(cursor_read(str_n(text, sizeof(text)), &anna, STR("list"), mem, &row));
    arena_free(mem);
}
