/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the reader; private to them. */
#ifndef HOLDFAST_JSON_READ_IMPL_H
#define HOLDFAST_JSON_READ_IMPL_H

#include "json/read.h"

/* Decodes the character at *p, inside a string that the parser has checked: writes its 1 to 4 bytes
 * and moves *p past it, escaped or not. */
size_t js_unescape_one(const char **p, char out[4]);
/* Unescapes a checked string body; `out` has room for body.n bytes.  Returns the number of bytes
 * written. */
size_t js_unescape(struct str body, char *out);
/* The bytes between the quotes. */
static inline struct str js_body(const struct js_doc *d, const struct js_node *v)
{
    return (struct str){d->text.p + v->start + 1, v->end - v->start - 2};
}
/* Returns the key node that repeats an earlier key of the object, or NULL.  `first` is the first
 * key.  Linear for any keys. */
const struct js_node *js_find_duplicate(const struct js_doc *d, const struct js_node *first,
                                        const struct js_node *end, uint32_t keys);

#endif
