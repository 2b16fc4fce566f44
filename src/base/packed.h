/* SPDX-License-Identifier: Apache-2.0 */
/* Files packed into the binary by tools/pack-files; tables end with path == NULL. */
#ifndef HOLDFAST_BASE_PACKED_H
#define HOLDFAST_BASE_PACKED_H

#include <stddef.h>

struct packed_file {
    const char *path;          /* "sqlite/0001_start.up.sql" */
    const unsigned char *data; /* NUL-terminated */
    size_t n;
};
extern const struct packed_file packed_sql[];

#endif
