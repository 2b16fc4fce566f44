/* SPDX-License-Identifier: Apache-2.0 */
/* The secrets of a server that is being added.  They go sealed into the store, and the file gets
 * references to them. */
#ifndef HOLDFAST_CLI_ADD_SECRETS_H
#define HOLDFAST_CLI_ADD_SECRETS_H

#include "cli/add_entry.h"
#include "cli/cli.h"

struct config;

struct add_secrets {
    struct str for_file;  /* the entry with references; in clear with --plain */
    struct str for_trial; /* the entry with values; absent: a value is not known here */
    struct str unknown;   /* the first secret whose value is not known here; absent: none */
    bool unknown_is_set;  /* the store has it */
    struct add_secret *list;
    size_t n; /* to be stored */
};

/* Takes the secrets out of `entry`, and asks on a terminal for each ${input:NAME} and ${secret:NAME}
 * that is not set yet.  *ret is in cli->mem, which the caller wipes. */
must_check bool add_secrets_take(struct cli *cli, const char *server, struct str entry,
                                 struct add_secrets *ret, struct error *err);
/* In the running Holdfast, or in the data directory. */
must_check bool add_secrets_store(struct cli *cli, const struct add_secrets *s, struct error *err);
/* Reads the entry as Holdfast would read it, with the variables of this environment.  An error names
 * no place. */
must_check bool add_secrets_parse(struct cli *cli, const char *server, struct str entry,
                                  struct config **ret, struct error *err);
/* {"mcpServers": {server: entry}}, in cli->mem. */
struct str add_secrets_config(struct cli *cli, const char *server, struct str entry);

#endif
