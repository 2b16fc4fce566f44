/* SPDX-License-Identifier: Apache-2.0 */
/* What the audit keeps of a body: bytes in, bytes out, always valid JSON.
 *
 * Secrets are found two ways.  By key: the value of a member whose name speaks of a password,
 * secret, token, authorization, API key, cookie, credential, private key or passthrough becomes
 * "[redacted]"; so does such a member inside JSON that was itself quoted into a string, as tools
 * like to return it. By shape: bearer tokens, sk-…, ghp_…, JWTs and PEM blocks are replaced
 * wherever they stand.  Every other byte is kept as it came.
 *
 * A body longer than the cap becomes {"holdfast/cut":{"length":N,"kept":M},"head":"…"}: N bytes
 * came, the first M of them (after redaction) stand in `head` as text.  Cutting the longest strings
 * instead would keep the shape but needs the whole body parsed; a plain prefix costs the same for
 * any body. */
#ifndef HOLDFAST_AUDIT_REDACT_H
#define HOLDFAST_AUDIT_REDACT_H

#include "base/str.h"

/* Scratch memory kept from body to body; one thread at a time. */
struct redactor;
struct redactor *redactor_new(void) must_check;
void redactor_free(struct redactor *r);
/* Bodies are parts of messages that were parsed: what is kept as it came is JSON without asking. */
void redactor_trust_json(struct redactor *r);

/* Under this cap even the words that say "cut" do not fit, so nothing is kept. */
#define REDACT_LEAST_CAP 128
/* A key longer than this, without separators, is taken for a secret one unread. */
#define REDACT_KEY_MAX 512

/* The bytes to store for `body`, at most `cap`: `body` itself when nothing had to change, else
 * bytes of the redactor's that live until its next use.  `secrets` false only cuts.  Absent stays
 * absent. */
struct str redact_body(struct redactor *r, struct str body, bool secrets, size_t cap);

#endif
