/* SPDX-License-Identifier: Apache-2.0 */
/* The servers and tools there are, as a command learns of them: from the Holdfast that runs, else
 * from the configuration file and the store.  A name that none of them has is an error with the
 * nearest one that there is, never an empty answer. */
#ifndef HOLDFAST_CLI_INVENTORY_H
#define HOLDFAST_CLI_INVENTORY_H

#include "cli/cli.h"
#include "cli/control.h"
#include "json/read.h"
#include "store/store.h"

struct inventory {
    struct cli *cli;
    struct control *control; /* NULL: no Holdfast runs */
    struct store *store;     /* NULL: one runs, or there is no database yet */
};

/* `server` is an object of /control/status, or NULL when no Holdfast runs. */
typedef bool inventory_server_fn(void *arg, struct str name, const struct js_doc *doc,
                                 const struct js_node *server, struct error *err);
must_check bool inventory_each_server(const struct inventory *i, inventory_server_fn *fn, void *arg,
                                      struct error *err);
/* Every tool on record, or those of one server; `tool` is an object as tools_write() makes it. */
typedef bool inventory_tool_fn(void *arg, const struct js_doc *doc, const struct js_node *tool,
                               struct error *err);
must_check bool inventory_each_tool(const struct inventory *i, struct str server,
                                    inventory_tool_fn *fn, void *arg, struct error *err);
/* The text of a member, in mem; "" when there is none. */
struct str inventory_text(const struct js_doc *doc, const struct js_node *object, const char *name,
                          struct arena *mem);

/* ERR_NOT_FOUND, with the nearest name, for one that is neither configured nor on record. */
must_check bool inventory_has_server(const struct inventory *i, struct str name, struct error *err);
/* The same for a tool's own name, of whichever server. */
must_check bool inventory_has_tool(const struct inventory *i, struct str name, struct error *err);
/* Does the pattern (* for any rest) fit a server there is?  If not, *ret_near (may become NULL) is
 * the nearest. */
must_check bool inventory_fits_server(const struct inventory *i, struct str pattern, bool *ret_fits,
                                      const char **ret_near, struct error *err);

#endif
