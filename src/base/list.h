/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive doubly linked list.  A node outside of any list points at itself. */
#ifndef HOLDFAST_BASE_LIST_H
#define HOLDFAST_BASE_LIST_H

#include "base/base.h"

struct list {
    struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}
static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}
static inline void list_push(struct list *l, struct list *node) /* at the tail */
{
    node->prev = l->prev;
    node->next = l;
    l->prev->next = node;
    l->prev = node;
}
static inline void list_push_front(struct list *l, struct list *node)
{
    list_push(l->next, node);
}
static inline void list_remove(struct list *node) /* safe on a node outside of any list */
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}
static inline struct list *list_first(struct list *l) /* NULL when empty */
{
    return list_empty(l) ? NULL : l->next;
}
static inline struct list *list_pop(struct list *l)
{
    struct list *first = list_first(l);
    if (first)
        list_remove(first);
    return first;
}
/* Moves every node of `from` to the tail of `to`. */
static inline void list_move_all(struct list *to, struct list *from)
{
    while (!list_empty(from)) {
        struct list *n = from->next;
        list_remove(n);
        list_push(to, n);
    }
}
#define list_entry(node, type, member) container_of(node, type, member)
/* `it` may be removed inside the loop. */
#define list_each(l, it)                                                                           \
    for (struct list *it = (l)->next, *it##_next = it->next; it != (l);                            \
         it = it##_next, it##_next = it->next)

#endif
