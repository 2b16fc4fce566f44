/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file that commands change: the one that `holdfast up` would read, or, while
 * there is none, a new one in the user's configuration directory. */
#ifndef HOLDFAST_CLI_CONFIG_FILE_H
#define HOLDFAST_CLI_CONFIG_FILE_H

#include "cli/cli.h"
#include "config/config.h"

struct config_file {
    struct str path;
    struct str text; /* absent: there is no file yet */
};

/* By --config, HOLDFAST_CONFIG or the search of the configuration.  A file that Holdfast could not
 * read as it is is refused, because a change would hide the mistake.  For the file of the system
 * service, --data counts as given with the directory of that service.  *ret is in cli->mem. */
must_check bool config_file_open(struct cli *cli, struct config_file *ret, struct error *err);
/* Reads the file for an edit (is_for_edit).  The caller gets one reference. */
must_check bool config_file_parse(const struct config_file *f, struct config **ret,
                                  struct error *err);
/* The key of the object that holds the servers: "servers" if the file writes it as VS Code does, else
 * "mcpServers". */
struct str config_file_servers(struct cli *cli, const struct config_file *f);
/* The bytes of the member at this path of keys, in cli->mem; absent: there is none. */
struct str config_file_member(struct cli *cli, const struct config_file *f, const struct str *path,
                              size_t n);
/* Whether the file has the member. */
bool config_file_has(struct cli *cli, const struct config_file *f, const struct str *path,
                     size_t n);
/* Sets the member to `value` (JSON), or removes it if `value` is absent, and writes the file at once
 * or not at all.  A result that Holdfast could not read is refused, and nothing is written.  If
 * another program changed other members in the meantime, the file has both changes.  ERR_CONFLICT:
 * it changed this one. */
must_check bool config_file_change(struct cli *cli, struct config_file *f, const struct str *path,
                                   size_t n, struct str value, struct error *err);

/* After a change: makes the Holdfast on this data directory read the file again.  The text for
 * people says what happened, or what to do. */
struct str config_file_reload(struct cli *cli, const struct config_file *f);

#endif
