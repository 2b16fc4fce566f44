/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: aligned, no wider than the terminal, harmless to it. */
#include "test.h"

#include "cli/table.h"

static const struct table_column columns[] = {
    {"NAME", 4, false}, {"N", 0, true}, {"TEXT", 6, false}};

static void print(struct table *t, struct buf *b, const char *name, const char *n, const char *text)
{
    buf_reset(b);
    table_add(t, str_of(name));
    table_add_coloured(t, str_of(n), "31");
    table_add(t, str_of(text));
    table_print(t, b);
}

TEST(test_table__cuts_the_widest_columns_to_the_terminal)
{
    struct table t;
    struct buf b;
    buf_init(&b, 1 << 16);
    table_init(&t, columns, 3, 20, false);
    print(&t, &b, "abcdef", "1", "a text that is long");
    assert_str(buf_str(&b), "NAME    N  TEXT\nabcdef  1  a text t…\n");
    print(&t, &b, "x", "2", ""); /* stays aligned, without a second head */
    assert_str(buf_str(&b), "x       2  -\n");
    table_release(&t);
    buf_release(&b);
}

TEST(test_table__writes_everything_without_a_terminal_and_escapes_it)
{
    struct table t;
    struct buf b;
    buf_init(&b, 1 << 16);
    table_init(&t, columns, 3, 0, false);
    print(&t, &b, "\xe8\xaf\xbb", "1", "a\x1b[31m text that is long\r\n");
    assert_non_null(strstr(b.p, "\xe8\xaf\xbb    1  a"));
    assert_non_null(strstr(b.p, "that is long"));
    assert_null(memchr(b.p, 27, b.n));
    table_release(&t);
    table_init(&t, columns, 3, 0, true);
    print(&t, &b, "x", "1", "y");
    assert_non_null(strstr(b.p, "\033[31m1\033[0m"));
    table_release(&t);
    buf_release(&b);
}

TEST(test_text_wrap__breaks_at_blanks_before_column_80)
{
    struct buf b;
    buf_init(&b, 1 << 16);
    text_wrap(&b, 4, STR("one two"), 4);
    assert_str(buf_str(&b), "one two\n");
    buf_reset(&b);
    /* 74 columns are taken: "abcde" ends in column 79, "abcdef" does not fit. */
    text_wrap(&b, 72, STR("x abcde"), 2);
    assert_str(buf_str(&b), "x abcde\n");
    buf_reset(&b);
    text_wrap(&b, 72, STR("x abcdef"), 2);
    assert_str(buf_str(&b), "x\n  abcdef\n");
    buf_reset(&b);
    text_wrap(&b, 0, STR("a\x1b[31m"), 0);
    assert_null(memchr(b.p, 27, b.n));
    buf_release(&b);
}
