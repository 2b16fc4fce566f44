/* SPDX-License-Identifier: Apache-2.0 */
/* Minted names. */
#include "test.h"

#include "base/clock.h"
#include "base/map.h"
#include "session/token.h"

#include <stdlib.h>

TEST(test_token_handle__looks_like_one_and_nothing_else_does)
{
    char handle[HANDLE_LENGTH + 1], id[TRANSPORT_ID_LENGTH + 1];

    for (int i = 0; i < 200; i++) {
        token_handle(handle);
        token_transport_id(id);
        assert_int_equal(strlen(handle), HANDLE_LENGTH);
        assert_int_equal(strlen(id), TRANSPORT_ID_LENGTH);
        assert_true(token_looks_like_handle(str_of(handle)));
        assert_true(token_looks_like_transport_id(str_of(id)));
        assert_false(token_looks_like_handle(str_of(id)));
        assert_false(token_looks_like_transport_id(str_of(handle)));
    }
    assert_false(token_looks_like_handle(str_n(handle, HANDLE_LENGTH - 1)));
    handle[20] = '+';
    assert_false(token_looks_like_handle(str_of(handle)));
    handle[20] = '\0';
    assert_false(token_looks_like_handle(str_n(handle, HANDLE_LENGTH)));
    id[TRANSPORT_ID_LENGTH - 1] = 'B'; /* stray bits: nobody minted it */
    assert_false(token_looks_like_transport_id(str_of(id)));
    assert_false(token_looks_like_handle(STR_NONE));
}

TEST(test_token_handle__does_not_repeat_under_a_frozen_clock)
{
    enum { NAMES = 20000 };
    char(*names)[HANDLE_LENGTH + 1] = xmalloc(NAMES * sizeof(*names));
    struct map seen = {0};

    clock_set_fake(0, 0);
    for (int i = 0; i < NAMES; i++) {
        token_handle(names[i]);
        assert_null(map_put(&seen, str_of(names[i]), names[i]));
    }
    clock_set_real();
    map_release(&seen);
    free(names);
}

TEST(test_token_handle__every_digit_is_drawn_evenly)
{
    enum { NAMES = 20000 };
    char handle[HANDLE_LENGTH + 1];
    unsigned seen[256] = {0};
    double chi = 0, expected = NAMES * 42 / 64.0;

    for (int i = 0; i < NAMES; i++) {
        token_handle(handle);
        for (int j = 4; j < HANDLE_LENGTH - 1; j++)
            seen[(unsigned char)handle[j]]++;
    }
    for (int c = 0; c < 256; c++)
        if (seen[c])
            chi += (seen[c] - expected) * (seen[c] - expected) / expected;
    /* 63 degrees of freedom: more than 150 comes up once in 10^8 runs. */
    assert_true(chi < 150);
}
