/* SPDX-License-Identifier: Apache-2.0 */
/* Packing, between the segments of events (store/segment.h) and the rows of SQLite. */
#include "store/pack.h"

#include <assert.h>
#include <lz4.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define HEAD (4 + 8)
#define BEST_RATIO 255 /* one byte of a block stands for no more */
/* LZ4 looks the harder for repeats the smaller this is, from 1 on.  At 16 prose, which has few, is
 * left nearly as it is, at next to no cost; JSON still shrinks to a quarter. */
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
    assert(plain.n <= LZ4_MAX_INPUT_SIZE);
    int room = LZ4_compressBound((int)plain.n);
    char *head = buf_room(to, HEAD + (size_t)room);
    int n = LZ4_compress_fast_extState(p->state, plain.p, head + HEAD, (int)plain.n, room, HASTE);
    assert(n > 0); /* there is room for the worst */
    put(head, plain.n, 4);
    put(head + 4, checksum(str_n(head + HEAD, (size_t)n), plain.n), 8);
    buf_grown(to, HEAD + (size_t)n);
}

struct str unpack_bytes(struct str packed, struct buf *room)
{
    if (packed.n == 0)
        return packed;
    buf_reset(room);
    if (packed.n <= HEAD)
        return str_n("", 1);
    struct str block = str_n(packed.p + HEAD, packed.n - HEAD);
    size_t n = get(packed.p, 4);
    if (n == 0 || n > LZ4_MAX_INPUT_SIZE || n / BEST_RATIO > block.n || block.n > INT32_MAX)
        return str_n("", 1);
    char *plain = buf_room(room, n);
    bool same = get(packed.p + 4, 8) == checksum(block, n);
    if (!same) /* what cannot be read is not what was read before */
        memset(plain, 0, n);
    int got = LZ4_decompress_safe(block.p, plain, (int)block.n, (int)n);
    if (likely(same && got == (int)n))
        return str_n(plain, n);
    if (got > 0)
        n = (size_t)got;
    return n > 1 ? str_n(plain, n - 1) : str_n("", 1);
}
