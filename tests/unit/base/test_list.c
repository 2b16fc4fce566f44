/* SPDX-License-Identifier: Apache-2.0 */
/* The intrusive list. */
#include "test.h"

#include "base/list.h"

struct item {
    int value;
    struct list link;
};

TEST(test_list__order_removal_and_moves)
{
    struct list l, other;
    struct item items[4] = {{1}, {2}, {3}, {4}};
    int seen = 0;

    list_init(&l);
    list_init(&other);
    assert_true(list_empty(&l));
    assert_null(list_pop(&l));
    for (int i = 0; i < 3; i++)
        list_push(&l, &items[i].link);
    list_push_front(&l, &items[3].link);
    list_each(&l, it) seen = seen * 10 + list_entry(it, struct item, link)->value;
    assert_int_equal(seen, 4123);
    list_each(&l, it) if (list_entry(it, struct item, link)->value % 2) list_remove(it);
    list_remove(&items[0].link); /* on no list any more: harmless */
    list_move_all(&other, &l);
    assert_true(list_empty(&l));
    assert_int_equal(list_entry(list_pop(&other), struct item, link)->value, 4);
    assert_int_equal(list_entry(list_first(&other), struct item, link)->value, 2);
}
