/* SPDX-License-Identifier: Apache-2.0 */
/* What the audit and the log keep of a text: bytes in, bytes out; of a body always valid JSON.
 *
 * Secrets are found three ways.  By value: those that are known (audit/known.h) are replaced by
 * their name.  By shape: tokens of the table in redact_table.c are replaced wherever they stand. By
 * name: what belongs to a name of that table becomes "[redacted]": the value of a member, also
 * inside JSON that was quoted into a string; {"name": NAME, "value": …}; ["--NAME", …]; NAME=….
 * Every other byte is kept as it came.  docs/generated/redaction.md lists the tables.
 *
 * A body longer than the cap becomes {"holdfast/cut":{"length":N,"kept":M},"head":"…"}: N bytes
 * came, the first M of them (after redaction) stand in `head` as text.  Cutting the longest strings
 * instead would keep the shape but needs the whole body parsed; a plain prefix costs the same for
 * any body. */
#ifndef HOLDFAST_AUDIT_REDACT_H
#define HOLDFAST_AUDIT_REDACT_H

#include "audit/known.h"
#include "base/str.h"

struct buf;

/* Scratch memory kept from body to body; one thread at a time.  It goes by the published values. */
struct redactor;
struct redactor *redactor_new(void) must_check;
void redactor_free(struct redactor *r);
/* Bodies are parts of messages that were parsed: what is kept as it came is JSON without asking. */
void redactor_trust_json(struct redactor *r);
void redactor_be_narrow(struct redactor *r); /* tests: without wide registers */

/* Under this cap even the words that say "cut" do not fit, so nothing is kept. */
#define REDACT_LEAST_CAP 128
/* Bytes of a name that are read, half of them to either side of the word that stands out. */
#define REDACT_KEY_MAX 512

/* The bytes to store for `body`, at most `cap`: `body` itself when nothing had to change, else
 * bytes of the redactor's that live until its next use.  `own`: the request's secrets beside the
 * published ones, or NULL.  `secrets` false only cuts.  Absent stays absent. */
struct str redact_body(struct redactor *r, const struct own_secrets *own, struct str body,
                       bool secrets, size_t cap);
/* The same for a text that is not JSON and not cut. */
struct str redact_text(struct redactor *r, const struct own_secrets *own, struct str text);
/* For single lines, on any thread.  false: there is nothing to replace, and nothing was added. */
bool redact_line(const struct known *known, struct str text, struct buf *out);
/* The same for texts in which names such as "password" stand for parameters and have no secret
 * behind them: tool definitions.  `shapes` false: only known values are replaced. */
bool redact_unnamed(struct str text, bool shapes, struct buf *out);
/* A line into ret[size], which may be the same memory. */
void redact_cut(const struct known *known, const char *text, char *ret, size_t size);

/* The reference page, as Markdown. */
void redact_write_reference(struct buf *out);

#endif
