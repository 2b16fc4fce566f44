/* SPDX-License-Identifier: Apache-2.0 */
/* The file with copies of anchors.  When it has become long, it is written anew without the anchors that
 * retention removed, except for the newest line of each chain: from there the seals lead back to the
 * beginning.  A line about an anchor that is stored stays, because it also shows that the database was
 * replaced.  One thread at a time uses the file. */
#ifndef HOLDFAST_AUDIT_ANCHOR_FILE_H
#define HOLDFAST_AUDIT_ANCHOR_FILE_H

#include "base/error.h"
#include "base/str.h"

#include <stdint.h>

#define ANCHOR_FILE_SHRINK_FROM ((int64_t)8 << 20) /* some hours of load */

struct anchor_file {
    const char *path;
    int64_t shrink_from;               /* bytes; at least twice what the last shrinking left */
    _Atomic int64_t removed_before_ms; /* older anchors are removed; 0: none.  Any thread sets it */
};

void anchor_file_init(struct anchor_file *f, const char *path); /* borrows the path */
/* Appends the line, which is durable then.  A file that is no regular one only grows. */
must_check bool anchor_file_append(struct anchor_file *f, struct str line, struct error *err);

#endif
