/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder, over every code point and every pair of leading bytes. */
#include "test.h"

#include "base/utf8.h"

TEST(test_utf8__every_scalar_value_makes_the_round_trip)
{
    char bytes[4];
    uint32_t back;

    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        size_t n;
        if (code == 0xd800)
            code = 0xe000; /* surrogates are no characters */
        n = utf8_encode(code, bytes);
        if (utf8_decode(bytes, bytes + n, &back) != n || back != code)
            fail_msg("U+%04X", code);
        if (n > 1 && utf8_decode(bytes, bytes + n - 1, &back) != 0)
            fail_msg("U+%04X is taken without its last byte", code);
    }
}

TEST(test_utf8_decode__takes_exactly_the_leads_the_standard_lists)
{
    /* Unicode table 3-7: lead, and the range of the second byte. */
    static const struct {
        unsigned lead_from, lead_to, second_from, second_to;
        size_t n;
    } rows[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
                {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
                {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    uint32_t code;

    for (unsigned lead = 0x80; lead < 0x100; lead++) {
        for (unsigned second = 0; second < 0x100; second++) {
            char bytes[4] = {(char)lead, (char)second, (char)0x80, (char)0xbf};
            size_t expected = 0;
            for (size_t i = 0; i < countof(rows); i++)
                if (lead >= rows[i].lead_from && lead <= rows[i].lead_to &&
                    second >= rows[i].second_from && second <= rows[i].second_to)
                    expected = rows[i].n;
            assert_int_equal(utf8_decode(bytes, bytes + 4, &code), expected);
        }
    }
}
