/* SPDX-License-Identifier: Apache-2.0 */
/* Reads TOML, the format of Codex's config.toml, and writes it as JSON. */
#ifndef HOLDFAST_CONFIG_TOML_H
#define HOLDFAST_CONFIG_TOML_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#define TOML_MAX ((size_t)4 << 20)

/* Appends the document as one JSON object.  Dates and times become strings.  `mem` holds the tree
 * while it is read.  Strict: keys and tables that are defined twice, control bytes, bytes that are
 * not UTF-8, and inf and nan (which JSON does not have) are errors.  Errors (ERR_CONFIG) name line
 * and column; `out` is unchanged then. */
must_check bool toml_to_json(struct str text, struct arena *mem, struct buf *out,
                             struct error *err);

#endif
