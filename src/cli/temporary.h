/* SPDX-License-Identifier: Apache-2.0 */
/* A Holdfast for the time of one command, for commands that need one and find none.  It is the one
 * of `holdfast stdio`: it takes no port, other clients may join it, and it ends with its last
 * pipe. */
#ifndef HOLDFAST_CLI_TEMPORARY_H
#define HOLDFAST_CLI_TEMPORARY_H

#include "cli/cli.h"

struct temporary {
    int pid; /* of holdfast stdio; 0: none was started */
    int in;  /* our end of its standard input */
};
/* Starts it and waits until it is ready.  An error has the line in which it said why it could not
 * start. */
must_check bool temporary_start(struct cli *cli, struct str data_dir, struct temporary *ret,
                                struct error *err);
/* Ends it, unless other clients have joined it.  A zeroed one is fine. */
void temporary_end(struct temporary *t);

#endif
