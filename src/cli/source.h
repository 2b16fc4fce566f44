/* SPDX-License-Identifier: Apache-2.0 */
/* Where a command finds keys and users: the daemon when one runs, so that it acts at once; else the
 * store itself. */
#ifndef HOLDFAST_CLI_SOURCE_H
#define HOLDFAST_CLI_SOURCE_H

#include "cli/cli.h"
#include "cli/control.h"
#include "config/datadir.h"
#include "store/database.h"

/* Which data directory a command speaks for, and whether a Holdfast runs there. */
struct place {
    struct str data_dir;
    bool exists;
    int owner;                /* its pid; 0: no Holdfast runs there, -1: one is starting */
    struct database database; /* what is read when none runs */
};
/* By --data and DATABASE_URL.  ERR_CONFIG for a directory that cannot be read.  Says on stderr
 * which one is used, unless --json or --quiet is given. */
must_check bool place_find(const struct cli *cli, struct place *ret, struct error *err);
/* ERR_NOT_FOUND when the place has no database, and so nothing to read. */
must_check bool place_has_database(const struct place *p, struct error *err);

struct source {
    struct control *control; /* NULL: nobody runs */
    struct store *store;     /* NULL: a daemon has it */
    struct datadir *owned;   /* while we write to SQLite */
};
/* By --data and DATABASE_URL.  *ret is zero before; source_close() in any case. */
must_check bool source_open(const struct cli *cli, bool writes, struct source *ret,
                            struct error *err);
void source_close(struct source *s);

#endif
