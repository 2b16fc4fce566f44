/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a file that is being imported: bytes in memory, or a file on disk, of which little
 * more than one line is in memory.  Reads on the query lane. */
#ifndef HOLDFAST_EXPORT_API_SOURCE_H
#define HOLDFAST_EXPORT_API_SOURCE_H

#include "base/buf.h"
#include "base/error.h"

struct import_source {
    struct str bytes; /* borrowed; of a file in memory */
    int fd;           /* owned by the caller; -1: in memory */
    /* The rest is zero at first. */
    size_t at;         /* bytes that were read as lines */
    struct buf window; /* of a file on disk: bytes that follow */
    size_t used;       /* of them, lines that were returned */
    bool is_read;      /* the window ends with the file */
};
/* The next line without its newline; valid until the next call.  *ret_end: there is none.  A last
 * line may lack its newline.  A line longer than `max` is cut to more than `max` bytes, and nothing
 * may be read after it. */
must_check bool import_source_line(struct import_source *s, size_t max, struct str *ret,
                                   bool *ret_end, struct error *err);
/* To the first line again. */
void import_source_rewind(struct import_source *s);
void import_source_release(struct import_source *s);

#endif
