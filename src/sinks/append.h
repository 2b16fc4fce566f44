/* SPDX-License-Identifier: Apache-2.0 */
/* A file of lines that grows and is rotated.  Blocking, for a worker; no other module touches it.
 *
 * - When append_lines() has returned true, the lines are on the disk.
 * - A line that an earlier process left half is cut off; it was never acknowledged.  If the last line
 *   is none of ours, it is ended instead.
 * - Another program may rename, remove or truncate the file at any time. */
#ifndef HOLDFAST_SINKS_APPEND_H
#define HOLDFAST_SINKS_APPEND_H

#include "base/error.h"
#include "base/str.h"

#include <sys/types.h>

struct append_file {
    char *path; /* full */
    size_t max_size;
    unsigned keep;
    int fd; /* -1: closed */
    off_t size;
};

/* Each line ends with a newline.  A failure may leave some of the lines in the file, all of them
 * whole. */
must_check bool append_lines(struct append_file *f, struct str lines, struct error *err);
void append_close(struct append_file *f);

#endif
