/* SPDX-License-Identifier: Apache-2.0 */
/* The known servers and tools, for commands, as /api/v1/servers and /api/v1/tools list them.  An unknown name is an error with the nearest known name, never
 * an empty answer. */
#ifndef HOLDFAST_CLI_INVENTORY_H
#define HOLDFAST_CLI_INVENTORY_H

#include "cli/cli.h"
#include "cli/source.h"
#include "json/read.h"

struct inventory {
    struct cli *cli;
    const struct source *from;
};

/* `server` is an object of /api/v1/servers.  Its state is "not running" when no Holdfast runs. */
typedef bool inventory_server_fn(void *arg, struct str name, const struct js_doc *doc,
                                 const struct js_node *server, struct error *err);
must_check bool inventory_each_server(const struct inventory *i, inventory_server_fn *fn, void *arg,
                                      struct error *err);
/* Every tool on record, or the tools of one server.  `tool` is an object of /api/v1/tools. */
typedef bool inventory_tool_fn(void *arg, const struct js_doc *doc, const struct js_node *tool,
                               struct error *err);
must_check bool inventory_each_tool(const struct inventory *i, struct str server,
                                    inventory_tool_fn *fn, void *arg, struct error *err);
/* ERR_NOT_FOUND, with the nearest name, for a server that is neither configured nor on record. */
must_check bool inventory_has_server(const struct inventory *i, struct str name, struct error *err);
/* The same for a tool's own name, on any server. */
must_check bool inventory_has_tool(const struct inventory *i, struct str name, struct error *err);
/* *ret_fits: whether the pattern (* stands for any rest) fits a known server.  If not, *ret_near is
 * the nearest name, or NULL. */
must_check bool inventory_fits_server(const struct inventory *i, struct str pattern, bool *ret_fits,
                                      const char **ret_near, struct error *err);

#endif
