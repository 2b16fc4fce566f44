/* SPDX-License-Identifier: Apache-2.0 */
/* Where a command finds keys and users: the daemon when one runs, so that it acts at once; else the
 * store itself. */
#ifndef HOLDFAST_CLI_SOURCE_H
#define HOLDFAST_CLI_SOURCE_H

#include "cli/cli.h"
#include "cli/control.h"
#include "cli/datadir.h"
#include "store/store.h"

struct source {
    struct control *control; /* NULL: nobody runs */
    struct store *store;     /* NULL: a daemon has it, or there is none yet to read */
    struct datadir *owned;   /* while we write to SQLite */
};
/* By --data and DATABASE_URL.  *ret is zero before; source_close() in any case. */
must_check bool source_open(const struct cli *cli, bool writes, struct source *ret,
                            struct error *err);
void source_close(struct source *s);

#endif
