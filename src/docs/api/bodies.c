/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies of the operations on documents. */
#include "docs/api/bodies.h"

#include <stddef.h>

static const char *const actions[] = {"accept", "reject", "reply", NULL};
static const struct api_kind kind_text = {.type = "string"},
                             kind_action = {.type = "string", .names = actions};

/* A text of at least `min` bytes.  There is no upper limit here: the document has its own. */
static bool read_any_text(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *value, void *place, struct error *err)
{
    struct str text = js_text(b->doc, value, b->mem);

    if (!text.p || (int64_t)text.n < f->min)
        return js_bind_fault(b, value, err,
                             f->min ? "\"%s\" must be a string with something in it"
                                    : "\"%s\" must be a string",
                             f->name);
    *(struct str *)place = text;
    return true;
}

static bool read_action(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *value, void *place, struct error *err)
{
    struct str text = js_text(b->doc, value, b->mem);

    for (unsigned i = 0; actions[i]; i++)
        if (text.p && str_eq(text, str_of(actions[i]))) {
            *(enum decide_action *)place = (enum decide_action)i;
            return true;
        }
    return js_bind_fault(b, value, err, "\"%s\" must be accept, reject or reply", f->name);
}

static const struct js_field item_fields[] = {
    {.name = "raw_markup",
     .kind = JS_BIND_CUSTOM,
     .read = read_any_text,
     .data = &kind_text,
     .min = 1,
     .required = true,
     .offset = offsetof(struct decide_item, raw),
     .help = "Markup of the suggestion, byte by byte."},
    {.name = "from",
     .kind = JS_BIND_INT,
     .max = VAULT_FILE_MAX,
     .offset = offsetof(struct decide_item, from),
     .help = "Position at which the markup was listed. It is found again if it has moved."},
    {.name = "context_before",
     .kind = JS_BIND_CUSTOM,
     .read = read_any_text,
     .data = &kind_text,
     .offset = offsetof(struct decide_item, before),
     .help = "Text before the markup, to distinguish it from equal markup."},
    {.name = "context_after",
     .kind = JS_BIND_CUSTOM,
     .read = read_any_text,
     .data = &kind_text,
     .offset = offsetof(struct decide_item, after),
     .help = "Text after the markup."},
    {0},
};
const struct api_body body_decide_item = {
    .name = "SuggestionRef", .fields = item_fields, .unknown_ok = true};

static const struct api_kind kind_items = {
    .type = "array", .items = &body_decide_item, .max_items = DECIDE_ITEMS_MAX};

static bool read_items(const struct js_binding *b, const struct js_field *f,
                       const struct js_node *value, void *place unused_arg, struct error *err)
{
    struct apply_body *body = b->user;
    struct js_binding inner = *b;
    size_t n = 0;

    for (const struct js_node *e = js_first(b->doc, value); value->type == JS_ARRAY && e;
         e = js_next(b->doc, value, e))
        n++;
    if (value->type != JS_ARRAY || n == 0 || n > DECIDE_ITEMS_MAX)
        return js_bind_fault(b, value, err, "\"%s\" must be an array of 1 to %d suggestions",
                             f->name, DECIDE_ITEMS_MAX);
    inner.unknown_ok = true;
    inner.seen = NULL;
    body->items = arena_zalloc(b->mem, n * sizeof(*body->items));
    for (const struct js_node *e = js_first(b->doc, value); e; e = js_next(b->doc, value, e)) {
        struct decide_item *item = &body->items[body->n_items++];
        item->from = -1;
        if (!js_bind(&inner, e, item_fields, item, err))
            return false;
    }
    return true;
}

#define FIELD_REASON(TYPE)                                                                         \
    {                                                                                              \
        .name = "reason", .kind = JS_BIND_CUSTOM, .read = body_read_text, .data = &kind_text,      \
        .max = 500, .offset = offsetof(struct TYPE, reason),                                       \
        .help = "Reason to record in the history."                                                 \
    }
#define FIELD_AUTHOR(TYPE)                                                                         \
    {                                                                                              \
        .name = "author", .kind = JS_BIND_CUSTOM, .read = body_read_text, .data = &kind_text,      \
        .max = 80, .offset = offsetof(struct TYPE, author),                                        \
        .help = "Name of the person. It is used only for requests without a credential."           \
    }

static const struct js_field apply_fields[] = {
    {.name = "path",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .min = 1,
     .max = 2000,
     .required = true,
     .offset = offsetof(struct apply_body, path),
     .help = "The document, as Folder/Path.md."},
    {.name = "action",
     .kind = JS_BIND_CUSTOM,
     .read = read_action,
     .data = &kind_action,
     .required = true,
     .offset = offsetof(struct apply_body, action),
     .help = "The decision. Both accept and reject remove a comment; reply adds one."},
    {.name = "suggestions",
     .kind = JS_BIND_CUSTOM,
     .read = read_items,
     .data = &kind_items,
     .required = true,
     .help = "The suggestions, as they were listed."},
    {.name = "text",
     .kind = JS_BIND_CUSTOM,
     .read = read_any_text,
     .data = &kind_text,
     .offset = offsetof(struct apply_body, text),
     .help = "With accept and one suggestion: the text to write instead of the suggested one. With "
             "reply: the comment."},
    FIELD_REASON(apply_body),
    FIELD_AUTHOR(apply_body),
    {0},
};
const struct api_body body_apply = {.name = "SuggestionsApply", .fields = apply_fields};

static const struct js_field document_fields[] = {
    {.name = "content",
     .kind = JS_BIND_CUSTOM,
     .read = read_any_text,
     .data = &kind_text,
     .required = true,
     .offset = offsetof(struct document_body, content),
     .help = "The whole text, at most 4 MiB."},
    FIELD_REASON(document_body),
    FIELD_AUTHOR(document_body),
    {0},
};
const struct api_body body_document = {.name = "DocumentWrite", .fields = document_fields};

static const struct js_field restore_fields[] = {
    {.name = "revision",
     .kind = JS_BIND_INT,
     .min = 1,
     .max = INT32_MAX,
     .required = true,
     .offset = offsetof(struct restore_body, revision),
     .help = "Revision to restore."},
    FIELD_REASON(restore_body),
    FIELD_AUTHOR(restore_body),
    {0},
};
const struct api_body body_restore = {.name = "DocumentRestore", .fields = restore_fields};

static const struct js_field move_fields[] = {
    {.name = "new_path",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .min = 1,
     .max = 2000,
     .required = true,
     .offset = offsetof(struct move_body, new_path),
     .help = "New path in the same folder, as Folder/Path.md."},
    FIELD_REASON(move_body),
    FIELD_AUTHOR(move_body),
    {0},
};
const struct api_body body_move = {.name = "DocumentMove", .fields = move_fields};
