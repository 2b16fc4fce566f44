/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of an exported session (docs/export.md):
 *
 *   {"type":"session","format":1,"holdfast":"…","key":"…","session":{…},"chain":"…"}
 *   {"type":"call","number":1,"id":"3.17",…,"params":{…},"result":{…},"chain":"…"}   any number
 *   {"type":"end","calls":N,"signature":"…","chain":"…"}
 *
 * "chain" is the last member of every line: the SHA-256 of the 32 bytes of the line before (zeros
 * before the first) and of the line's bytes up to the comma before "chain".  So an edited, missing
 * or moved line is found at that line.  The signature is of the text
 * "holdfast-session-export 1\nCALLS\nCHAIN", where CHAIN is that of the line before the last. */
#ifndef HOLDFAST_EXPORT_LINE_H
#define HOLDFAST_EXPORT_LINE_H

#include "base/buf.h"
#include "export/export.h"
#include "json/read.h"

#define EXPORT_FORMAT_VERSION 1
/* ,"chain":"<64 hex digits>"} */
#define EXPORT_LINE_TAIL 76

/* Ends the line that begins at `from`: writes "chain", the closing brace and a newline. */
void export_line_end(struct export_chain *chain, struct buf *out, size_t from);
/* The text that is signed; ret has room for EXPORT_SIGNED_TEXT bytes. */
#define EXPORT_SIGNED_TEXT 128
struct str export_signed_text(const struct export_chain *chain, int64_t calls,
                              char ret[EXPORT_SIGNED_TEXT]);

/* The line of a call up to the comma before "chain". */
void export_write_call(struct buf *out, const struct recorded_call *call, struct arena *mem);
/* The members of such a line; false: one of them is not what it should be.  Members that are missing
 * or too many are not noticed; a caller compares the line with what export_write_call() makes of
 * *ret.  Spans are in mem, or in the document. */
must_check bool export_parse_call(const struct js_doc *doc, struct arena *mem,
                                  struct recorded_call *ret);

#endif
