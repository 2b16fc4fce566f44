/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of mirrored arguments: `x-mcp-header: "Region"` on a property of a tool's input
 * schema makes clients send that argument also as Mcp-Param-Region. */
#ifndef HOLDFAST_MCP_MIRROR_H
#define HOLDFAST_MCP_MIRROR_H

#include "json/read.h"

#define MCP_MIRROR_MAX 32       /* declarations of one tool */
#define MCP_MIRROR_NAME_MAX 128 /* bytes of one name */

/* True for a name that may follow "Mcp-Param-": a token of RFC 9110, of bounded length. */
bool mcp_mirror_is_name(struct str name);
/* Checks that clients may act on every declaration in this input schema: it is on a string, integer
 * or boolean property, reached through `properties` alone, well named, and not used twice.  NULL
 * when all are valid (also without any); else the reason, a literal for a log line. */
const char *mcp_mirror_fault(const struct js_doc *doc, const struct js_node *schema,
                             struct arena *mem);

#endif
