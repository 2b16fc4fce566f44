/* SPDX-License-Identifier: Apache-2.0 */
/* Takes one table out of a TOML file and leaves every other line as it was. */
#ifndef HOLDFAST_CONFIG_TOML_EDIT_H
#define HOLDFAST_CONFIG_TOML_EDIT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* Removes [table.name] and the tables below it.  Comments that follow its last key stay.
 * *ret_found is false if there is no such table; `out` then receives `text`.
 *
 * The result is parsed and compared with `text`: it has everything but that table.  ERR_CONFLICT if
 * the table has a form that cannot be taken out line by line (an inline table, dotted keys);
 * ERR_CONFIG, with line and column, if the text is not TOML.  `out` is unchanged then. */
must_check bool toml_edit_remove(struct str text, struct str table, struct str name,
                                 struct arena *mem, struct buf *out, bool *ret_found,
                                 struct error *err);

#endif
