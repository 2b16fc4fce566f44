/* SPDX-License-Identifier: Apache-2.0 */
/* Runs another program to its end, with a deadline: the command of an MCP client, systemctl,
 * tar. */
#ifndef HOLDFAST_CLI_PROGRAM_H
#define HOLDFAST_CLI_PROGRAM_H

#include "base/buf.h"

enum program_end { PROGRAM_MISSING, PROGRAM_EXITED, PROGRAM_LATE };

struct program {
    const char *const *argv; /* argv[0] is looked for on PATH; ends with NULL */
    int64_t timeout_ms;
    /* Where its standard output goes: is added to `out`, with its standard error, up to 256 KiB;
     * else to the descriptor `out_fd`; else, with is_silent, nowhere; else to standard error. */
    struct buf *out;
    int out_fd;
    bool is_silent;
    int status; /* afterwards: the exit status; -1 if a signal ended it */
};

/* It runs in a process group of its own, without an input.  At the deadline the group is killed. */
enum program_end program_run(struct program *p);

#endif
