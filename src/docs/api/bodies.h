/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies of the operations on documents, each with one table of members (api/bodies.h). */
#ifndef HOLDFAST_DOCS_API_BODIES_H
#define HOLDFAST_DOCS_API_BODIES_H

#include "api/bodies.h"
#include "docs/decide.h"

/* Write a document; restore a revision; move a document; decide about suggestions. */
struct document_body {
    struct str content, reason, author;
};
struct restore_body {
    int64_t revision;
    struct str reason, author;
};
struct move_body {
    struct str new_path, reason, author;
};
struct apply_body {
    struct str path, text, reason, author;
    enum decide_action action;
    struct decide_item *items;
    size_t n_items;
};

extern const struct api_body body_document, body_restore, body_move, body_apply, body_decide_item;

#endif
