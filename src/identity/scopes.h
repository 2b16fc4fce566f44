/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes: the restrictions of a credential, as stored and as checked.
 *
 *   {"servers":["files"],"tools":["files__read*"],"folders":["Lens"],"review":true,"read_only":true,
 *    "limits":{"requests":"600/m","calls":8}}
 *
 * An absent or empty list restricts nothing.  In names and patterns * matches any run of
 * characters.  A hidden object is reported as nonexistent. */
#ifndef HOLDFAST_IDENTITY_SCOPES_H
#define HOLDFAST_IDENTITY_SCOPES_H

#include "base/arena.h"
#include "base/error.h"
#include "base/principal.h"

#define SCOPES_MAX_ITEMS 64 /* entries of each list */
#define SCOPES_MAX_NAME 256 /* bytes of one entry */
#define SCOPES_MAX_TEXT 65536

/* The scopes of a stored credential, in mem; NULL for an absent text: no restrictions. */
must_check bool scopes_parse(struct str json, struct arena *mem, const struct scopes **ret,
                             struct error *err);
/* The stored form; `s` must respect the maxima above. */
struct str scopes_write(const struct scopes *s, struct arena *mem);
must_check bool scopes_check(const struct scopes *s, struct error *err);
/* Whether they give a key fewer rights than its user has.  `review` and limits do not count. */
bool scopes_narrow(const struct scopes *s); /* NULL: false */
bool scope_matches(struct str pattern, struct str name);
/* Whether this pattern of server__tool can match a tool of this server. */
bool scope_reaches(struct str pattern, struct str server);

/* The remaining rights of a principal. */
bool principal_may_use_server(const struct principal *who, struct str server);
bool principal_may_use_tool(const struct principal *who, struct str server, struct str tool);
bool principal_may_use_folder(const struct principal *who, struct str folder);
/* Whether any tool may be hidden from the principal; if not, callers skip the check of each
 * tool. */
bool principal_limits_tools(const struct principal *who);

#endif
