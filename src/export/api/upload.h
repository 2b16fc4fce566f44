/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are longer than one request, while their pieces arrive: DATA/imports, one file each.
 * The name of such a file is derived from the caller, so nobody reaches the upload of another one.
 * Every function blocks: on the query lane, or before the loop runs. */
#ifndef HOLDFAST_EXPORT_API_UPLOAD_H
#define HOLDFAST_EXPORT_API_UPLOAD_H

#include "base/error.h"
#include "base/principal.h"

#define UPLOAD_BYTES_MAX (INT64_C(1) << 30) /* of one file */
#define UPLOADS_MAX 8                       /* unfinished ones on this node */
#define UPLOAD_IDLE_MS (INT64_C(60) * 60 * 1000)

struct upload {
    struct str data_dir;
    const struct principal *who;
    struct str name; /* the caller's */
};
/* Adds the bytes at this offset.  Offset 0 begins anew.  ERR_CONFLICT when the file has another
 * length; *ret_length is its length now. */
must_check bool upload_add(const struct upload *u, int64_t at, struct str bytes,
                           int64_t *ret_length, struct error *err);
/* The whole file for reading, without a name from now on: it is gone with *ret_fd. */
must_check bool upload_take(const struct upload *u, int *ret_fd, struct error *err);
/* Removes the pieces that an earlier run has left.  At the start of a daemon. */
void uploads_clear(struct str data_dir);

#endif
