/* SPDX-License-Identifier: Apache-2.0 */
/* Fault points: the n-th pass and no other; nothing at all in a build without them. */
#include "test.h"

#include "base/fault.h"

#include <stdlib.h>

#ifdef HOLDFAST_FAULTS
static const bool built_in = true;
#else
static const bool built_in = false;
#endif

/* First in the file: the environment is read once, at the first pass of any point. */
TEST(test_fault__the_environment_names_points_without_a_call)
{
    setenv("HOLDFAST_FAULT", "early:2", 1);
    assert_false(fault_hits("early"));
    assert_int_equal(fault_hits("early"), built_in);
    unsetenv("HOLDFAST_FAULT");
}

TEST(test_fault__fails_the_named_pass_only)
{
    fault_load("store.commit:3,keeper.fork:1");
    assert_int_equal(fault_hits("keeper.fork"), built_in);
    assert_false(fault_hits("keeper.fork"));
    assert_false(fault_hits("store.commit"));
    assert_false(fault_hits("store.commit"));
    assert_int_equal(fault_hits("store.commit"), built_in);
    assert_false(fault_hits("store.commit"));
    assert_false(fault_hits("store"));
    fault_load(NULL);
}

TEST(test_fault__plus_means_from_then_on)
{
    fault_load("disk:2+");
    assert_false(fault_hits("disk"));
    assert_int_equal(fault_hits("disk"), built_in);
    assert_int_equal(fault_hits("disk"), built_in);
    fault_load("");
    assert_false(fault_hits("disk"));
}
