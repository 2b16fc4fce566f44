/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of mirrored arguments: `x-mcp-header: "Region"` on a property of a tool's input
 * schema makes that argument travel as Mcp-Param-Region too. */
#ifndef HOLDFAST_MCP_MIRROR_H
#define HOLDFAST_MCP_MIRROR_H

#include "json/read.h"

#define MCP_MIRROR_MAX 32       /* declarations of one tool */
#define MCP_MIRROR_NAME_MAX 128 /* bytes of one name */

/* A name that may follow "Mcp-Param-": a token of RFC 9110, of bounded length. */
bool mcp_mirror_is_name(struct str name);
/* Whether every declaration in this input schema is one that clients may act on: on a string,
 * integer or boolean property, reached through `properties` alone, well named, and no two alike.
 * NULL when so (also when there are none), else why not: a literal, for a log line. */
const char *mcp_mirror_fault(const struct js_doc *doc, const struct js_node *schema,
                             struct arena *mem);

#endif
