/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes both ways between this process's standard input and output and a line channel. */
#ifndef HOLDFAST_CLI_RELAY_H
#define HOLDFAST_CLI_RELAY_H

#include "base/str.h"

enum relay_end {
    RELAY_ENDED, /* our side had finished, and what the other side owed was written */
    RELAY_LOST,  /* the other side ended first */
};
struct relay_talk;
struct relay_ends {
    int channel; /* a socket */
    int in, out;
    int stop;                /* readable: our side ends; -1: never */
    int logs, err;           /* what comes on `logs` goes to `err`; -1: nothing does */
    struct relay_talk *talk; /* sees what passes; NULL: nobody does */
};
/* Runs until one of these; takes no descriptor.  The end of `in`, and `stop`, end our side; then
 * the other side may still answer.  A reader of `out` who stops reading stops everything; once
 * either side has ended he is given up after 5 s. */
enum relay_end relay_run(const struct relay_ends *ends);
/* Between two runs, after RELAY_LOST.  The rest of a line that was half sent is taken from `in` and
 * dropped; whole lines that were not sent stay for the next run.  false: our side has ended, or the
 * rest did not come within 5 s. */
bool relay_drop_cut_line(const struct relay_ends *ends);
/* Writes to `out`, whoever reads it; false: nobody does, or not within 5 s. */
bool relay_say(const struct relay_ends *ends, struct str text);
/* Nothing more will come from `in`, or `stop` says so. */
bool relay_client_left(const struct relay_ends *ends);
/* The log lines alone, until their end or until time is up. */
void relay_logs(int logs, int err, int64_t ms);

#endif
