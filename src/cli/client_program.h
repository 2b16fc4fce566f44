/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the own command of an MCP client, with a deadline. */
#ifndef HOLDFAST_CLI_CLIENT_PROGRAM_H
#define HOLDFAST_CLI_CLIENT_PROGRAM_H

#include "base/buf.h"

enum program_end { PROGRAM_MISSING, PROGRAM_EXITED, PROGRAM_LATE };

/* Starts argv[0] from PATH, in a process group of its own, without an input.  At the deadline the whole
 * group is killed.  What it prints is added to `out`, up to 256 KiB; `out` NULL: it goes to standard
 * error.  *ret_status is the exit status, or -1 if a signal ended the program. */
enum program_end client_program_run(const char *const *argv, int64_t timeout_ms, struct buf *out,
                                    int *ret_status);

#endif
