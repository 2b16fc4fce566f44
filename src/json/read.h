/* SPDX-License-Identifier: Apache-2.0 */
/* Strict JSON reader (RFC 8259, UTF-8 checked, lone surrogate escapes are errors) that builds a
 * tape of spans over the original bytes.  Nothing is copied or converted until requested, so any
 * part of a message can be forwarded byte for byte (key order, 2^53+, escapes, white space).
 *
 * The tape is an array of nodes in document order.  Members of an object are a key node (a string)
 * followed by its value node; `next` of a node is the index just past everything inside it. */
#ifndef HOLDFAST_JSON_READ_H
#define HOLDFAST_JSON_READ_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

enum js_type { JS_NULL, JS_FALSE, JS_TRUE, JS_NUMBER, JS_STRING, JS_ARRAY, JS_OBJECT };

struct js_node {
    uint32_t start, end; /* [start, end) in text; quotes and brackets included */
    uint32_t next;       /* index of the node after this one and its contents */
    uint8_t type;        /* enum js_type */
    uint8_t escaped;     /* a string with at least one backslash */
};

struct js_doc {
    struct str text;       /* borrowed */
    struct js_node *nodes; /* [0] is the root */
    uint32_t n;
};

enum js_flags {
    JS_NO_DUPLICATES = 1, /* two keys in one object that are equal after unescaping are an error */
    JS_RELAXED = 2,       /* // and / * * / comments and trailing commas: configuration only */
};
struct js_limits {
    unsigned depth; /* 64 */
    uint32_t keys;  /* 10,000 keys in one object */
    uint32_t nodes; /* whole document */
    unsigned flags; /* enum js_flags */
};
extern const struct js_limits js_limits_request;  /* depth 64, 10k keys, no duplicates */
extern const struct js_limits js_limits_upstream; /* same, duplicates tolerated */
extern const struct js_limits js_limits_config;   /* relaxed, no duplicates */

/* Position and reason of a failed parse, for messages that name line and column (both from 1). */
struct js_fault {
    size_t offset;
    unsigned line, column;
    bool duplicate;     /* the fault is a duplicate key: -32600 rather than -32700 */
    bool limit;         /* depth, keys or nodes exceeded: likewise */
    const char *reason; /* a literal */
};

/* Nodes are allocated in `mem`.  On failure *ret_doc is untouched and, when not NULL, *ret_fault
 * is filled. */
must_check bool js_parse(struct str text, const struct js_limits *limits, struct arena *mem,
                         struct js_doc *ret_doc, struct js_fault *ret_fault);

static inline const struct js_node *js_root(const struct js_doc *d)
{
    return &d->nodes[0];
}
static inline struct str js_raw(const struct js_doc *d, const struct js_node *v)
{
    return (struct str){d->text.p + v->start, v->end - v->start};
}
/* First element of an array, or first *key* of an object; NULL when empty. */
const struct js_node *js_first(const struct js_doc *d, const struct js_node *container);
/* Next element, or next key given the current *value*; NULL at the end of `container`. */
const struct js_node *js_next(const struct js_doc *d, const struct js_node *container,
                              const struct js_node *current);
static inline const struct js_node *js_value_of(const struct js_node *key)
{
    return key + 1;
}
/* The value under `key` (compared after unescaping), or NULL when `object` is NULL, not an object,
 * or has no such key. */
const struct js_node *js_get(const struct js_doc *d, const struct js_node *object, struct str key);
/* Returns the key node of that member, for splicing; NULL likewise. */
const struct js_node *js_get_key(const struct js_doc *d, const struct js_node *object,
                                 struct str key);
/* Compares a string node with bytes, after unescaping. */
bool js_is(const struct js_doc *d, const struct js_node *v, struct str text);
/* Returns the unescaped text of a string node: a view into the document if nothing is escaped, else
 * a copy in `mem`.  Absent when v is NULL or not a string. */
struct str js_text(const struct js_doc *d, const struct js_node *v, struct arena *mem);
must_check bool js_to_i64(const struct js_doc *d, const struct js_node *v, int64_t *ret);
static inline bool js_type_is(const struct js_node *v, enum js_type type)
{
    return v && v->type == (uint8_t)type;
}
/* Line and column of an offset, from 1. */
void js_position(struct str text, size_t offset, unsigned *ret_line, unsigned *ret_column);
const char *js_type_name(enum js_type type); /* "an object", "a string", … */

#endif
