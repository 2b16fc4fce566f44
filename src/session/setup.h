/* SPDX-License-Identifier: Apache-2.0 */
/* The set-up of a session: what a template (templates/spec.h) or an administrator laid down for it.
 * It is the JSON text of the column `setup`,
 *
 *   {"template":"support@3","profile":"support","audit":"full","audit_body":65536,
 *    "limits":{"requests":"60/m","calls":2},"told":true}
 *
 * and every member is optional.  A set-up only narrows what a caller may do: it never widens
 * rights, and it never stores less of a body than the server's own audit mode asks for. */
#ifndef HOLDFAST_SESSION_SETUP_H
#define HOLDFAST_SESSION_SETUP_H

#include "base/limits.h"
#include "config/config.h"
#include "json/bind.h"

#define SETUP_AUDIT_BODY_MIN ((int64_t)1 << 10)
#define SETUP_AUDIT_BODY_MAX ((int64_t)1 << 20)

enum setup_audit {
    SETUP_AUDIT_REDACTED, /* as each server says */
    SETUP_AUDIT_FULL,     /* complete bodies where a server says redacted */
};
extern const char *const setup_audit_names[]; /* for JS_BIND_ENUM */

struct session_setup {
    struct str from; /* "support@3": the template and its version; absent: none */
    struct str profile;
    enum setup_audit audit;
    size_t audit_body; /* stored bytes of one body with SETUP_AUDIT_FULL; 0: as configured */
    struct limits limits;
    bool is_told; /* the client knows that bodies are recorded completely */
};
/* Texts are in mem.  False: the text is not a set-up that this program has written. */
must_check bool session_setup_parse(struct str json, struct arena *mem, struct session_setup *ret);
/* In mem; absent when the set-up says nothing. */
struct str session_setup_write(const struct session_setup *s, struct arena *mem);

#endif
