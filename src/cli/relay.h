/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes both ways between this process's standard input and output and a line channel. */
#ifndef HOLDFAST_CLI_RELAY_H
#define HOLDFAST_CLI_RELAY_H

#include "base/str.h"

enum relay_end {
    RELAY_ENDED, /* our side ended first; the rest from the channel was written, or given up */
    RELAY_LOST,  /* the other side ended first */
};
struct relay_talk;
struct relay_ends {
    int channel; /* a socket */
    int in, out;
    int stop;                /* readable: our side ends; -1: never */
    int logs, err;           /* bytes from `logs` go to `err`; logs -1: none */
    struct relay_talk *talk; /* scans the bytes that pass; may be NULL */
};
/* Runs until the channel has ended and its bytes were written; closes no descriptor.  The end of
 * `in`, and `stop`, end our side; then the other side may still answer.  If the reader of `out`
 * stops reading, messages stop in that direction; once either side has ended, the relay gives up
 * after 5 s without progress. */
enum relay_end relay_run(const struct relay_ends *ends);
/* Between two runs, after RELAY_LOST: reads the rest of a half-sent line from `in` and drops it.
 * Whole lines that were not sent stay for the next run.  false: our side has ended, or the rest did
 * not come within 5 s. */
bool relay_drop_cut_line(const struct relay_ends *ends);
/* Writes to `out`; false: its reader is gone, or has read nothing for 5 s. */
bool relay_send(const struct relay_ends *ends, struct str text);
/* Whether `in` has ended, or `stop` is readable. */
bool relay_client_left(const struct relay_ends *ends);
/* Relays only the log lines, until their end or for at most `ms`. */
void relay_logs(int logs, int err, int64_t ms);

#endif
