/* SPDX-License-Identifier: Apache-2.0 */
/* Edits on a parsed document that leave every other byte as it was: replace a value, take members
 * out, add a member or an element at the end. */
#ifndef HOLDFAST_JSON_SPLICE_H
#define HOLDFAST_JSON_SPLICE_H

#include "base/buf.h"
#include "json/read.h"

#define JS_SPLICE_OWN 12

/* Not to be copied.  How many members are taken out is the peer's choice, so edits may move to the
 * heap; js_splice_write() gives that back. */
struct js_splice {
    const struct js_doc *doc;
    unsigned n, room;
    struct js_splice_edit {
        uint32_t start, end; /* of the text: replaced by `with` */
        struct str with;     /* borrowed until written */
        bool comma;          /* put "," before `with` (the container was not empty) */
    } * edits, own[JS_SPLICE_OWN];
};

/* Each splice is written once. */
void js_splice_init(struct js_splice *s, const struct js_doc *doc);
void js_splice_replace(struct js_splice *s, const struct js_node *value, struct str with);
/* Takes out the members whose raw key (quotes included) `drop` wants gone; returns how many stay.
 * Once per object, before anything is added to it. */
unsigned js_splice_remove(struct js_splice *s, const struct js_node *object,
                          bool (*drop)(void *arg, struct str raw_key), void *arg);
/* How many would stay. */
unsigned js_splice_stay(const struct js_doc *doc, const struct js_node *object,
                        bool (*drop)(void *arg, struct str raw_key), void *arg);
/* `member` is `"key":value`, `element` a value; added last.  Several to one container keep their
 * order. */
void js_splice_member(struct js_splice *s, const struct js_node *object, struct str member);
void js_splice_element(struct js_splice *s, const struct js_node *array, struct str element);
/* Writes `value` with the edits that fall inside it; edits may be given in any order but must not
 * overlap. */
void js_splice_write(struct js_splice *s, const struct js_node *value, struct buf *out);

#endif
