/* SPDX-License-Identifier: Apache-2.0 */
/* Reads servers from text in the forms that MCP clients use and that people copy from web pages. */
#ifndef HOLDFAST_CONFIG_SNIPPET_H
#define HOLDFAST_CONFIG_SNIPPET_H

#include "base/arena.h"
#include "base/error.h"

struct snippet_server {
    struct str name; /* absent: the text was one entry without a name */
    struct str json; /* an entry of "mcpServers" of Holdfast */
    /* What was left out or changed, for people, safe for a terminal; absent: nothing. */
    struct str note;
};

/* Accepts {"mcpServers": {…}}, {"servers": {…}} of VS Code (also inside "mcp"), {"NAME": {…}},
 * one entry {"command": …} or {"url": …}, the members without the outer braces, and Codex TOML
 * with [mcp_servers.NAME].  Everything that is returned is in `mem`.  A document without servers
 * gives *ret_n == 0; text that is neither JSON nor TOML gives ERR_CONFIG with line and column. */
must_check bool snippet_read(struct str text, struct arena *mem, struct snippet_server **ret,
                             size_t *ret_n, struct error *err);

#endif
