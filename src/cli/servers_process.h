/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of `holdfast servers` that concern processes: restart and logs. */
#ifndef HOLDFAST_CLI_SERVERS_PROCESS_H
#define HOLDFAST_CLI_SERVERS_PROCESS_H

#include "cli/source.h"

/* Restarts the server and waits, at most a minute, until it was probed again.  ERR_UPSTREAM with the
 * server's own error when it does not come up. */
must_check bool servers_restart(struct source *s, struct str server, bool json, struct arena *mem,
                                struct buf *out, struct error *err);

struct servers_logs {
    struct cli *cli;
    struct source *source;
    struct buf *out; /* empty at the end when the lines were followed */
    int64_t limit;
    bool follows, json;
    int64_t last; /* number of the last line printed */
};
/* Reads -n and -f; ERR_USAGE. */
must_check bool servers_logs_flags(struct servers_logs *l, struct error *err);
/* Prints the newest lines of the server args[1], and with -f further ones until a write fails or the
 * process is interrupted. */
must_check bool servers_logs(struct servers_logs *l, struct error *err);

#endif
