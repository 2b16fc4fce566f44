/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with tests found by symbol: write TEST(test_thing__claim) { … } and nothing else; the
 * main() is generated from the file by tests/support/gen_main.py. */
#ifndef HOLDFAST_TESTS_TEST_H
#define HOLDFAST_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"

#define TEST(name)                                                                                 \
    void name(void **state);                                                                       \
    void name(void **state __attribute__((unused)))

#define assert_str(s, literal)                                                                     \
    do {                                                                                           \
        struct str s_ = (s);                                                                       \
        assert_int_equal(s_.n, strlen(literal));                                                   \
        assert_memory_equal(s_.p, literal, s_.n);                                                  \
    } while (0)

/* Leaves the test as skipped; the runner shows the reason. */
#define skip_because(reason)                                                                       \
    do {                                                                                           \
        print_message("skipped: %s\n", reason);                                                    \
        skip();                                                                                    \
    } while (0)

#endif
