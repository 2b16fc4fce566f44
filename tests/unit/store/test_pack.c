/* SPDX-License-Identifier: Apache-2.0 */
/* Packed bytes come back as they were, and damaged ones never whole. */
#include "test.h"

#include "base/random.h"
#include "store/pack.h"

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

static struct str round_trip(struct fixture *f)
{
    buf_reset(&f->packed);
    pack_bytes(f->packer, buf_str(&f->plain), &f->packed);
    return unpack_bytes(buf_str(&f->packed), &f->room);
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
    assert_int_equal(unpack_bytes(STR_NONE, &f.room).p, NULL); /* deleted stays deleted */
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
        struct str got = unpack_bytes(buf_str(&f.packed), &f.room);
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
        struct str got = unpack_bytes(str_n(f.packed.p, n), &f.room);
        assert_false(got.n == 0 || is_whole(got, &f.plain));
    }
    buf_addc(&f.packed, 0);
    assert_false(is_whole(unpack_bytes(buf_str(&f.packed), &f.room), &f.plain));
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
        assert_true(unpack_bytes(buf_str(&f.packed), &f.room).n > 0);
    }
    end(&f);
}
