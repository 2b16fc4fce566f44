/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a Holdfast as a client's file has it, and how the client proves who it is. */
#ifndef HOLDFAST_CLI_CONNECT_ADDRESS_H
#define HOLDFAST_CLI_CONNECT_ADDRESS_H

#include "cli/cli.h"
#include "cli/clients.h"

struct connect_address {
    struct str url; /* with /mcp, and the server or profile */
    bool has_key;   /* HOLDFAST_KEY is set: the client is to read the key from there */
    bool needs_key; /* it is not set, and the configuration requires a key */
};
/* From --url, else from the configuration: public_url, the address of the running Holdfast, or
 * `listen`, which is refused if it stands for all addresses of the machine.  The key itself is in
 * no result, and so in no file: `auth` or `auth_variable` of the client names the variable. */
must_check bool connect_address(struct cli *cli, const struct client *client,
                                struct connect_address *ret, struct error *err);

#endif
