/* SPDX-License-Identifier: Apache-2.0 */
/* The source of keys and users for a command: the running daemon, so that changes take effect at
 * once; otherwise the store itself. */
#ifndef HOLDFAST_CLI_SOURCE_H
#define HOLDFAST_CLI_SOURCE_H

#include "cli/cli.h"
#include "cli/control.h"
#include "config/datadir.h"
#include "store/database.h"

/* The data directory of a command, and whether a Holdfast runs there. */
struct place {
    struct str data_dir;
    bool exists;
    int owner;                /* pid of the Holdfast there; 0: none runs, -1: it is starting */
    struct database database; /* is read when no Holdfast runs */
};
/* By --data and DATABASE_URL.  ERR_CONFIG for a directory that cannot be read.  Prints the
 * directory to stderr, unless --json or --quiet is given. */
must_check bool place_find(const struct cli *cli, struct place *ret, struct error *err);
/* ERR_NOT_FOUND when the place has no database, and so nothing to read. */
must_check bool place_has_database(const struct place *p, struct error *err);

struct source {
    struct control *control; /* NULL: no daemon runs */
    struct store *store;     /* NULL: a daemon uses it */
    struct datadir *owned;   /* while we write to SQLite; else NULL */
};
/* By --data and DATABASE_URL.  The caller zeroes *ret before, and calls source_close() also after a
 * failure. */
must_check bool source_open(const struct cli *cli, bool writes, struct source *ret,
                            struct error *err);
void source_close(struct source *s);

#endif
