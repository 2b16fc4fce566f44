/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes made short for the disk, with LZ4: what an append has to write, sync and copy to the
 * database file costs the write lane more than making it shorter.
 *
 *     length of the plain bytes, 32 bits; checksum, 64 bits; an LZ4 block
 *
 * The checksum protects nobody from a forger, the seals of the events do.  It makes every change of
 * the packed bytes show, also one that unpacks to the same. */
#ifndef HOLDFAST_STORE_PACK_H
#define HOLDFAST_STORE_PACK_H

#include "base/buf.h"

/* No segment comes near it, and nobody who writes to the file makes a reader take more. */
#define PACK_MAX ((size_t)64 << 20)

struct packer; /* what packing needs besides; 16 KiB */
struct packer *packer_new(void) must_check;
void packer_free(struct packer *p); /* NULL is fine */

/* Appends them to `to`; of nothing, nothing. */
void pack_bytes(struct packer *p, struct str plain, struct buf *to);
/* The plain bytes, in `room`, whose content is lost.  false: they are damaged, and come as far as
 * they can be read, never whole: a byte is missing or too many, so that whoever checks them sees
 * it. */
bool unpack_bytes(struct str packed, struct buf *room, struct str *ret);

#endif
