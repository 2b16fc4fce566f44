/* SPDX-License-Identifier: Apache-2.0 */
/* A data directory for the time of one command. */
#ifndef HOLDFAST_CLI_SCRATCH_H
#define HOLDFAST_CLI_SCRATCH_H

#include "base/arena.h"
#include "base/error.h"

#define SCRATCH_TEXT 256

/* In TMPDIR, unless its path is too long for a socket inside the directory: then in /tmp.  After a
 * failure `ret` is empty. */
must_check bool scratch_make(const char *purpose, struct arena *mem, char ret[SCRATCH_TEXT],
                             struct error *err);
/* With everything in it.  An empty name is fine. */
void scratch_remove(const char *dir);

#endif
