/* SPDX-License-Identifier: Apache-2.0 */
/* What was called, a letter each, in the order in which it was. */
#ifndef HOLDFAST_TESTS_TRAIL_H
#define HOLDFAST_TESTS_TRAIL_H

#include "test.h"

static char trail[64];

static void mark(char c)
{
    size_t n = strlen(trail);
    assert_true(n + 1 < sizeof(trail));
    trail[n] = c;
    trail[n + 1] = '\0';
}

#endif
