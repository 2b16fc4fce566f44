/* SPDX-License-Identifier: Apache-2.0 */
/* A store that fails on demand, for tests of what happens when the n-th call fails.  A failed call
 * never reaches the inner store. */
#include "store/store_impl.h"

#include <stdatomic.h>
#include <stdlib.h>

struct failing_store {
    struct store base;
    struct store *inner;
    _Atomic int64_t calls; /* since the last store_failing_set() */
    _Atomic int64_t nth;
    atomic_bool only_once;
};

static struct failing_store *failing_of(struct store *s)
{
    return container_of(s, struct failing_store, base);
}

static bool spared(struct store *s, struct error *err)
{
    struct failing_store *f = failing_of(s);
    int64_t call = atomic_fetch_add(&f->calls, 1) + 1;
    int64_t nth = atomic_load(&f->nth);
    bool fails = nth && (atomic_load(&f->only_once) ? call == nth : call >= nth);
    if (fails)
        return error_set(err, ERR_UNAVAILABLE, "The store failed because a test wanted it to.");
    return true;
}

static bool f_write(struct store *s, struct store_op *ops, size_t n, struct error *err)
{
    return spared(s, err) && store_write(failing_of(s)->inner, ops, n, err);
}

static bool f_call(struct store *s, struct store_call *c, struct error *err)
{
    return spared(s, err) && store_call(failing_of(s)->inner, c, err);
}

static void f_close(struct store *s)
{
    store_close(failing_of(s)->inner);
    free(failing_of(s));
}

static const struct store_ops failing_ops = {
    .name = "failing",
    .close = f_close,
    .write = f_write,
    .call = f_call,
};

struct store *store_failing(struct store *inner)
{
    struct failing_store *f = xcalloc(1, sizeof(*f));
    f->base.ops = &failing_ops;
    f->inner = inner;
    return &f->base;
}

void store_failing_set(struct store *failing, int64_t nth, bool only_once)
{
    struct failing_store *f = failing_of(failing);
    atomic_store(&f->nth, nth);
    atomic_store(&f->only_once, only_once);
    atomic_store(&f->calls, 0);
}
