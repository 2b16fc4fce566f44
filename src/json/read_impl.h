/* SPDX-License-Identifier: Apache-2.0 */
/* Shared between the files of the reader; nobody else includes it. */
#ifndef HOLDFAST_JSON_READ_IMPL_H
#define HOLDFAST_JSON_READ_IMPL_H

#include "json/read.h"

/* Decodes the character at *p, which stands inside a string that was checked when it was parsed:
 * writes its 1 to 4 bytes and moves *p past it, escape or not. */
size_t js_unescape_one(const char **p, char out[4]);
/* Unescapes a checked string body; `out` has room for body.n bytes.  Returns the bytes written. */
size_t js_unescape(struct str body, char *out);
/* The bytes between the quotes. */
static inline struct str js_body(const struct js_doc *d, const struct js_node *v)
{
    return (struct str){d->text.p + v->start + 1, v->end - v->start - 2};
}
/* The key node that repeats an earlier one in the object whose first key is `first`, or NULL.
 * Linear, whatever the keys are. */
const struct js_node *js_find_duplicate(const struct js_doc *d, const struct js_node *first,
                                        const struct js_node *end, uint32_t keys);

#endif
