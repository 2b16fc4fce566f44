/* SPDX-License-Identifier: Apache-2.0 */
/* Compresses bytes for the disk with LZ4.  Compression costs the write lane less than writing,
 * syncing and copying the longer bytes to the database file.
 *
 *     length of the plain bytes, 32 bits; checksum, 64 bits; an LZ4 block
 *
 * The checksum does not protect against forgery; the seals of the events do.  The checksum detects
 * every change of the packed bytes, even a change that unpacks to the same bytes. */
#ifndef HOLDFAST_STORE_PACK_H
#define HOLDFAST_STORE_PACK_H

#include "base/buf.h"

/* Far larger than any segment.  Bounds the memory that a manipulated file makes a reader
 * allocate. */
#define PACK_MAX ((size_t)64 << 20)

struct packer; /* the working memory of LZ4; 16 KiB */
struct packer *packer_new(void) must_check;
void packer_free(struct packer *p); /* NULL is fine */

/* Appends the packed bytes to `to`.  Appends nothing when `plain` is empty. */
void pack_bytes(struct packer *p, struct str plain, struct buf *to);
/* Unpacks into `room` and overwrites its content.  false: the packed bytes are damaged.  Then *ret
 * holds the bytes that could be read, always with a byte missing or added, so that every check of
 * them fails. */
bool unpack_bytes(struct str packed, struct buf *room, struct str *ret);

#endif
