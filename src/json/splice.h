/* SPDX-License-Identifier: Apache-2.0 */
/* Edits on a parsed document that leave every other byte unchanged: replace a value, remove
 * members, add a member or an element at the end. */
#ifndef HOLDFAST_JSON_SPLICE_H
#define HOLDFAST_JSON_SPLICE_H

#include "base/buf.h"
#include "json/read.h"

#define JS_SPLICE_OWN 12

/* Must not be copied.  A peer chooses how many members are removed, so edits may move to the heap;
 * js_splice_write() frees them. */
struct js_splice {
    const struct js_doc *doc;
    unsigned n, room;
    struct js_splice_edit {
        uint32_t start, end; /* span of the text, replaced by `with` */
        struct str with;     /* borrowed until written */
        bool comma;          /* put "," before `with` (the container was not empty) */
    } * edits, own[JS_SPLICE_OWN];
};

/* Each splice is written exactly once. */
void js_splice_init(struct js_splice *s, const struct js_doc *doc);
void js_splice_replace(struct js_splice *s, const struct js_node *value, struct str with);
/* Removes the members for which drop() returns true, given the raw key (quotes included).  Returns
 * the number of remaining members.  Call it once per object, before adding to it. */
unsigned js_splice_remove(struct js_splice *s, const struct js_node *object,
                          bool (*drop)(void *arg, struct str raw_key), void *arg);
/* Returns the number of members that would remain. */
unsigned js_splice_stay(const struct js_doc *doc, const struct js_node *object,
                        bool (*drop)(void *arg, struct str raw_key), void *arg);
/* `member` is `"key":value`, `element` a value; added last.  Several additions to one container
 * keep their order. */
void js_splice_member(struct js_splice *s, const struct js_node *object, struct str member);
void js_splice_element(struct js_splice *s, const struct js_node *array, struct str element);
/* Writes `value` with the edits inside it.  Edits may be given in any order but must not
 * overlap. */
void js_splice_write(struct js_splice *s, const struct js_node *value, struct buf *out);

#endif
