/* SPDX-License-Identifier: Apache-2.0 */
/* A table of fields binds a JSON object to a struct: one row gives the key, its kind, its offset,
 * its bounds, its default and its help, so that reading, defaults, environment variables and the
 * printed reference all use the same rows.
 *
 *   static const struct js_field fields[] = {
 *       {.name = "listen", .kind = JS_BIND_STRING, .offset = offsetof(struct config, listen),
 *        .default_text = "127.0.0.1:4653", .help = "Address and port to listen on."},
 *       {.name = "origins", .kind = JS_BIND_STRINGS, .offset = offsetof(struct config, origins),
 *        .count_offset = offsetof(struct config, n_origins), .help = "Allowed Origin values."},
 *       {.name = "limits", .kind = JS_BIND_OBJECT, .fields = limit_fields},
 *       {0},
 *   };
 *   struct js_binding b = {.doc = &doc, .mem = mem, .file = STR("holdfast.json"),
 *                          .code = ERR_CONFIG};
 *   js_bind_defaults(fields, config, mem);
 *   return js_bind(&b, js_root(&doc), fields, config, err);
 *
 * Errors name file:line:column when `file` is given, and always the key.  Values are copied into
 * `mem`; the document may be freed afterwards. */
#ifndef HOLDFAST_JSON_BIND_H
#define HOLDFAST_JSON_BIND_H

#include "json/read.h"

enum js_bind_kind {
    JS_BIND_STRING,   /* struct str; NUL bytes are an error */
    JS_BIND_BOOL,     /* bool */
    JS_BIND_INT,      /* int64_t */
    JS_BIND_UINT,     /* unsigned */
    JS_BIND_DURATION, /* int64_t milliseconds; written "30m", or as a number of seconds */
    JS_BIND_SIZE,     /* size_t bytes; written "4MiB", "64KiB", "1GB", or as a number of bytes */
    JS_BIND_ENUM,     /* an enum (int-sized) counted from 0 in the order of `names` */
    JS_BIND_STRINGS,  /* struct str * and, at count_offset, size_t; NUL bytes are an error */
    JS_BIND_OBJECT,   /* an object with rows of its own; their offsets count from `offset` */
    JS_BIND_CUSTOM,   /* `read` reads the value */
    JS_BIND_IGNORED,  /* known and accepted, any type; `seen` still counts it */
};

struct js_binding;
struct js_field;
/* `place` is dest + offset.  Returns js_bind_fault(...) to reject the value. */
typedef bool (*js_bind_read)(const struct js_binding *b, const struct js_field *field,
                             const struct js_node *value, void *place, struct error *err);

struct js_field {
    const char *name; /* NULL ends the table */
    enum js_bind_kind kind;
    size_t offset;
    size_t count_offset;           /* JS_BIND_STRINGS */
    bool required;                 /* absence is an error */
    int64_t min, max;              /* numbers, milliseconds or bytes; max == 0: unbounded above */
    size_t max_items;              /* JS_BIND_STRINGS; 0: 1,000 */
    const char *const *names;      /* JS_BIND_ENUM; NULL-terminated */
    const struct js_field *fields; /* JS_BIND_OBJECT */
    js_bind_read read;             /* JS_BIND_CUSTOM */
    const void *data;              /* for `read` */
    const char *default_text;      /* as js_bind_text() reads it; NULL: no default (zero) */
    const char *help;              /* one or two sentences for the reference */
};

struct js_binding {
    const struct js_doc *doc;
    struct arena *mem;
    struct str file;     /* absent: messages have no position */
    enum err_code code;  /* of errors: ERR_CONFIG, ERR_BAD_PARAMS, … */
    bool unknown_ok;     /* unknown keys are ignored instead of rejected */
    bool null_is_absent; /* `null` counts as not given */
    /* Called for each known key that is present, after it was read; may be NULL. */
    void (*seen)(const struct js_binding *b, const struct js_field *field,
                 const struct js_node *key);
    /* Called for each string value that is bound, unescaped.  It may replace the text (in b->mem)
     * or reject it.  Not called for keys and ignored values.  May be NULL. */
    bool (*text)(const struct js_binding *b, const struct js_node *value, struct str *text,
                 struct error *err);
    /* Whether a fault of this value is passed over: it is not known yet.  The value counts as not
     * given then.  May be NULL. */
    bool (*forgives)(const struct js_binding *b, const struct js_node *at);
    void *user; /* for `read`, `seen`, `text` and `forgives` */
};

/* Reads `object` into `dest`.  Absent fields keep their value in `dest`.  On failure `dest` may be
 * partly filled: discard it. */
must_check bool js_bind(const struct js_binding *b, const struct js_node *object,
                        const struct js_field *fields, void *dest, struct error *err);
/* Sets every default_text, also in nested tables; a bad default is a bug and aborts.  For
 * JS_BIND_CUSTOM fields the default is documentation only. */
void js_bind_defaults(const struct js_field *fields, void *dest, struct arena *mem);
/* Reads one field from plain text, as in an environment variable or flag: lists are split at
 * commas.  JS_BIND_OBJECT and JS_BIND_CUSTOM cannot be given this way. */
must_check bool js_bind_text(const struct js_field *field, struct str text, void *dest,
                             struct arena *mem, enum err_code code, struct error *err);
/* error_set() with "file:line:column: " of `at` before the text.  Returns false, or true without an
 * error if the binding forgives the fault. */
bool js_bind_fault(const struct js_binding *b, const struct js_node *at, struct error *err,
                   const char *fmt, ...) printf_like(4, 5);
/* The message for a failed parse, in the same form. */
bool js_bind_parse_fault(struct str file, const struct js_fault *fault, enum err_code code,
                         struct error *err);
/* "4MiB", "64KiB", "1GiB", "10kB", "2MB", "1GB", "512B", "512"; false on anything else. */
must_check bool js_parse_size(struct str s, uint64_t *ret);
/* The name of a kind in the reference: "a duration such as \"30m\"". */
const char *js_bind_kind_name(enum js_bind_kind kind);

#endif
