/* SPDX-License-Identifier: Apache-2.0 */
/* One round of the reaper, by the number of sessions it ended. */
#ifndef HOLDFAST_TESTS_REAP_H
#define HOLDFAST_TESTS_REAP_H

#include "store/store.h"

static inline bool reap_at(struct store *s, int64_t now_ms, unsigned batch, size_t *ret_n,
                           struct error *err)
{
    struct reap_request what = {.now_ms = now_ms, .batch = batch};
    struct reaped reaped = {0};
    if (!store_reap(s, &what, &reaped, err))
        return false;
    *ret_n = reaped.expired;
    return true;
}

#endif
