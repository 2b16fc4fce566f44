/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of any kind as JSON on one line, so that they come back exactly: {"json":…} when they are a
 * JSON value without a line break, else {"text":"…"}, else {"base64":"…"}.  Also texts of peers,
 * which may be bytes that are not UTF-8: "…" or {"hex":"…"}. */
#ifndef HOLDFAST_RECORDING_BYTES_H
#define HOLDFAST_RECORDING_BYTES_H

#include "json/read.h"
#include "json/write.h"

/* The member, without the braces around it. */
void recorded_bytes_write(struct js_writer *w, struct str bytes, struct arena *mem);
/* Reads that member of `object`; *ret is absent when there is none.  In mem, or in the document.
 * False: more than one of them, or one that is not what it says. */
must_check bool recorded_bytes_read(const struct js_doc *doc, const struct js_node *object,
                                    struct arena *mem, struct str *ret);

/* An absent text writes nothing. */
void recorded_text_write(struct js_writer *w, const char *name, struct str text, struct arena *mem);
/* *ret is absent when `object` has no such member.  False: it is no text. */
must_check bool recorded_text_read(const struct js_doc *doc, const struct js_node *object,
                                   const char *name, struct arena *mem, struct str *ret);

#endif
