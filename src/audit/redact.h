/* SPDX-License-Identifier: Apache-2.0 */
/* Redaction for the audit and the log: bytes in, bytes out; a body always becomes valid JSON.
 *
 * Secrets are found in three ways.  By value: a known value (audit/known.h) is replaced by its
 * name.  By shape: a token that matches the table in redact_table.c is replaced anywhere in the
 * text.  By name: the value of a name in that table becomes "[redacted]": the value of a member,
 * also inside JSON quoted into a string; {"name": NAME, "value": …}; ["--NAME", …]; NAME=….  Every
 * other byte is kept unchanged.  docs/generated/redaction.md lists the tables.
 *
 * A body longer than the cap becomes {"holdfast/cut":{"length":N,"kept":M},"head":"…"}: N is the
 * original length, and `head` holds the first M bytes after redaction as text.  Cutting the longest
 * strings instead would keep the structure, but needs the whole body parsed; a plain prefix costs
 * the same for any body. */
#ifndef HOLDFAST_AUDIT_REDACT_H
#define HOLDFAST_AUDIT_REDACT_H

#include "audit/known.h"
#include "base/str.h"

struct buf;

/* Scratch memory, reused from body to body; one thread at a time.  It uses the published values. */
struct redactor;
struct redactor *redactor_new(void) must_check;
void redactor_free(struct redactor *r);
/* Bodies are parts of parsed messages, so an unchanged body is valid JSON and is not parsed
 * again. */
void redactor_trust_json(struct redactor *r);
void redactor_be_narrow(struct redactor *r); /* tests: without wide registers */

/* Below this cap the "holdfast/cut" wrapper does not fit, so nothing is stored. */
#define REDACT_LEAST_CAP 128
/* Bytes of a name that are read, half of them on either side of the matched word. */
#define REDACT_KEY_MAX 512

/* Returns the bytes to store for `body`, at most `cap`: `body` itself if nothing changed, else
 * bytes that belong to the redactor and live until its next use.  `own`: the request's secrets in
 * addition to the published values, or NULL.  `secrets` false replaces those of `own` alone, for a
 * record that is complete.  An absent body stays absent. */
struct str redact_body(struct redactor *r, const struct own_secrets *own, struct str body,
                       bool secrets, size_t cap);
/* The same for a text that is not JSON; the text is not cut. */
struct str redact_text(struct redactor *r, const struct own_secrets *own, struct str text);
/* For single lines, on any thread.  `own` as for redact_body().  Returns false when nothing was replaced; then nothing was added
 * to `out`. */
bool redact_line(const struct own_secrets *own, struct str text, struct buf *out);
/* The same for tool definitions, where names such as "password" denote parameters and no secret
 * follows.  `shapes` false: only known values are replaced. */
bool redact_unnamed(struct str text, bool shapes, struct buf *out);
/* Redacts a line into ret[size], which may be the same memory. */
void redact_cut(const struct own_secrets *own, const char *text, char *ret, size_t size);

/* The reference page, as Markdown. */
void redact_write_reference(struct buf *out);

#endif
