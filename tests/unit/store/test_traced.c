/* SPDX-License-Identifier: Apache-2.0 */
/* The tracing wrapper names every call and how it went. */
#include "test.h"

#include "base/clock.h"
#include "store/store.h"

struct seen {
    unsigned calls;
    const char *verb;
    bool ok;
    int64_t us;
};

static void sink(void *arg, const char *verb, bool ok, int64_t us)
{
    struct seen *seen = arg;
    seen->calls++;
    seen->verb = verb;
    seen->ok = ok;
    seen->us = us;
}

TEST(test_traced__tells_verb_and_outcome_of_every_call)
{
    struct seen seen = {0};
    struct store *s = NULL;
    struct store_counts counts;
    struct error err;
    clock_set_fake(1, 1);
    assert_true(store_open_memory(&s, &err));
    struct store *failing = store_failing(s);
    s = store_traced(failing, sink, &seen);
    assert_true(store_counts(s, &counts, &err));
    assert_string_equal(seen.verb, "counts");
    assert_true(seen.ok);
    assert_int_equal(seen.us, 0);
    store_failing_set(failing, 1, false);
    assert_false(store_write(s, NULL, 0, &err));
    assert_string_equal(seen.verb, "write");
    assert_false(seen.ok);
    assert_int_equal(seen.calls, 2);
    store_close(s);
    clock_set_real();
}
