/* SPDX-License-Identifier: Apache-2.0 */
/* begin / add / end writer onto a buf.  It writes the commas; raw bytes are written unchanged. */
#ifndef HOLDFAST_JSON_WRITE_H
#define HOLDFAST_JSON_WRITE_H

#include "base/buf.h"

struct js_writer {
    struct buf *out;
    unsigned depth;
    uint64_t first; /* bit per depth: nothing written yet at this level */
    bool pretty;    /* two-space indentation, for people */
    bool after_key; /* internal: the value of a key is due */
};

void js_begin(struct js_writer *w, struct buf *out);
void js_object(struct js_writer *w);
void js_object_end(struct js_writer *w);
void js_array(struct js_writer *w);
void js_array_end(struct js_writer *w);
void js_key(struct js_writer *w, struct str key);
void js_string(struct js_writer *w, struct str s); /* escapes; invalid UTF-8 becomes U+FFFD */
void js_int(struct js_writer *w, int64_t v);
void js_bool(struct js_writer *w, bool v);
void js_null(struct js_writer *w);
void js_raw_value(struct js_writer *w, struct str json); /* already JSON */
/* key + value in one call; an absent str writes nothing. */
void js_kv_string(struct js_writer *w, const char *key, struct str s);
void js_kv_int(struct js_writer *w, const char *key, int64_t v);
void js_kv_bool(struct js_writer *w, const char *key, bool v);
void js_kv_time(struct js_writer *w, const char *key, int64_t wall_ms); /* 0 writes nothing */
void js_kv_raw(struct js_writer *w, const char *key, struct str json);
/* Appends "…" with quotes, without a writer. */
void js_quote(struct buf *out, struct str s);
/* Turns valid JSON into one line, in place: CR and LF occur only between tokens, where a blank is
 * equivalent.  Required for every peer that frames messages by lines; otherwise one message could
 * contain another. */
void js_flatten(char *json, size_t n);

#endif
