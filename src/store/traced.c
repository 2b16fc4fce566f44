/* SPDX-License-Identifier: Apache-2.0 */
/* A store that reports the verb, success and duration of each call to a sink. */
#include "store/store_impl.h"

#include <stdlib.h>

#include "base/clock.h"

struct traced_store {
    struct store base;
    struct store *inner;
    void (*sink)(void *arg, const char *verb, bool ok, int64_t us);
    void *arg;
};

static struct traced_store *traced_of(struct store *s)
{
    return container_of(s, struct traced_store, base);
}

static bool traced_write(struct store *s, struct store_op *ops, size_t n, struct error *err)
{
    struct traced_store *t = traced_of(s);
    int64_t began_us = clock_mono_us();
    bool ok = store_write(t->inner, ops, n, err);
    t->sink(t->arg, "write", ok, clock_mono_us() - began_us);
    return ok;
}

static bool traced_call(struct store *s, struct store_call *c, struct error *err)
{
    struct traced_store *t = traced_of(s);
    int64_t began_us = clock_mono_us();
    bool ok = store_call(t->inner, c, err);
    t->sink(t->arg, store_verbs[c->verb].name, ok, clock_mono_us() - began_us);
    return ok;
}

static void traced_close(struct store *s)
{
    store_close(traced_of(s)->inner);
    free(traced_of(s));
}

static const struct store_ops traced_ops = {
    .name = "traced",
    .close = traced_close,
    .write = traced_write,
    .call = traced_call,
};

struct store *store_traced(struct store *inner,
                           void (*sink)(void *arg, const char *verb, bool ok, int64_t us),
                           void *arg)
{
    struct traced_store *t = xcalloc(1, sizeof(*t));
    t->base.ops = &traced_ops;
    t->inner = inner;
    t->sink = sink;
    t->arg = arg;
    return &t->base;
}
