/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an entry of a client's file leads to Holdfast. */
#ifndef HOLDFAST_CLI_OUR_ENTRY_H
#define HOLDFAST_CLI_OUR_ENTRY_H

#include "cli/cli.h"
#include "cli/control.h"
#include "config/config.h"
#include "json/read.h"

/* The addresses of this Holdfast; each may be absent. */
struct our_addresses {
    struct str listen, public_url; /* of the configuration */
    struct str running;            /* of the running Holdfast, which may have got --listen */
};
/* `config` NULL: the built-in defaults.  The texts are in mem. */
struct our_addresses our_addresses_of(const struct config *config, struct arena *mem);
/* `url` of a running Holdfast; absent: it did not say. */
struct str our_running_url(struct control *control, struct arena *mem);
/* From the flags of a command.  A configuration that cannot be loaded counts as the defaults. */
struct our_addresses our_addresses_find(struct cli *cli);

/* The address in an entry; absent: it has none. */
struct str our_entry_url(const struct js_doc *entry, struct arena *mem);
/* The command is a program named holdfast, or this program, and its first argument is "stdio". */
bool our_entry_runs(const struct js_doc *entry, struct arena *mem);
/* The command runs Holdfast, or the address is one of ours. */
bool our_entry_is(const struct js_doc *entry, const struct our_addresses *ours, struct arena *mem);

#endif
