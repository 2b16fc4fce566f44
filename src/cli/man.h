/* SPDX-License-Identifier: Apache-2.0 */
/* Manual pages, from the tables of commands, options and operations. */
#ifndef HOLDFAST_CLI_MAN_H
#define HOLDFAST_CLI_MAN_H

#include "cli/cli.h"

/* "holdfast", "holdfast.json" or "holdfast-api"; false: there is no such page. */
must_check bool man_write(const char *page, struct buf *out);

#endif
