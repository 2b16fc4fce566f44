/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes both ways between this process's standard input and output and a line channel. */
#ifndef HOLDFAST_CLI_RELAY_H
#define HOLDFAST_CLI_RELAY_H

#include "base/base.h"

enum relay_end {
    RELAY_ENDED, /* our side had finished, and what the other side owed was written */
    RELAY_LOST,  /* the other side ended first */
};
/* Runs until one of these.  Takes neither descriptor; `channel` is a socket.  The end of `in`, and
 * `stop` becoming readable (-1: never), end our side; then the other side may still answer.  A
 * reader of `out` who stops reading stops everything; once either side has ended he is given up
 * after 5 s.
 */
enum relay_end relay_run(int channel, int in, int out, int stop);

#endif
