/* SPDX-License-Identifier: Apache-2.0 */
/* The side that answers a command: the running daemon, or a Holdfast at a URL, or, while no daemon
 * uses the data directory, the same operations inside this process. */
#ifndef HOLDFAST_CLI_SOURCE_H
#define HOLDFAST_CLI_SOURCE_H

#include "cli/cli.h"
#include "cli/control.h"
#include "config/config.h"
#include "config/datadir.h"
#include "json/read.h"
#include "store/database.h"

/* The data directory of a command, and whether a Holdfast runs there. */
struct place {
    struct str data_dir;
    bool exists;
    int owner;                /* pid of the Holdfast there; 0: none runs, -1: it is starting */
    struct database database; /* is used when no Holdfast runs */
};
/* By --data and DATABASE_URL.  ERR_CONFIG for a directory that cannot be read.  Prints the
 * directory to stderr, unless --json or --quiet is given. */
must_check bool place_find(const struct cli *cli, struct place *ret, struct error *err);
/* ERR_NOT_FOUND when the place has no database, and so nothing to read. */
must_check bool place_has_database(const struct place *p, struct error *err);

enum source_use {
    SOURCE_READS,   /* ERR_NOT_FOUND when there is no database yet */
    SOURCE_LOOKS,   /* the same, but without a database there is the configuration to look at */
    SOURCE_CHANGES, /* takes the lock of the data directory when no daemon runs */
};
struct source {
    struct place place;      /* zero with --url */
    struct control *control; /* set once the source is open */
    /* The rest is zero when another process answers. */
    struct gateway_local *local;
    struct config *config;
    struct error config_err; /* the configuration could not be loaded; `config` has the defaults */
};
/* By --url with HOLDFAST_KEY, or by --data and DATABASE_URL.  The caller zeroes *ret before, and
 * calls source_close() also after a failure. */
must_check bool source_open(const struct cli *cli, enum source_use use, struct source *ret,
                            struct error *err);
void source_close(struct source *s);
/* By --url and --ca, with the key in HOLDFAST_KEY. */
must_check bool source_open_url(const struct cli *cli, struct control **ret, struct error *err);

/* Parses an answer; the document borrows `json`. */
must_check bool source_parse(struct str json, struct arena *mem, struct js_doc *ret,
                             struct error *err);
/* The text of a member, in mem; "" when the object has no such text. */
struct str source_text(const struct js_doc *doc, const struct js_node *object, const char *name,
                       struct arena *mem);
/* Text as a value of a query, or as a part of a path, in mem.  All bytes are encoded but letters,
 * digits and -._~ (a path with an encoded dot is refused). */
struct str source_encoded(struct str text, struct arena *mem);

/* The word that people read for the state of a server: every server is probed at the start, so
 * "unknown" is "starting", as on the page for browsers. */
struct str source_state_word(struct str state);

#endif
