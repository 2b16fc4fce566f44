/* SPDX-License-Identifier: Apache-2.0 */
/* What a credential is limited to, as it is stored and as it is asked about.
 *
 *   {"servers":["files"],"tools":["files__read*"],"folders":["Lens"],"review":true,"read_only":true,
 *    "limits":{"requests":"600/m","calls":8}}
 *
 * A list that is absent or empty limits nothing; in names and patterns * stands for any run of
 * characters.  What a scope hides looks like what does not exist. */
#ifndef HOLDFAST_IDENTITY_SCOPES_H
#define HOLDFAST_IDENTITY_SCOPES_H

#include "base/arena.h"
#include "base/error.h"
#include "base/principal.h"

#define SCOPES_MAX_ITEMS 64 /* of each list */
#define SCOPES_MAX_NAME 256 /* bytes of one */
#define SCOPES_MAX_TEXT 65536

/* The scopes of a stored credential, in mem; NULL for an absent text: everything. */
must_check bool scopes_parse(struct str json, struct arena *mem, const struct scopes **ret,
                             struct error *err);
/* As they are stored; `s` keeps the limits above. */
struct str scopes_write(const struct scopes *s, struct arena *mem);
must_check bool scopes_check(const struct scopes *s, struct error *err);
/* Do they leave a key less than its user may do?  `review` and limits do not. */
bool scopes_narrow(const struct scopes *s); /* NULL: no */
bool scope_matches(struct str pattern, struct str name);
/* Can this pattern of server__tool be the name of a tool of this server? */
bool scope_reaches(struct str pattern, struct str server);

/* What is left for a principal. */
bool principal_may_use_server(const struct principal *who, struct str server);
bool principal_may_use_tool(const struct principal *who, struct str server, struct str tool);
bool principal_may_use_folder(const struct principal *who, struct str folder);
/* Whether any tool may be hidden from it; where not, nobody needs to look at each. */
bool principal_limits_tools(const struct principal *who);

#endif
