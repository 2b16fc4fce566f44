/* SPDX-License-Identifier: Apache-2.0 */
/* Packed bytes come back as they were, and damaged ones never whole. */
#include "test.h"

#include "base/random.h"
#include "store/pack.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

struct fixture {
    struct packer *packer;
    struct buf plain, packed, room;
};

static void begin(struct fixture *f)
{
    f->packer = packer_new();
    buf_init(&f->plain, 1 << 24);
    buf_init(&f->packed, 1 << 24);
    buf_init(&f->room, 1 << 24);
}

static void end(struct fixture *f)
{
    packer_free(f->packer);
    buf_release(&f->plain);
    buf_release(&f->packed);
    buf_release(&f->room);
}

static struct str unpack(struct fixture *f, struct str packed, bool is_whole)
{
    struct str plain;
    assert_int_equal(unpack_bytes(packed, &f->room, &plain), is_whole);
    return plain;
}

static struct str round_trip(struct fixture *f)
{
    buf_reset(&f->packed);
    pack_bytes(f->packer, buf_str(&f->plain), &f->packed);
    return unpack(f, buf_str(&f->packed), true);
}

static void add_random(struct buf *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_addc(to, (char)random_below(256));
}

static void add_calls(struct buf *to, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        buf_addf(to, "{\"path\":\"/srv/notes/%u.md\",\"offset\":%u,\"limit\":100}", i * 7, i);
}

static bool is_whole(struct str got, const struct buf *plain)
{
    return got.n == plain->n && (got.n == 0 || memcmp(got.p, plain->p, got.n) == 0);
}

TEST(test_pack__every_length_comes_back)
{
    struct fixture f;
    begin(&f);
    for (size_t n = 0; n < 70000; n = n < 300 ? n + 1 : n * 3) {
        buf_reset(&f.plain);
        add_random(&f.plain, n);
        assert_true(is_whole(round_trip(&f), &f.plain));
    }
    assert_null(unpack(&f, STR_NONE, true).p); /* deleted stays deleted */
    end(&f);
}

TEST(test_pack__calls_that_are_alike_take_less_room)
{
    struct fixture f;
    begin(&f);
    add_calls(&f.plain, 1000);
    assert_true(is_whole(round_trip(&f), &f.plain));
    assert_true(f.packed.n < f.plain.n / 3);
    end(&f);
}

/* What stands before the damage is what it was: the first event behind it is the one to be named.
 */
TEST(test_pack__no_flipped_bit_comes_back_whole)
{
    struct fixture f;
    size_t early = 0;
    begin(&f);
    add_calls(&f.plain, 4);
    add_random(&f.plain, 20);
    buf_addz(&f.plain, "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr");
    assert_true(is_whole(round_trip(&f), &f.plain));
    for (size_t bit = 0; bit < 8 * f.packed.n; bit++) {
        f.packed.p[bit / 8] ^= (char)(1u << bit % 8);
        struct str got = unpack(&f, buf_str(&f.packed), false);
        f.packed.p[bit / 8] ^= (char)(1u << bit % 8);
        if (is_whole(got, &f.plain) || got.n == 0)
            fail_msg("bit %zu was flipped unseen", bit);
        early += bit / 8 > f.packed.n / 2 && got.n > 20 && memcmp(got.p, f.plain.p, 20) == 0;
    }
    assert_true(early > 3 * f.packed.n); /* of the bits in the later half, nearly all */
    end(&f);
}

TEST(test_pack__what_is_cut_or_longer_does_not_come_back_whole)
{
    struct fixture f;
    begin(&f);
    add_calls(&f.plain, 8);
    assert_true(is_whole(round_trip(&f), &f.plain));
    for (size_t n = 1; n < f.packed.n; n++) {
        struct str got = unpack(&f, str_n(f.packed.p, n), false);
        assert_false(got.n == 0 || is_whole(got, &f.plain));
    }
    buf_addc(&f.packed, 0);
    assert_false(is_whole(unpack(&f, buf_str(&f.packed), false), &f.plain));
    end(&f);
}

TEST(test_pack__garbage_is_read_within_its_bounds)
{
    struct fixture f;
    begin(&f);
    for (int i = 0; i < 20000; i++) {
        buf_reset(&f.packed);
        add_random(&f.packed, 1 + random_below(60));
        if (f.packed.n > 4) /* a length that is not absurd, else nothing is tried */
            f.packed.p[2] = f.packed.p[3] = 0;
        assert_true(unpack(&f, buf_str(&f.packed), false).n > 0);
    }
    end(&f);
}

static void put(struct buf *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        buf_addc(to, (char)(value >> 8 * i));
}

/* Who knows the format can make a checksum right, but nothing of what was unpacked before comes up
 * again, and nobody is made to take gigabytes. */
TEST(test_pack__a_forged_block_brings_nothing_back)
{
    static const char block[] = "\xf0\x01sixteen bytes ...\xff\xff"; /* and from before them */
    struct fixture f;
    begin(&f);
    buf_addz(&f.plain, "sixteen bytes ... and what the forger wants to be rid of, seen before");
    assert_true(is_whole(round_trip(&f), &f.plain));
    buf_reset(&f.packed);
    put(&f.packed, f.plain.n + 1, 4);
    put(&f.packed, XXH3_64bits_withSeed(block, sizeof(block) - 1, f.plain.n + 1), 8);
    buf_add(&f.packed, block, sizeof(block) - 1);
    struct str got = unpack(&f, buf_str(&f.packed), false);
    assert_false(is_whole(got, &f.plain));
    assert_null(memmem(got.p, got.n, "forger", 6));
    buf_reset(&f.packed);
    put(&f.packed, PACK_MAX + 1, 4);
    put(&f.packed, 0, 8);
    memset(buf_room(&f.packed, PACK_MAX / 200), 0, PACK_MAX / 200);
    buf_grown(&f.packed, PACK_MAX / 200);
    assert_int_equal(unpack(&f, buf_str(&f.packed), false).n, 1);
    assert_true(f.room.cap < 1 << 20);
    end(&f);
}
