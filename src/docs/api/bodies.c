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
     .help = "Its markup, byte by byte."},
    {.name = "from",
     .kind = JS_BIND_INT,
     .max = VAULT_FILE_MAX,
     .offset = offsetof(struct decide_item, from),
     .help = "Where it began when it was listed; found again when it has moved."},
    {.name = "context_before",
     .kind = JS_BIND_CUSTOM,
     .read = read_any_text,
     .data = &kind_text,
     .offset = offsetof(struct decide_item, before),
     .help = "What stood before it: tells it from others of the same markup."},
    {.name = "context_after",
     .kind = JS_BIND_CUSTOM,
     .read = read_any_text,
     .data = &kind_text,
     .offset = offsetof(struct decide_item, after),
     .help = "What stood after it."},
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
        .max = 500, .offset = offsetof(struct TYPE, reason), .help = "Why, for the history."       \
    }
#define FIELD_AUTHOR(TYPE)                                                                         \
    {                                                                                              \
        .name = "author", .kind = JS_BIND_CUSTOM, .read = body_read_text, .data = &kind_text,      \
        .max = 80, .offset = offsetof(struct TYPE, author),                                        \
        .help = "Your name, for requests without a credential; else its name counts."              \
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
     .help = "What becomes of them. A comment goes either way; a reply adds one."},
    {.name = "suggestions",
     .kind = JS_BIND_CUSTOM,
     .read = read_items,
     .data = &kind_items,
     .required = true,
     .help = "Which, as they were listed."},
    {.name = "text",
     .kind = JS_BIND_CUSTOM,
     .read = read_any_text,
     .data = &kind_text,
     .offset = offsetof(struct apply_body, text),
     .help = "With accept and one suggestion: what to write instead of its text. With reply: the "
             "comment."},
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
     .help = "The one to go back to."},
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
     .help = "Where it goes, in the same folder: Folder/Path.md."},
    FIELD_REASON(move_body),
    FIELD_AUTHOR(move_body),
    {0},
};
const struct api_body body_move = {.name = "DocumentMove", .fields = move_fields};
