/* SPDX-License-Identifier: Apache-2.0 */
/* A first connection to a server, before it is written to the configuration: a Holdfast of its own
 * with an empty data directory starts the server, reads its lists and ends.  So the trial takes the
 * same way as later calls do. */
#ifndef HOLDFAST_CLI_TRIAL_H
#define HOLDFAST_CLI_TRIAL_H

#include "cli/cli.h"

struct trial {
    int64_t tools, prompts, resources;
    struct str version; /* negotiated protocol version */
    int64_t took_ms;    /* to connect and to read the lists */
};

/* Tries the server `name` of this configuration (JSON).  The configuration may hold secrets: it is
 * not written to a file.  Waits up to two minutes, because npx and uvx may download the server first.
 * ERR_UNREACHABLE: the server did not start or did not answer; the text has its own words.
 * ERR_CANCELLED: the user interrupted. */
must_check bool trial_run(struct cli *cli, struct str name, struct str config_json,
                          struct trial *ret, struct error *err);

#endif
