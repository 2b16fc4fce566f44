/* SPDX-License-Identifier: Apache-2.0 */
/* The entry that connect writes into a client's file: a command, or an address. */
#ifndef HOLDFAST_CLI_CONNECT_ENTRY_H
#define HOLDFAST_CLI_CONNECT_ENTRY_H

#include "cli/connect_address.h"

#define CONNECT_ARGS_MAX 16

struct connect_entry {
    struct str name;
    const char *args[CONNECT_ARGS_MAX]; /* the command, which is used if there is no address */
    size_t n_args;
    struct connect_address address; /* --http, --url; else `url` is absent */
};
/* The command that the client starts: our own program, by its absolute path. */
must_check bool connect_entry_command(struct cli *cli, struct connect_entry *e, struct error *err);
/* The value below the entry's name, as JSON, in mem. */
struct str connect_entry_json(const struct client *client, const struct connect_entry *e,
                              struct arena *mem);
/* The table that is appended to a TOML file, in mem. */
struct str connect_entry_toml(const struct client *client, const struct connect_entry *e,
                              struct arena *mem);

#endif
