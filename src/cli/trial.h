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
 * not written to a file.  Waits up to two minutes, because npx and uvx may download the server
 * first.  ERR_UNREACHABLE: the server did not start or did not answer; the text has its own words.
 * ERR_CANCELLED: the user interrupted. */
must_check bool trial_run(struct cli *cli, struct str name, struct str config_json,
                          struct trial *ret, struct error *err);

/* One server of a trial of several. */
struct trial_server {
    struct str name;
    bool ok;
    struct trial found; /* if ok */
    struct str why;     /* if not ok: its own words, or that it did not answer in time */
};
struct config;
/* Makes the configuration of the trial, in its process: a configuration is not inherited by a fork,
 * because its memory is hidden.  NULL: it cannot be made. */
typedef struct config *trial_make_fn(void *arg, struct arena *mem);

/* Tries all servers of a configuration at once, and waits up to timeout_ms for those named in
 * `list`.  Returns false if the trial itself failed, or ERR_CANCELLED.  The caller has no other
 * threads. */
must_check bool trial_run_servers(struct cli *cli, trial_make_fn *make, void *arg,
                                  int64_t timeout_ms, struct trial_server *list, size_t n,
                                  struct error *err);

#endif
