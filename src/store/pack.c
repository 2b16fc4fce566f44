/* SPDX-License-Identifier: Apache-2.0 */
/* Compression between the segments of events (store/segment.h) and the rows of SQLite. */
#include "store/pack.h"

#include <assert.h>
#include <lz4.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define HEAD (4 + 8)
#define BEST_RATIO 255 /* one byte of an LZ4 block expands to at most this many */
/* LZ4's acceleration, from 1 on: a smaller value searches harder for repeats.  At 16 LZ4 leaves
 * prose, which has few repeats, nearly as it is, at almost no cost; JSON still shrinks to a
 * quarter. */
#define HASTE 16

struct packer {
    void *state;
};

struct packer *packer_new(void)
{
    struct packer *p = xmalloc(sizeof(*p));
    p->state = xmalloc((size_t)LZ4_sizeofState());
    return p;
}

void packer_free(struct packer *p)
{
    if (p)
        free(p->state);
    free(p);
}

static void put(char *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (char)(value >> 8 * i);
}

static uint64_t get(const char *from, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)(unsigned char)from[i] << 8 * i;
    return value;
}

static uint64_t checksum(struct str block, uint64_t plain)
{
    return XXH3_64bits_withSeed(block.p, block.n, plain);
}

void pack_bytes(struct packer *p, struct str plain, struct buf *to)
{
    if (plain.n == 0)
        return;
    assert(plain.n <= PACK_MAX);
    int room = LZ4_compressBound((int)plain.n);
    char *head = buf_room(to, HEAD + (size_t)room);
    int n = LZ4_compress_fast_extState(p->state, plain.p, head + HEAD, (int)plain.n, room, HASTE);
    assert(n > 0); /* there is room for the worst case */
    put(head, plain.n, 4);
    put(head + 4, checksum(str_n(head + HEAD, (size_t)n), plain.n), 8);
    buf_grown(to, HEAD + (size_t)n);
}

/* The length of the unpacked bytes; 0: `packed` is not a block of ours. */
static size_t plain_length(struct str packed)
{
    if (packed.n <= HEAD)
        return 0;
    size_t n = get(packed.p, 4);
    return n <= PACK_MAX && n / BEST_RATIO <= packed.n - HEAD ? n : 0;
}

/* Unpacks as much as possible of a damaged block.  An attacker can compute the checksum, so `room`
 * is cleared first: its old content must not stand in for bytes that a forged block leaves out. */
static struct str prefix_that_fits(struct str block, char *room, size_t n)
{
    memset(room, 0, n);
    int got = LZ4_decompress_safe(block.p, room, (int)block.n, (int)n);
    if (got > 0)
        n = (size_t)got;
    return n > 1 ? str_n(room, n - 1) : str_n("", 1);
}

bool unpack_bytes(struct str packed, struct buf *room, struct str *ret)
{
    *ret = packed;
    if (packed.n == 0)
        return true;
    size_t n = plain_length(packed);
    *ret = str_n("", 1);
    if (n == 0)
        return false;
    struct str block = str_n(packed.p + HEAD, packed.n - HEAD);
    buf_reset(room);
    char *plain = buf_room(room, n);
    if (likely(get(packed.p + 4, 8) == checksum(block, n) &&
               LZ4_decompress_safe(block.p, plain, (int)block.n, (int)n) == (int)n)) {
        *ret = str_n(plain, n);
        return true;
    }
    *ret = prefix_that_fits(block, plain, n);
    return false;
}
